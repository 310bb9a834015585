#include "cli/views/queue_check.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "lock/data/run_history.h"
#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using namespace test;

constexpr std::int64_t kMinute = 60000;
constexpr std::int64_t kHour = 60 * kMinute;

/// Returns a LOCK held since noon, with one waiter that joined five seconds later.
lock::LockSurvey Held(const std::string& path = "/jobs/a") {
  lock::LockSurvey lock{.path = path};
  lock.entries = {Contender(OurName("web1", "lock-", 1), 0,
                            lock::FormatContenderData({.host = "web1", .pid = 42})),
                  Contender(OurName("web2", "lock-", 2), 5)};
  return Found(lock);
}

/// Returns a free LOCK whose last run ended at noon, after a minute.
lock::LockSurvey Free(int status = 0) {
  lock::LockSurvey lock{.path = "/jobs/free"};
  SetLastRun(lock,
             {.contender = "x",
              .token = 1,
              .duration = std::chrono::minutes(1),
              .status = status,
              .host = "web1"},
             kNoon);
  return lock;
}

CheckResult Judge(const std::vector<lock::LockSurvey>& locks, const CheckLimits& limits,
                  std::int64_t after_noon) {
  QueueCheck check(limits, kNoon + after_noon);
  Report(check, locks);
  check.EndPath("/jobs", {});
  return check.Result();
}

std::string Data(const CheckResult& result) {
  return result.line.substr(result.line.find(" | ") + 3);
}

}  // namespace

TEST_CASE("Without limits every lock is fine") {
  const CheckResult held = Judge({Held()}, {}, 90000);
  CHECK(held.state == CheckState::kOk);
  CHECK(
      held.line ==
      "OK - /jobs/a: held for 1m30s by pid 42 on web1, 1 waiting | 'held'=90s;;;0; 'wait'=85s;;;0; "
      "'waiting'=1;;;0; 'locks'=1;;;0;\n");
  CHECK(Judge({Held(), Free()}, {}, 90000).line.starts_with("OK - 2 locks, 1 held, 1 waiting | "));
}

TEST_CASE("A lock that a stray znode blocks is critical, free or not") {
  lock::LockSurvey free{.path = "/jobs/a"};
  free.entries = {Contender(OurName("web1", "lock-", 1), 0)};
  free.entries.front().stat.ephemeral_owner = 0;
  CHECK(Judge({free}, {}, 90000).state == CheckState::kOk);
  free.entries.front().blocking = "locks/x";
  lock::LockSurvey held = Held();
  held.entries.push_back(free.entries.front());
  for (const lock::LockSurvey& one : {free, held}) {
    const CheckResult result = Judge({one}, {}, 90000);
    CHECK(result.state == CheckState::kCritical);
    CHECK(
        result.line.starts_with("CRITICAL - /jobs/a: runs are refused: its child locks/x is "
                                "not a contender | "));
  }
}

TEST_CASE("A value above a limit determines the state") {
  const CheckLimits limits{.held = CheckLimit{kMinute, kHour}};
  CHECK(Judge({Held()}, limits, kMinute).state == CheckState::kOk);
  const CheckResult warning = Judge({Held()}, limits, kMinute + 1);
  CHECK(warning.state == CheckState::kWarning);
  CHECK(warning.line.starts_with(
      "WARNING - /jobs/a: held for 1m by pid 42 on web1 (more than 1m) | "));
  CHECK(Data(warning).starts_with("'held'=60.001s;60;3600;0; "));
  CHECK(Judge({Held()}, limits, kHour + 1).state == CheckState::kCritical);

  CHECK(Judge({Held()}, {.wait = CheckLimit{.critical = 1000}}, 6000).state == CheckState::kOk);
  CHECK(Judge({Held()}, {.wait = CheckLimit{.critical = 1000}}, 7000)
            .line.starts_with("CRITICAL - /jobs/a: one has waited for 2s"));
  CHECK(Judge({Held()}, {.waiting = CheckLimit{.critical = 1}}, 0).state == CheckState::kOk);
  CHECK(Judge({Held()}, {.waiting = CheckLimit{.critical = 0}}, 0)
            .line.starts_with("CRITICAL - /jobs/a: 1 waiting (more than 0) | "));
}

