// A command that is forked before it may begin, and what can happen to it, its guard and zklock
// until then.

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include "support/hang.h"
#include "support/temporary.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Child;
using test::Exited;
using test::ExitFrom;
using test::Killed;
using test::ParentOf;

/// Waits until the guard has forked the command.
pid_t WaitForCommand(const Supervisor& supervisor) {
  test::WaitUntil([&] { return supervisor.command_pid() != 0; });
  return supervisor.command_pid();
}

TEST_CASE("a prepared command is executed when it begins, with the environment given then",
          "[native]") {
  auto [signals, spec, command] = Prepared(Script("exit ${STATUS:-9}"));
  const pid_t pid = WaitForCommand(*command);
  CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe") ==
        std::filesystem::read_symlink("/proc/self/exe"));
  spec.environment.emplace_back("STATUS=5");
  REQUIRE_FALSE(Begin(*command, spec));
  CHECK(command->command_pid() == pid);
  CHECK(command->has_started());
  CHECK(ExitFrom(WaitForEnd(*command).wait_status) == Exited(5));
}

TEST_CASE("once the forks are reported the guard has left the process group") {
  const Signals signals;
  for (int i = 0; i < 50; ++i) {
    const auto command = Supervisor::Prepare(Script("exit 0"), signals);
    REQUIRE(command->AwaitForks(test::kPatience));
    const pid_t guard = ParentOf(command->command_pid());
    CHECK(getsid(guard) == guard);
    CHECK(getpgid(command->command_pid()) == getpgid(0));
    CHECK(command->AwaitForks(Duration::zero()));
  }
}

TEST_CASE("zklock does not wait forever for a guard that never gets ready") {
  const Signals signals;
  const auto before = ChildrenOf(getpid());
  {
    const auto command = Supervisor::Prepare(Script("exit 0"), signals);
    const auto children = ChildrenOf(getpid());
    SECTION("killed") {
      for (const pid_t child : children) kill(child, SIGKILL);
      for (const pid_t child : children) test::WaitUntilGone(child);
      // The command may have been ready before that, so either result is acceptable.
      (void)command->AwaitForks(test::kPatience);
    }
    SECTION("stopped") {
      for (const pid_t child : children) kill(child, SIGSTOP);
      (void)command->AwaitForks(milliseconds(1));
    }
  }
  // A guard that was stopped during its fork leaves a command behind, which ends with the guard.
  for (const pid_t child : ChildrenOf(getpid())) {
    if (std::find(before.begin(), before.end(), child) != before.end()) continue;
    test::WaitUntilGone(child);
    waitpid(child, nullptr, 0);
  }
  CHECK(ChildrenOf(getpid()) == before);
}

TEST_CASE("nothing is left of a prepared command that is discarded") {
  const Signals signals;
  const auto before = ChildrenOf(getpid());
  pid_t guard = 0;
  {
    const auto command = Supervisor::Prepare(Script("exit 0"), signals);
    guard = ParentOf(WaitForCommand(*command));
    SECTION("undisturbed") {}
    SECTION("after the command was killed") { kill(command->command_pid(), SIGKILL); }
    SECTION("after the command was stopped") { kill(command->command_pid(), SIGSTOP); }
    SECTION("after the guard was stopped") { kill(guard, SIGSTOP); }
    SECTION("after the guard was killed") { kill(guard, SIGKILL); }
  }
  CHECK(ChildrenOf(getpid()) == before);
  CHECK_FALSE(ReadProcessStat(guard));
}

TEST_CASE("a command that is stopped as it is forked leaves nothing when it is discarded") {
  const Signals signals;
  const auto before = ChildrenOf(getpid());
  // Some of these are stopped before they have asked for KILL when their guard ends.
  for (int i = 0; i < 200; ++i) {
    const auto command = Supervisor::Prepare(Script("exit 0"), signals);
    while (command->command_pid() == 0) {
    }
    kill(command->command_pid(), SIGSTOP);
  }
  CHECK(ChildrenOf(getpid()) == before);
}

TEST_CASE("a command that is discarded before its guard has forked it leaves nothing alive") {
  const Signals signals;
  for (int i = 0; i < 200; ++i) {
    (void)Supervisor::Prepare(Script("exit 0"), signals);
    for (const pid_t child : ChildrenOf(getpid())) {
      test::WaitUntilGone(child);
      waitpid(child, nullptr, 0);
    }
  }
  CHECK(ChildrenOf(getpid()).empty());
}

