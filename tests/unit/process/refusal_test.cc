// What the system may refuse. There may be no /proc, or one that hides processes; or zklock is not
// permitted to create more processes, or to open more descriptors.

#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "support/skip.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using std::chrono::milliseconds;
using test::Child;
using test::Exited;
using test::ExitFrom;

void BecomeUser(uid_t user) {
  Check(setresgid(user, user, user), "setresgid");
  Check(setresuid(user, user, user), "setresuid");
}

// A user without other processes, so that RLIMIT_NPROC can be used.
uid_t LonelyUser() { return 50'000 + static_cast<uid_t>(getpid()) % 10'000; }

// Tries to start a command, and returns what was thrown.
int SayRefusal() {
  Signals signals;
  try {
    MustStart(Script("exit 0"), signals);
  } catch (const std::system_error& error) {
    dprintf(1, "%d %s\n", error.code().value(), error.what());
    return 0;
  }
  return 1;
}

constexpr int kNoRight = 77;

// Whether the child was permitted to do what the test needs.
bool Was(Child& child) {
  const test::Exit exit = child.Wait();
  if (exit == Exited(kNoRight)) {
    test::Skip("root");
    return false;
  }
  CHECK(exit == Exited(0));
  return true;
}

TEST_CASE("without a readable /proc nothing is started") {
  Child child = Child::Start({.body = [] {
    if (!MountOverProc("tmpfs", nullptr)) return kNoRight;
    return SayRefusal();
  }});
  if (!Was(child)) return;
  CHECK(child.out().rfind("2 opening /proc/self/task/", 0) == 0);
}

TEST_CASE("processes of other users that /proc hides are still terminated") {
  Child child = Child::Start(
      {.body =
           [] {
             if (!MountOverProc("proc", "hidepid=2")) return kNoRight;
             // The guard and the tree run as the same user, nobody, and can see
             // each other. survivor_test.cc tests processes of another user.
             BecomeUser(65534);
             Signals signals;
             const auto command = MustStart(
                 Script(kStubbornTree + kWaitForEver, {.kill_after = milliseconds(50)}), signals);
             char go = 0;
             Check(read(STDIN_FILENO, &go, 1), "read");
             command->End(EndCause::kReleaseRequested);
             const Ended ended = WaitForEnd(*command);
             return command->cause() && ended.survivors.empty() ? 0 : 1;
           },
       .also_environment = {"REPORT=1"},
       .keep_stdin = true});
  int up = 0;
  while (up < kStubbornTreeSize && child.TryReadLine() == "up") ++up;
  if (up == kStubbornTreeSize) child.Write("x");
  if (!Was(child)) return;
  CHECK(up == kStubbornTreeSize);
  child.ReadToEnd();
}

TEST_CASE("a guard that cannot be forked is an exception that names the operation") {
  Child child = Child::Start({.body = [] {
    if (geteuid() != 0) return kNoRight;
    BecomeUser(LonelyUser());
    const rlimit one{1, 1};
    Check(setrlimit(RLIMIT_NPROC, &one), "setrlimit");
    return SayRefusal();
  }});
  if (!Was(child)) return;
  CHECK(child.out() == std::to_string(EAGAIN) + " fork: Resource temporarily unavailable\n");
}

TEST_CASE("a command that cannot be forked is an exception that names the operation", "[native]") {
  Child child = Child::Start({.body = [] {
    if (geteuid() != 0) return kNoRight;
    BecomeUser(LonelyUser());
    const rlimit two{2, 2};  // zklock and its guard
    Check(setrlimit(RLIMIT_NPROC, &two), "setrlimit");
    return SayRefusal();
  }});
  if (!Was(child)) return;
  CHECK(child.out() == std::to_string(EAGAIN) + " fork: Resource temporarily unavailable\n");
}

// Not under the sanitizers: UBSan probes memory by writing it to a pipe, and reports valid objects
// as bad if it cannot open one. The other builds run these tests.
#ifndef ZKLOCK_SANITIZED
TEST_CASE("a guard that can open no more files still ends the tree") {
  StubbornTree command({.kill_after = milliseconds(200)});
  // The guard would need one descriptor more than this limit leaves, and two to list a process's
  // children. (With a limit below four, poll(2) would fail.)
  const rlimit four{4, 4};
  Check(prlimit(command.guard(), RLIMIT_NOFILE, &four, nullptr), "prlimit");
  const Ended ended = command.EndByOrder();
  CHECK(command->cause() == EndCause::kReleaseRequested);
  CHECK_FALSE(ended.guard_failed);
  CHECK(command.report.HasEnded());
}

TEST_CASE("a guard that can open no more files still sends the command the stop signal") {
  // The child itself reports "up": before its execve, the forked shell might lose a signal.
  Supervised command("trap 'echo stopped >&$REPORT; exit 3' TERM; " + kSleeper + "wait",
                     {.tree = 1});
  const rlimit four{4, 4};
  Check(prlimit(command.guard(), RLIMIT_NOFILE, &four, nullptr), "prlimit");
  command->End(EndCause::kReleaseRequested);
  CHECK(command.report.ReadLine() == "stopped");
  CHECK(ExitFrom(command.WaitForEnd().wait_status) == Exited(3));
}

TEST_CASE("a tree that cannot be seen because /proc is gone is still ended as a whole") {
  Child child =
      Child::Start({.body =
                        [] {
                          if (!MountOverProc("proc", "")) return 77;
                          Signals signals;
                          const auto command = MustStart(
                              Script("(trap '' TERM; sleep 1000 & echo $! >&$REPORT; wait) & " +
                                         std::string(kWaitForEver),
                                     {.kill_after = milliseconds(50)}),
                              signals);
                          char go = 0;
                          Check(read(STDIN_FILENO, &go, 1), "read");
                          Check(mount("none", "/proc", "tmpfs", 0, nullptr), "mount");
                          command->End(EndCause::kRunTooLong);
                          (void)WaitForEnd(*command);
                          dprintf(1, "ended\n");
                          return 0;
                        },
                    .also_environment = {"REPORT=1"},
                    .keep_stdin = true});
  std::string line;
  try {
    line = child.ReadLine();
  } catch (const std::exception&) {
    if (child.Wait() == Exited(77)) return test::Skip("mounts in a namespace of its own");
    throw;
  }
  const pid_t grandchild = std::stoi(line);
  child.Write("x");
  CHECK(child.ReadLine() == "ended");
  CHECK(child.Wait() == Exited(0));
  CHECK((!ReadProcessStat(grandchild) || ReadProcessStat(grandchild)->is_dead));
  kill(grandchild, SIGKILL);
}

TEST_CASE("a tree that cannot be seen for lack of descriptors is not assumed dead") {
  Child child = Child::Start({.body = [] {
    const pid_t pid = fork();
    if (pid == 0) {
      for (;;) pause();
    }
    TreeKiller killer(getpid(), [](const Descendant&) { return TreeKiller::Treatment::kKill; });
    rlimit limit{};
    Check(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    const rlimit none{0, limit.rlim_max};
    Check(setrlimit(RLIMIT_NOFILE, &none), "setrlimit");
    if (killer.Round()) return 1;
    try {
      (void)ChildrenOf(getpid());
      return 2;
    } catch (const std::system_error& error) {
      if (error.code().value() != EMFILE) return 3;
    }
    Check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    test::WaitUntil([&] { return killer.Round(); });
    return ReadProcessStat(pid)->is_dead ? 0 : 5;
  }});
  const auto exit = child.Wait();
  CAPTURE(child.err());
  CHECK(exit == Exited(0));
}
#endif

}  // namespace
}  // namespace zklock::process
