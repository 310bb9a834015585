// Everything that zklock refuses. Each refusal has its exit status, prints one line of explanation
// (two for a usage error) and nothing on standard output, and leaves nothing on the servers.

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "cli/zklock.h"
#include "support/contender_names.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

/// Checks that `words` cause a usage error before any connection.
void CheckUsageError(const Words& words) {
  CAPTURE(words);
  const Peer peer(Peer::Manner::kSaysNothing);
  const Finished finished =
      Run(With(Zklock(words), {"ZKLOCK_SERVERS=" + peer.address()}), Exited(64));
  CHECK(finished.out.empty());
  const Words lines = Lines(finished.err);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::StartsWith("zklock: "));
  CHECK(lines[0].size() > std::string("zklock: ").size());
  CHECK(lines[1] == "try 'zklock " + words.front() + " --help'");
  CHECK(peer.connections() == 0);
}

/// Returns the one line on standard error of `zklock WORDS`, which must end with `status`.
std::string Refuse(const Words& words, int status) {
  CAPTURE(words);
  const Finished finished = RunZklock(words, Exited(status));
  CHECK(finished.out.empty());
  const Words lines = Lines(finished.err);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::StartsWith("zklock: "));
  return lines[0];
}

}  // namespace

TEST_CASE("each subcommand refuses an unusable LOCK before any connection") {
  CheckUsageError({"exclusive", "", "--", "true"});
  for (const char* subcommand : {"exclusive", "read", "write", "try"}) {
    CheckUsageError({subcommand, "/a//b", "--", "true"});
  }
  CheckUsageError({"inspect", "/a//b"});
  CheckUsageError({"release", "/a//b", "--holders", "--yes"});
}

TEST_CASE("the hint after an unusable descriptor or owner names the subcommand that was called") {
  for (const char* subcommand : {"exclusive", "write", "try"}) {
    CheckUsageError({subcommand, "--events", "77", "/l", "--", "true"});
  }
  for (const char* subcommand : {"exclusive", "try"}) {
    CheckUsageError({subcommand, "--hold", "--owner-pid", "2147483646", "/l"});
  }
}

TEST_CASE("an invalid value in the environment is refused as on the command line") {
  for (const char* variable :
       {"ZKLOCK_ROOT=relative", "ZKLOCK_CONNECT_TIMEOUT=x", "ZKLOCK_SESSION_TIMEOUT=0"}) {
    ChildOptions options = Zklock({"exclusive", "lock", "--", "true"});
    options.also_environment = {variable};
    CAPTURE(variable);
    const Finished finished = Run(options, Exited(64));
    CHECK(Lines(finished.err).size() == 2);
  }
}

TEST_CASE("a variable that determines the lock must not be empty") {
  for (const std::string variable : {"ZKLOCK_SERVERS", "ZKLOCK_ROOT", "ZKLOCK_DIALECT"}) {
    ChildOptions options = Zklock({"exclusive", "lock", "--", "true"});
    options.also_environment = {variable + "="};
    CAPTURE(variable);
    const Finished finished = Run(options, Exited(64));
    CHECK_THAT(finished.err, Catch::Contains("(from $" + variable + ")"));
  }
  ChildOptions options = Zklock({"try", "/t/refusal/empty", "--", "true"});
  options.also_environment = {"ZKLOCK_LABEL=", "ZKLOCK_CONNECT_TIMEOUT="};
  Run(options, Exited(0));
}

TEST_CASE("a missing or unknown subcommand is refused") {
  for (const Words& words : {Words{}, Words{"exlusive", "/t/x", "--", "true"}, Words{""},
                             Words{"--frob"}, Words{"--"}, Words{"/t/x", "--", "true"}}) {
    CAPTURE(words);
    const Finished finished = RunZklock(words, Exited(64));
    CHECK(finished.out.empty());
    const Words lines = Lines(finished.err);
    REQUIRE(lines.size() == 2);
    CHECK_THAT(lines[0], Catch::StartsWith("zklock: "));
    CHECK(lines[1] == "try 'zklock --help'");
  }
}

TEST_CASE("control characters in wrong arguments are escaped, not sent to the terminal") {
  const Finished finished =
      RunZklock({"exclusive", "/a\x1b]0;owned\x07\nzklock: all is fine", "--", "true"}, Exited(64));
  CHECK(Lines(finished.err).size() == 2);
  CHECK(finished.err.find('\x1b') == std::string::npos);
  CHECK(finished.err.find('\x07') == std::string::npos);
}

