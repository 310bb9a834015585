#include "lock/data/run_history.h"

#include <catch2/catch.hpp>
#include <string>

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using End = RunRecord::End;

const std::string kRun =
    R"({"began":1789000000123,"duration":1234,"host":"db1","label":"nightly","mode":"exclusive","status":3,"token":42,"user":"ci","waited":12})";

RunRecord Run() {
  return {.end = End::kEnded,
          .began = protocol::ServerTime(1'789'000'000'123),
          .waited = 12ms,
          .duration = 1234ms,
          .status = 3,
          .host = "db1",
          .user = "ci",
          .label = "nightly",
          .token = 42,
          .mode = protocol::Mode::kExclusive};
}

RunRecord Running(std::int64_t token, const std::string& contender) {
  return {.began = protocol::ServerTime(5),
          .waited = 0ms,
          .host = "db2",
          .token = token,
          .contender = contender};
}

/// Returns `data` parsed as a history.
RunHistory Parsed(const std::string& data) {
  auto history = RunHistory::Parse(data);
  REQUIRE(history);
  return *std::move(history);
}

TEST_CASE("A run is read as it was written") {
  RunHistory history;
  history.Enter(Run());
  CHECK(history.Format(32) == "\n" + kRun);
  const RunHistory read = Parsed("\n" + kRun);
  REQUIRE(read.entries().size() == 1);
  CHECK(read.entries().front().run == Run());
  CHECK_FALSE(read.success());
}

TEST_CASE("A reservation is kept with its ID and reason") {
  RunRecord run = Running(7, "h-lock-0000000001");
  run.id = "freeze";
  run.reason = "audit";
  RunHistory history;
  history.Enter(run);
  CHECK(Parsed(history.Format(32)).entries().front().run == run);
}

TEST_CASE(
    "The name of whoever took a lock away is kept, even if the run was already recorded as lost") {
  RunHistory history = Parsed("\n" + kRun);
  history.Enter(Running(43, "h-lock-0000000001"));
  if (GENERATE(false, true)) history.EnterLost({}, 0);
  CHECK(history.EnterTaken(43, "root on db1", "stuck"));
  const RunRecord taken = Parsed(history.Format(32)).entries().front().run;
  CHECK(taken.end == End::kLost);
  CHECK(taken.taken_by == "root on db1");
  CHECK(taken.taken_reason == "stuck");
  CHECK(taken.contender.empty());
  // Neither a run that has ended nor one that is not in the history is changed.
  CHECK_FALSE(history.EnterTaken(42, "root on db1", "stuck"));
  CHECK_FALSE(history.EnterTaken(44, "root on db1", "stuck"));
  CHECK(history.entries().back().line == kRun);
}

TEST_CASE("The first line is the last success as the previous version writes it") {
  RunHistory history;
  history.AddSuccess({protocol::ServerTime(7), "db1"});
  history.AddSuccess({protocol::ServerTime(5), "db0"});
  history.Enter(Run());
  const std::string data = history.Format(32);
  CHECK(data == "zklock/1 7 db1\n" + kRun);
  REQUIRE(Parsed(data).success());
  CHECK(Parsed(data).success()->host == "db1");
  REQUIRE(protocol::ParseLastRunData(data));
  CHECK(protocol::ParseLastRunData(data)->success == history.success());
}

TEST_CASE("A history may be empty, and may end with a newline") {
  for (const std::string data : {"", "\n", "zklock/1 5 h", "zklock/1 5 h\n"}) {
    CAPTURE(data);
    CHECK(Parsed(data).entries().empty());
  }
  CHECK(Parsed("\n" + kRun + "\n").entries().size() == 1);
}

TEST_CASE("Data that is not a history is not understood") {
  for (const std::string& data :
       {kRun, std::string("yesterday"), std::string("zklock/2 5 h\n") + kRun, "\n\n" + kRun,
        "\n" + kRun + "\n\n" + kRun, std::string("\n[]"), std::string("\n{}"), std::string(R"(
{"began":-1,"token":1,"mode":"exclusive"})"),
        std::string(R"(
{"began":1,"token":0,"mode":"exclusive"})"),
        std::string(R"(
{"began":1,"token":1,"mode":"shared"})"),
        std::string(R"(
{"began":1,"token":99999999999999999999,"mode":"read"})"),
        std::string("\n\xff\xfe\0", 4), "\n" + kRun.substr(1)}) {
    CAPTURE(data);
    CHECK_FALSE(RunHistory::Parse(data));
  }
  const std::string full = "\n" + kRun + std::string(kMostHistoryData - kRun.size() - 1, ' ');
  CHECK(RunHistory::Parse(full));
  CHECK_FALSE(RunHistory::Parse(full + " "));
}

