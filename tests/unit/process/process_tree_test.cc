#include "process/process_tree.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <thread>

#include "process/guard_name.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using test::Child;
using test::Exited;
using test::Killed;

// A child that does nothing, under a name.
Child Idle(const std::string& name = "idle") {
  Child child = Child::Start({.body = [name] {
    prctl(PR_SET_NAME, name.c_str());
    dprintf(1, "ready\n");
    for (;;) pause();
    return 0;
  }});
  CHECK(child.ReadLine() == "ready");
  return child;
}

Descendant OwnChild(const Child& child) {
  return {child.pid(), getpid(), ReadProcessStat(child.pid())};
}

TEST_CASE("a process is told by its pid, parent, name and start time") {
  const Child child = Idle();
  const auto stat = ReadProcessStat(child.pid());
  REQUIRE(stat);
  CHECK(stat->id.pid == child.pid());
  CHECK(stat->id.start_time >= ReadProcessStat(getpid())->id.start_time);
  CHECK(stat->parent == getpid());
  CHECK(stat->name == "idle");
  CHECK_FALSE(stat->is_dead);
}

TEST_CASE("a name with parentheses, spaces and numbers does not confuse anything") {
  const Child child = Idle(") Z 1 2 (3) R");
  const auto stat = ReadProcessStat(child.pid());
  REQUIRE(stat);
  CHECK(stat->name == ") Z 1 2 (3) R");
  CHECK(stat->parent == getpid());
  CHECK_FALSE(stat->is_dead);
}

TEST_CASE("a process that is not there has no stat and no children") {
  CHECK_FALSE(ReadProcessStat(0));
  CHECK(ChildrenOf(0).empty());
}

TEST_CASE("a zombie is dead, but not one whose other threads still run") {
  Child child = Child::Start({.body = [] {
    std::thread([] {
      dprintf(1, "thread\n");
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // the leader alone
    return 0;
  }});
  CHECK(child.ReadLine() == "thread");
  // The leader ends in its own time.
  std::string state;
  const TimePoint deadline = BootClock::now() + test::kPatience;
  const std::string path = "/proc/" + std::to_string(child.pid()) + "/stat";
  while (state.find(" Z ") == std::string::npos && BootClock::now() < deadline) {
    std::ifstream file(path);
    std::getline(file, state);
  }
  REQUIRE(state.find(" Z ") != std::string::npos);
  CHECK_FALSE(ReadProcessStat(child.pid())->is_dead);
  kill(child.pid(), SIGKILL);
  WaitForDeath(child.pid());
  CHECK(ReadProcessStat(child.pid())->is_dead);
}

TEST_CASE("children of all threads are found") {
  Child child = Child::Start({.body = [] {
    std::thread([] {
      const pid_t pid = fork();
      if (pid == 0) {
        for (;;) pause();
      }
      dprintf(1, "%d\n", pid);
      for (;;) pause();
    }).join();
    return 0;
  }});
  const pid_t grandchild = std::stoi(child.ReadLine());
  CHECK(ChildrenOf(child.pid()) == std::vector<pid_t>{grandchild});
}

TEST_CASE("a walk meets each descendant after its parent") {
  Child child = Child::Start(
      {.argv = {"sh", "-c", "sh -c 'sh -c \"echo up; sleep 1000; :\"; :' & echo up; wait"}});
  child.ReadLine();
  child.ReadLine();
  std::vector<pid_t> met;
  WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.parent == getpid() && process.pid != child.pid()) return false;
    if (process.pid != child.pid()) {
      CHECK(std::count(met.begin(), met.end(), process.parent) == 1);
    }
    met.push_back(process.pid);
    return true;
  });
  CHECK(met.size() >= 3);
  CHECK(met.front() == child.pid());
}

TEST_CASE("a walk does not go where it is told not to") {
  Child child = Child::Start({.argv = {"sh", "-c", "sleep 1000 & echo up; wait"}});
  child.ReadLine();
  int below = 0;
  WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.parent == child.pid()) ++below;
    return false;
  });
  CHECK(below == 0);
}

TEST_CASE("a process is signalled that is where it was met") {
  Child child = Idle();
  CHECK(SignalDescendant(OwnChild(child), SIGUSR1) == SignalResult::kSent);
  CHECK(child.Wait() == Killed(SIGUSR1));
}

TEST_CASE("a guard is known by its name and by the program that it executes") {
  const Child guard = Idle("lock-guard");  // these tests execute the same file
  CHECK(IsGuard(*ReadProcessStat(guard.pid())));
  const Child other = Idle("other");
  CHECK_FALSE(IsGuard(*ReadProcessStat(other.pid())));
  Child shell =
      Child::Start({.argv = {"sh", "-c", "printf lock-guard >/proc/$$/comm; echo ready; read x; :"},
                    .keep_stdin = true});
  REQUIRE(shell.ReadLine() == "ready");
  REQUIRE(ReadProcessStat(shell.pid())->name == "lock-guard");
  CHECK_FALSE(IsGuard(*ReadProcessStat(shell.pid())));
}

TEST_CASE("what is awaited gets KILL when it is no longer, and what is below it at once") {
  Child parent = Child::Start(
      {.argv = {"sh", "-c", "sleep 1000 & echo $!; wait; read x"}, .keep_stdin = true});
  const pid_t below = std::stoi(parent.ReadLine());
  using Treatment = TreeKiller::Treatment;
  Treatment treatment = Treatment::kAwait;
  TreeKiller killer(getpid(), [&](const Descendant& process) {
    if (process.pid == parent.pid()) return treatment;
    return process.parent == getpid() ? Treatment::kLeave : Treatment::kKill;
  });
  CHECK_FALSE(killer.Round());
  WaitForDeath(below);
  CHECK_FALSE(killer.Round());
  CHECK_FALSE(parent.HasEnded());
  treatment = Treatment::kKill;
  CHECK_FALSE(killer.Round());
  CHECK(parent.Wait() == Killed(SIGKILL));
}

TEST_CASE("one that has been reaped, or whose pid is another's now, is not signalled") {
  Child child = Idle();
  Descendant elsewhere = OwnChild(child);
  elsewhere.parent = 1;
  CHECK(SignalDescendant(elsewhere, SIGKILL) == SignalResult::kGone);
  Descendant another = OwnChild(child);
  another.stat->id.start_time -= 1;
  CHECK(SignalDescendant(another, SIGKILL) == SignalResult::kGone);
  CHECK_FALSE(child.HasEnded());

  const Descendant before = OwnChild(child);
  child.Signal(SIGKILL);
  child.Wait();
  CHECK(SignalDescendant(before, SIGKILL) == SignalResult::kGone);
}

}  // namespace
}  // namespace zklock::process
