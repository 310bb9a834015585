#include "cli/views/queue_metrics.h"

#include <catch2/catch.hpp>
#include <string>

#include "lock/data/run_history.h"
#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using namespace test;

std::string Metrics(const std::vector<lock::LockSurvey>& locks) {
  QueueMetrics metrics(kNoon + 90500);
  Report(metrics, locks);
  return metrics.Text(2);
}

bool HasLine(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("Samples are grouped by metric, each with its help and type") {
  lock::LockSurvey held{.path = "/a"};
  held.entries = {Contender(OurName("web1", "lock-", 1), 0),
                  Contender(OurName("web2", "lock-", 2), 30)};
  lock::LockSurvey free{.path = "/b"};
  SetLastRun(free,
             {.contender = "x",
              .token = 1,
              .duration = std::chrono::milliseconds(1250),
              .status = 0,
              .host = "web1"},
             kNoon);
  const std::string text = Metrics({Found(held), free});
  CHECK(text.starts_with(
      "# HELP zklock_held Whether any contender holds the lock, not counting reservations.\n"
      "# TYPE zklock_held gauge\n"
      "zklock_held{lock=\"/a\"} 1\n"
      "zklock_held{lock=\"/b\"} 0\n"
      "# HELP zklock_holders "));
  for (const char* const line : {
           "zklock_holders{lock=\"/a\"} 1",
           "zklock_waiting{lock=\"/a\"} 1",
           "zklock_held_seconds{lock=\"/a\"} 90.500",
           "zklock_held_seconds{lock=\"/b\"} 0",
           "zklock_oldest_wait_seconds{lock=\"/a\"} 60.500",
           "zklock_last_run_end_timestamp_seconds{lock=\"/b\"} 1709294400",
           "zklock_last_run_duration_seconds{lock=\"/b\"} 1.250",
           "zklock_last_run_status{lock=\"/b\"} 0",
           "zklock_last_run_lost{lock=\"/b\"} 0",
           "zklock_lost_runs{lock=\"/b\"} 0",
           "zklock_last_success_timestamp_seconds{lock=\"/b\"} 1709294398.750",
           "zklock_reserved{lock=\"/b\"} 0",
           "zklock_deadlocked{lock=\"/a\"} 0",
           "zklock_deadlocked{lock=\"/b\"} 0",
           "zklock_unlistable_znodes 2",
       }) {
    CAPTURE(line, text);
    CHECK(HasLine(text, line));
  }
  CHECK(text.find("last_run_status{lock=\"/a\"") == std::string::npos);
}

TEST_CASE("The last run is the newest of the history and of the release record") {
  lock::LockSurvey lock{.path = "/l"};
  lock::RunHistory history;
  const lock::RunRecord lost{.end = lock::RunRecord::End::kLost, .token = 5};
  const lock::RunRecord failed{.end = lock::RunRecord::End::kEnded,
                               .began = protocol::ServerTime(kNoon),
                               .duration = std::chrono::minutes(1),
                               .status = 3,
                               .token = 6};
  history.Enter(lost);
  SECTION("a failed run after a lost one") {
    history.Enter(failed);
    lock.last_run = history.Format(10);
    const std::string text = Metrics({lock});
    for (const char* const line : {
             "zklock_last_run_status{lock=\"/l\"} 3",
             "zklock_last_run_end_timestamp_seconds{lock=\"/l\"} 1709294460",
             "zklock_last_run_duration_seconds{lock=\"/l\"} 60",
             "zklock_last_run_lost{lock=\"/l\"} 0",
             "zklock_lost_runs{lock=\"/l\"} 1",
         }) {
      CAPTURE(line, text);
      CHECK(HasLine(text, line));
    }
  }
  SECTION("a lost run, whose end is unknown") {
    lock.last_run = history.Format(10);
    SetLastRun(lock, {.contender = "x", .token = 4, .status = 1, .host = "h"}, kNoon);
    const std::string text = Metrics({lock});
    CHECK(HasLine(text, "zklock_last_run_lost{lock=\"/l\"} 1"));
    CHECK(text.find("zklock_last_run_status{") == std::string::npos);
    CHECK(text.find("zklock_last_run_end_timestamp_seconds{") == std::string::npos);
  }
  SECTION("a record that is newer than the history") {
    lock.last_run = history.Format(10);
    SetLastRun(lock, {.contender = "x", .token = 8, .status = 1, .host = "h"}, kNoon);
    const std::string text = Metrics({lock});
    CHECK(HasLine(text, "zklock_last_run_status{lock=\"/l\"} 1"));
    CHECK(HasLine(text, "zklock_lost_runs{lock=\"/l\"} 1"));
  }
  SECTION("a history that cannot be read") {
    lock.last_run_refused = true;
    CHECK(Metrics({lock}).find("zklock_lost_runs{") == std::string::npos);
  }
}

TEST_CASE("A reservation does not count as held, and its start and end are reported once") {
  lock::LockSurvey lock{.path = "/l"};
  lock.entries = {Reservation(OurName("h", "__READ__", 1), 1, kIn2099),
                  Reservation(OurName("h", "__READ__", 2), 2, std::nullopt)};
  const std::string text = Metrics({Found(lock)});
  CHECK(HasLine(text, "zklock_reserved{lock=\"/l\"} 1"));
  for (const std::string none : {"held", "holders", "held_seconds"}) {
    CHECK(HasLine(text, "zklock_" + none + "{lock=\"/l\"} 0"));
  }
  CHECK(HasLine(text,
                "zklock_reservation_start_timestamp_seconds{lock=\"/l\",id=\"freeze\"} "
                "1709294460"));
  CHECK(HasLine(text,
                "zklock_reservation_end_timestamp_seconds{lock=\"/l\",id=\"freeze\"} "
                "4070908800"));
  const std::string start = "zklock_reservation_start_timestamp_seconds{";
  CHECK(text.find(start) == text.rfind(start));
}

TEST_CASE("Reservations of several locks with the same ID have a start and an end each") {
  std::vector<lock::LockSurvey> locks;
  for (const char* const path : {"/a", "/b"}) {
    locks.push_back(Found(
        {.path = path, .entries = {Reservation(OurName("h", "reserve-lock-", 1), 1, kIn2099)}}));
  }
  const std::string text = Metrics(locks);
  for (const std::string lock : {"/a", "/b"}) {
    CAPTURE(lock, text);
    CHECK(HasLine(text, "zklock_reserved{lock=\"" + lock + "\"} 1"));
    CHECK(HasLine(text, "zklock_reservation_end_timestamp_seconds{lock=\"" + lock +
                            "\",id=\"freeze\"} 4070908800"));
  }
}

TEST_CASE(
    "A start in the future is treated as now; a success in the future is reported as recorded") {
  QueueMetrics metrics(kNoon - 1000);
  lock::LockSurvey lock{.path = "/l", .entries = {Contender(OurName("h", "lock-", 1), 0)}};
  lock.last_run = "zklock/1 " + std::to_string(kNoon + 1000000) + " h";
  lock.last_run_stat.modified_ms = kNoon;
  Report(metrics, {Found(lock)});
  const std::string text = metrics.Text(0);
  CHECK(HasLine(text, "zklock_held_seconds{lock=\"/l\"} 0"));
  CHECK(HasLine(text, "zklock_last_success_timestamp_seconds{lock=\"/l\"} 1709294400"));
}

TEST_CASE("A time that is not known has no sample") {
  lock::LockSurvey lock{.path = "/l"};
  lock.entries = {Contender(OurName("h", "lock-", 1), 1)};
  lock.entries[0].readable = false;
  const std::string text = Metrics({Found(lock)});
  CHECK(HasLine(text, "zklock_held{lock=\"/l\"} 1"));
  CHECK(text.find("zklock_held_seconds{") == std::string::npos);
}

TEST_CASE("A label is escaped as the format says") {
  CHECK(EscapedLabel("/a\\b\"c\nd\te|é") == "/a\\\\b\\\"c\\nd\te|é");
  CHECK(EscapedLabel("\xff/x\xc3") == "\uFFFD/x\uFFFD");
}

TEST_CASE("Seconds have three decimals or none") {
  CHECK(SecondsText(0) == "0");
  CHECK(SecondsText(7200000) == "7200");
  CHECK(SecondsText(1005) == "1.005");
  CHECK(SecondsText(-1500) == "-1.500");
}

}  // namespace zklock::cli
