// Credentials and ACLs against a real server: which users may queue, inspect, wait and delete, and
// the messages for the others. See zklock-protocol(7), ACCESS.

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/zklock.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

constexpr int kAll = kRead | kWrite | kCreate | kDelete | kAdmin;
constexpr const char* kAlice = "alice:tulip";
constexpr const char* kBob = "bob:rose";
constexpr const char* kOperator = "operator:oak";

/// Returns the same run with the credentials of `user`, or without any if `user` is empty.
ChildOptions As(const std::string& user, ChildOptions options) {
  if (!user.empty()) options.also_environment.push_back("ZKLOCK_AUTH=digest:" + user);
  return options;
}
Finished RunAs(const std::string& user, const Words& words) { return Run(As(user, Zklock(words))); }
Child HoldAs(const std::string& user, const std::string& lock, const Words& words = {"exclusive"}) {
  Child holder = Child::Start(As(user, HolderOptions(words, lock)));
  REQUIRE(holder.ReadLine() == "held");
  return holder;
}
Child WaitAs(const std::string& user, const std::string& lock) {
  Child waiter = Child::Start(As(user, HolderOptions({"exclusive", "--verbose"}, lock)));
  waiter.ReadErrUntil("waiting for " + lock);
  return waiter;
}

/// Checks that zklock refuses with 77 and one line of explanation, and returns that line.
std::string RefusalFor(const std::string& user, const Words& words) {
  const Finished finished = RunAs(user, words);
  CAPTURE(user, words, finished.err);
  CHECK(finished.exit == Exited(77));
  CHECK(finished.out.empty());
  const Words lines = Lines(finished.err);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::StartsWith("zklock: "));
  return lines[0];
}

/// Writes a credentials file with safe permissions and returns its path.
std::string AuthFile(const TemporaryDirectory& directory, const std::string& text) {
  std::string file = directory.Write("auth", text);
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  return file;
}

/// Creates a parent znode for one test, open to everyone, so that no user becomes the owner of /t.
std::string NewParent(const char* name) { return Tree().Create(NewLock(name)); }

std::string OnlyChild(Tree& tree, const std::string& lock) {
  const Words children = tree.Children(lock);
  REQUIRE(children.size() == 1);
  return children.front();
}

const Words kCreatorAcl = {"digest:alice 31", "world:anyone 1"};
const Words kSharedAcl = {"digest:alice 31", "world:anyone 5"};
const Words kOpenAcl = {"world:anyone 31"};

}  // namespace

TEST_CASE("with credentials, znodes belong to their creator and everyone may read them") {
  Tree tree;
  const std::string parent = NewParent("creator") + "/parent";
  const std::string lock = parent + "/lock";
  const Child holder = HoldAs(kAlice, lock);
  CHECK(tree.GetAcl(parent) == kSharedAcl);
  CHECK(tree.GetAcl(lock) == kCreatorAcl);
  CHECK(tree.GetAcl(lock + "/" + OnlyChild(tree, lock)) == kCreatorAcl);
}

TEST_CASE("--acl open gives everyone all permissions, as a run without credentials does") {
  Tree tree;
  const auto check = [&](const std::string& user, const Words& words) {
    const std::string lock = NewParent("open") + "/lock";
    const Child holder = HoldAs(user, lock, words);
    CHECK(tree.GetAcl(lock) == kOpenAcl);
    CHECK(tree.GetAcl(lock + "/" + OnlyChild(tree, lock)) == kOpenAcl);
  };
  check(kAlice, {"exclusive", "--acl", "open"});
  check("", {"exclusive"});
}

