// Resources that the system denies: /proc is missing or hides processes, or zklock cannot create
// more processes, open more descriptors or allocate more memory.

#include <malloc.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <stdexcept>
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

// Returns whether the child was permitted to do what the test needs.
bool Was(Child& child) {
  const test::Exit exit = child.Wait();
  if (exit == Exited(kNoRight)) {
    test::Skip("root");
    return false;
  }
  CAPTURE(child.err());
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

TEST_CASE("a failed fork of the guard throws an exception that names the operation") {
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

TEST_CASE("a failed fork of the command throws an exception that names the operation", "[native]") {
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

// `sh` text for a command with a child that has 400 children, all of which ignore TERM.
const std::string kLargeTree =
    "trap '' TERM; sh -c 'for i in $(seq 400); do sleep 1000 & done; echo up >&$REPORT; wait' & " +
    kWaitForEver;

// Runs kLargeTree under a supervisor in a child process: `deprive` takes something away from that
// process or the guard, then `end` ends the tree. No process of the tree may be left.
void CheckThatTreeEnds(const std::function<bool()>& prepare,
                       const std::function<void(pid_t guard)>& deprive,
                       const std::function<void(Supervised&)>& end) {
  Child child = Child::Start({.body = [&] {
    if (!prepare()) return kNoRight;
    Supervised command(kLargeTree, {.tree = 1, .kill_after = milliseconds(50)});
    deprive(command.guard());
    end(command);
    return command.report.HasEnded() ? 0 : 1;
  }});
  (void)Was(child);
}

void EndByOrder(Supervised& command) { (void)command.EndByOrder(); }
void Destroy(Supervised& command) { command.Destroy(); }
void KillGuard(pid_t guard) { kill(guard, SIGKILL); }

bool MountOwnProc() { return MountOverProc("proc", ""); }
void LoseProc() { Check(mount("none", "/proc", "tmpfs", 0, nullptr), "mount"); }

TEST_CASE("a tree that cannot be seen because /proc is gone is still ended as a whole") {
  CheckThatTreeEnds(
      MountOwnProc, [](pid_t) { LoseProc(); }, EndByOrder);
}

TEST_CASE("zklock ends the tree of a dead guard even if /proc is gone") {
  CheckThatTreeEnds(
      MountOwnProc,
      [](pid_t guard) {
        LoseProc();
        KillGuard(guard);
      },
      EndByOrder);
}

// One file can still be opened: zklock closes its socket to a dead guard.
void UseUpDescriptors() {
  const rlimit few{64, 64};
  Check(setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
  while (dup(STDIN_FILENO) >= 0) {
  }
}

TEST_CASE("zklock ends the tree of a dead guard even if it can hardly open files") {
  CheckThatTreeEnds([] { return true; },
                    [](pid_t guard) {
                      UseUpDescriptors();
                      KillGuard(guard);
                    },
                    Destroy);
}

void LimitMemory(pid_t process, rlim_t limit) {
  const rlimit limits{limit, RLIM_INFINITY};
  Check(prlimit(process, RLIMIT_AS, &limits, nullptr), "prlimit");
}

// Uses up the free memory of this process's heap. Memory that is allocated later goes back to
// the kernel when it is freed. This would never end in an emulator, which does not limit the
// memory.
bool FillHeap() {
  mallopt(M_MMAP_THRESHOLD, 1);
  LimitMemory(0, 1);
  void* volatile used = nullptr;  // so that the compiler cannot leave out the calls
  do {
    used = malloc(16);
  } while (used != nullptr);
  LimitMemory(0, RLIM_INFINITY);
  return true;
}

TEST_CASE("a guard that can get no more memory still ends the tree", "[native]") {
  CheckThatTreeEnds(
      FillHeap, [](pid_t guard) { LimitMemory(guard, 1); },
      [](Supervised& command) {
        if (command.EndByOrder().guard_failed) throw std::runtime_error("the guard failed");
      });
}

TEST_CASE("zklock ends the tree of a dead guard even if it can get no more memory", "[native]") {
  CheckThatTreeEnds(
      FillHeap,
      [](pid_t guard) {
        LimitMemory(0, 1);
        KillGuard(guard);
      },
      Destroy);
}

TEST_CASE("a tree that cannot be seen for lack of descriptors is not assumed dead") {
  Child child = Child::Start({.body = [] {
    const pid_t pid = fork();
    if (pid == 0) {
      for (;;) pause();
    }
    const UniqueFd children = OpenChildren();
    TreeKiller killer(getpid(), children,
                      [](const Descendant&) { return TreeKiller::Treatment::kKill; });
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