TEST_CASE("a guard that is stopped while the command waits is continued when it begins") {
  const auto [signals, spec, command] = Prepared(Script("exit 5"));
  command->Await(spec.lease_end, spec.kill_after);
  const pid_t guard = test::ParentOf(command->command_pid());
  kill(guard, SIGSTOP);
  WaitForState(guard, 'T');
  command->Begin(spec.environment);
  CHECK(ExitFrom(WaitForEnd(*command).wait_status) == Exited(5));
}

TEST_CASE("a signal that arrives before the command begins ends the command as it begins",
          "[native]") {
  const Signals signals;
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1);
  CAPTURE(number);
  const TestCommand spec = Script("ulimit -c 0; exit 5");
  const auto command = Supervisor::Prepare(spec, signals);
  kill(WaitForCommand(*command), number);
  REQUIRE_FALSE(Begin(*command, spec));
  CHECK(ExitFrom(WaitForEnd(*command).wait_status) == Killed(number));
}

TEST_CASE("an awaited command that never begins leaves nothing behind") {
  const Signals signals;
  const auto before = ChildrenOf(getpid());
  {
    const auto command = Supervisor::Prepare(Script("exit 5"), signals);
    command->Await(BootClock::now() + hours(1), Duration::zero());
    CHECK(command->command_pid() != 0);
    CHECK(ChildrenOf(getpid()) != before);
  }
  CHECK(ChildrenOf(getpid()) == before);
}

TEST_CASE("a stop that is followed by CONT before the command begins does not stop it") {
  auto [signals, spec, command] = Prepared(Script("exit 5"));
  kill(WaitForCommand(*command), SIGTSTP);
  kill(command->command_pid(), SIGCONT);
  REQUIRE_FALSE(Begin(*command, spec));
  CHECK(ExitFrom(WaitForEnd(*command).wait_status) == Exited(5));
}

TEST_CASE("a command that is killed before it begins is reported as killed") {
  auto [signals, spec, command] = Prepared(Script("exit 5"));
  kill(WaitForCommand(*command), SIGKILL);
  test::WaitUntilGone(command->command_pid());
  CHECK_FALSE(command->IsIntact());
  REQUIRE_FALSE(Begin(*command, spec));
  const Ended ended = WaitForEnd(*command);
  CHECK(ExitFrom(ended.wait_status) == Killed(SIGKILL));
  CHECK_FALSE(ended.guard_failed);
}

TEST_CASE("a command that has not begun when its guard is killed never begins") {
  const Signals signals;
  ReportPipe report;
  TestCommand spec = Script("echo up >&$REPORT; " + kWaitForEver);
  spec.environment.push_back(report.variable());
  report.Inherit(true);
  const auto before = ChildrenOf(getpid());
  const auto command = Supervisor::Prepare(spec, signals);
  report.CloseWriteEnd();
  CHECK(command->IsIntact());
  kill(ParentOf(WaitForCommand(*command)), SIGKILL);
  test::WaitUntilGone(command->command_pid());
  CHECK_FALSE(command->IsIntact());
  REQUIRE_FALSE(Begin(*command, spec));
  const Ended ended = WaitForEnd(*command);
  CHECK(ended.guard_failed);
  CHECK_FALSE(command->has_started());
  CHECK(report.ReadToEnd().empty());
  CHECK(ChildrenOf(getpid()) == before);
}

TEST_CASE("a command whose end is ordered before it begins does not begin") {
  const Signals signals;
  ReportPipe report;
  TestCommand spec = Script("echo up >&$REPORT", {.kill_after = seconds(1)});
  spec.stop_signal = SIGCONT;  // gives the command time to begin, if it is allowed to
  spec.environment.push_back(report.variable());
  report.Inherit(true);
  const auto command = Supervisor::Prepare(spec, signals);
  report.CloseWriteEnd();
  command->Await(spec.lease_end, spec.kill_after);
  command->End(EndCause::kOuter);
  command->Begin(spec.environment);
  WaitForEnd(*command);
  CHECK_FALSE(command->has_started());
  CHECK(report.ReadToEnd().empty());
}