TEST_CASE("credentials come from --auth-file, else $ZKLOCK_AUTH, else $ZKLOCK_AUTH_FILE") {
  const TemporaryDirectory directory;
  const std::string file = AuthFile(directory, "# us\ndigest:alice:tulip\n");
  Tree tree;
  const auto owners = [&](const Words& variables, const Words& option) {
    const std::string lock = NewParent("source") + "/lock";
    Words words = Words{"exclusive"} + option;
    ChildOptions options = HolderOptions(words, lock);
    options.also_environment = variables;
    Child holder = Child::Start(std::move(options));
    REQUIRE(holder.ReadLine() == "held");
    return tree.GetAcl(lock);
  };
  const std::string bob = "ZKLOCK_AUTH=digest:bob:rose";
  CHECK(owners({}, {"--auth-file", file}) == kCreatorAcl);
  CHECK(owners({"ZKLOCK_AUTH_FILE=" + file}, {}) == kCreatorAcl);
  CHECK(owners({bob}, {"--auth-file", file}) == kCreatorAcl);
  CHECK(owners({bob, "ZKLOCK_AUTH_FILE=" + file}, {}) == Words{"digest:bob 31", "world:anyone 1"});
  CHECK(owners({"ZKLOCK_AUTH=digest:alice:tulip\n#\ndigest:bob:rose\n"}, {}) ==
        Words{"digest:alice 31", "digest:bob 31", "world:anyone 1"});
  CHECK(owners({"ZKLOCK_AUTH=", "ZKLOCK_AUTH_FILE="}, {}) == kOpenAcl);
}

TEST_CASE("no credential reaches the command, a nested run, or anything that other users can see") {
  const TemporaryDirectory directory;
  const std::string file = AuthFile(directory, "digest:alice:tulip\n");
  const std::string lock = NewParent("leak") + "/lock";
  // Prints the command's own environment, that of each ancestor up to the outermost zklock, and
  // that of a nested run.
  const std::string script =
      "env; "
      "pid=$PPID; while [ $pid -gt 1 ] && [ $pid != $TEST ]; do tr '\\0' '\\n' "
      "</proc/$pid/environ; "
      "tr '\\0' ' ' </proc/$pid/cmdline; pid=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$pid/status); "
      "done; " +
      Binary() + " inspect -v " + lock + "; ZKLOCK_AUTH=$(cat " + file +
      ") ZKLOCK_AUTH_FILE=" + file + " " + Binary() + " exclusive " + lock + " -- env";
  ChildOptions options =
      Zklock({"exclusive", "-v", "--label", "l", lock, "--", "sh", "-c", script});
  options.also_environment = {"ZKLOCK_AUTH=digest:alice:tulip", "ZKLOCK_AUTH_FILE=" + file,
                              "TEST=" + std::to_string(getpid())};
  const Finished finished = Run(std::move(options), Exited(0));
  CHECK_THAT(finished.out, Catch::Contains("ZKLOCK_TOKEN="));
  CHECK(finished.out.find("tulip") == std::string::npos);
  CHECK(finished.err.find("tulip") == std::string::npos);
  // In the command's environment the variable is removed, not just empty.
  for (const std::string& line : Lines(finished.out)) {
    if (line.starts_with("ZKLOCK_AUTH=")) CHECK(line == "ZKLOCK_AUTH=");  // zklock's, in /proc
  }
  const Finished command = RunAs(kAlice, {"exclusive", lock, "--", "env"});
  CHECK(command.out.find("ZKLOCK_AUTH") == std::string::npos);
}

TEST_CASE(
    "zklock exits with 77 before contacting servers if others can read the credentials file") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("auth", "digest:alice:tulip\n");
  REQUIRE(chmod(file.c_str(), 0644) == 0);
  const Peer peer(Peer::Manner::kSaysNothing);
  for (const Words& words :
       {Words{"exclusive", "/t/x", "--auth-file", file, "--", "true"},
        Words{"inspect", "--auth-file", file, "/t/x"},
        Words{"release", "--auth-file", file, "/t/x", "--force", "--yes", "--contender", "x"}}) {
    ChildOptions options = With(Zklock(words), {"ZKLOCK_SERVERS=" + peer.address()});
    CAPTURE(words);
    const Finished finished = Run(std::move(options), Exited(77));
    CHECK(Lines(finished.err).size() == 1);
    CHECK_THAT(finished.err, Catch::StartsWith("zklock: " + file + ": other users can access it"));
  }
  CHECK(peer.connections() == 0);
}