TEST_CASE("a run that reaches no server exits with 69 in time, and names those that it tried") {
  const ClosedPort first;
  const ClosedPort second;
  const auto before = SteadyClock::now();
  const std::string line = Refuse({"exclusive", "-z", first.address() + "," + second.address(),
                                   "--connect-timeout", "2s", "/t/x", "--", "true"},
                                  69);
  const auto took = SteadyClock::now() - before;
  CHECK(took >= 2s);
  CHECK(took < 10s);
  CHECK_THAT(line, Catch::Contains("within 2s"));
  // zklock tries the servers in random order.
  const std::string reason = " (each: Connection refused)";
  CHECK_THAT(line, Catch::Contains(first.address() + ", " + second.address() + reason) ||
                       Catch::Contains(second.address() + ", " + first.address() + reason));
}

TEST_CASE("zklock works with servers that upgrade local sessions on the first ephemeral znode") {
  const OwnServer servers({"localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"}, 3);
  RunZklock({"exclusive", "-z", servers.address(), "/t/x", "--", "true"}, Exited(0));
}

TEST_CASE("a run whose session may own no znodes exits with 78, also if it only resumes") {
  const OwnServer servers({"localSessionsEnabled=true"}, 3);
  Tree tree("", servers.address());
  tree.Create("/t/r/host-0f8fad5b-d9cb-469f-a165-70867728950e-reserve-lock-0000000000",
              ZnodeKind::kPersistent, R"({"reservation":{"id":"ci","for":3600000,"token":1}})");
  const std::string option = GENERATE("--resume", "--reserve");
  CHECK_THAT(Refuse({"exclusive", "-z", servers.address(), option, "ci", "/t/r", "--", "true"}, 78),
             Catch::StartsWith("zklock: /t/r cannot be used: the servers grant local sessions"));
}

TEST_CASE("a run exits with 69 and the reason if its peer is not a ZooKeeper server") {
  const auto refuse = [](const std::string& address) {
    return Refuse({"try", "-z", address, "--connect-timeout", "1s", "--session-timeout", "4s",
                   "/t/x", "--", "true"},
                  69);
  };
  SECTION("closes at once") {
    const Peer peer(Peer::Manner::kClosesAtOnce);
    CHECK_THAT(refuse(peer.address()),
               Catch::Contains(peer.address() + " (closes the connection at once: "));
  }
  SECTION("is a web server") {
    const Peer peer(Peer::Manner::kSpeaksHttp);
    CHECK_THAT(refuse(peer.address()),
               Catch::Contains(peer.address() + " (answers, but not as a ZooKeeper server: "));
  }
  SECTION("says nothing") {
    const Peer peer(Peer::Manner::kSaysNothing);
    CHECK_THAT(
        refuse(peer.address()),
        Catch::Contains(peer.address() + " (accepts the connection, but grants no session: "));
  }
  SECTION("does not complete the connection") {
    const BlackHole hole;
    CHECK_THAT(refuse(hole.address()),
               Catch::Contains(hole.address() + " (does not answer connection attempts: "));
  }
}

TEST_CASE("the reason stays the same when the client library gives up before zklock") {
  // The second attempt may take two thirds of the timeout; after that, the library gives up.
  const BlackHole hole;
  CHECK_THAT(Refuse({"try", "-z", hole.address(), "--connect-timeout", "6s", "--session-timeout",
                     "4s", "/t/x", "--", "true"},
                    69),
             Catch::Contains(hole.address() + " (does not answer connection attempts: "));
}

TEST_CASE("bad servers among good ones do not matter") {
  const ClosedPort closed;
  const BlackHole hole;
  const Peer web(Peer::Manner::kSpeaksHttp);
  const Peer at_once(Peer::Manner::kClosesAtOnce);
  const std::string servers = closed.address() + "," + hole.address() + "," + web.address() + "," +
                              TestServers() + "," + at_once.address();
  for (int i = 0; i < 3; ++i) {
    CHECK(RunZklock({"exclusive", "-z", servers, NewLock("among"), "--", "true"}, Exited(0))
              .err.empty());
  }
}

TEST_CASE("an unknown server name is reported at once") {
  const auto before = SteadyClock::now();
  const std::string line = Refuse({"exclusive", "-z", "no-such-host.invalid:2181",
                                   "--connect-timeout", "5s", "/t/x", "--", "true"},
                                  69);
  CHECK(SteadyClock::now() - before < 20s);
  CHECK_THAT(line, Catch::Contains("no-such-host.invalid:2181"));
}

