// When zklock or its guard is killed, stopped or hangs, no process of the command is left as an
// orphan, and none is alive when the lease ends.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "process/nesting/nesting_socket.h"
#include "protocol/nesting.h"
#include "support/hang.h"
#include "support/temporary.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Child;
using test::ChildOptions;
using test::Exited;
using test::ExitFrom;
using test::Killed;

// A named pipe through which when_orphaned reports, because the guard has closed the test's
// descriptors.
class Notice {
 public:
  Notice() {
    Check(mkfifo(path().c_str(), 0600), "mkfifo");
    read_.Reset(Check(open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), "open"));
  }

  // Returns `spec` with a guard that sends this notice when it is orphaned.
  [[nodiscard]] TestCommand Of(TestCommand spec) const {
    spec.when_orphaned = [path = path()] {
      const UniqueFd pipe(open(path.c_str(), O_WRONLY | O_CLOEXEC));
      [[maybe_unused]] const ssize_t size = write(pipe.get(), "x", 1);
    };
    return spec;
  }
  [[nodiscard]] bool Comes(milliseconds patience = test::kPatience) const {
    pollfd polled{read_.get(), POLLIN, 0};
    return poll(&polled, 1, static_cast<int>(patience.count())) == 1 &&
           (polled.revents & POLLIN) != 0;
  }

 private:
  [[nodiscard]] std::string path() const { return directory_.Path("pipe"); }

  test::TemporaryDirectory directory_;
  UniqueFd read_;
};

// Returns a zklock in its own process, which a test can kill: it prints the pids of the guard and
// the command, then lets its command run. The tree shares the child's standard output, so that
// ReadToEnd() waits for its last process.
ChildOptions Zklock(const TestCommand& spec) {
  return {.body = [spec] {
    Signals signals;
    const auto command = MustStart(spec, signals);
    const pid_t guard = test::ParentOf(command->command_pid());
    dprintf(1, "pids %d %d\n", guard, command->command_pid());
    WaitForEnd(*command);
    return 0;
  }};
}

// Like Zklock(), but the process then reads a new lease end from its standard input, sets it with
// `grace`, and prints "set" when the guard has planned for that.
ChildOptions ZklockWithLease(const TestCommand& spec, Duration grace) {
  ChildOptions options = Zklock({});
  options.keep_stdin = true;
  options.body = [spec, grace] {
    Signals signals;
    const auto command = MustStart(spec, signals);
    const pid_t guard = test::ParentOf(command->command_pid());
    dprintf(1, "pids %d %d\n", guard, command->command_pid());
    std::array<char, 32> text{};
    Check(read(0, text.data(), text.size() - 1), "read");
    command->SetLease(TimePoint(Duration(std::atoll(text.data()))), grace);
    WaitUntilAsleep(guard);
    dprintf(1, "set\n");
    WaitForEnd(*command);
    return 0;
  };
  return options;
}

void SetLease(Child& zklock, TimePoint lease_end) {
  zklock.Write(std::to_string(lease_end.time_since_epoch().count()) + "\n");
  REQUIRE(zklock.ReadLine() == "set");
}

TestCommand Reporting(const std::string& script, const ScriptOptions& options) {
  TestCommand spec = Script(script, options);
  spec.environment.push_back("REPORT=1");  // the child's standard output
  return spec;
}

TestCommand Stubborn(const ScriptOptions& options) {
  return Reporting(kStubbornTree + kWaitForEver, options);
}

// Returns a command whose tree reports "up" once, and ends on TERM.
TestCommand EndsOnTerm(const ScriptOptions& options) {
  return Reporting("trap 'exit 7' TERM; " + kSleeper + kWaitForEver, options);
}

struct Pids {
  pid_t guard = 0;
  pid_t command = 0;
};