TEST_CASE(
    "zklock exits with 78 on malformed credentials, naming file and line but not the contents") {
  const TemporaryDirectory directory;
  const std::string file = AuthFile(directory, "# us\nalice/tulip\n");
  const auto refuse = [](const Words& words, const Words& variables) {
    ChildOptions options = Zklock(words);
    options.also_environment = variables;
    const Finished finished = Run(std::move(options), Exited(78));
    CHECK(Lines(finished.err).size() == 1);
    CHECK(finished.err.find("tulip") == std::string::npos);
    return finished.err;
  };
  const Words run = {"try", "/t/x", "--", "true"};
  CHECK(refuse({"try", "--auth-file", file, "/t/x", "--", "true"}, {}) ==
        "zklock: " + file + ":2: expected scheme:credential, such as digest:user:password\n");
  CHECK(refuse(run, {"ZKLOCK_AUTH_FILE=" + file}) ==
        "zklock: " + file + ":2: expected scheme:credential, such as digest:user:password\n");
  CHECK(refuse(run, {"ZKLOCK_AUTH=tulip"}) ==
        "zklock: ZKLOCK_AUTH:1: expected scheme:credential, such as digest:user:password\n");
  CHECK_THAT(refuse({"inspect", "--auth-file", file + "-not", "/t/x"}, {}),
             Catch::Contains(file + "-not: cannot be read: No such file"));
  CHECK_THAT(refuse({"try", "--auth-file", "digest:us:tulip", "/t/x", "--", "true"}, {}),
             Catch::Contains("zklock: digest:... is not a file"));
  CHECK_THAT(refuse(run, {"ZKLOCK_AUTH_FILE=digest-us-tulip:x"}),
             Catch::Contains("zklock: scheme:... is not a file"));
}

TEST_CASE(
    "zklock exits with 77 at once and leaves nothing behind if its credentials are rejected") {
  auto [tree, lock] = MadeLock("refused");
  for (const Words& words :
       {Words{"exclusive", lock, "--", "true"}, Words{"try", lock, "--", "true"},
        Words{"inspect", lock},
        Words{"release", lock, "--force", "--yes", "--contender", "x-lock-0000000000"},
        Words{"release", "--reserve", "ci", lock, lock + "/other"}}) {
    ChildOptions options = Zklock(words);
    options.also_environment = {"ZKLOCK_AUTH=digest_us_tulip:tulip"};
    CAPTURE(words);
    const Finished finished = Run(std::move(options), Exited(77));
    CHECK(finished.err ==
          "zklock: the servers rejected the credentials (ZKLOCK_AUTH:1: they might not know its "
          "scheme); see --auth-file\n");
  }
  CHECK(tree.Children(lock).empty());
}

TEST_CASE(
    "another user may inspect a creator's LOCK and is told which permission is missing where") {
  Tree tree;
  const std::string parent = NewParent("incompatible") + "/parent";
  const std::string lock = parent + "/lock";
  Child holder = HoldAs(kAlice, lock);
  const std::string contender = OnlyChild(tree, lock);
  for (const std::string user : {"", kBob}) {
    CHECK(RunAs(user, {"inspect", lock}).exit == Exited(0));
    CHECK(RunAs(user, {"inspect", "-q", lock}).exit == Exited(75));
    // zklock can see that the lock is held without creating a contender.
    CHECK(RunAs(user, {"try", lock, "--", "true"}).exit == Exited(75));
    CHECK_THAT(RefusalFor(user, {"exclusive", lock, "--", "true"}),
               Catch::Contains("queue in " + lock + ": not authorised: CREATE on " + lock +
                               " is missing"));
    CHECK_THAT(RefusalFor(user, {"exclusive", lock + "/below", "--", "true"}),
               Catch::Contains("make " + lock + "/below: not authorised: CREATE on " + lock +
                               " is missing"));
    const Finished release =
        RunAs(user, {"release", lock, "--force", "--yes", "--contender", contender});
    CHECK(release.exit == Exited(77));
    CHECK_THAT(release.err, Catch::Contains("DELETE on " + lock + " is missing"));
  }
  CHECK(tree.Children(lock) == Words{contender});
  CHECK(Finish(holder) == Exited(0));
}

TEST_CASE("a user may create LOCKs below parents that another user's run has created") {
  const std::string parent = NewParent("neighbours") + "/team";
  const Child holder = HoldAs(kAlice, parent + "/alice/lock");
  CHECK(RunAs(kBob, {"exclusive", parent + "/bob/lock", "--", "true"}).exit == Exited(0));
  CHECK(RunAs("", {"exclusive", parent + "/alice/other", "--", "true"}).exit == Exited(0));
}