TEST_CASE("Fields that are missing or impossible are unknown") {
  const RunHistory history = Parsed(R"(
{"began":1,"token":1,"mode":"write","duration":-1,"status":256,"waited":"long","host":7})");
  const RunRecord& run = history.entries().front().run;
  CHECK(run ==
        RunRecord{.began = protocol::ServerTime(1), .token = 1, .mode = protocol::Mode::kWrite});
}

TEST_CASE("Keys of a later version are ignored and kept") {
  const std::string line =
      R"({"began":1,"contender":"x","mode":"exclusive","node":{"a":[1]},"token":1})";
  RunHistory history = Parsed("\n" + line);
  history.Enter(Run());
  CHECK(history.Format(32) == "\n" + kRun + "\n" + line);
  history.EnterLost({}, 42);
  CHECK(history.Format(32) ==
        "\n" + kRun +
            "\n"
            R"({"began":1,"ended":"lost","mode":"exclusive","node":{"a":[1]},"token":1})");
}

TEST_CASE("The end of another run is recorded once, and the rest of its entry is kept") {
  const std::string line =
      R"({"began":1,"contender":"x","mode":"exclusive","node":{"a":[1]},"token":1})";
  RunHistory history = Parsed("\n" + line + "\n" + kRun);
  history.EnterEnd(1, 5s);
  const std::string ended =
      R"({"began":1,"duration":5000,"mode":"exclusive","node":{"a":[1]},"token":1})";
  CHECK(history.Format(32) == "\n" + ended + "\n" + kRun);
  CHECK(history.Find(1)->end == End::kEnded);
  CHECK(history.Find(1)->duration == 5s);
  history.EnterEnd(1, 6s);
  history.EnterEnd(42, 6s);
  history.EnterEnd(7, 6s);
  CHECK(history.Format(32) == "\n" + ended + "\n" + kRun);
}

TEST_CASE("A run without an end is lost unless its contender exists or it is our own") {
  RunHistory history;
  history.Enter(Running(1, "gone"));
  history.Enter(Running(2, "present"));
  history.Enter(Running(3, "own"));
  history.Enter(Run());
  history.EnterLost({"present", "other"}, 3);
  CHECK(history.Find(1)->end == End::kLost);
  CHECK(history.Find(2)->end == End::kNone);
  CHECK(history.Find(3)->end == End::kNone);
  CHECK(history.Find(42)->end == End::kEnded);
  const RunHistory read = Parsed(history.Format(32));
  CHECK(read.Find(1)->end == End::kLost);
  CHECK(read.Find(2)->contender == "present");
}

TEST_CASE("The end of a run replaces its start, and no run is recorded twice") {
  RunHistory history;
  RunRecord begun = Run();
  begun.end = End::kNone;
  begun.duration.reset();
  begun.status.reset();
  begun.contender = "x";
  history.Enter(begun);
  history.Enter(Running(43, "y"));
  history.Enter(Run());
  history.Enter(Run());
  REQUIRE(history.entries().size() == 2);
  CHECK(history.entries()[1].run == Run());
}

TEST_CASE("The oldest runs are dropped") {
  RunHistory history;
  for (int token = 1; token <= 3; ++token) history.Enter(Running(token, "x"));
  const RunHistory read = Parsed(history.Format(2));
  REQUIRE(read.entries().size() == 2);
  CHECK(read.entries().front().run.token == 3);
  CHECK(read.Find(1) == nullptr);
}

TEST_CASE("A hundred usual runs fit") {
  RunHistory history;
  history.AddSuccess({protocol::ServerTime(1'789'000'000'123), "build7.example.org"});
  for (int i = 1; i <= 101; ++i) {
    RunRecord run = Run();
    run.host = "build7.example.org";
    run.token = 4'294'967'296 + i;
    history.Enter(run);
  }
  const std::string data = history.Format(kMostRuns);
  CHECK(data.size() <= kMostHistoryData);
  CHECK(Parsed(data).entries().size() == 100);
}

TEST_CASE("A history never gets larger than its limit") {
  RunHistory history;
  for (int i = 1; i <= 100; ++i) {
    RunRecord run = Run();
    run.host = run.user = run.label = std::string(500, '\x01');  // six bytes each in JSON
    run.token = i;
    history.Enter(run);
  }
  const std::string data = history.Format(kMostRuns);
  CHECK(data.size() <= kMostHistoryData);
  CHECK(data.size() > kMostHistoryData / 2);
  CHECK(Parsed(data).entries().front().run.token == 100);
}

}  // namespace
}  // namespace zklock::lock