// Reads the pids and `tree_size` lines "up", in any order.
Pids WaitForZklock(Child& zklock, int tree_size) {
  Pids pids;
  for (int i = 0; i < tree_size + 1; ++i) {
    const std::string line = zklock.ReadLine();
    if (line == "up") continue;
    REQUIRE(sscanf(line.c_str(), "pids %d %d", &pids.guard, &pids.command) == 2);
  }
  return pids;
}

TEST_CASE(
    "when zklock is killed the whole tree is killed immediately, then the session is closed") {
  const Notice notice;
  const TestCommand spec = notice.Of(Stubborn({.kill_after = hours(1)}));
  Child zklock = Child::Start(Zklock(spec));
  WaitForZklock(zklock, kStubbornTreeSize);
  zklock.Signal(SIGKILL);
  REQUIRE(notice.Comes());
  // By the time the notice arrived, no process had the pipe open.
  zklock.ReadToEnd(milliseconds(0));
  CHECK(zklock.Wait() == Killed(SIGKILL));
}

TEST_CASE(
    "when zklock is killed after its command's end, its session is closed and other processes live "
    "on") {
  const Notice notice;
  const TestCommand spec = notice.Of(Reporting(kSleeper + "true", {}));
  Child zklock = Child::Start({.body = [spec] {
    Signals signals;
    const auto command = MustStart(spec, signals);
    const Ended ended = WaitForEnd(*command);
    dprintf(1, "left %d\n", ended.left_behind.at(0).pid);
    pause();
    return 0;
  }});
  std::string line = zklock.ReadLine();  // the other is "up"
  const std::string other = zklock.ReadLine();
  if (!line.starts_with("left ")) line = other;
  REQUIRE(line.starts_with("left "));
  CHECK_FALSE(notice.Comes(milliseconds(100)));
  zklock.Signal(SIGKILL);
  CHECK(notice.Comes());
  CHECK(kill(std::stoi(line.substr(5)), SIGKILL) == 0);
}

TEST_CASE("a killed zklock's session is not closed before its nested runs have ended") {
  const bool ends_first = GENERATE(false, true);
  const bool leaves_command = GENERATE(false, true);
  Child left = Child::Start({.argv = {"sleep", "1000"}});
  const Notice notice;
  const TestCommand spec = notice.Of(Script("true"));
  int ends[2];
  Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair");
  UniqueFd outer(ends[0]);
  UniqueFd nested(ends[1]);
  Child zklock = Child::Start({.body =
                                   [&] {
                                     Signals signals;
                                     const auto command = MustStart(spec, signals);
                                     command->AddNestedRun(outer.get());
                                     WaitForEnd(*command);
                                     dprintf(1, "ended\n");
                                     pause();
                                     return 0;
                                   },
                               .inherit = {outer.get()}});
  REQUIRE(zklock.ReadLine() == "ended");
  outer.Reset();
  if (leaves_command) {
    const ProcessId command = ReadProcessStat(left.pid())->id;
    SendText(nested.get(),
             FormatNesting(protocol::NestingCommand{command.pid, command.start_time}));
  }
  if (ends_first) nested.Reset();
  zklock.Signal(SIGKILL);
  if (!ends_first) {
    // The run is told to end, as if zklock had lost the lock.
    char nothing = 0;
    CHECK(read(nested.get(), &nothing, 1) == 0);
    CHECK_FALSE(notice.Comes(milliseconds(100)));
    nested.Reset();
  }
  if (leaves_command) {
    CHECK_FALSE(notice.Comes(milliseconds(100)));
    left.Signal(SIGKILL);
  }
  CHECK(notice.Comes());
}

TEST_CASE("a zklock that ends without dismissing its guard leaves it to close the session") {
  const Notice notice;
  const TestCommand spec = notice.Of(Script("true"));
  const bool leaves = GENERATE(false, true);
  Child zklock = Child::Start({.body = [&] {
    Signals signals;
    const auto command = MustStart(spec, signals);
    WaitForEnd(*command);
    if (leaves) command->LeaveGuard();
    return 0;
  }});
  CHECK(zklock.Wait() == Exited(0));
  CHECK(notice.Comes(leaves ? milliseconds(test::kPatience) : milliseconds(100)) == leaves);
}

