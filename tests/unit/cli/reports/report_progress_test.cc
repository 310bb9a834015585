#include "cli/reports/report_progress.h"

#include <catch2/catch.hpp>
#include <chrono>

#include "cli/text/history_view.h"
#include "cli/text/printable.h"
#include "lock/data/run_history.h"
#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using namespace std::chrono_literals;
using test::kNoon;
using test::UseUtc;

const ProgressView kView = {
    .lock = "/jobs/backup",
    .waited = 17s,
    .ahead = 0,
    .holder = "build1-uuid-lock-0000000007",
    .holder_data = R"({"version":1,"host":"build1","pid":4242,"command":"backup.sh"})",
    .held_for = 18s};

}  // namespace

TEST_CASE("Progress is a sentence: the LOCK, the position, the wait, the holder") {
  CHECK(ProgressLine(kView) ==
        "waiting for /jobs/backup: next in line, 17s; held by backup.sh (pid 4242 on build1) for "
        "18s");
}

TEST_CASE("Progress shows as much of the holder as is known") {
  ProgressView view = kView;
  SECTION("nothing") {
    view.holder = "";
    CHECK(ProgressLine(view) == "waiting for /jobs/backup: next in line, 17s");
  }
  SECTION("all but since when") {
    view.held_for.reset();
    CHECK(ProgressLine(view) ==
          "waiting for /jobs/backup: next in line, 17s; held by backup.sh (pid 4242 on build1)");
  }
  SECTION("only its znode's name") {
    view.holder_data = "192.168.0.7";
    CHECK(
        ProgressLine(view) ==
        "waiting for /jobs/backup: next in line, 17s; held by build1-uuid-lock-0000000007 for 18s");
  }
  SECTION("the purpose of the reservation") {
    UseUtc();
    view.reserved = {.reservation = {.id = "freeze", .reason = "incident\x1b 4711"},
                     .until = std::chrono::milliseconds(kNoon)};
    CHECK(ProgressLine(view) ==
          "waiting for /jobs/backup: next in line, 17s; reserved for freeze until 2024-03-01 "
          "12:00:00: incident\\x1b 4711");
  }
  SECTION("the first of several, for a semaphore") {
    view.more_holders = 2;
    CHECK(ProgressLine(view) ==
          "waiting for /jobs/backup: next in line, 17s; held by backup.sh (pid 4242 on build1) for "
          "18s, and 2 more");
  }
  SECTION("facts known before the servers stopped answering are not repeated") {
    view.connected = false;
    CHECK(ProgressLine(view) == "waiting for /jobs/backup: next in line, 17s; no server answers");
  }
}

TEST_CASE("A contender is described by its command and its label") {
  CHECK(ProcessText("c-1", R"({"host":"b7","pid":7})") == "a command (pid 7 on b7)");
  CHECK(ProcessText("c-1", R"({"host":"b7","pid":7,"command":"sh","label":"nightly"})") ==
        "sh (pid 7 on b7, 'nightly')");
  CHECK(ProcessText("c-1", R"({"host":"b7","label":"nightly"})") == "c-1");
  // CI jobs are told apart by the ends of their URLs.
  const std::string url = "https://git.example.org/" + std::string(80, 'g') + "/-/jobs/4711";
  CHECK_THAT(ProcessText("c-1", R"({"host":"b7","pid":7,"label":")" + url + "\"}"),
             Catch::EndsWith("gg/-/jobs/4711')"));
}

TEST_CASE("The place in line is the number of waiters ahead, if that is known") {
  const auto line = [](const std::optional<std::size_t>& ahead) {
    return ProgressLine({.lock = "/l", .waited = 1s, .ahead = ahead});
  };
  CHECK(line(0) == "waiting for /l: next in line, 1s");
  CHECK(line(1) == "waiting for /l: 1 waiting ahead, 1s");
  CHECK(line(12) == "waiting for /l: 12 waiting ahead, 1s");
  CHECK(line(std::nullopt) == "waiting for /l: 1s");
}

TEST_CASE("A history shows how long runs take") {
  using End = lock::RunRecord::End;
  lock::RunHistory history;
  std::int64_t token = 0;
  const auto add = [&](std::chrono::milliseconds ran, std::optional<int> status, End end) {
    history.Enter({.end = end, .duration = ran, .status = status, .token = ++token});
  };
  const auto text = [&] { return RunsTakeText(history.Format(100)); };
  CHECK(text().empty());
  add(1s, 1, End::kEnded);                // a failed run may have ended early
  add(90min, std::nullopt, End::kEnded);  // --hold
  CHECK(text().empty());
  add(4min + 3s, 0, End::kEnded);
  CHECK(text() == "runs take 4m3s");
  add(6min, 0, End::kEnded);
  add(5min, 0, End::kEnded);
  CHECK(text() == "runs take 4m3s to 6m");
  CHECK(RunsTakeText("\xff{").empty());

  ProgressView view = kView;
  view.last_run = history.Format(100);
  CHECK(ProgressLine(view) ==
        "waiting for /jobs/backup: next in line, 17s; held by backup.sh (pid 4242 on build1) for "
        "18s; runs take 4m3s to 6m");
}

TEST_CASE("On a narrow terminal the LOCK's beginning is cut first, then the line's end") {
  ProgressView view = kView;
  view.lock = "/teams/storage/nightly/backup";
  CHECK(LiveProgress(view, 200) ==
        "zklock: waiting for /teams/storage/nightly/backup: next in line, 17s; held by backup.sh "
        "(pid 4242 on build1) for 18s");
  CHECK(LiveProgress(view, 111) ==
        "zklock: waiting for …/storage/nightly/backup: next in line, 17s; held by backup.sh (pid "
        "4242 on build1) for 18s");
  CHECK(LiveProgress(view, 78) ==
        "zklock: waiting for …/nightly/backup: next in line, 17s; held by backup.sh (p…");
  CHECK(LiveProgress(view, 77) ==
        "zklock: waiting for …/nightly/backup: next in line, 17s; held by backup.sh (…");
  // If there is little room for the holder, only LOCK and the time precede it.
  CHECK(LiveProgress(view, 57) == "…htly/backup: 17s; held by backup.sh (pid 4242 on build1…");
  CHECK(LiveProgress(view, 37) == "…htly/backup: 17s; held by backup.sh…");
  view.holder.clear();
  CHECK(LiveProgress(view, 56) == "zklock: waiting for …e/nightly/backup: next in line, 17s");
  CHECK(LiveProgress(view, 41) == "waiting for …ly/backup: next in line, 17s");
  view = kView;
  for (std::size_t columns = 0; columns < 120; ++columns) {
    CAPTURE(columns);
    CHECK(DisplayWidth(LiveProgress(view, columns)) <= columns);
  }
}

}  // namespace zklock::cli
