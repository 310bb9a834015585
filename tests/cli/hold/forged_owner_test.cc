// Anyone who can write to a holder's znode can claim there that the lock is held for some process.
// No zklock believes that claim unless the holding process confirms it.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "cli/hold/hold_script.h"
#include "cli/zklock.h"
#include "process/nesting/nesting_socket.h"
#include "process/tree/identity.h"
#include "process/tree/process_tree.h"
#include "support/peer.h"
#include "support/process.h"

namespace zklock::test {
namespace {

/// Returns data claiming that the process `holder`, listening on `socket`, holds the LOCK with
/// --hold for `owner`.
std::string DataOf(pid_t holder, pid_t owner, const std::string& socket) {
  const auto start = [](pid_t pid) {
    return std::to_string(process::ReadProcessStat(pid)->id.start_time);
  };
  const process::Identity self = process::ThisProcess();
  return R"({"version":1,"bootId":")" + self.boot_id + R"(","pidNamespace":)" +
         std::to_string(self.pid_namespace) + R"(,"pid":)" + std::to_string(holder) +
         R"(,"startTime":)" + start(holder) + R"(,"owner":{"pid":)" + std::to_string(owner) +
         R"(,"startTime":)" + start(owner) + R"(,"socket":")" + socket + R"("}})";
}

/// A holder whose data names a shell as the owner.
struct Forged {
  const std::string lock = NewLock("forged");
  Child holder = StartHolder(lock);
  Child shell;

  explicit Forged(const std::string& words)
      : shell(Child::Start(Script(lock, "echo ready; read x; " + words + "; echo $?"))) {
    REQUIRE(shell.ReadLine() == "ready");
  }
  void Write(pid_t said_to_hold, const std::string& socket) {
    Tree tree;
    tree.SetData(lock + "/" + tree.Children(lock).at(0), DataOf(said_to_hold, shell.pid(), socket));
    shell.Write("\n");
  }
};

TEST_CASE("A forged owner does not let a second command run at the same time as the holder") {
  Forged forged("$Z try -q $L -- echo ran");
  SECTION("the forged holder listens nowhere") { forged.Write(getpid(), "zklock-nobody"); }
  SECTION("the forged holder is the real one") {
    forged.Write(forged.holder.pid(), "zklock-nobody");
  }
  SECTION("the forged holder is init") { forged.Write(1, "zklock-nobody"); }
  CHECK(forged.shell.ReadLine() == "75");
}

TEST_CASE("A keeper does not ask its own contender of an earlier session, but waits for it") {
  // A server can report a session as expired some seconds before the leader ends it.
  const std::string lock = NewLock("anew");
  Proxy proxy(TestServers());
  proxy.Freeze();
  Child script = Child::Start(Script(lock, "$Z exclusive -z " + proxy.address() +
                                               " --hold --connect-timeout 9s $L; echo $?; read x"));
  const pid_t keeper = WaitForChild(WaitForChild(script.pid()));
  Tree tree;
  const std::string earlier =
      tree.Create(lock + "/vm-" + process::MakeUuid() + "-lock-", ZnodeKind::kEphemeralSequential,
                  DataOf(keeper, script.pid(), "zklock-nobody"));
  proxy.Thaw();
  script.ReadErrUntil("next in line, 1s");
  tree.Delete(earlier);
  CHECK(script.ReadLine() == "0");
}

TEST_CASE("A forged owner with another process's socket does not let a second command run") {
  Forged forged("$Z exclusive --connect-timeout 5s $L -- echo ran");
  const std::string name = "zklock-forged-" + process::MakeUuid();
  const UniqueFd listener = process::ListenAt(name);
  forged.Write(forged.holder.pid(), name);
  CHECK(forged.shell.ReadLine() == "64");
  CHECK_THAT(forged.shell.err(), Catch::Contains("does not confirm it"));
}

TEST_CASE("A forged owner can neither release another process's lock nor see it as its own") {
  Forged forged("$Z inspect --mine -q $L; echo $?; $Z release $L");
  forged.Write(forged.holder.pid(), "zklock-nobody");
  CHECK(forged.shell.ReadLine() == "69");
  CHECK(forged.shell.ReadLine() == "69");
  CHECK_FALSE(forged.holder.HasEnded());
  CHECK(Tree().Children(forged.lock).size() == 1);
}

TEST_CASE("A forged request in the owner's name still signals the owner") {
  const std::string lock = NewLock("forged");
  Child script =
      Child::Start(Script(lock,
                          "trap 'echo told; exit' TERM; $Z exclusive --hold $L || exit; echo held; "
                          "while :; do sleep 0.05; done"));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  const std::string contender = lock + "/" + tree.Children(lock).at(0);
  tree.SetData(contender, R"({"revoke":{"by":"the owner","byOwner":true}})");
  script.ReadUntil("told");
  CHECK(script.Wait() == Exited(0));
}

}  // namespace
}  // namespace zklock::test
