#include "process/tree/process_tree.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <optional>
#include <thread>

#include "base/read_file.h"
#include "process/tree/guard_name.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using test::Child;
using test::Exited;
using test::Killed;

// Starts a child with this name that does nothing.
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

TEST_CASE("a process has a pid, a parent, a name and a start time") {
  const Child child = Idle();
  const auto stat = ReadProcessStat(child.pid());
  REQUIRE(stat);
  CHECK(stat->id.pid == child.pid());
  CHECK(stat->id.start_time >= ReadProcessStat(getpid())->id.start_time);
  CHECK(stat->parent == getpid());
  CHECK(stat->name == "idle");
  CHECK_FALSE(stat->is_dead);
}

TEST_CASE("a name with parentheses, spaces and numbers is parsed") {
  const Child child = Idle(") Z 1 2 (3) R");
  const auto stat = ReadProcessStat(child.pid());
  REQUIRE(stat);
  CHECK(stat->name == ") Z 1 2 (3) R");
  CHECK(stat->parent == getpid());
  CHECK_FALSE(stat->is_dead);
}

TEST_CASE("a process that does not exist has no stat and no children") {
  CHECK_FALSE(ReadProcessStat(0));
  CHECK(ChildrenOf(0).empty());
}

TEST_CASE("a zombie is dead, but not one whose other threads still run") {
  Child child = Child::Start({.body = [] {
    std::thread([] {
      dprintf(1, "thread\n");
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // only the leader
    return 0;
  }});
  CHECK(child.ReadLine() == "thread");
  // The leader ends a little later.
  const std::string path = "/proc/" + std::to_string(child.pid()) + "/stat";
  test::WaitUntil([&] { return ReadFile(path).value().find(" Z ") != std::string::npos; });
  CHECK_FALSE(ReadProcessStat(child.pid())->is_dead);
  kill(child.pid(), SIGKILL);
  test::WaitUntilGone(child.pid());
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

TEST_CASE("a walk visits each descendant after its parent") {
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

TEST_CASE("a walk skips the children that the caller excludes") {
  Child child = Child::Start({.argv = {"sh", "-c", "sleep 1000 & echo up; wait"}});
  child.ReadLine();
  int below = 0;
  WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.parent == child.pid()) ++below;
    return false;
  });
  CHECK(below == 0);
}

// Otherwise the zklock of a nested run, whose parent is killed first, would live on until the next
// walk, while its command is killed now: it would dismiss its guard, and then be killed before it
// has closed its session.
TEST_CASE("a process is signalled although its parent ends during the walk") {
  Check(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
  Child parent =
      Child::Start({.argv = {"sh", "-c", "sleep 1000 & echo $!; sleep 1000 & echo $!; wait"}});
  parent.ReadLine();
  parent.ReadLine();
  std::vector<SignalResult> results;
  std::vector<pid_t> met;
  WalkDescendants(getpid(), [&](const Descendant& process) {
    if (process.pid == parent.pid()) return true;  // both children get listed now
    if (process.parent != parent.pid() && met.empty()) return false;
    if (met.empty()) {
      kill(parent.pid(), SIGKILL);
      test::WaitUntilGone(parent.pid());
    }
    met.push_back(process.pid);
    results.push_back(SignalDescendant(process, SIGKILL));
    return true;
  });
  CHECK(results == std::vector<SignalResult>(2, SignalResult::kSent));
  for (const pid_t pid : met) {
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, nullptr, 0) == pid);
  }
  Check(prctl(PR_SET_CHILD_SUBREAPER, 0), "prctl");
}

TEST_CASE("a process that has not moved since the walk is signalled") {
  Child child = Idle();
  CHECK(SignalDescendant(OwnChild(child), SIGUSR1) == SignalResult::kSent);
  CHECK(child.Wait() == Killed(SIGUSR1));
}

TEST_CASE("a guard is recognised by its name and its program") {
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

TEST_CASE(
    "an awaited process gets KILL once it is no longer awaited, and its descendants at once") {
  Child parent = Child::Start(
      {.argv = {"sh", "-c", "sleep 1000 & echo $!; wait; read x"}, .keep_stdin = true});
  const pid_t below = std::stoi(parent.ReadLine());
  using Treatment = TreeKiller::Treatment;
  Treatment treatment = Treatment::kAwait;
  const UniqueFd children = OpenChildren();
  TreeKiller killer(getpid(), children, [&](const Descendant& process) {
    if (process.pid == parent.pid()) return treatment;
    return process.parent == getpid() ? Treatment::kLeave : Treatment::kKill;
  });
  CHECK_FALSE(killer.Round());
  test::WaitUntilGone(below);
  CHECK_FALSE(killer.Round());
  CHECK_FALSE(parent.HasEnded());
  treatment = Treatment::kKill;
  CHECK_FALSE(killer.Round());
  CHECK(parent.Wait() == Killed(SIGKILL));
}

TEST_CASE("a process that is awaited with its tree gets no KILL, nor do its descendants") {
  Child parent = Child::Start(
      {.argv = {"sh", "-c", "sleep 1000 & echo $!; wait $!; echo $?"}, .keep_stdin = true});
  const pid_t below = std::stoi(parent.ReadLine());
  using Treatment = TreeKiller::Treatment;
  const UniqueFd children = OpenChildren();
  TreeKiller killer(getpid(), children, [&](const Descendant& process) {
    if (process.pid == parent.pid()) return Treatment::kAwaitTree;
    return process.parent == getpid() ? Treatment::kLeave : Treatment::kKill;
  });
  CHECK_FALSE(killer.Round());
  CHECK_FALSE(killer.Round());
  kill(below, SIGTERM);
  CHECK(parent.ReadLine() == std::to_string(128 + SIGTERM));
  CHECK(parent.Wait() == Exited(0));
}

TEST_CASE("a process that survives many KILLs is looked for less often") {
  const UniqueFd children = OpenChildren();
  TreeKiller killer(getpid(), children,
                    [](const Descendant&) { return TreeKiller::Treatment::kLeave; });
  killer.Round();
  const Duration at_first = killer.pause();
  for (int i = 0; i < 200; ++i) killer.Round();
  CHECK(killer.pause() > 10 * at_first);
}

TEST_CASE("a process that was reaped, or whose pid was reused, is not signalled") {
  std::optional<Child> child = Idle();
  Descendant elsewhere = OwnChild(*child);
  elsewhere.parent = 1;
  CHECK(SignalDescendant(elsewhere, SIGKILL) == SignalResult::kGone);
  Descendant another = OwnChild(*child);
  another.stat->id.start_time -= 1;
  CHECK(SignalDescendant(another, SIGKILL) == SignalResult::kGone);
  CHECK_FALSE(child->HasEnded());

  const Descendant before = OwnChild(*child);
  child.reset();  // kills and reaps it
  CHECK(SignalDescendant(before, SIGKILL) == SignalResult::kGone);
}

}  // namespace
}  // namespace zklock::process
