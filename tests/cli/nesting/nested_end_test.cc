// When an outer zklock or its guard is killed, nested runs of other locks leave nothing behind that
// others would have to wait for. When a nested zklock and its guard are killed, nothing is released
// too soon.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include "cli/hold/hold_script.h"
#include "cli/zklock.h"
#include "support/process.h"
#include "support/server.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

struct Nested {
  std::string outer = NewLock("outer");
  std::string inner = NewLock("inner");
  std::string zklock = Binary();
  Words through = {};  ///< words before the command line of the outer run

  /// Starts `zklock LOCK -- COMMAND`. COMMAND contains a nested run of another lock and writes
  /// "held PID".
  [[nodiscard]] Child Start(const Words& command, const Words& with = {}) const {
    Words words =
        Words{"exclusive", "--session-timeout", "30s"} + with + Words{outer, "--"} + command;
    ChildOptions options = Zklock(words);
    options.argv.front() = zklock;
    options.argv.insert(options.argv.begin(), through.begin(), through.end());
    options.also_environment = {"Z=" + zklock, "INNER=" + inner};
    options.keep_stdin = true;
    return Child::Start(options);
  }
  [[nodiscard]] Child StartHeld(const Words& command, const Words& with = {}) const {
    Child child = Start(command, with);
    REQUIRE(child.ReadLine().starts_with("held"));
    return child;
  }
  void DeleteOuterLock() const {
    Tree tree;
    tree.Delete(outer + "/" + tree.Children(outer).at(0));
  }
  /// Checks that nothing is left well before the session's 30 s are over.
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

TEST_CASE("when an outer zklock is killed, the guards of nested runs close their sessions") {
  const auto* const command = GENERATE(&kNestedRun, &kNestedRunByProxy, &kNestedHold);
  const Nested nested;
  Child zklock = nested.StartHeld(*command);
  zklock.Signal(SIGKILL);
  nested.CheckThatNothingIsLeft();
  zklock.ReadToEnd();
}

TEST_CASE("a nested run's guard closes its session even if zklock was replaced or is unreadable") {
  const TemporaryDirectory directory;
  std::filesystem::copy_file(Binary(), directory.Path("zklock"));
  Nested nested{.zklock = directory.Path("zklock")};
  Words command = kNestedRun;
  SECTION("zklock has been upgraded since the outer run began") {
    command.back().insert(0, "cp $Z $Z.new && mv $Z.new $Z && ");
  }
  SECTION("zklock may be executed, but not read") {
    REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
    REQUIRE(chmod(nested.zklock.c_str(), 0111) == 0);
    const std::string user = std::to_string(50'000 + getpid() % 10'000);
    if (geteuid() == 0) {
      nested.through = {"/usr/bin/setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups"};
    }
  }
  Child outer = nested.StartHeld(command);
  outer.Signal(SIGKILL);
  nested.CheckThatNothingIsLeft();
  outer.ReadToEnd();
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

TEST_CASE(
    "when an outer guard is killed, the helpers of nested runs live as long as they are needed") {
  const Nested nested;
  Child zklock = nested.StartHeld(kNestedRunByProxy);
  const auto children = process::ChildrenOf(zklock.pid());
  REQUIRE(children.size() == 1);
  REQUIRE(kill(children.front(), SIGKILL) == 0);
  nested.CheckThatNothingIsLeft();
  zklock.ReadToEnd();
}

TEST_CASE(
    "when an outer lock is lost, nested runs close their sessions, whatever the stop signal") {
  const auto* const command = GENERATE(&kNestedRun, &kNestedRunByProxy);
  const std::string stop_signal = GENERATE("TERM", "KILL");
  const Nested nested;
  Child zklock = nested.StartHeld(*command, {"--stop-signal", stop_signal});
  nested.DeleteOuterLock();
  nested.CheckThatNothingIsLeft();
  zklock.ReadToEnd();
}

TEST_CASE("a lock is held until a nested command that has lost its zklock and guard has ended") {
  const std::string lock = NewLock("outlived");
  // Without PDEATHSIG, the command stays alive. Otherwise the kernel would kill it within a few
  // milliseconds.
  Child script = Child::Start(
      Script(lock,
             "$Z exclusive --hold $L || exit\n"
             "$Z exclusive --contain off $L -- "
             "setpriv --pdeathsig clear sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1'\n"
             "$Z release $L 2>&1; exit $?"));
  const pid_t command = std::stoi(script.ReadLine());
  const pid_t guard = ParentOf(command);
  const pid_t zklock = ParentOf(guard);
  REQUIRE(kill(zklock, SIGSTOP) == 0);  // so that it does not see the guard die
  REQUIRE(kill(guard, SIGKILL) == 0);
  WaitUntilGone(guard);
  REQUIRE(kill(zklock, SIGKILL) == 0);
  CHECK_THAT(script.ReadLine(), Catch::EndsWith("pid " + std::to_string(command)));
  CHECK(Tree().Children(lock).size() == 1);
  REQUIRE(kill(command, SIGKILL) == 0);
  CHECK(script.Wait() == Exited(0));
  CHECK(Tree().Children(lock).empty());
}

}  // namespace
}  // namespace zklock::test