TEST_CASE("a LOCK that its ACL leaves open is reported to those who have credentials, once") {
  auto [tree, lock] = MadeLock("unprotected");
  const std::string open =
      "zklock: " + lock + " is not protected by the credentials: its ACL gives everyone ";
  const std::string where = "; see zklock-protocol(7), Access\n";
  const Words run = {"exclusive", lock, "--", "true"};
  CHECK(RunAs(kAlice, run).err == open + "WRITE, DELETE" + where);
  CHECK(RunAs(kAlice, {"exclusive", "-q", lock, "--", "true"}).err.empty());
  CHECK(RunAs(kAlice, {"exclusive", "--acl", "open", lock, "--", "true"}).err.empty());
  CHECK(RunAs("", run).err.empty());
  tree.SetAcl(lock, kRead | kCreate | kDelete | kAdmin);
  CHECK(RunAs(kAlice, run).err == open + "DELETE" + where);
  tree.SetAcl(lock, kRead | kCreate | kAdmin);
  CHECK(RunAs(kAlice, run).err.empty());
  const std::string parent = NewParent("unprotected");
  CHECK(RunAs(kAlice, {"exclusive", parent + "/lock", "--", "true"}).err.empty());
}

TEST_CASE("users with the same credentials take turns, and may delete each other's contenders") {
  const std::string lock = NewParent("turns") + "/lock";
  Tree tree;
  Child first = HoldAs(kAlice, lock);
  const std::string contender = OnlyChild(tree, lock);
  Child second = WaitAs(kAlice, lock);
  CHECK(RunAs(kAlice, {"release", lock, "--force", "--yes", "--contender", contender}).exit ==
        Exited(0));
  CHECK(second.ReadLine() == "held");
  CHECK(first.Wait() == Exited(76));
}

TEST_CASE("two users share a LOCK made by an administrator, who alone may delete") {
  Tree chief(kOperator);
  const std::string lock = chief.Create(NewLock("shared"));
  chief.SetAcl(lock, {{kOperator, kAll}, {kAlice, kRead | kCreate}, {kBob, kRead | kCreate}});
  Child alice = HoldAs(kAlice, lock);
  const std::string contender = OnlyChild(chief, lock);
  Child bob = WaitAs(kBob, lock);
  const Words release = {"release", lock, "--force", "--yes", "--contender", contender};
  CHECK_THAT(RunAs(kBob, release).err, Catch::Contains("DELETE on " + lock + " is missing"));
  // Not even the contender's creator may delete it: deleting requires permission on the parent.
  CHECK(RunAs(kAlice, release).exit == Exited(77));
  CHECK_THAT(RefusalFor("", {"exclusive", lock, "--", "true"}),
             Catch::Contains("list") || Catch::Contains("CREATE on " + lock));
  CHECK_THAT(RefusalFor("", {"inspect", lock}), Catch::Contains("READ on " + lock + " is missing"));
  CHECK(RunAs(kOperator, release).exit == Exited(0));
  CHECK(bob.ReadLine() == "held");
  CHECK(alice.Wait() == Exited(76));
  CHECK(Finish(bob) == Exited(0));
  // Releasing needs no permission to delete.
  CHECK(chief.Children(lock).empty());
}

TEST_CASE("in an open LOCK any user can delete any contender, whatever its own ACL") {
  Tree chief(kOperator);
  const std::string lock = chief.Create(NewLock("open"));
  Child alice = HoldAs(kAlice, lock);
  const std::string contender = OnlyChild(chief, lock);
  CHECK(chief.GetAcl(lock + "/" + contender) == kCreatorAcl);
  CHECK(RunAs("", {"release", lock, "--force", "--yes", "--contender", contender}).exit ==
        Exited(0));
  CHECK(alice.Wait() == Exited(76));
}

