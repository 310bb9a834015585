#include "zookeeper/server_answers.h"

#include <catch2/catch.hpp>

namespace zklock::zookeeper {
namespace {

using protocol::Members;
using protocol::ServerRole;

std::string Srvr(const std::string& mode) {
  return "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25 "
         "08:49 UTC\nLatency min/avg/max: 0/0.0/0\nReceived: 1\nSent: 0\nConnections: 1\n"
         "Outstanding: 0\nZxid: 0x100000000\nMode: " +
         mode + "\nNode count: 5\n";
}

std::string Conf(const std::string& limit) {
  return "clientPort=2181\nsecureClientPort=-1\ndataDir=/var/lib/zookeeper/version-2\n"
         "tickTime=2000\nmaxClientCnxns=" +
         limit + "\nminSessionTimeout=4000\nserverId=1\n";
}

}  // namespace

TEST_CASE("A word missing from the whitelist is recognised by the server's whole answer") {
  CHECK(IsClosedWord("conf is not executed because it is not in the whitelist.\n", "conf"));
  CHECK(IsClosedWord("conf is not executed because it is not in the whitelist.", "conf"));
  CHECK_FALSE(IsClosedWord("cons is not executed because it is not in the whitelist.\n", "conf"));
  CHECK_FALSE(IsClosedWord("conf is not executed because it is not in the whitelist.\nx", "conf"));
  CHECK_FALSE(IsClosedWord("", "conf"));
}

TEST_CASE("The answer to srvr contains the version and the role") {
  for (const auto& [mode, role] :
       {std::pair{"leader", ServerRole::kLeader}, std::pair{"follower", ServerRole::kFollower},
        std::pair{"observer", ServerRole::kObserver},
        std::pair{"standalone", ServerRole::kStandalone},
        std::pair{"read-only", ServerRole::kReadOnly}}) {
    const auto state = ParseSrvr(Srvr(mode));
    REQUIRE(state);
    CHECK(state->role == role);
    CHECK(state->version == "3.8.0");
  }
  // Debian's build did not expand the variable for its commit.
  const auto debian = ParseSrvr(
      "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 "
      "17:54 UTC\nMode: leader\n");
  REQUIRE(debian);
  CHECK(debian->version == "3.8.0");
  const auto waiting = ParseSrvr("This ZooKeeper instance is not currently serving requests\n");
  REQUIRE(waiting);
  CHECK(waiting->role == ServerRole::kNotServing);
  CHECK(waiting->version.empty());
}

TEST_CASE("Nothing is guessed from text that is not srvr's answer") {
  for (const std::string& answer :
       {std::string(), std::string("SSH-2.0-OpenSSH_9.2\r\n"), Srvr("dictator"),
        std::string("Zookeeper version: \x1b[31m, built on\nMode: leader\n"),
        std::string("Zookeeper version: 3.8.0\n"),
        "Zookeeper version: 3" + std::string(40, '0') + "\nMode: leader\n",
        "HTTP/1.1 400\n" + Srvr("leader")}) {
    CAPTURE(answer);
    CHECK_FALSE(ParseSrvr(answer));
  }
}

TEST_CASE("The answer to conf contains the limit of connections for one host") {
  CHECK(ParseConf(Conf("60")) == 60);
  CHECK(ParseConf(Conf("0")) == 0);
  CHECK(ParseConf(Conf("-1")) == 0);
  for (const char* limit : {"", "many", "60x", " 60", "99999999999999999999"}) {
    CHECK_FALSE(ParseConf(Conf(limit)));
  }
  CHECK_FALSE(ParseConf("maxClientCnxns=60\n"));
  CHECK_FALSE(ParseConf("clientPort=2181\n"));
}

TEST_CASE("The answer to cons is counted by address, however Java formats it") {
  const std::string answer =
      " /10.0.0.1:40000[1](queued=0,recved=1,sent=0)\n"
      " /10.0.0.1:40001[0](queued=0,recved=1,sent=0,sid=0x1,lop=PING,est=1,to=30000)\n"
      " /0:0:0:0:0:0:0:1:40002[1](queued=0,recved=1,sent=0)\n"
      " /[0:0:0:0:0:0:0:1]:40003[1](queued=0,recved=1,sent=0)\n"
      " web1/10.0.0.11:40004[1](queued=0,recved=1,sent=0)\n\n";
  CHECK(CountConnections(answer, "10.0.0.1") == 2);
  CHECK(CountConnections(answer, "::ffff:10.0.0.1") == 2);
  CHECK(CountConnections(answer, "::1") == 2);
  CHECK(CountConnections(answer, "10.0.0.11") == 1);
  CHECK(CountConnections(answer, "10.0.0.2") == 0);
  CHECK_FALSE(CountConnections(answer, "web1"));
  CHECK_FALSE(CountConnections("", "10.0.0.1"));
  for (const char* line : {"x", " /10.0.0.1:40000[1]", " /10.0.0.1[1](queued=0)",
                           " /10.0.0.1:x[1](queued=0)", " 10.0.0.1:40000[1](queued=0)",
                           " /10.0.0.1:40000(queued=0)", " /host:40000[1](queued=0)"}) {
    CAPTURE(line);
    CHECK_FALSE(CountConnections(answer + line, "10.0.0.1"));
  }
}

TEST_CASE("The configuration distinguishes voters from observers") {
  CHECK(ParseMembers("server.1=zk1:2888:3888:participant;0.0.0.0:2181\n"
                     "server.2=zk2:2888:3888:participant\n"
                     "server.12=zk3:2888:3888|zk3b:2888:3888:observer;2181\nversion=100000000") ==
        Members{.voters = {1, 2}, .observers = {12}, .version = 0x1'0000'0000});
  CHECK(ParseMembers("server.1=a:1:2:participant\ngroup.1=1\nweight.1=1\n")->weighted);
  for (const char* data :
       {"", "version=0", "server.1=a:1:2", "server.=a:1:2:participant",
        "server.1=a:1:2:participant\nserver.1=b:1:2:participant", "server.-1=a:1:2:participant",
        "server.1=a:1:2:observer", "server.1=a:1:2:participant\nhello"}) {
    CAPTURE(data);
    CHECK_FALSE(ParseMembers(data));
  }
}

}  // namespace zklock::zookeeper
