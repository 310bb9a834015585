#include "cli/views/history_text.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "cli/text/printable.h"
#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using namespace std::chrono_literals;
using End = lock::RunRecord::End;

lock::RunRecord Run(int minutes) {
  return {.end = End::kEnded,
          .began = protocol::ServerTime(test::kNoon) + std::chrono::minutes(minutes),
          .waited = 2s,
          .duration = 65s,
          .status = 0,
          .host = "db1",
          .user = "ci",
          .label = "nightly",
          .token = 4294967342 + minutes};
}

/// Returns a LOCK with one run of each kind.
lock::LockSurvey Surveyed() {
  lock::RunHistory history;
  history.AddSuccess({protocol::ServerTime(test::kNoon), "db1"});
  history.Enter(Run(0));
  lock::RunRecord failed = Run(1);
  failed.status = 3;
  history.Enter(failed);
  lock::RunRecord lost = Run(2);
  lost.end = End::kNone;
  lost.duration.reset();
  lost.status.reset();
  lost.contender = "gone";
  history.Enter(lost);
  lock::RunRecord held = Run(3);
  held.status.reset();
  held.label.clear();
  history.Enter(held);
  lock::RunRecord running = lost;
  running.token += 10;
  running.contender = "here";
  history.Enter(running);
  lock::LockSurvey lock{.path = "/jobs/backup"};
  lock.last_run = history.Format(32);
  lock.running = {"here"};
  return lock;
}

TEST_CASE("A history is a table, the newest run first") {
  test::UseUtc();
  const auto view = DescribeHistory(Surveyed());
  REQUIRE(view);
  CHECK(HistoryText("/jobs/backup", *view, 100, {}) ==
        "/jobs/backup: the last 5 recorded runs\n\n"
        "BEGAN                WAITED  DURATION   STATUS  HOST  USER  LABEL         TOKEN\n"
        "2024-03-01 12:02:00      2s         -  running  db1   ci    nightly  4294967354\n"
        "2024-03-01 12:03:00      2s      1m5s        -  db1   ci    -        4294967345\n"
        "2024-03-01 12:02:00      2s         -     lost  db1   ci    nightly  4294967344\n"
        "2024-03-01 12:01:00      2s      1m5s        3  db1   ci    nightly  4294967343\n"
        "2024-03-01 12:00:00      2s      1m5s        0  db1   ci    nightly  4294967342\n");
  CHECK(HistoryText("/l", *view, 2, {}).starts_with("/l: the last 2 of 5 recorded runs\n"));
  CHECK(HistoryText("/l", {}, 2, {}) == "/l: no run in its history\n");
  CHECK(HistoryText("/l", {.exists = false}, 2, {}) ==
        "/l: no run in its history (it does not exist)\n");
}

TEST_CASE("A narrow terminal shows the most important columns") {
  test::UseUtc();
  const auto view = DescribeHistory(Surveyed());
  REQUIRE(view);
  CHECK(HistoryText("/l", *view, 1, {.width = 40}) ==
        "/l: the last 1 of 5 recorded runs\n\n"
        "BEGAN           WAITED   STATUS  HOST\n"
        "03-01 12:02:00      2s  running  db1\n");
  lock::LockSurvey lock = Surveyed();
  lock::RunHistory history;
  lock::RunRecord run = Run(0);
  run.status = 124;
  run.cause = "max-run";
  history.Enter(run);
  lock.last_run = history.Format(1);
  CHECK(HistoryText("/l", *DescribeHistory(lock), 1, {.width = 40}) ==
        "/l: the last recorded run\n\n"
        "BEGAN           STATUS  NOTE\n"
        "03-01 12:00:00     124  ended by --max-…\n");
}

TEST_CASE("A run that did not end by itself is shown with the cause of its end") {
  test::UseUtc();
  lock::LockSurvey lock = Surveyed();
  const auto shown = [&](const lock::RunRecord& run) {
    lock::RunHistory history;
    history.Enter(run);
    lock.last_run = history.Format(1);
    const RunView view = DescribeHistory(lock)->runs[0];
    CHECK(view.run == run);
    return RunText(view, true);
  };
  lock::RunRecord run = Run(0);
  run.label.clear();
  run.status = 76;
  const std::string rest = ", began 2024-03-01 12:00:00 on db1, waited 2s";
  for (const auto& [cause, note] :
       {std::pair("max-run", "ended by --max-run"),
        std::pair("signal", "ended by a signal to zklock"),
        std::pair("guard-failed", "ended because its guard was killed or hung"),
        std::pair("unproven", "ended because no server confirmed the lock"),
        std::pair("outer", "ended with the outer zklock's lock"),
        std::pair("tides", "ended: tides"),
        std::pair("requested", "asked to release by someone")}) {
    run.cause = cause;
    CHECK(shown(run) == "run: status 76 after 1m5s, " + std::string(note) + rest);
  }
  run.taken_by = "root on db2";
  run.taken_reason = "a freeze";
  CHECK(shown(run) ==
        "run: status 76 after 1m5s, asked to release by root on db2 ('a freeze')" + rest);
}