TEST_CASE("release asks the contenders that it may ask, even if it may not ask all") {
  const std::string lock = NewParent("some");
  Child bob = HoldAs(kBob, lock, {"read"});
  Child alice = HoldAs(kAlice, lock, {"read"});  // asked before bob
  const bool is_dry = GENERATE(false, true);
  const Words target = GENERATE(Words{"--holders"}, Words{"--all", "--wait-released"});
  Words words = Words{"release", lock, "--yes", "--reason", "reboot"} + target;
  if (is_dry) words.push_back("--dry-run");
  const Finished release = RunAs(kBob, words);
  CHECK(release.exit == Exited(77));
  CHECK_THAT(release.err, Catch::Contains("WRITE on " + lock + "/"));
  if (is_dry) {
    CHECK_THAT(release.out, Catch::Contains("pid " + std::to_string(bob.pid())));
    CHECK(Finish(bob) == Exited(0));
  } else {
    CHECK(bob.Wait() == Exited(76));
  }
  CHECK(Finish(alice) == Exited(0));
}

TEST_CASE("a reservation that the caller may not read is not reported as missing") {
  Tree chief(kAlice);
  const std::string lock = NewParent("reserved") + "/lock";
  const bool is_semaphore = GENERATE(false, true);
  Words words = {"exclusive", "--reserve", "freeze", lock};
  if (is_semaphore) words = words + Words{"--permits", "2"};
  REQUIRE(RunAs(kAlice, words).exit == Exited(0));
  const std::string queue = is_semaphore ? lock + "/leases" : lock;
  const std::string reservation = queue + "/" + OnlyChild(chief, queue);
  std::string hidden = reservation;
  SECTION("the reservation itself") {}
  SECTION("the znode of the permits") {
    if (is_semaphore) hidden = queue;
  }
  chief.SetAcl(hidden, {{kAlice, kAll}});
  for (const Words& target : {Words{lock}, Words{"--any", lock, NewLock("free")}}) {
    const Words release = Words{"release", "--reserve", "freeze"} + target;
    CHECK_THAT(RefusalFor(kBob, release), Catch::Contains("READ on " + hidden + " is missing"));
  }
  CHECK(RunAs(kAlice, {"release", "--reserve", "freeze", lock}).exit == Exited(0));
}

TEST_CASE("a waiter watches LOCK's children if it cannot read its predecessor") {
  Tree chief(kOperator);
  const std::string lock = chief.Create(NewLock("unreadable"));
  chief.SetAcl(lock, {{kOperator, kAll}, {kAlice, kRead | kCreate}, {kBob, kRead | kCreate}});
  Child alice = HoldAs(kAlice, lock);
  Tree as_alice(kAlice);
  as_alice.SetAcl(lock + "/" + OnlyChild(chief, lock), {{kAlice, kAll}});
  Child bob = WaitAs(kBob, lock);
  CHECK(RunAs(kBob, {"inspect", lock}).exit == Exited(0));
  CHECK(Finish(alice) == Exited(0));
  CHECK(bob.ReadLine() == "held");
}

TEST_CASE("holder and waiter authenticate again after each reconnect") {
  Proxy proxy(TestServers());
  const std::string lock = NewParent("reconnect") + "/lock";
  const auto through_proxy = [&](ChildOptions options) {
    options.also_environment.push_back("ZKLOCK_SERVERS=" + proxy.address());
    return As(kAlice, std::move(options));
  };
  Child holder = Child::Start(through_proxy(HolderOptions({"exclusive", "--verbose"}, lock)));
  REQUIRE(holder.ReadLine() == "held");
  Child waiter = Child::Start(through_proxy(HolderOptions({"exclusive", "--verbose"}, lock)));
  waiter.ReadErrUntil("waiting for " + lock);
  // From now on, only alice can access her contenders, even to check them.
  Tree as_alice(kAlice);
  for (const std::string& contender : as_alice.Children(lock)) {
    as_alice.SetAcl(lock + "/" + contender, {{kAlice, kAll}});
  }
  as_alice.SetAcl(lock, {{kAlice, kAll}});
  proxy.Cut();
  holder.ReadErrUntil("confirmed, still held");
  waiter.ReadErrUntil("waiting for " + lock);
  CHECK(Finish(holder) == Exited(0));
  CHECK(waiter.ReadLine() == "held");
}