TEST_CASE("The age of the last success counts from its start") {
  const CheckLimits limits{.age = CheckLimit{.critical = kHour}};
  CHECK(Judge({Free()}, limits, kHour - kMinute).state == CheckState::kOk);
  const CheckResult old = Judge({Free()}, limits, kHour);
  CHECK(old.state == CheckState::kCritical);
  CHECK(old.line.starts_with("CRITICAL - /jobs/free: the last success began 1h1m ago"));
  SECTION("a failure is not a success") {
    CHECK(Judge({Free(1)}, limits, 0)
              .line.starts_with("CRITICAL - /jobs/free: no success is known | "));
  }
  SECTION("there is no lock") {
    CHECK(Judge({}, limits, 0).line.starts_with("CRITICAL - /jobs: no success is known"));
    CHECK(Judge({}, {}, 0).line.starts_with("OK - /jobs: free | "));
  }
  SECTION("last-run records a success") {
    lock::LockSurvey lock = Free(1);
    lock.last_run = "zklock/1 " + std::to_string(kNoon) + " web1\n{}\n";
    lock.last_run_stat.modified_ms = kNoon + kMinute;
    CHECK(Judge({lock}, limits, kHour).state == CheckState::kOk);
    CHECK(Judge({lock}, limits, kHour + 1).state == CheckState::kCritical);
  }
}

TEST_CASE("A success in the future is ignored") {
  lock::LockSurvey lock{.path = "/l"};
  lock.last_run = "zklock/1 " + std::to_string(kNoon + 1000 * kHour) + " web1";
  lock.last_run_stat.modified_ms = kNoon;
  const CheckLimits limits{.age = CheckLimit{.critical = kHour}};
  CHECK(Judge({lock}, limits, 2 * kHour).state == CheckState::kCritical);
}

TEST_CASE("A time in the future is treated as the present") {
  const CheckLimits limits{.held = CheckLimit{.critical = 0}, .wait = CheckLimit{.critical = 0}};
  const CheckResult ahead = Judge({Held()}, limits, -kHour);
  CHECK(ahead.line ==
        "OK - /jobs/a: held for 0s by pid 42 on web1, 1 waiting | 'held'=0s;;0;0; 'wait'=0s;;0;0; "
        "'waiting'=1;;;0; 'locks'=1;;;0;\n");
  const CheckResult success = Judge({Free()}, {.age = CheckLimit{.critical = 0}}, -kHour);
  CHECK(success.state == CheckState::kOk);
  CHECK_THAT(Data(success), Catch::Contains("'age'=0s;;0;0;"));
}