TEST_CASE("a KILL to zklock's whole process group spares the guard, which ends the others") {
  const Notice notice;
  const TestCommand spec = notice.Of(Stubborn({.kill_after = hours(1)}));
  Child zklock = Child::Start(Zklock(spec));
  WaitForZklock(zklock, kStubbornTreeSize);
  zklock.SignalGroup(SIGKILL);
  CHECK(notice.Comes());
  zklock.ReadToEnd(milliseconds(0));
}

TEST_CASE("a stopped guard is woken by zklock's death, and ends the tree") {
  const Notice notice;
  const TestCommand spec = notice.Of(Stubborn({.kill_after = hours(1)}));
  Child zklock = Child::Start(Zklock(spec));
  const Pids pids = WaitForZklock(zklock, kStubbornTreeSize);
  kill(pids.guard, SIGSTOP);
  WaitForState(pids.guard, 'T');
  zklock.Signal(SIGKILL);
  REQUIRE(notice.Comes());
  zklock.ReadToEnd(milliseconds(0));
}

TEST_CASE("zklock's death is noticed although a helper process has the guard's socket open") {
  int ends[2];
  Check(pipe2(ends, O_CLOEXEC), "pipe2");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  ChildOptions options = Zklock({});
  options.inherit = {ends[0]};
  // The helper is forked while the command runs, and lives until the test closes the pipe.
  options.body = [&] {
    Signals signals;
    const auto command = MustStart(Stubborn({.kill_after = hours(1)}), signals);
    if (fork() == 0) {
      close(STDOUT_FILENO);
      close(STDERR_FILENO);
      char nothing = 0;
      [[maybe_unused]] const ssize_t size = read(ends[0], &nothing, 1);
      _exit(0);
    }
    dprintf(1, "pids 0 0\n");
    WaitForEnd(*command);
    return 0;
  };
  Child zklock = Child::Start(std::move(options));
  WaitForZklock(zklock, kStubbornTreeSize);
  zklock.Signal(SIGKILL);
  zklock.ReadToEnd();
  CHECK(zklock.Wait() == Killed(SIGKILL));
}

TEST_CASE("when zklock ends normally without waiting, its command does not continue") {
  Child zklock = Child::Start({.body = [] {
    Signals signals;
    const auto command = MustStart(Stubborn({.kill_after = hours(1)}), signals);
    _exit(5);  // no destructor runs
    return 0;
  }});
  zklock.ReadToEnd();
  CHECK(zklock.Wait() == Exited(5));
}

TEST_CASE("a stopped zklock's command ends before the lease does, even if the guard was stopped") {
  const bool stops_guard = GENERATE(false, true);
  Child zklock = Child::Start(
      ZklockWithLease(EndsOnTerm({.lease_end = BootClock::now() + hours(2)}), seconds(10)));
  const Pids pids = WaitForZklock(zklock, 1);
  const TimePoint lease_end = BootClock::now() + seconds(12);
  SetLease(zklock, lease_end);
  zklock.Signal(SIGSTOP);
  zklock.WaitUntilStopped();
  if (stops_guard) {
    kill(pids.guard, SIGSTOP);
    WaitForState(pids.guard, 'T');
  }
  test::WaitUntilGone(pids.command);
  CHECK(BootClock::now() < lease_end);
  zklock.Signal(SIGCONT);
  CHECK(zklock.Wait() == Exited(0));
}

