// How a command's tree is terminated, and which processes are left alone, while both the guard and
// zklock work normally.

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/lease.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Exited;
using test::ExitFrom;
using test::Killed;

// Waits until the guard has sent something that the supervisor has not read.
void WaitForNews(Supervisor& supervisor) {
  pollfd polled{supervisor.GetInterest().fd, POLLIN, 0};
  const milliseconds patience = test::kPatience;
  REQUIRE(poll(&polled, 1, static_cast<int>(patience.count())) == 1);
}

// Measures how long an overloaded machine delayed threads that were ready to run. On any other
// machine the result is 0, so a bound that includes this time is no weaker there.
class LostTime {
 public:
  /// Counts from `since`.
  explicit LostTime(TimePoint since) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    // Signals are left to the test's thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &allowed)) continue;
      threads_.emplace_back([this, processor, since] { Measure(processor, since); });
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~LostTime() { Total(); }
  LostTime(const LostTime&) = delete;
  LostTime& operator=(const LostTime&) = delete;

  /// Returns the sum over all processors until now: the guard may be delayed on one of them, and
  /// then its tree on another.
  Duration Total() {
    is_over_ = true;
    for (std::thread& thread : std::exchange(threads_, {})) thread.join();
    return total_;
  }

 private:
  void Measure(int processor, TimePoint since) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    sched_setaffinity(0, sizeof only, &only);
    while (!is_over_) {
      const TimePoint due = std::max(BootClock::now() + milliseconds(5), since);
      poll(nullptr, 0, 5);
      const Duration late = BootClock::now() - due;
      if (late < milliseconds(20)) continue;  // every bound tolerates this much
      const std::lock_guard lock(mutex_);
      total_ += late;
    }
  }

  std::atomic<bool> is_over_ = false;
  std::mutex mutex_;
  Duration total_{};
  std::vector<std::thread> threads_;
};

TEST_CASE("the whole tree ends: processes that ignore signals, in other sessions, orphaned") {
  StubbornTree command({.kill_after = milliseconds(50)});
  const Ended ended = command.EndByOrder();
  CHECK(command->cause() == EndCause::kReleaseRequested);
  CHECK_FALSE(ended.guard_failed);
  CHECK(ExitFrom(ended.wait_status) == Killed(SIGKILL));
  CHECK(ended.survivors.empty());
  // No process of the tree has the pipe open: all died before the end was reported.
  CHECK(command.report.HasEnded());
}

TEST_CASE("a tree that changes all the time ends too") {
  // Each of these is an orphan that forks a child and exits; the child does the same, and so on
  // (but not forever, in case this test fails).
  Supervised command(
      "trap '' TERM; hop() { [ $1 = 0 ] || hop $(($1 - 1)) & }; hop 20000 & hop 20000 & hop 20000 "
      "& echo up >&$REPORT; " +
          kWaitForEver,
      {.tree = 1, .kill_after = milliseconds(20)});
  command.EndByOrder();
  CHECK(command.report.HasEnded());
}

TEST_CASE("a command that ends on the stop signal is not killed") {
  Supervised command("trap 'exit 7' TERM; " + kSleeper + kWaitForEver, {.tree = 1});
  command->End(EndCause::kReleaseRequested);
  const Ended ended = command.EndByOrder();
  CHECK(command->cause() == EndCause::kReleaseRequested);
  CHECK(ExitFrom(ended.wait_status) == Exited(7));
  CHECK(command.report.HasEnded());
}

TEST_CASE("the grace is not cut short") {
  StubbornTree command({.kill_after = milliseconds(300)});
  const TimePoint start = BootClock::now();
  command.EndByOrder();
  CHECK(BootClock::now() - start >= milliseconds(300));
}

TEST_CASE("the stop signal is the requested one") {
  // Starts no child in the background: a shell makes such a child ignore INT, so it would be
  // killed.
  Supervised command("trap 'exit 9' INT; trap '' TERM; echo up >&$REPORT; while :; do :; done",
                     {.tree = 1, .stop_signal = SIGINT});
  CHECK(ExitFrom(command.EndByOrder().wait_status) == Exited(9));
}

TEST_CASE("a stopped command can still act on the stop signal") {
  Supervised command("trap 'exit 7' TERM; " + kSleeper + kWaitForEver, {.tree = 1});
  kill(command->command_pid(), SIGSTOP);
  CHECK(ExitFrom(command.EndByOrder().wait_status) == Exited(7));
}

TEST_CASE("a stopped descendant that ignores the stop signal is killed") {
  Supervised command("trap '' TERM; sh -c 'echo up >&$REPORT; kill -STOP $$' & " + kWaitForEver,
                     {.tree = 1, .kill_after = milliseconds(50)});
  command.EndByOrder();
  CHECK(command.report.HasEnded());
}