TEST_CASE("a server is found by its name") {
  const std::string server = TestServers();
  const std::string named = "localhost" + server.substr(server.rfind(':'));
  CHECK_THAT(
      RunZklock({"exclusive", "-v", "-z", named, NewLock("name"), "--", "true"}, Exited(0)).err,
      Catch::Contains("connected to localhost:"));
}

#ifndef ZKLOCK_SANITIZED  // the sanitizers' runtime needs /proc before zklock does
TEST_CASE("without /proc zklock exits with 71 before anything is created") {
  Tree tree;
  const std::string lock = NewLock("no-proc");
  ChildOptions options = Zklock({"exclusive", lock, "--", "true"});
  const Words in_a_namespace = {"/usr/bin/unshare",
                                "--user",
                                "--map-root-user",
                                "--mount",
                                "/bin/sh",
                                "-c",
                                "mount -t tmpfs none /proc && exec \"$0\" \"$@\""};
  options.argv.insert(options.argv.begin(), in_a_namespace.begin(), in_a_namespace.end());
  CHECK(Run(options, Exited(71)).err.find("/proc") != std::string::npos);
  CHECK_FALSE(tree.Exists(lock));
}
#endif

TEST_CASE("a child that no session owns is in the way once contenders have reached its number") {
  const bool is_reached = GENERATE(false, true);
  auto [tree, lock] = MadeLock("numbered");
  for (int i = 0; i < 3; ++i) RunZklock({"exclusive", lock, "--", "true"}, Exited(0));
  const std::string child = is_reached ? "build-0000000001" : "build-2024010203";
  tree.Create(lock + "/" + child);
  const std::string other = NewLock("numbered");
  for (const Words& words :
       {Words{"exclusive"}, Words{"exclusive", "-n"}, Words{"try"}, Words{"try", other},
        Words{"exclusive", other}, Words{"read"}, Words{"exclusive", "--dry-run"}}) {
    CAPTURE(words);
    const Finished finished = RunZklock(words + Words{lock, "--", "true"});
    CHECK(finished.exit == Exited(is_reached ? 78 : 0));
    const std::string says = is_reached ? "'" + child + "' is not a contender" : "";
    CHECK_THAT(finished.out + finished.err, Catch::Contains(says));
  }
}

TEST_CASE("a dry run treats children of a semaphore without an owner session as a run does") {
  const bool is_permit = GENERATE(false, true);
  const bool is_in_the_way = GENERATE(false, true);
  CAPTURE(is_permit, is_in_the_way);
  const std::string lock = NewLock("numbered");
  const std::string permits = is_permit && is_in_the_way ? "1" : "2";
  const Words words = {"--permits", permits, lock, "--", "true"};
  Tree tree;
  for (int i = 0; i < 3; ++i) RunZklock(Words{"exclusive"} + words, Exited(0));
  const std::string queue = lock + (is_permit ? "/leases" : "/locks");
  tree.Create(queue + (is_permit       ? "/x-lease-0000000001"
                       : is_in_the_way ? "/build-0000000001"
                                       : "/build-2024010203"));
  for (const Words& run : {Words{"exclusive"}, Words{"exclusive", "--dry-run"}}) {
    CAPTURE(run);
    CHECK(RunZklock(run + words).exit == Exited(is_in_the_way ? 78 : 0));
  }
}

TEST_CASE("a run exits with 77 and names LOCK if the ACL of LOCK denies queueing") {
  auto [tree, lock] = MadeLock("acl");
  tree.SetAcl(lock, kRead | kAdmin);
  CHECK_THAT(Refuse({"exclusive", lock, "--", "true"}, 77),
             Catch::Contains("not authorised") && Catch::Contains(lock));
}

TEST_CASE("a run exits with 77 and leaves no contender if it lacks permission to list LOCK") {
  auto [tree, lock] = MadeLock("acl");
  tree.SetAcl(lock, kCreate | kDelete | kAdmin);
  for (const char* subcommand : {"exclusive", "try"}) {
    CHECK_THAT(Refuse({subcommand, lock, "--", "true"}, 77),
               Catch::Contains("list") && Catch::Contains(lock));
  }
  tree.SetAcl(lock, kRead | kAdmin);
  CHECK(tree.Children(lock).empty());
}

