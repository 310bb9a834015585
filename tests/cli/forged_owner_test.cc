// Whoever can write to a holder's znode can say there for whom it is held. No zklock believes that
// without proof by the process that is said to hold.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "cli/hold_script.h"
#include "cli/zklock.h"
#include "process/identity.h"
#include "process/nesting_socket.h"
#include "process/process_tree.h"

namespace zklock::test {
namespace {

/// Data that says that the process `holder`, which listens at `socket`, holds by --hold for
/// `owner`.
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

/// A holder, and a shell that its data names as the owner.
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

TEST_CASE("A forged owner lets nothing run beside the holder") {
  Forged forged("$Z try -q $L -- echo ran");
  SECTION("said of a process that listens nowhere") { forged.Write(getpid(), "zklock-nobody"); }
  SECTION("said of the holder") { forged.Write(forged.holder.pid(), "zklock-nobody"); }
  SECTION("said of init") { forged.Write(1, "zklock-nobody"); }
  CHECK(forged.shell.ReadLine() == "75");
}

TEST_CASE("A forged owner with a socket of another process lets nothing run beside the holder") {
  Forged forged("$Z exclusive --connect-timeout 5s $L -- echo ran");
  const std::string name = "zklock-forged-" + process::MakeUuid();
  const UniqueFd listener = process::ListenAt(name);
  forged.Write(forged.holder.pid(), name);
  CHECK(forged.shell.ReadLine() == "64");
  CHECK_THAT(forged.shell.err(), Catch::Contains("does not answer"));
}

TEST_CASE("A forged owner cannot release what somebody else holds, nor see it as its own") {
  Forged forged("$Z inspect --mine -q $L; echo $?; $Z release $L");
  forged.Write(forged.holder.pid(), "zklock-nobody");
  CHECK(forged.shell.ReadLine() == "76");
  CHECK(forged.shell.ReadLine() == "69");
  CHECK_FALSE(forged.holder.HasEnded());
  CHECK(Tree().Children(forged.lock).size() == 1);
}

TEST_CASE("A forged release of the owner's releases nothing behind the owner's back") {
  const std::string lock = NewLock("forged");
  Child script =
      Child::Start(Script(lock,
                          "trap 'echo told; exit' TERM; $Z exclusive --hold $L || exit; echo held; "
                          "while :; do read x; done"));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  const std::string contender = lock + "/" + tree.Children(lock).at(0);
  tree.SetData(contender, R"({"revoke":{"by":"the owner","byOwner":true}})");
  script.Write("\n");
  script.ReadUntil("told");
  CHECK(script.Wait() == Exited(0));
}

}  // namespace
}  // namespace zklock::test
