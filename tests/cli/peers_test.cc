// Locks that programs of other libraries hold, run for real (tests/peers).

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/zklock.h"

namespace zklock::test {
namespace {

using nlohmann::json;

/// A peer that has said that it is ready.
Child StartPeer(const std::string& program, const std::string& recipe, const std::string& path,
                const Words& more = {}) {
  const char* const source = getenv("ZKLOCK_SOURCE_DIR");
  REQUIRE(source != nullptr);
  ChildOptions options;
  options.argv = {std::string(source) + "/tests/peers/" + program, TestServers(), recipe, path};
  options.argv.insert(options.argv.end(), more.begin(), more.end());
  options.keep_stdin = true;
  Child peer = Child::Start(options);
  REQUIRE(peer.ReadLine() == "ready");
  return peer;
}

void Acquire(Child& peer) {
  peer.Write("acquire\n");
  REQUIRE(peer.ReadLine() == "acquired");
}

json Contenders(const std::string& lock) {
  const Finished finished = RunZklock({"inspect", "--json", lock});
  REQUIRE(finished.exit == Exited(0));
  return json::parse(finished.out)[0]["contenders"];
}

TEST_CASE("locks that Curator's programs hold are shown as theirs") {
  const std::string lock = NewLock("curator");
  Child writer = StartPeer("curator-peer", "write", lock);
  Acquire(writer);
  Child reader = StartPeer("curator-peer", "read", lock);
  reader.Write("acquire\n");
  Tree().WaitForChildren(lock, 2);
  json contenders = Contenders(lock);
  REQUIRE(contenders.size() == 2);
  CHECK(contenders[0]["program"] == "Curator");
  CHECK(contenders[0]["state"] == "held");
  CHECK(contenders[0]["mode"] == "write");
  // Curator writes the address of its host.
  CHECK(contenders[0]["host"].is_string());
  CHECK(contenders[1]["state"] == "waiting");
  CHECK(contenders[1]["mode"] == "read");
  writer.Write("release\n");
  CHECK(writer.ReadLine() == "released");
  CHECK(reader.ReadLine() == "acquired");
  contenders = Contenders(lock);
  REQUIRE(contenders.size() == 1);
  CHECK(contenders[0]["state"] == "held");
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("(Curator)"));
}

TEST_CASE("locks that kazoo's programs hold are shown as theirs") {
  const std::string lock = NewLock("kazoo");
  Child holder = StartPeer("kazoo-peer", "lock", lock, {"the nightly build"});
  Acquire(holder);
  Child reader = StartPeer("kazoo-peer", "read", lock);
  reader.Write("acquire\n");
  Tree().WaitForChildren(lock, 2);
  const json contenders = Contenders(lock);
  REQUIRE(contenders.size() == 2);
  CHECK(contenders[0]["program"] == "kazoo");
  CHECK(contenders[0]["state"] == "held");
  CHECK(contenders[0]["label"] == "the nightly build");
  CHECK(contenders[1]["mode"] == "read");
  CHECK(contenders[1]["waitsFor"] == contenders[0]["name"]);
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("(kazoo) [the nightly build]"));
}

}  // namespace
}  // namespace zklock::test