TEST_CASE("a process that is started during the grace gets the stop signal too") {
  Supervised command(
      "exec 2>/dev/null; trap 'trap - TERM; setsid sleep 1000 & wait $!; echo $? >&$REPORT; exit' "
      "TERM; " +
          kSleeper + kWaitForEver,
      {.tree = 1, .kill_after = seconds(20)});
  command->End(EndCause::kReleaseRequested);
  CHECK(command.report.ReadLine() == std::to_string(128 + SIGTERM));
  command.WaitForEnd();
  CHECK(command->cause() == EndCause::kReleaseRequested);
}

TEST_CASE("processes that the command leaves behind live on by default, and are named") {
  Supervised command("sh -c 'kill -STOP $$' & echo $! >&$REPORT; exit 3");
  const Ended ended = command.WaitForEnd();
  CHECK(ExitFrom(ended.wait_status) == Exited(3));
  CHECK_FALSE(command->cause());
  const pid_t left = std::stoi(command.report.ReadLine());
  REQUIRE(ended.left_behind.size() == 1);
  CHECK(ended.left_behind[0] == Survivor{.pid = left, .name = "sh"});
  command.Destroy();
  CHECK_FALSE(command.report.HasEnded());
  kill(left, SIGKILL);
  command.report.ReadToEnd();
}

TEST_CASE("on request zklock waits for processes that the command leaves behind") {
  Supervised command("sleep 1000 & echo $! >&$REPORT; exit 3", {.descendants = Descendants::kWait});
  const pid_t left = std::stoi(command.report.ReadLine());
  ServeUntil(*command, BootClock::now() + milliseconds(50));
  CHECK_FALSE(command->ended());
  kill(left, SIGKILL);
  const Ended ended = command.WaitForEnd();
  CHECK(ExitFrom(ended.wait_status) == Exited(3));
  CHECK_FALSE(command->cause());
  CHECK(command.report.HasEnded());
}

TEST_CASE(
    "a signal is forwarded to the processes that are waited for, once the command has ended") {
  Supervised command(
      "(trap 'echo told >&$REPORT; exit' USR1; " + kSleeper + kWaitForEver + ") & exit 3",
      {.tree = 1, .descendants = Descendants::kWait});
  test::WaitUntilGone(command->command_pid());
  command->Forward(SIGUSR1);
  CHECK(command.report.ReadLine() == "told");
  CHECK(ExitFrom(command.WaitForEnd().wait_status) == Exited(3));
}

TEST_CASE("processes for which zklock waits end with the lock") {
  Supervised command("sleep 1000 & exit 3", {.descendants = Descendants::kWait});
  test::WaitUntilGone(command->command_pid());
  CHECK(ExitFrom(command.EndByOrder().wait_status) == Exited(3));
  CHECK(command.report.HasEnded());
}

TEST_CASE("processes that the command leaves behind are terminated on request") {
  StubbornTree command({.kill_after = milliseconds(50), .descendants = Descendants::kKill});
  kill(command->command_pid(), SIGUSR1);
  const Ended ended = command.WaitForEnd();
  CHECK(ExitFrom(ended.wait_status) == Killed(SIGUSR1));
  CHECK_FALSE(command->cause());
  CHECK(command.report.HasEnded());
}

TEST_CASE("an end ordered as the command ends by itself also ends what the command left behind") {
  Supervised command("sh -c 'trap \"\" TERM; echo up >&$REPORT; exec sleep 1000' & " + kWaitForEver,
                     {.tree = 1, .kill_after = milliseconds(50)});
  kill(command->command_pid(), SIGUSR1);
  WaitForNews(*command);  // the report of the command's end is on its way
  const Ended ended = command.EndByOrder();
  CHECK(command->cause() == EndCause::kReleaseRequested);
  CHECK(ExitFrom(ended.wait_status) == Killed(SIGUSR1));
  CHECK(ended.left_behind.empty());
  CHECK(command.report.HasEnded());
}

TEST_CASE(
    "a lease that ran out before the report was read also ends what the command left behind") {
  Supervised command(
      "sh -c 'trap \"\" TERM; echo up >&$REPORT; exec sleep 1000' & " + kWaitForEver,
      {.tree = 1, .kill_after = milliseconds(50), .lease_end = BootClock::now() + hours(2)});
  command.ShortenLease(BootClock::now() + seconds(1), milliseconds(50));
  kill(command->command_pid(), SIGUSR1);
  WaitForNews(*command);
  command.report.ReadToEnd();  // zklock hangs: the guard acts alone
  const Ended ended = command.WaitForEnd();
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK_FALSE(ended.guard_failed);
}

TEST_CASE("the guard ends the tree before the lease's end without an order from zklock") {
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  const TimePoint lease_end = BootClock::now() + milliseconds(1500);
  command.ShortenLease(lease_end, milliseconds(300));
  const TimePoint killed = lease_end - protocol::kKillMargin;
  LostTime lost(killed);
  command.report.ReadToEnd();  // zklock's loop does not run
  const TimePoint end = BootClock::now();
  CHECK(end < std::max(lease_end, killed + milliseconds(100) + lost.Total()));
  CHECK(end >= lease_end - milliseconds(300));
  const Ended ended = command.WaitForEnd();
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK_FALSE(ended.guard_failed);
  CHECK(ExitFrom(ended.wait_status) == Killed(SIGKILL));
}