TEST_CASE("a zklock that is stopped just after its lease moved back ends its command in time") {
  const bool stops_guard = GENERATE(false, true);
  const TimePoint lease_end = BootClock::now() + seconds(12);
  Child zklock = Child::Start({.body = [=] {
    Signals signals;
    const auto command = MustStart(EndsOnTerm({.lease_end = BootClock::now() + hours(2)}), signals);
    const pid_t guard = test::ParentOf(command->command_pid());
    dprintf(1, "pids %d %d\n", guard, command->command_pid());
    WaitUntilAsleep(guard);  // it waits for the first lease's end
    if (stops_guard) {
      kill(guard, SIGSTOP);
      WaitForState(guard, 'T');
    }
    command->SetLease(lease_end, seconds(10));
    raise(SIGSTOP);
    return 0;
  }});
  const Pids pids = WaitForZklock(zklock, 1);
  test::WaitUntilGone(pids.command);
  CHECK(BootClock::now() < lease_end);
}

TEST_CASE(
    "a job that is stopped as a whole ends before the lease does: the guard is not part of it") {
  Child zklock = Child::Start(
      ZklockWithLease(EndsOnTerm({.lease_end = BootClock::now() + hours(2)}), seconds(10)));
  const Pids pids = WaitForZklock(zklock, 1);
  const TimePoint lease_end = BootClock::now() + seconds(12);
  SetLease(zklock, lease_end);
  zklock.SignalGroup(SIGSTOP);
  zklock.WaitUntilStopped();
  test::WaitUntilGone(pids.command);
  CHECK(BootClock::now() < lease_end);
  zklock.Signal(SIGCONT);
  CHECK(zklock.Wait() == Exited(0));
}

TEST_CASE("when zklock and the guard are killed together the command dies too") {
  TestCommand spec = Script("echo up >&$REPORT; trap '' TERM; exec sleep 1000");
  spec.environment.push_back("REPORT=1");
  Child zklock = Child::Start(Zklock(spec));
  const Pids pids = WaitForZklock(zklock, 1);
  zklock.Signal(SIGSTOP);  // so that it cannot act on the guard's death
  zklock.WaitUntilStopped();
  kill(pids.guard, SIGKILL);
  zklock.Signal(SIGKILL);
  test::WaitUntilGone(pids.command);
}

TEST_CASE("when the guard is killed zklock ends the tree") {
  StubbornTree command;
  kill(command.guard(), SIGKILL);
  const Ended ended = command.WaitForEnd();
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kGuardFailed);
  CHECK(ExitFrom(ended.wait_status) == Killed(SIGKILL));
  CHECK(command.report.HasEnded());
}

TEST_CASE("when the guard is killed after an order to end, the order counts as the cause") {
  StubbornTree command;
  command->End(EndCause::kReleaseRequested);
  kill(command.guard(), SIGKILL);
  const Ended ended = command.WaitForEnd();
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kReleaseRequested);
  CHECK(command.report.HasEnded());
}

TEST_CASE("children that zklock had before the guard are outsiders, and spared") {
  Child incompatible = Child::Start({.argv = {"sh", "-c", "sleep 1000 & echo ready; wait"}});
  REQUIRE(incompatible.ReadLine() == "ready");
  StubbornTree command;
  kill(command.guard(), SIGKILL);
  CHECK(command.WaitForEnd().guard_failed);
  CHECK(command.report.HasEnded());
  CHECK_FALSE(incompatible.HasEnded());
  CHECK(ChildrenOf(incompatible.pid()).size() == 1);
}

TEST_CASE("when the guard hangs past the lease's stop time zklock ends the tree in time",
          "[native]") {
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  const TimePoint lease_end = BootClock::now() + seconds(10);
  command.ShortenLease(lease_end, seconds(8));
  const test::Hang guard(command.guard());
  const Ended ended = command.WaitForEnd();
  CHECK(BootClock::now() < lease_end);
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK(ExitFrom(ended.wait_status) == Killed(SIGKILL));
  CHECK(command.report.HasEnded());
}

TEST_CASE("without a grace a guard that hangs is still detected", "[native]") {
  // guard_watch_test.cc checks that the hang is noticed in time, with only 150 ms left.
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  command.ShortenLease(BootClock::now() + milliseconds(2500), {});
  const test::Hang guard(command.guard());
  const Ended ended = command.WaitForEnd();
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kLeaseRanOut);
}

