// The guard of --hold's owner. The keeper is this process.

#include "process/guard/owner_guard.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "process/tree/guard_name.h"
#include "support/child.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Child;
using test::Exit;
using test::Exited;
using test::Killed;
using test::Run;

/// Returns the child of this process that is not in `others`. These can include more than the
/// owner: a test of a supervisor makes this process the parent of any orphans that are left.
pid_t ChildBeside(const std::vector<pid_t>& others) {
  for (const pid_t child : ChildrenOf(getpid())) {
    if (std::find(others.begin(), others.end(), child) == others.end()) return child;
  }
  throw std::runtime_error("there is no guard");
}

struct Guarded {
  explicit Guarded(TimePoint lease_end, Duration grace)
      : guard({.owner = &owner, .when_orphaned = {}}) {
    guard.BeginHold(lease_end, grace);
    guard_pid = ChildBeside(others);
    WaitUntilAsleep(guard_pid);
  }

  Child process = Child::Start({.argv = {"sleep", "1000"}});
  Owner owner = Owner::Open(process.pid()).value();
  std::vector<pid_t> others = ChildrenOf(getpid());
  OwnerGuard guard;
  pid_t guard_pid = 0;
};

}  // namespace

TEST_CASE("the owner is signalled a grace before the lease's end") {
  const TimePoint lease_end = BootClock::now() + seconds(12);
  Guarded guarded(lease_end, seconds(10));
  CHECK(guarded.process.Wait() == Killed(SIGTERM));
  CHECK(BootClock::now() >= lease_end - seconds(10));
  CHECK(BootClock::now() < lease_end);
  CHECK(guarded.guard.cause() == EndCause::kLeaseRanOut);
}

TEST_CASE("the owner is signalled before the lease's end although the guard was stopped") {
  const TimePoint lease_end = BootClock::now() + seconds(12);
  Guarded guarded(lease_end, seconds(10));
  kill(guarded.guard_pid, SIGSTOP);
  CHECK(guarded.process.Wait() == Killed(SIGTERM));
  CHECK(BootClock::now() < lease_end);
}

TEST_CASE("the owner is signalled earlier if the lease's end has moved back") {
  Guarded guarded(BootClock::now() + hours(1), seconds(5));
  const TimePoint lease_end = BootClock::now() + seconds(11);
  guarded.guard.SetLease(lease_end, seconds(10));
  CHECK(guarded.process.Wait() == Killed(SIGTERM));
  CHECK(BootClock::now() >= lease_end - seconds(10));
  CHECK(BootClock::now() < lease_end);
}

TEST_CASE("the owner is signalled at once if the lease's end has moved into the past") {
  Guarded guarded(BootClock::now() + hours(1), seconds(5));
  guarded.guard.SetLease(BootClock::now() - seconds(1), seconds(1));
  CHECK(guarded.process.Wait() == Killed(SIGTERM));
}

TEST_CASE("the owner of a lease that is extended is left alone") {
  Guarded guarded(BootClock::now() + hours(1), seconds(1));
  const TimePoint first = BootClock::now() + seconds(3);
  guarded.guard.SetLease(first, seconds(1));
  WaitUntilAsleep(guarded.guard_pid);
  guarded.guard.SetLease(first + hours(1), seconds(1));
  CHECK_THROWS(guarded.process.Wait(milliseconds(3100)));
  CHECK_FALSE(guarded.guard.cause());
}