TEST_CASE("the grace is over before the lease's end") {
  Supervised command("trap 'echo stopped >&$REPORT; exit 7' TERM; " + kSleeper + kWaitForEver,
                     {.tree = 1, .lease_end = BootClock::now() + hours(2)});
  const TimePoint lease_end = BootClock::now() + seconds(11);
  command.ShortenLease(lease_end, seconds(10));
  CHECK(command.report.ReadLine() == "stopped");
  CHECK(BootClock::now() < lease_end - milliseconds(250));
  CHECK(ExitFrom(command.WaitForEnd().wait_status) == Exited(7));
}

TEST_CASE("a grace that begins late is cut short by the lease") {
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  const TimePoint lease_end = BootClock::now() + milliseconds(1500);
  command.ShortenLease(lease_end, milliseconds(1000));
  const TimePoint killed = lease_end - protocol::kKillMargin;
  LostTime lost(killed);
  ServeUntil(*command, lease_end - milliseconds(900));
  command.EndByOrder();
  const TimePoint end = BootClock::now();
  CHECK(end < std::max(lease_end, killed + milliseconds(100) + lost.Total()));
}

TEST_CASE("a lease that has already run out ends the command at once") {
  Supervised command("echo up >&$REPORT; " + kWaitForEver,
                     {.kill_after = hours(1), .lease_end = BootClock::now() - seconds(1)});
  command.WaitForEnd();
  CHECK(command->cause() == EndCause::kLeaseRanOut);
}

TEST_CASE("a lease that is extended lets the command continue") {
  Supervised command(kSleeper + kWaitForEver,
                     {.tree = 1, .lease_end = BootClock::now() + hours(2)});
  const TimePoint first = BootClock::now() + seconds(2);
  command.ShortenLease(first, milliseconds(300));
  command->SetLease(first + hours(1), milliseconds(300));
  ServeUntil(*command, first + milliseconds(100));
  CHECK_FALSE(command->ended());
  CHECK_FALSE(command.report.HasEnded());
  command.EndByOrder();
  CHECK(command->cause() == EndCause::kReleaseRequested);
}

TEST_CASE("a lease that is extended again and again ends at the end that was set last") {
  // The stop signal is sent 3 s after the last extension; the long grace after it lets the command
  // end in time.
  const Duration lease = seconds(13);
  const Duration grace = seconds(10);
  Supervised command("trap 'exit 7' TERM; " + kSleeper + kWaitForEver,
                     {.tree = 1, .lease_end = BootClock::now() + hours(2)});
  command.ShortenLease(BootClock::now() + lease, grace);
  TimePoint lease_end{};
  for (int i = 0; i < 20 && !command->ended(); ++i) {
    lease_end = BootClock::now() + lease;
    command->SetLease(lease_end, grace);
    ServeUntil(*command, BootClock::now() + milliseconds(100));
  }
  CHECK_FALSE(command->ended());
  const Ended ended = command.WaitForEnd();
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK_FALSE(ended.guard_failed);
  CHECK(ExitFrom(ended.wait_status) == Exited(7));
  CHECK(BootClock::now() >= lease_end - grace);
  CHECK(BootClock::now() < lease_end);
}

TEST_CASE("a lease whose end moves back ends the command before its new end") {
  Supervised command("trap 'exit 7' TERM; " + kSleeper + kWaitForEver,
                     {.tree = 1, .lease_end = BootClock::now() + hours(2)});
  const TimePoint lease_end = BootClock::now() + seconds(12);
  command->SetLease(lease_end, seconds(10));
  const Ended ended = command.WaitForEnd();
  CHECK(BootClock::now() < lease_end);
  CHECK(BootClock::now() >= lease_end - seconds(10));
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK_FALSE(ended.guard_failed);
  CHECK(ExitFrom(ended.wait_status) == Exited(7));
  CHECK(command.report.HasEnded());
}

TEST_CASE("a lease whose end moves into the past ends the command at once") {
  StubbornTree command({.lease_end = BootClock::now() + hours(2)});
  command->SetLease(BootClock::now() - seconds(1), hours(1));
  command.WaitForEnd();
  CHECK(command->cause() == EndCause::kLeaseRanOut);
  CHECK(command.report.HasEnded());
}

TEST_CASE("a shorter grace brings KILL forward while the command is being stopped") {
  StubbornTree command;
  command->End(EndCause::kReleaseRequested);
  command->SetLease(kNever, milliseconds(200));
  command.WaitForEnd();
  CHECK(command->cause() == EndCause::kReleaseRequested);
  CHECK(command.report.HasEnded());
}

TEST_CASE("a supervisor that is destroyed ends the tree and waits for its end") {
  StubbornTree command;
  command.Destroy();
  CHECK(command.report.HasEnded());
}

}  // namespace
}  // namespace zklock::process
