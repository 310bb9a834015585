// Names of servers: a resolver that takes its time, and addresses that change.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

/// What the preloaded resolver knows, name by name.
class Names {
 public:
  /// From now on; whoever asks already is not told.
  void Set(const std::string& name, const std::string& address) const {
    const std::string file = directory_.Write("new", address + "\n");
    Put(file, name);
  }
  /// Whoever asks for it waits.
  void SetSlow(const std::string& name) const {
    const std::string fifo = directory_.Path("new");
    if (mkfifo(fifo.c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
    Put(fifo, name);
  }
  /// Waits until somebody asks for a slow name. The answer is what the child is told to Write().
  [[nodiscard]] Child WaitForQuestion(const std::string& name) const {
    Child other_end =
        Child::Start({.argv = {"sh", "-c", "exec 3>\"$0\"; echo asked; read x; echo $x >&3",
                               directory_.Path(name)},
                      .keep_stdin = true});
    if (other_end.ReadLine() != "asked") throw std::runtime_error("nobody asked");
    return other_end;
  }

  [[nodiscard]] ChildOptions Use(ChildOptions options) const {
    const char* resolver = std::getenv("ZKLOCK_TEST_RESOLVER");
    if (resolver == nullptr) throw std::runtime_error("ZKLOCK_TEST_RESOLVER is not set");
    options.also_environment.push_back(std::string("LD_PRELOAD=") + resolver);
    options.also_environment.push_back("ZKLOCK_TEST_NAMES=" + directory_.path());
    // AddressSanitizer wants to be the first library otherwise.
    options.also_environment.push_back("ASAN_OPTIONS=verify_asan_link_order=0");
    return options;
  }

 private:
  void Put(const std::string& file, const std::string& name) const {
    if (std::rename(file.c_str(), directory_.Path(name).c_str()) != 0) {
      throw std::runtime_error("rename");
    }
  }
  const TemporaryDirectory directory_;
};

/// Addresses of the loopback network that no test running beside this one has: the server's port is
/// to be used at each of them.
std::string OwnAddress(int number) {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(64 * number + static_cast<int>(pid >> 16 & 63)) + "." +
         std::to_string(pid >> 8 & 255) + "." + std::to_string(pid & 255);
}
const std::string kFirst = OwnAddress(1);
const std::string kSecond = OwnAddress(2);

std::string PortOf(const std::string& address) { return address.substr(address.rfind(':')); }

}  // namespace

TEST_CASE("a resolver that does not answer holds up neither --connect-timeout nor a signal") {
  const Names names;
  names.SetSlow("slow");
  const std::string lock = NewLock("resolver");
  SECTION("the time-out") {
    const auto before = SteadyClock::now();
    const Finished finished = Run(names.Use(Zklock(
        {"exclusive", "-z", "slow:2181", "--connect-timeout", "300ms", lock, "--", "true"})));
    CHECK(finished.exit == Exited(69));
    CHECK(SteadyClock::now() - before < 20s);
    CHECK_THAT(finished.err, Catch::Contains("slow:2181 (its name is still being looked up)"));
  }
  SECTION("a signal") {
    Child child =
        Child::Start(names.Use(Zklock({"exclusive", "-z", "slow:2181", lock, "--", "true"})));
    const Child asked = names.WaitForQuestion("slow");
    child.Signal(SIGTERM);
    CHECK(child.Wait(20s) == Exited(128 + SIGTERM));
  }
}

TEST_CASE("a name that is not resolved keeps nobody from the other servers") {
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

TEST_CASE("a server whose address changes is found again, and the command lives") {
  const Names names;
  names.Set("moving", kFirst);
  const std::string lock = NewLock("moving");
  const std::string port = PortOf(TestServers());
  std::optional<Proxy> proxy(std::in_place, TestServers(), kFirst + port);
  Child holder = Child::Start(names.Use(HolderOptions(
      {"exclusive", "-v", "-k", "1s", "--session-timeout", "30s", "-z", "moving" + port}, lock)));
  REQUIRE(holder.ReadLine() == "held");
  names.Set("moving", "127.0.0.1");

  SECTION("when nobody listens at the old one any more") { proxy.reset(); }
  SECTION("when the old one falls silent") { proxy->Freeze(); }
  holder.ReadErrUntil("the server does not answer");
  holder.ReadErrUntil(lock + ": confirmed, still ours");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("a resolver that falls silent does not cost a held lock") {
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
  const Child asked = names.WaitForQuestion("server");  // and is not answered
  proxy.emplace(TestServers(), address);
  holder.ReadErrUntil(lock + ": confirmed, still ours");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
}

TEST_CASE("a resolver that fails for now does not cost the addresses that were known") {
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
  // Only the first is resolved, and nobody is there.
  names.Set("second", "");
  names.SetSlow("first");
  first.reset();
  second.reset();
  Child question = names.WaitForQuestion("first");
  names.SetSlow("first");
  question.Write(kFirst + "\n");
  const Child next = names.WaitForQuestion("first");  // so the answer has been taken
  second.emplace(TestServers(), kSecond + port);
  holder.ReadErrUntil(lock + ": confirmed, still ours");
  holder.Write("5\n");
  CHECK(holder.Wait() == Exited(5));
}

}  // namespace zklock::test