TEST_CASE("a guard that does not acknowledge an extended lease is given up", "[native]") {
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  const TimePoint first = BootClock::now() + milliseconds(2500);
  command.ShortenLease(first, milliseconds(600));
  const test::Hang guard(command.guard());
  command->SetLease(first + hours(1), milliseconds(600));
  const Ended ended = command.WaitForEnd();
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kGuardFailed);
  CHECK(command.report.HasEnded());
}

TEST_CASE("a guard that does not acknowledge an extended lease is given up before its end",
          "[native]") {
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  const TimePoint first = BootClock::now() + seconds(10);
  command.ShortenLease(first, seconds(8));
  const test::Hang guard(command.guard());
  command->SetLease(first + milliseconds(1200), seconds(8));
  const Ended ended = command.WaitForEnd();
  CHECK(BootClock::now() < first + milliseconds(1200));
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kLeaseRanOut);
}

TEST_CASE("a guard that hangs, and does not acknowledge a shortened lease, is taken over in time",
          "[native]") {
  StubbornTree command({.kill_after = seconds(1), .lease_end = BootClock::now() + hours(1)});
  const test::Hang guard(command.guard());
  const TimePoint lease_end = BootClock::now() + seconds(10);
  command->SetLease(lease_end, seconds(9));
  const Ended ended = command.WaitForEnd();
  CHECK(BootClock::now() < lease_end);
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kLeaseRanOut);
}

TEST_CASE("a lease that moves back once the guard is gone sends no signal to our own group") {
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  kill(command.guard(), SIGKILL);
  REQUIRE(command.WaitForEnd().guard_failed);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCONT);
  REQUIRE(sigprocmask(SIG_BLOCK, &signals, nullptr) == 0);
  command->SetLease(BootClock::now() + hours(1), seconds(1));
  REQUIRE(sigpending(&signals) == 0);
  CHECK(sigismember(&signals, SIGCONT) == 0);
}

TEST_CASE("a guard that is not scheduled keeps its command while the lease has time", "[native]") {
  Supervised command(kSleeper + kWaitForEver,
                     {.tree = 1, .lease_end = BootClock::now() + hours(2)});
  const TimePoint first = BootClock::now() + milliseconds(2500);
  command.ShortenLease(first, milliseconds(500));
  test::Hang guard(command.guard());
  command->SetLease(first + hours(1), milliseconds(500));
  // After its stop time, one grace before `first`, the guard is late. After 3 s more, it would be
  // given up.
  ServeUntil(*command, first);
  guard.End();
  ServeUntil(*command, first + milliseconds(3500));
  CHECK_FALSE(command->ended());
  CHECK_FALSE(command.EndByOrder().guard_failed);
}

TEST_CASE("a stopped guard does not keep an order from ending the tree") {
  StubbornTree command({.kill_after = milliseconds(400)});
  kill(command.guard(), SIGSTOP);
  const Ended ended = command.EndByOrder();
  CHECK(ended.guard_failed);
  CHECK(command->cause() == EndCause::kReleaseRequested);
  CHECK(command.report.HasEnded());
}

TEST_CASE("a guard that hangs does not keep a run that lasts too long from ending", "[native]") {
  // The limit counts from the command's execve; the whole tree has started long before it expires.
  StubbornTree command({.kill_after = milliseconds(100), .max_run = milliseconds(4000)});
  const test::Hang guard(command.guard());
  CHECK(command.WaitForEnd().guard_failed);
  CHECK(command->cause() == EndCause::kRunTooLong);
  CHECK(command.report.HasEnded());
}