TEST_CASE("if servers require credentials, zklock exits with 77 without them and works with them") {
  const OwnServer server({"enforce.auth.enabled=true", "enforce.auth.schemes=digest"});
  const auto run = [&](const std::string& user, const Words& words) {
    return Run(With(As(user, Zklock(words)), {"ZKLOCK_SERVERS=" + server.address()}));
  };
  for (const Words& words : {Words{"exclusive", "/x", "--", "true"}, Words{"inspect", "/x"},
                             Words{"try", "/x", "--", "true"}}) {
    const Finished finished = run("", words);
    CAPTURE(words);
    CHECK(finished.exit == Exited(77));
    CHECK(finished.err == "zklock: the servers require credentials; see --auth-file\n");
    CHECK(run(kAlice, words).exit == Exited(0));
  }
  const Finished report = run("", {"inspect", "--servers-report"});
  CHECK(report.exit == Exited(77));
  CHECK_THAT(report.out, Catch::Contains("the servers require credentials"));
}

TEST_CASE("the guard can close the session on servers that require credentials") {
  const OwnServer server({"enforce.auth.enabled=true", "enforce.auth.schemes=digest"});
  Child holder =
      Child::Start(With(As(kAlice, HolderOptions({"exclusive", "--session-timeout", "40s"}, "/x")),
                        {"ZKLOCK_SERVERS=" + server.address()}));
  REQUIRE(holder.ReadLine() == "held");
  Tree tree(kAlice, server.address());
  holder.Signal(SIGKILL);
  // This is long before the session would expire.
  tree.WaitForChildren("/x", 0, std::chrono::seconds(30));
}

TEST_CASE("a run whose credentials cannot own znodes exits with 77 and points to --acl") {
  // The servers accept an address as an identity, but not as a creator.
  const std::string lock = NewParent("ip") + "/lock";
  ChildOptions options = Zklock({"exclusive", lock, "--", "true"});
  options.also_environment = {"ZKLOCK_AUTH=ip:me"};
  CHECK_THAT(Run(options, Exited(77)).err,
             Catch::Contains("the servers rejected the ACL; see --acl"));
  options.argv.insert(options.argv.begin() + 2, {"--acl", "open"});
  Run(std::move(options), Exited(0));
}

TEST_CASE("zklock exits with 78 and opens no connection if its TLS files cannot be read") {
  const Peer peer(Peer::Manner::kSaysNothing);
  const auto check = [&](const Words& words, const std::string& variable, const char* option) {
    ChildOptions options = Zklock(words);
    options.also_environment = {"ZKLOCK_SERVERS=" + peer.address()};
    if (!variable.empty()) options.also_environment.push_back(variable);
    CAPTURE(words, variable);
    const Finished finished = Run(std::move(options), Exited(78));
    CHECK(Lines(finished.err).size() == 1);
    const std::string file = words.size() > 2 && words[2].empty() ? "''" : "/no/such.pem";
    CHECK(finished.err ==
          "zklock: " + file + ": cannot be read: No such file or directory; see " + option + "\n");
  };
  for (const char* option : {"--tls-ca", "--tls-cert"}) {
    check({"exclusive", option, "/no/such.pem", "/t/x", "--", "true"}, "", option);
    check({"inspect", option, "/no/such.pem", "/t/x"}, "", option);
    check({"inspect", option, "", "/t/x"}, "", option);
  }
  check({"try", "/t/x", "--", "true"}, "ZKLOCK_TLS_CA=/no/such.pem", "--tls-ca");
  check({"try", "/t/x", "--", "true"}, "ZKLOCK_TLS_CERT=/no/such.pem", "--tls-cert");
  CHECK(peer.connections() == 0);
}

TEST_CASE("without TLS or SASL, --tls-verify and --sasl-service are usage errors") {
  for (const auto& [option, value, needed] : std::vector<std::array<std::string, 3>>{
           {"--tls-verify", "full", "--tls or --tls-ca or --tls-cert"},
           {"--sasl-service", "zk", "--sasl"}}) {
    CAPTURE(option);
    const Finished refused = Run(Zklock({"inspect", option, value, "/t/x"}), Exited(64));
    CHECK_THAT(refused.err, Catch::Contains(option + " requires " + needed));
    // In a file or a variable the option is a default for runs that do use TLS or SASL.
    const TemporaryDirectory files;
    const std::string config = files.Write("config", option.substr(2) + " = " + value + "\n");
    Run(Zklock({"try", "--config", config, "/t/tls", "--", "true"}), Exited(0));
  }
}

}  // namespace zklock::test