TEST_CASE("a guard that dies with an unread message is replaced at once") {
  Guarded guarded(BootClock::now() + hours(1), seconds(1));
  kill(guarded.guard_pid, SIGSTOP);
  guarded.guard.AddNestedRun(STDIN_FILENO);
  kill(guarded.guard_pid, SIGKILL);
  pollfd end = {guarded.guard.GetInterest().fd, POLLIN, 0};
  REQUIRE(poll(&end, 1, 10'000) == 1);
  guarded.guard.OnReady(POLLIN);
  CHECK(guarded.guard.GetInterest().fd >= 0);
}

#ifndef ZKLOCK_SANITIZED  // the sanitizers need descriptors, too
TEST_CASE("--hold fails if there are too few descriptors for a guard") {
  const Child process = Child::Start({.argv = {"sleep", "1000"}});
  const Owner owner = Owner::Open(process.pid()).value();
  bool was_refused = false;
  bool was_held = false;
  for (rlim_t free = 0; free < 12; ++free) {
    CAPTURE(free);
    const auto hold = [&] {
      const int next = dup(STDIN_FILENO);
      close(next);
      constexpr rlim_t kMany = 1024;
      const rlimit few{static_cast<rlim_t>(next) + free, kMany};
      const rlimit many{kMany, kMany};
      Check(setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
      try {
        OwnerGuard guard({.owner = &owner, .when_orphaned = {}});
        guard.BeginHold(BootClock::now() + hours(1), {});
        Check(setrlimit(RLIMIT_NOFILE, &many), "setrlimit");  // to look into /proc
        WaitUntilAsleep(ChildBeside({}));
        return 0;
      } catch (const std::system_error&) {
        return 2;
      }
    };
    const test::Exit exit = test::Run({.body = hold}).exit;
    CHECK((exit == test::Exited(0) || exit == test::Exited(2)));
    (exit == test::Exited(0) ? was_held : was_refused) = true;
  }
  CHECK(was_refused);
  CHECK(was_held);
}

TEST_CASE("a guard that ended before it was ready is not replaced at once") {
  const Child process = Child::Start({.argv = {"sleep", "1000"}});
  const Owner owner = Owner::Open(process.pid()).value();
  const auto hold = [&] {
    OwnerGuard guard({.owner = &owner, .when_orphaned = {}});
    guard.BeginHold(BootClock::now() + hours(1), {});
    const auto wait_for_end = [&guard] {
      pollfd end = {guard.GetInterest().fd, POLLIN, 0};
      Check(poll(&end, 1, -1), "poll");
    };
    kill(ChildBeside({}), SIGKILL);
    wait_for_end();
    const int next = dup(STDIN_FILENO);
    close(next);
    // Enough to fork a guard once the old one's descriptor is closed, but not for it to get ready.
    const rlimit few{static_cast<rlim_t>(next) + 3, static_cast<rlim_t>(next) + 3};
    Check(setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
    guard.OnReady(POLLIN);
    const bool was_replaced = guard.GetInterest().fd >= 0;
    wait_for_end();
    guard.OnReady(POLLIN);
    const EventSource::Interest interest = guard.GetInterest();
    return was_replaced && interest.fd < 0 && interest.wake > BootClock::now() ? 0 : 1;
  };
  CHECK(test::Run({.body = hold}).exit == Exited(0));
}
#endif

TEST_CASE("an owner's guard can be recognised from the start") {
  const Child process = Child::Start({.argv = {"sleep", "1000"}});
  const Owner owner = Owner::Open(process.pid()).value();
  const std::vector<pid_t> others = ChildrenOf(getpid());
  const OwnerGuard guard({.owner = &owner, .when_orphaned = {}});
  CHECK(IsGuard(ReadProcessStat(ChildBeside(others)).value()));
}

TEST_CASE(
    "the guard of a keeper that dies while it closes the session does not wait for the owner") {
  Child process = Child::Start({.argv = {"sleep", "1000"}});
  const Owner owner = Owner::Open(process.pid()).value();
  const pid_t keeper = fork();
  if (keeper == 0) {
    OwnerGuard guard({.owner = &owner, .when_orphaned = [&owner] { (void)owner.Signal(SIGUSR1); }});
    guard.BeginHold(BootClock::now() + hours(1), {});
    guard.BeginClose();
    _exit(0);
  }
  REQUIRE(keeper > 0);
  REQUIRE(waitpid(keeper, nullptr, 0) == keeper);
  CHECK(process.Wait() == Killed(SIGUSR1));
}

TEST_CASE(
    "the guard of a keeper that dies before it holds closes the session, and signals nobody") {
  Child process = Child::Start({.argv = {"sleep", "1000"}});
  const Owner owner = Owner::Open(process.pid()).value();
  const pid_t keeper = fork();
  if (keeper == 0) {
    const OwnerGuard guard(
        {.owner = &owner, .when_orphaned = [&owner] { (void)owner.Signal(SIGUSR1); }});
    _exit(0);
  }
  REQUIRE(keeper > 0);
  REQUIRE(waitpid(keeper, nullptr, 0) == keeper);
  CHECK(process.Wait() == Killed(SIGUSR1));
}

}  // namespace zklock::process