TEST_CASE("a command that dies with its guard before it begins counts as killed", "[native]") {
  const Signals signals;
  const TestCommand spec = Script("exit 5");
  for (int i = 0; i < 50; ++i) {
    const auto command = Supervisor::Prepare(spec, signals);
    command->Await(spec.lease_end, spec.kill_after);
    const pid_t guard = ParentOf(command->command_pid());
    kill(guard, SIGSTOP);
    WaitForState(guard, 'T');
    command->Begin(spec.environment);
    kill(guard, SIGKILL);
    const int status = WaitForEnd(*command).wait_status;
    if (!command->has_started()) CHECK(ExitFrom(status) == Killed(SIGKILL));
  }
}

TEST_CASE("a guard that hangs before the command begins does not keep it for longer than the lease",
          "[native]") {
  const Signals signals;
  const TimePoint lease_end = BootClock::now() + seconds(11);
  const TestCommand spec =
      Script(kWaitForEver, {.kill_after = seconds(10), .lease_end = lease_end});
  const auto command = Supervisor::Prepare(spec, signals);
  const test::Hang guard(ParentOf(WaitForCommand(*command)));
  REQUIRE_FALSE(Begin(*command, spec));
  const Ended ended = WaitForEnd(*command);
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK(BootClock::now() < lease_end);
}

TEST_CASE("after the lease's stop time the command does not begin") {
  ReportPipe report;
  const Signals signals;
  // One second is left; the stop signal would not end the command.
  TestCommand spec = Script(
      "echo up >&$REPORT; " + kWaitForEver,
      {.stop_signal = SIGCONT, .kill_after = hours(1), .lease_end = BootClock::now() + seconds(2)});
  spec.environment.push_back(report.variable());
  report.Inherit(true);
  const auto command = Supervisor::Prepare(spec, signals);
  report.CloseWriteEnd();
  REQUIRE_FALSE(Begin(*command, spec));
  (void)WaitForEnd(*command);
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK_FALSE(command->has_started());
  CHECK(report.ReadToEnd().empty());
}

TEST_CASE("a command that may outlive its lease does so even if zklock does not see it begin") {
  const Signals signals;
  const test::TemporaryDirectory at;
  Check(mkfifo(at.Path("end").c_str(), 0600), "mkfifo");
  TestCommand spec =
      Script("read line <" + at.Path("end") + "; exit 5", {.kill_after = milliseconds(300)});
  spec.outlives_lease = true;
  const auto command = Supervisor::Prepare(spec, signals);
  REQUIRE(command->AwaitForks(test::kPatience));
  const TimePoint lease_end = BootClock::now() + milliseconds(3500);
  command->Await(lease_end, spec.kill_after);
  command->Begin(spec.environment);
  HangUntil(lease_end + milliseconds(200));
  const UniqueFd end(Check(open(at.Path("end").c_str(), O_RDWR | O_CLOEXEC), "open"));
  REQUIRE(write(end.get(), "\n", 1) == 1);
  test::WaitUntilGone(command->command_pid());
  const Ended ended = WaitForEnd(*command);
  CHECK(ExitFrom(ended.wait_status) == Exited(5));
  CHECK_FALSE(command->cause());
  CHECK_FALSE(ended.guard_failed);
}

TEST_CASE("when zklock is killed before the command begins, the session is closed") {
  const test::TemporaryDirectory at;
  TestCommand spec = Script("exit 5");
  spec.when_orphaned = [path = at.Path("closed")] {
    close(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  };
  Child zklock = Child::Start({.body = [spec] {
    const Signals signals;
    const auto command = Supervisor::Prepare(spec, signals);
    dprintf(1, "%d\n", WaitForCommand(*command));
    pause();
    return 0;
  }});
  const pid_t command = std::stoi(zklock.ReadLine());
  const pid_t guard = ParentOf(command);
  zklock.Signal(SIGKILL);
  test::WaitUntilGone(guard);
  CHECK_FALSE(ReadProcessStat(command));
  CHECK(std::filesystem::exists(at.Path("closed")));
}

TEST_CASE("an environment that is too large for execve gives the same error as execve") {
  const Signals signals;
  TestCommand spec = Script("exit 0");
  const auto before = ChildrenOf(getpid());
  spec.environment.assign(100, "A=" + std::string(65536, 'x'));
  auto command = Supervisor::Prepare(spec, signals);
  CHECK(Begin(*command, spec).value().error == E2BIG);
  command.reset();
  CHECK(ChildrenOf(getpid()) == before);
}

}  // namespace
}  // namespace zklock::process