TEST_CASE("A failed or lost last run is critical if that is requested") {
  const CheckLimits limits{.last_run = true};
  CHECK(Judge({Free()}, limits, 0).state == CheckState::kOk);
  CHECK(Judge({Free(3)}, {}, 0).state == CheckState::kOk);
  CHECK(Judge({{.path = "/never"}}, limits, 0).state == CheckState::kOk);
  const CheckResult failed = Judge({Free(3)}, limits, kHour);
  CHECK(failed.state == CheckState::kCritical);
  CHECK(
      failed.line.starts_with("CRITICAL - /jobs/free: the last recorded run failed with status 3 "
                              "(it began 1h1m ago on web1) | "));

  const std::string gone = OurName("web2", "lock-", 5);
  const auto with_history = [&](std::vector<lock::RunRecord> newest_last) {
    lock::LockSurvey lock = Free();  // its record has the token 1
    lock::RunHistory history;
    for (const lock::RunRecord& run : newest_last) history.Enter(run);
    lock.last_run = history.Format(10);
    return lock;
  };
  const lock::RunRecord lost{
      .began = protocol::ServerTime(kNoon), .host = "web2", .token = 5, .contender = gone};
  const lock::RunRecord ended{.end = lock::RunRecord::End::kEnded,
                              .began = protocol::ServerTime(kNoon),
                              .duration = std::chrono::minutes(1),
                              .status = 0,
                              .host = "web1",
                              .token = 6};
  SECTION("lost") {
    CHECK(Judge({with_history({lost})}, limits, kHour)
              .line.starts_with("CRITICAL - /jobs/free: the last recorded run was lost (it began "
                                "1h ago on web2) | "));
  }
  SECTION("lost, and the next one still runs") {
    lock::RunRecord next = lost;
    next.token = 7;
    next.contender = OurName("web3", "lock-", 7);
    lock::LockSurvey lock = with_history({lost, next});
    lock.running = {next.contender};
    CHECK(Judge({lock}, limits, kHour).state == CheckState::kCritical);
  }
  SECTION("lost, and a newer one has succeeded") {
    CHECK(Judge({with_history({lost, ended})}, limits, kHour).state == CheckState::kOk);
  }
  SECTION("failed, and a --hold has ended since") {
    lock::RunRecord failed_run = ended;
    failed_run.status = 9;
    lock::RunRecord hold = ended;
    hold.token = 7;
    hold.status.reset();
    CHECK_THAT(Judge({with_history({failed_run, hold})}, limits, kHour).line,
               Catch::Contains("failed with status 9"));
  }
  SECTION("not readable") {
    lock::LockSurvey lock = Free(3);
    lock.last_run_refused = true;
    CHECK(Judge({lock}, limits, 0)
              .line.starts_with("UNKNOWN - /jobs/free: its runs cannot be read | "));
  }
}

TEST_CASE("Unreadable data makes the state unknown, unless the readable data is recent enough") {
  const CheckLimits limits{.age = CheckLimit{.critical = kHour}};
  lock::LockSurvey lock = Free();
  SECTION("last-run has other data") { lock.last_run = "\xff{"; }
  SECTION("last-run is refused") { lock.last_run_refused = true; }
  SECTION("the LOCK's own data is refused") {
    lock.readable = false;
    lock.last_run = "zklock/1 " + std::to_string(kNoon - kMinute) + " web1";
    lock.last_run_stat.modified_ms = kNoon;
  }
  CHECK(Judge({lock}, limits, 0).state == CheckState::kOk);
  const CheckResult old = Judge({lock}, limits, 2 * kHour);
  CHECK(old.state == CheckState::kUnknown);
  CHECK(old.line.starts_with("UNKNOWN - /jobs/free: the record of its last success cannot"));

  lock::LockSurvey held = Held();
  held.entries[0].readable = false;
  const CheckResult hidden = Judge({held}, {.held = CheckLimit{.critical = 1}}, 0);
  CHECK(hidden.state == CheckState::kUnknown);
  CHECK(Data(hidden).starts_with("'held'=U;;0.001;0; "));
}

TEST_CASE("The worst lock determines the state and is named first, but not all locks are named") {
  const CheckLimits limits{.held = CheckLimit{1000, 2 * kHour}, .age = CheckLimit{.critical = 1}};
  std::vector<lock::LockSurvey> locks;
  for (const char* const path : {"/a", "/b", "/c"}) {
    locks.push_back(Held(path));
    locks.back().last_run = "zklock/1 " + std::to_string(kNoon + kHour) + " h";
    locks.back().last_run_stat.modified_ms = kNoon + kHour;
  }
  lock::LockSurvey never{.path = "/never"};
  locks.push_back(never);
  const CheckResult result = Judge(locks, limits, kHour);
  CHECK(result.state == CheckState::kCritical);
  CHECK_THAT(result.line, Catch::StartsWith("CRITICAL - /never: no success is known; /a: held") &&
                              Catch::Contains("; and 1 more | "));
  QueueCheck check(limits, kNoon + kHour);
  Report(check, {Held("/a")});
  check.AddUnknown("not authorised");
  check.EndPath("/a", {"/secret", "/other"});
  CHECK(check.Result().state == CheckState::kCritical);
  QueueCheck unlisted({}, kNoon);
  unlisted.EndPath("/a", {"/secret", "/other"});
  CHECK(unlisted.Result().line == "UNKNOWN - not authorised to list /secret and 1 more\n");
}

