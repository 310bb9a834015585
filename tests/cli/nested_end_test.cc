// When an outer zklock or its guard is killed, nested runs of other locks leave nothing that others
// would have to wait for.

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string>

#include "cli/zklock.h"
#include "process/process_tree.h"
#include "support/server.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

struct Nested {
  std::string outer = NewLock("outer");
  std::string inner = NewLock("inner");

  /// `zklock LOCK -- COMMAND`. COMMAND contains a nested run of another lock and writes "held PID".
  [[nodiscard]] Child Start(const Words& command, const Words& with = {}) const {
    Words words = {"exclusive", "--session-timeout", "30s"};
    words.insert(words.end(), with.begin(), with.end());
    words.insert(words.end(), {outer, "--"});
    words.insert(words.end(), command.begin(), command.end());
    ChildOptions options = Zklock(words);
    options.also_environment = {"Z=" + Binary(), "INNER=" + inner};
    options.keep_stdin = true;
    return Child::Start(options);
  }
  /// Well before the session's 30 s.
  void CheckThatNothingIsLeft() const {
    Tree tree;
    tree.WaitForChildren(inner, 0, 15s);
    tree.WaitForChildren(outer, 0, 15s);
  }
};

const Words kNestedRun = {"sh", "-c",
                          "$Z exclusive --session-timeout 30s $INNER -- "
                          "sh -c 'echo held $$; sleep 1000'"};
const Words kNestedHold = {"sh", "-c",
                           "$Z exclusive --hold --session-timeout 30s $INNER && "
                           "echo held $$; read x"};

// Each connection takes longer than an outer guard waits between two rounds of signals.
const Words kNestedRunByProxy = {
    "sh", "-c",
    "$Z exclusive --session-timeout 30s --proxy-command 'sleep 0.1; exec socat - TCP:%h:%p' $INNER "
    "-- sh -c 'echo held $$; sleep 1000'"};

pid_t ParentOf(pid_t pid) { return process::ReadProcessStat(pid).value().parent; }

TEST_CASE("when an outer zklock is killed, the guards of nested runs close their sessions") {
  const Nested nested;
  SECTION("a nested run") {
    Child zklock = nested.Start(kNestedRun);
    REQUIRE(zklock.ReadLine().starts_with("held"));
    zklock.Signal(SIGKILL);
    nested.CheckThatNothingIsLeft();
    zklock.ReadToEnd();
  }
  SECTION("a nested --hold") {
    Child zklock = nested.Start(kNestedHold);
    REQUIRE(zklock.ReadLine().starts_with("held"));
    zklock.Signal(SIGKILL);
    nested.CheckThatNothingIsLeft();
    zklock.ReadToEnd();
  }
}

TEST_CASE("when an outer guard is killed, the guards of nested runs close their sessions") {
  const Nested nested;
  Child zklock = nested.Start(kNestedHold);
  const std::string line = zklock.ReadLine();
  REQUIRE(line.starts_with("held "));
  REQUIRE(kill(ParentOf(std::stoi(line.substr(5))), SIGKILL) == 0);
  nested.CheckThatNothingIsLeft();
  // zklock kills the command, unless --hold ends it first because the outer lock is lost.
  const auto status = zklock.Wait();
  CHECK((status == Exited(128 + SIGKILL) || status == Exited(128 + SIGTERM)));
}

TEST_CASE("the helpers of nested runs live until the sessions are closed") {
  const Nested nested;
  SECTION("the outer zklock is killed") {
    Child zklock = nested.Start(kNestedRunByProxy);
    REQUIRE(zklock.ReadLine().starts_with("held"));
    zklock.Signal(SIGKILL);
    nested.CheckThatNothingIsLeft();
    zklock.ReadToEnd();
  }
  SECTION("the outer guard is killed") {
    Child zklock = nested.Start(kNestedRunByProxy);
    REQUIRE(zklock.ReadLine().starts_with("held"));
    const auto children = process::ChildrenOf(zklock.pid());
    REQUIRE(children.size() == 1);
    REQUIRE(kill(children.front(), SIGKILL) == 0);
    nested.CheckThatNothingIsLeft();
    zklock.ReadToEnd();
  }
  SECTION("the outer lock is deleted") {
    Child zklock = nested.Start(kNestedRunByProxy);
    REQUIRE(zklock.ReadLine().starts_with("held"));
    Tree tree;
    tree.Delete(nested.outer + "/" + tree.Children(nested.outer).at(0));
    nested.CheckThatNothingIsLeft();
    zklock.ReadToEnd();
  }
}

TEST_CASE("a KILL as the stop signal ends nested runs before their guards") {
  const Nested nested;
  const auto* const command = GENERATE(&kNestedRun, &kNestedRunByProxy);
  Child zklock = nested.Start(*command, {"--stop-signal", "KILL"});
  REQUIRE(zklock.ReadLine().starts_with("held"));
  Tree tree;
  tree.Delete(nested.outer + "/" + tree.Children(nested.outer).at(0));
  nested.CheckThatNothingIsLeft();
  zklock.ReadToEnd();
}

}  // namespace
}  // namespace zklock::test
