// When the system denies a keeper the resources that it needs, the loss of its lock must not go
// unnoticed.

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "cli/command/forks.h"
#include "cli/hold/hold_script.h"
#include "cli/names.h"
#include "support/peer.h"
#include "support/process.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// Waits until `is_seen` is true for a process's entry in /proc.
template <typename Predicate>
void WaitUntilSeen(pid_t process, Predicate is_seen) {
  WaitUntil([&] {
    const auto stat = process::ReadProcessStat(process);
    return stat && is_seen(*stat);
  });
}

/// Waits until a process has consumed a signal that it blocks.
void WaitUntilTaken(pid_t process, int signal) {
  WaitUntil([&] {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    std::uint64_t pending = 0;
    for (std::string word; status >> word;) {
      if (word == "ShdPnd:") status >> std::hex >> pending;
    }
    return (pending >> (signal - 1) & 1) == 0;
  });
}

constexpr char kHold[] = "$Z exclusive --hold $L || exit; echo held; read x";

TEST_CASE("A keeper that cannot fork a name look-up keeps the lock and can release it later") {
  const Names names;
  Forks forks;
  names.Set("server", OwnAddress(1));
  const std::string lock = NewLock("forkless");
  const std::string address = OwnAddress(1) + PortOf(TestServers());
  std::optional<Proxy> proxy(std::in_place, TestServers(), address);
  ChildOptions options = With(
      Script(lock,
             "ZKLOCK_SERVERS=$VIA $Z exclusive --hold --session-timeout 30s $L || exit; echo held; "
             "read x; $Z release $L; echo $?"),
      {"VIA=server" + PortOf(address)});
  Child script = Child::Start(forks.Use(names.Use(std::move(options))));
  REQUIRE(script.ReadLine() == "held");
  const pid_t keeper = KeeperOf(lock);
  forks.Refuse();
  proxy.reset();
  forks.WaitForRefusal();
  forks.WaitForRefusal();  // it tries again
  proxy.emplace(TestServers(), address);
  forks.Allow();
  CHECK(KeeperOf(lock) == keeper);
  script.Write("\n");
  CHECK(script.ReadLine() == "0");
  CHECK(script.Wait() == Exited(0));
}

TEST_CASE("A keeper that can no longer work signals the owner, whose end ends the session") {
  const std::string lock = NewLock("unwound");
  Child script = Child::Start(Script(lock, kHold));
  REQUIRE(script.ReadLine() == "held");
  const rlimit none{0, 0};  // without descriptors it cannot wait for any event
  REQUIRE(prlimit(KeeperOf(lock), RLIMIT_NOFILE, &none, nullptr) == 0);
  CHECK(script.Wait() == Killed(SIGTERM));
  Tree().WaitForChildren(lock, 0, 15s);  // well before the session's 30 s
}

TEST_CASE("The owner's guard is replaced when killed, as soon as a process can be forked") {
  Forks forks;
  const std::string lock = NewLock("guard");
  Child script = Child::Start(forks.Use(Script(lock, kHold)));
  REQUIRE(script.ReadLine() == "held");
  const pid_t keeper = KeeperOf(lock);
  forks.Refuse();
  REQUIRE(kill(WaitForChild(keeper), SIGKILL) == 0);
  forks.WaitForRefusal();
  forks.WaitForRefusal();  // it tries again
  forks.Allow();
  (void)WaitForChild(keeper);
  REQUIRE(kill(keeper, SIGKILL) == 0);
  CHECK(script.Wait() == Killed(SIGTERM));
}

TEST_CASE("The owner's guard, when stopped, is woken by the keeper's death and signals the owner") {
  const std::string lock = NewLock("guard");
  Child script = Child::Start(Script(lock, kHold));
  REQUIRE(script.ReadLine() == "held");
  const pid_t keeper = KeeperOf(lock);
  const pid_t guard = WaitForChild(keeper);
  // A guard with this name has already asked the kernel to wake it; one stopped earlier might not
  // have.
  WaitUntilSeen(guard, [](const auto& stat) { return stat.name == "lock-guard"; });
  REQUIRE(kill(guard, SIGSTOP) == 0);
  WaitUntilSeen(guard, [](const auto& stat) { return stat.state == 'T'; });
  REQUIRE(kill(keeper, SIGKILL) == 0);
  CHECK(script.Wait() == Killed(SIGTERM));
  Tree().WaitForChildren(lock, 0, 15s);  // well before the session's 30 s
}

TEST_CASE("A keeper that cannot replace its guard signals the owner itself before the lease ends") {
  Forks forks;
  const std::string lock = NewLock("guard");
  Proxy proxy(TestServers());
  ChildOptions options =
      With(Script(lock, "$Z exclusive --hold --session-timeout 12s $L || exit; echo held; read x"),
           {"ZKLOCK_SERVERS=" + proxy.address()});
  Child script = Child::Start(forks.Use(std::move(options)));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  const std::string contender = lock + "/" + tree.Children(lock).at(0);
  const pid_t keeper = KeeperOf(lock);
  forks.Refuse();
  REQUIRE(kill(WaitForChild(keeper), SIGKILL) == 0);
  forks.WaitForRefusal();
  forks.WaitForRefusal();
  REQUIRE(kill(keeper, 0) == 0);
  proxy.Freeze();
  CHECK(script.Wait() == Killed(SIGTERM));
  CHECK(tree.Exists(contender));  // the servers still keep it
}

TEST_CASE("A signal arriving with the lock reaches only an owner that was told it holds the lock") {
  auto [lock, holder] = HoldNewLock("signal");
  Child script = Child::Start(Script(lock,
                                     "trap 'echo told' TERM; $Z exclusive -v --hold $L; echo $?; "
                                     "while :; do read x && break; done; echo over"));
  script.ReadErrUntil("waiting for");
  const pid_t front = WaitForChild(script.pid());
  const pid_t keeper = WaitForChild(front);
  REQUIRE(kill(front, SIGSTOP) == 0);
  holder.CloseInput();
  script.ReadErrUntil("acquired");
  REQUIRE(kill(keeper, SIGTERM) == 0);
  WaitUntilTaken(keeper, SIGTERM);
  SECTION("not if the zklock in front was signalled as well") {
    REQUIRE(kill(front, SIGTERM) == 0);
    REQUIRE(kill(front, SIGCONT) == 0);
    CHECK(script.ReadLine() == "143");
    Tree().WaitForChildren(lock, 0);
    script.Write("\n");
    CHECK(script.ReadLine() == "over");
  }
  SECTION("but if the zklock in front continues and reports the lock") {
    REQUIRE(kill(front, SIGCONT) == 0);
    const std::string first = script.ReadLine();
    const std::string second = script.ReadLine();
    CAPTURE(first, second);
    CHECK(((first == "0" && second == "told") || (first == "told" && second == "0")));
  }
}

}  // namespace
}  // namespace zklock::test