TEST_CASE("zklock knows the limit of a run from the start, even if the guard hangs just then",
          "[native]") {
  const auto [signals, spec, command] =
      Prepared(Script("sleep 1000", {.kill_after = milliseconds(100), .max_run = seconds(1)}));
  command->Await(spec.lease_end, spec.kill_after);
  test::Hang guard(test::ParentOf(command->command_pid()));
  command->Begin(spec.environment);
  const auto has_started = [&command = command] {
    command->OnReady(0);
    return command->has_started();
  };
  SECTION("before it knows that the command is executed") {
    const std::string program = "/proc/" + std::to_string(command->command_pid()) + "/exe";
    const auto before = std::filesystem::read_symlink(program);
    guard.StepUntil([&] { return std::filesystem::read_symlink(program) != before; });
    CHECK_FALSE(has_started());
  }
  SECTION("once it has said so") { guard.StepUntil(has_started); }
  CHECK(WaitForEnd(*command).guard_failed);
  CHECK(command->cause() == EndCause::kRunTooLong);
  CHECK(command->has_started());
}

TEST_CASE("a guard that begins to end the tree wakes zklock") {
  // Otherwise zklock might rely on an older promise from the guard.
  const StubbornTree command({.max_run = seconds(4)});
  pollfd polled{command->GetInterest().fd, POLLIN, 0};
  REQUIRE(poll(&polled, 1, static_cast<int>(milliseconds(test::kPatience).count())) == 1);
  CHECK(command->cause() == EndCause::kRunTooLong);
}

TEST_CASE("a stopped guard does not keep the destructor from ending the tree") {
  StubbornTree command;
  kill(command.guard(), SIGSTOP);
  command.Destroy();
  CHECK(command.report.HasEnded());
}

TEST_CASE("an order reaches a guard whose socket is full") {
  StubbornTree command({.kill_after = milliseconds(50)});
  const pid_t guard = command.guard();
  kill(guard, SIGSTOP);
  for (int i = 0; i < 100'000; ++i) command->Forward(SIGCONT);
  command->End(EndCause::kReleaseRequested);
  kill(guard, SIGCONT);
  const Ended ended = command.WaitForEnd();
  CHECK_FALSE(ended.guard_failed);
  CHECK(command->cause() == EndCause::kReleaseRequested);
}

TEST_CASE("a command that was suspended often while zklock hung is reported as ended") {
  const Supervised command("exec sleep 1000");
  const pid_t pid = command->command_pid();
  const pid_t guard = command.guard();
  for (int i = 0; i < 2000; ++i) {  // the guard sees most of these, but not all
    kill(pid, SIGSTOP);
    WaitForState(pid, 'T');
    kill(pid, SIGCONT);
  }
  kill(pid, SIGKILL);
  test::WaitUntilGone(pid);
  WaitUntilAsleep(guard);
  CHECK(ExitFrom(command.WaitForEnd().wait_status) == Killed(SIGKILL));
}

TEST_CASE("a zklock that suspends itself once the command has ended is continued") {
  Child child = Child::Start({.body = [] {
    const Signals signals;
    const auto command = MustStart(Script("exec sleep 1000"), signals);
    const pid_t guard = test::ParentOf(command->command_pid());
    command->End(EndCause::kReleaseRequested);
    (void)WaitForEnd(*command);
    WaitUntilAsleep(guard);
    command->SuspendWithCommand(signals, SIGSTOP);
    return 0;
  }});
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("a zklock that wakes up late gives its guard time to wake up too", "[native]") {
  // Both hang past the stop time of the lease that the guard knows; zklock has extended that lease.
  Supervised command(kSleeper + kWaitForEver, {.lease_end = BootClock::now() + hours(2)});
  REQUIRE(command.report.ReadLine() == "up");
  const TimePoint first = BootClock::now() + milliseconds(2500);
  command.ShortenLease(first, milliseconds(500));
  command->SetLease(first + hours(1), milliseconds(500));
  test::Hang guard(command.guard());
  HangUntil(first);
  command->OnReady(0);  // zklock is the first to wake up
  guard.End();
  ServeUntil(*command, BootClock::now() + milliseconds(500));
  CHECK_FALSE(command->ended());
  CHECK_FALSE(command.EndByOrder().guard_failed);
}

}  // namespace
}  // namespace zklock::process
