// Locks held by real programs that use other libraries (tests/peers).

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/queue/lock_peer.h"
#include "cli/zklock.h"

namespace zklock::test {
namespace {

using nlohmann::json;

/// Creates a lock in the peer, and acquires it if `holds`.
void Make(LockPeer& peer, const std::string& name, const std::string& recipe_and_path, bool holds) {
  REQUIRE(peer.Ask(name, "make " + recipe_and_path) == "made");
  if (holds) REQUIRE(peer.Ask(name, "acquire") == "acquired");
}

json Contenders(const std::string& lock) {
  const Finished finished = RunZklock({"inspect", "--json", lock});
  REQUIRE(finished.exit == Exited(0));
  return json::parse(finished.out)[0]["contenders"];
}

TEST_CASE("locks held by Curator programs are shown as Curator's") {
  const std::string lock = NewLock("curator");
  LockPeer peer = LockPeer::Curator();
  Make(peer, "writer", "write " + lock, true);
  Make(peer, "reader", "read " + lock, false);
  peer.Tell("reader", "acquire");
  Tree().WaitForChildren(lock, 2);
  json contenders = Contenders(lock);
  REQUIRE(contenders.size() == 2);
  CHECK(contenders[0]["program"] == "Curator");
  CHECK(contenders[0]["state"] == "held");
  CHECK(contenders[0]["mode"] == "write");
  // Curator records its host's address.
  CHECK(contenders[0]["host"].is_string());
  CHECK(contenders[1]["state"] == "waiting");
  CHECK(contenders[1]["mode"] == "read");
  CHECK(peer.Ask("writer", "release") == "released");
  CHECK(peer.Answer("reader") == "acquired");
  contenders = Contenders(lock);
  REQUIRE(contenders.size() == 1);
  CHECK(contenders[0]["state"] == "held");
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("(Curator)"));
}

TEST_CASE("locks held by kazoo programs are shown as kazoo's") {
  const std::string lock = NewLock("kazoo");
  LockPeer peer = LockPeer::Kazoo();
  Make(peer, "holder", "lock " + lock + " the nightly build", true);
  Make(peer, "reader", "read " + lock, false);
  peer.Tell("reader", "acquire");
  Tree().WaitForChildren(lock, 2);
  const json contenders = Contenders(lock);
  REQUIRE(contenders.size() == 2);
  CHECK(contenders[0]["program"] == "kazoo");
  CHECK(contenders[0]["state"] == "held");
  CHECK(contenders[0]["label"] == "the nightly build");
  CHECK(contenders[1]["mode"] == "read");
  CHECK(contenders[1]["waitsFor"] == contenders[0]["name"]);
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("the nightly build"));
}

}  // namespace
}  // namespace zklock::test
