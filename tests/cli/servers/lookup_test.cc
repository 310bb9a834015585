// Server names: slow resolvers and changing addresses.

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>

#include "cli/command/forks.h"
#include "cli/names.h"
#include "cli/zklock.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

const std::string kFirst = OwnAddress(1);
const std::string kSecond = OwnAddress(2);

}  // namespace

TEST_CASE("a resolver that does not answer delays neither --connect-timeout nor a signal") {
  const Names names;
  names.SetSlow("slow");
  const std::string lock = NewLock("resolver");
  SECTION("the timeout") {
    const auto before = SteadyClock::now();
    const Finished finished =
        Run(names.Use(Zklock({"exclusive", "-z", "slow:2181", "--connect-timeout", "300ms", lock,
                              "--", "true"})),
            Exited(69));
    CHECK(SteadyClock::now() - before < 20s);
    CHECK_THAT(finished.err, Catch::Contains("slow:2181 (its name is still being looked up: "));
  }
  SECTION("a signal") {
    Child child =
        Child::Start(names.Use(Zklock({"exclusive", "-z", "slow:2181", lock, "--", "true"})));
    const Child asked = names.WaitForQuestion("slow");
    child.Signal(SIGTERM);
    CHECK(child.Wait(20s) == Exited(128 + SIGTERM));
  }
}

TEST_CASE("a name that is never resolved does not keep zklock from the other servers") {
  const Names names;
  names.SetSlow("slow");
  names.Set("quick", "127.0.0.1");
  const std::string port = PortOf(TestServers());
  for (const std::string& good : {"127.0.0.1" + port, "quick" + port}) {
    CAPTURE(good);
    ChildOptions options = HolderOptions({"exclusive", "-z", "slow:2181," + good}, NewLock("slow"));
    Child holder = Child::Start(names.Use(options));
    CHECK(holder.ReadLine() == "held");
    const Child asked = names.WaitForQuestion("slow");
    holder.Write("4\n");
    CHECK(holder.Wait(20s) == Exited(4));
  }
}

/// A holder that is connected through `proxy`. The server's name has just been given another
/// address.
struct Moved {
  Moved() {
    names.Set("moving", kFirst);
    const std::string port = PortOf(TestServers());
    proxy.emplace(TestServers(), kFirst + port);
    holder.emplace(Child::Start(names.Use(HolderOptions(
        {"exclusive", "-v", "-k", "1s", "--session-timeout", "30s", "-z", "moving" + port},
        lock))));
    REQUIRE(holder->ReadLine() == "held");
    names.Set("moving", "127.0.0.1");
  }
  const Names names;
  const std::string lock = NewLock("moving");
  std::optional<Proxy> proxy;
  std::optional<Child> holder;
};

TEST_CASE("a server whose address changes is found again, and the command keeps running") {
  Moved moved;
  SECTION("the old address refuses connections") { moved.proxy.reset(); }
  SECTION("the old address stops answering") { moved.proxy->Freeze(); }
  moved.holder->ReadErrUntil("the server does not answer");
  moved.holder->ReadErrUntil(moved.lock + ": confirmed, still held");
  moved.holder->Write("5\n");
  CHECK(moved.holder->Wait() == Exited(5));
  CHECK(Tree().Children(moved.lock).empty());
}

TEST_CASE("the guard of a killed zklock closes the session at the address found last") {
  Moved moved;
  moved.proxy.reset();
  moved.holder->ReadErrUntil(moved.lock + ": confirmed, still held");
  moved.holder->Signal(SIGKILL);
  // This is well before the session ends by itself.
  Tree().WaitForChildren(moved.lock, 0, 20s);
}

TEST_CASE("a resolver that stops answering does not lose a held lock") {
  const Names names;
  names.Set("server", kFirst);
  const std::string lock = NewLock("silent");
  const std::string address = kFirst + PortOf(TestServers());
  std::optional<Proxy> proxy(std::in_place, TestServers(), address);
  Child holder =
      Child::Start(names.Use(HolderOptions({"exclusive", "-v", "-k", "1s", "--session-timeout",
                                            "30s", "-z", "server" + PortOf(TestServers())},
                                           lock)));
  REQUIRE(holder.ReadLine() == "held");
  names.SetSlow("server");
  proxy.reset();
  const Child asked = names.WaitForQuestion("server");  // this query gets no answer
  proxy.emplace(TestServers(), address);
  holder.ReadErrUntil(lock + ": confirmed, still held");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
}

TEST_CASE("a resolver that fails temporarily does not lose the known addresses") {
  const Names names;
  names.Set("first", kFirst);
  names.Set("second", kSecond);
  const std::string lock = NewLock("fails");
  const std::string port = PortOf(TestServers());
  std::optional<Proxy> first(std::in_place, TestServers(), kFirst + port);
  std::optional<Proxy> second(std::in_place, TestServers(), kSecond + port);
  Child holder =
      Child::Start(names.Use(HolderOptions({"exclusive", "-v", "-k", "1s", "--session-timeout",
                                            "30s", "-z", "first" + port + ",second" + port},
                                           lock)));
  REQUIRE(holder.ReadLine() == "held");
  // Only the first name resolves, and nothing listens there.
  names.Set("second", "");
  names.SetSlow("first");
  first.reset();
  second.reset();
  Child question = names.WaitForQuestion("first");
  names.SetSlow("first");
  question.Write(kFirst + "\n");
  const Child next = names.WaitForQuestion("first");  // the answer has been read
  second.emplace(TestServers(), kSecond + port);
  holder.ReadErrUntil(lock + ": confirmed, still held");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
}

TEST_CASE("a look-up that cannot fork does not lose a held lock") {
  const Names names;
  Forks forks;
  names.Set("server", kFirst);
  const std::string lock = NewLock("forkless");
  const std::string port = PortOf(TestServers());
  std::optional<Proxy> proxy(std::in_place, TestServers(), kFirst + port);
  Child holder = Child::Start(forks.Use(names.Use(HolderOptions(
      {"exclusive", "-v", "-k", "1s", "--session-timeout", "30s", "-z", "server" + port}, lock))));
  REQUIRE(holder.ReadLine() == "held");
  forks.Refuse();
  proxy.reset();
  forks.WaitForRefusal();
  forks.WaitForRefusal();  // it tries again
  SECTION("the server returns while fork still fails") {
    proxy.emplace(TestServers(), kFirst + port);
  }
  SECTION("the server has moved, and fork works again") {
    names.Set("server", "127.0.0.1");
    forks.Allow();
  }
  holder.ReadErrUntil(lock + ": confirmed, still held");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
  CHECK(Tree().Children(lock).empty());
}

}  // namespace zklock::test