TEST_CASE("A known problem takes precedence over an unknown state") {
  QueueCheck check({.held = CheckLimit{1000, kHour}}, kNoon + kMinute);
  check.AddUnknown("not authorised");
  check.EndPath("/b", {"/b"});
  Report(check, {Held("/a")});
  check.EndPath("/a", {});
  CHECK(check.Result().state == CheckState::kWarning);
  CHECK_THAT(check.Result().line, Catch::StartsWith("WARNING - /a: held for 1m ") &&
                                      Catch::Contains("; not authorised"));
}

TEST_CASE("The performance data are the largest values of all locks") {
  lock::LockSurvey later =
      Found({.path = "/later", .entries = {Contender(OurName("h", "lock-", 1), 50)}});
  const std::string data = "'held'=60s;;;0; 'wait'=55s;;;0; 'waiting'=1;;;0; 'locks'=2;;;0;\n";
  CHECK(Data(Judge({Held(), later}, {}, kMinute)) == data);
  CHECK(Data(Judge({later, Held()}, {}, kMinute)) == data);
}

TEST_CASE(
    "A reservation does not count as held, but is checked, and causes a warning when overdue") {
  lock::LockSurvey lock{.path = "/l"};
  const CheckLimits limits{.held = CheckLimit{.critical = kMinute}};
  SECTION("with an end in the future") {
    lock.entries = {Reservation(OurName("web1", "reserve-lock-", 1), 1, kIn2099)};
    const CheckResult result = Judge({Found(lock)}, limits, 3 * kMinute);
    CHECK(result.line.starts_with(
        "CRITICAL - /l: reserved 2m ago for freeze (more than 1m) | 'held'=120s;;60;0; "));
    CHECK(Judge({Found(lock)}, {}, kHour + kMinute)
              .line.starts_with("OK - /l: reserved 1h ago for freeze | "));
    CHECK(Judge({Found(lock), Held(), Free()}, {}, kHour)
              .line.starts_with("OK - 3 locks, 1 held, 1 reserved, 1 waiting | "));
  }
  SECTION("alongside a reader") {
    lock.entries = {Reservation(OurName("web1", "__READ__", 1), 1, kIn2099),
                    Contender(OurName("web1", "__READ__", 2), 0)};
    CHECK(Judge({Found(lock)}, {}, kHour + kMinute)
              .line.starts_with("OK - /l: held for 1h by web1, reserved 1h ago for freeze | "));
    CHECK(Judge({Found(lock), Free()}, {}, kHour)
              .line.starts_with("OK - 2 locks, 1 held, 1 reserved, 0 waiting | "));
  }
  SECTION("overdue") {
    lock.entries = {Reservation(OurName("web1", "reserve-lock-", 1), 1, kNoon + 2 * kMinute)};
    CHECK(Judge({Found(lock)}, {}, kHour + 2 * kMinute)
              .line.starts_with("WARNING - /l: the reservation freeze is overdue by 1h | "));
  }
}

TEST_CASE("Names cannot forge a line or performance data") {
  lock::LockSurvey lock = Held("/a|'held'=1s\n\x1b[2J");
  lock.entries[0].data = lock::FormatContenderData({.host = "h|x\ny", .pid = 1});
  QueueCheck unlisted({}, kNoon);
  unlisted.EndPath("/a", {"/a|b\n\x1b[2J"});
  for (const std::string& line :
       {Judge({lock}, {.held = CheckLimit{.critical = 0}}, 9000).line, Judge({lock}, {}, 9000).line,
        UnknownCheck("a|b\nc").line, unlisted.Result().line}) {
    CAPTURE(line);
    CHECK(line.find('\n') == line.size() - 1);
    CHECK(std::count(line.begin(), line.end(), '|') == (line.starts_with("UNKNOWN") ? 0 : 1));
    CHECK(line.find('\x1b') == std::string::npos);
  }
  CHECK(UnknownCheck("a|b\nc").line == "UNKNOWN - a\\x7cb\\nc\n");
}

}  // namespace zklock::cli