TEST_CASE("a run exits with 77 if it lacks permission to create LOCK") {
  auto [tree, parent] = MadeLock("acl");
  tree.SetAcl(parent, kRead | kAdmin);
  CHECK_THAT(Refuse({"exclusive", parent + "/a/b", "--", "true"}, 77),
             Catch::Contains(parent + "/a/b"));
  CHECK(tree.Children(parent).empty());
}

TEST_CASE("an existing LOCK can be used even if its parent denies creating") {
  Tree tree;
  const std::string parent = NewLock("acl");
  const std::string lock = tree.Create(parent + "/lock");
  tree.SetAcl(parent, kRead | kAdmin);
  RunZklock({"exclusive", lock, "--", "true"}, Exited(0));
}

TEST_CASE("a run still waits for a contender that it cannot read") {
  Tree tree;
  const std::string lock = NewLock("acl");
  const std::string other =
      tree.Create(lock + "/x-lock-", ZnodeKind::kEphemeralSequential, "secret");
  tree.SetAcl(other, kAdmin);
  Child waiter = StartWaiter(lock);
  CHECK(waiter.out().empty());
  tree.Delete(other);
  CHECK(waiter.ReadLine() == "held");
}

TEST_CASE(
    "a run exits with 78 and suggests a remedy if programs that would ignore zklock use the LOCK") {
  Tree tree;
  const std::string lock = NewLock("dialect");
  std::string other;
  SECTION("a kazoo lock") {
    other = kKazooLock;
    other = BaseName(tree.Create(lock + "/" + other, ZnodeKind::kEphemeralSequential));
  }
  SECTION("a kazoo reader") {
    other = kKazooReader;
    other = BaseName(tree.Create(lock + "/" + other, ZnodeKind::kEphemeralSequential));
  }
  SECTION("a plain one-znode lock") {
    other = "lock";
    tree.Create(lock + "/lock", ZnodeKind::kEphemeral);
  }
  SECTION("a lock below a lock") {
    other = "build-0000000000";
    tree.Create(lock + "/" + other);
  }
  for (const char* subcommand : {"exclusive", "try"}) {
    CHECK_THAT(
        Refuse({subcommand, lock, "--", "sh", "-c", "echo ran"}, 78),
        Catch::Contains("'" + other + "'") && Catch::Contains(lock) && Catch::Contains("; "));
    CHECK(tree.Children(lock) == Words{other});
  }
}

TEST_CASE(
    "Curator's mutex and exclusive contenders wait for each other; readers are refused beside it") {
  Tree tree;
  const std::string lock = NewLock("curator");
  const std::string mutex =
      tree.Create(lock + "/" + kCuratorLock, ZnodeKind::kEphemeralSequential, "10.0.0.1");
  RunZklock({"try", lock, "--", "true"}, Exited(75));
  RunZklock({"read", lock, "--", "true"}, Exited(78));
  Child waiter = StartWaiter(lock);
  tree.Delete(mutex);
  CHECK(waiter.ReadLine() == "held");
}

TEST_CASE("a run exits with 78 if LOCK is an ephemeral znode") {
  Tree tree;
  const std::string lock = tree.Create(NewLock("ephemeral"), ZnodeKind::kEphemeral);
  const std::string itself = "it is an ephemeral znode";
  CHECK_THAT(Refuse({"exclusive", lock, "--", "true"}, 78), Catch::Contains(itself));
  CHECK_THAT(Refuse({"try", lock, "--", "true"}, 78), Catch::Contains(itself));
  CHECK_THAT(Refuse({"exclusive", "--permits=2", lock, "--", "true"}, 78), Catch::Contains(itself));
  for (const char* const option : {"--permits=2", "--no-nest"}) {
    CHECK_THAT(Refuse({"exclusive", option, lock + "/below", "--", "true"}, 78),
               Catch::Contains("a znode above it is ephemeral"));
  }
}

TEST_CASE("the name of another program's contender is printed without its control characters") {
  Tree tree;
  const std::string lock = NewLock("bytes");
  // Names that the servers accept can still be harmful on a terminal: U+202E reverses text.
  tree.Create(lock + "/evil\xe2\x80\xae-lock-", ZnodeKind::kEphemeralSequential);
  CHECK(Refuse({"try", lock, "--", "true"}, 75).find("\xe2\x80\xae") == std::string::npos);
}

TEST_CASE("a run exits with 78 if the servers limit its session timeout to less than 4 s") {
  CHECK_THAT(Refuse({"exclusive", "--session-timeout", "1s", NewLock("short"), "--", "true"}, 78),
             Catch::Contains("--session-timeout"));
}

}  // namespace zklock::test