TEST_CASE("The queue's text shows the last three runs") {
  test::UseUtc();
  const auto view = DescribeHistory(Surveyed());
  REQUIRE(view);
  CHECK(RunText(view->runs[0], true) ==
        "run: running since 2024-03-01 12:02:00 on db1 [nightly], waited 2s");
  CHECK(RunText(view->runs[1], true) ==
        "run: held for 1m5s, began 2024-03-01 12:03:00 on db1, waited 2s");
  CHECK(RunText(view->runs[2], false) ==
        "run: lost, began 03-01 12:02:00 on db1 [nightly], waited 2s");
  CHECK(RunText(view->runs[3], false) ==
        "run: status 3 after 1m5s, began 03-01 12:01:00 on db1 [nightly], waited 2s");
}

TEST_CASE("A reservation is shown as reserved until it is released") {
  test::UseUtc();
  const std::string name = "web1-" + test::kUuid + "-reserve-lock-0000000007";
  lock::RunHistory history;
  lock::RunRecord reserved = Run(0);
  reserved.end = End::kNone;
  reserved.duration.reset();
  reserved.status.reset();
  reserved.contender = name;
  history.Enter(reserved);
  lock::LockSurvey lock{.path = "/l"};
  lock.last_run = history.Format(32);
  lock.running = {name};
  const auto standing = DescribeHistory(lock);
  REQUIRE(standing);
  CHECK(HistoryText("/l", *standing, 100, {.width = 40}) ==
        "/l: the last recorded run\n\n"
        "BEGAN           WAITED    STATUS  HOST\n"
        "03-01 12:00:00      2s  reserved  db1\n");
  CHECK(RunText(standing->runs[0], true) ==
        "run: reserved since 2024-03-01 12:00:00 on db1 [nightly], waited 2s");
  CHECK_FALSE(standing->runs[0].IsBad());
  lock.running.clear();
  CHECK(DescribeHistory(lock)->runs[0].state == RunState::kLost);
  history.EnterEnd(reserved.token, 65s);
  lock.last_run = history.Format(32);
  CHECK(RunText(DescribeHistory(lock)->runs[0], true) ==
        "run: held for 1m5s, began 2024-03-01 12:00:00 on db1 [nightly], waited 2s");
}

TEST_CASE("A history is printed as JSON") {
  lock::LockSurvey lock = Surveyed();
  const auto view = DescribeHistory(lock);
  REQUIRE(view);
  CHECK(HistoryJson("/l", *view, 1) ==
        "[\n{\"lock\":\"/"
        "l\",\"exists\":true,\"lastSuccess\":{\"began\":\"2024-03-01T12:00:00.000Z\",\"host\":"
        "\"db1\"},"
        "\"runs\":[{\"state\":\"running\",\"began\":\"2024-03-01T12:02:00.000Z\",\"waited\":2.0,"
        "\"duration\":null,\"status\":null,\"host\":\"db1\",\"user\":\"ci\",\"label\":\"nightly\","
        "\"mode\":\"exclusive\",\"token\":\"4294967354\",\"id\":null,\"reason\":null,"
        "\"cause\":null,\"takenBy\":null,\"takenReason\":null}]}\n]\n");
  lock.last_run.reset();
  lock.exists = false;
  REQUIRE(DescribeHistory(lock));
  CHECK(HistoryJson("/l", *DescribeHistory(lock), 1) ==
        "[\n{\"lock\":\"/l\",\"exists\":false,\"lastSuccess\":null,\"runs\":[]}\n]\n");
}

TEST_CASE("A history that is not understood or cannot be read is not shown") {
  lock::LockSurvey lock{.path = "/l"};
  lock.last_run = "yesterday";
  CHECK_FALSE(DescribeHistory(lock));
  lock.last_run.reset();
  lock.last_run_refused = true;
  CHECK_FALSE(DescribeHistory(lock));
}

TEST_CASE("No text from a history reaches the terminal unescaped") {
  lock::RunHistory history;
  lock::RunRecord run = Run(0);
  run.host = run.user = run.label = "\x1b[2J\n\xe2\x80\xae";
  history.Enter(run);
  lock::LockSurvey lock{.path = "/l"};
  lock.last_run = history.Format(1);
  const auto view = DescribeHistory(lock);
  REQUIRE(view);
  const std::string text = HistoryText("/l", *view, 1, {});
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\xe2\x80\xae") == std::string::npos);
}

}  // namespace
}  // namespace zklock::cli
