// --dry-run: what it shows, that its status tells whether the command could run, and that it
// creates nothing, asks nobody to leave and releases nothing.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "cli/views/dry_run_text.h"
#include "cli/zklock.h"
#include "support/cgroup.h"
#include "support/contender_names.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/skip.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

Finished DryRun(Words words, const Words& locks, const std::string& user = "") {
  words.insert(words.begin() + 1, "--dry-run");
  words = words + locks + Words{"--", "true"};
  ChildOptions options = Zklock(words);
  if (!user.empty()) options.also_environment.push_back("ZKLOCK_AUTH=digest:" + user);
  return Run(std::move(options));
}

/// Returns the last row of the output.
std::string ResultOf(const Finished& finished) {
  const std::size_t result = finished.out.rfind("\nresult    ");
  return result == std::string::npos ? "" : finished.out.substr(result + 11);
}

/// Checks the status and the result, and that standard error is empty.
void CheckResult(const Finished& finished, int status, const std::string& result) {
  CAPTURE(finished.out, finished.err);
  CHECK(finished.exit == Exited(status));
  CHECK(ResultOf(finished) == result + "\n");
  CHECK(finished.err.empty());
}

void CheckError(const Finished& finished, int status, const std::string& message) {
  CAPTURE(finished.out, finished.err);
  CHECK(finished.exit == Exited(status));
  CHECK(finished.err.empty());  // the result is printed once
  CHECK_THAT(ResultOf(finished), Catch::StartsWith("would not run: ") && Catch::Contains(message) &&
                                     Catch::EndsWith(" (status " + std::to_string(status) + ")\n"));
}

}  // namespace

TEST_CASE("a dry run finds out that a quota leaves no room for the contender's data") {
  const OwnServer server({"enforceQuota=true"});
  Tree tree("", server.address());
  SetHardQuota(tree, "/t", -1, 20);
  tree.Create("/t/lock");
  const Words at = {"-z", server.address(), "/t/lock", "--", "true"};
  Run(Zklock(Words{"exclusive"} + at), Exited(78));
  CheckError(Run(Zklock(Words{"exclusive", "--dry-run"} + at)), 78,
             "/t/lock cannot be used: the hard quota on it, or on a znode above it");
}

TEST_CASE("a dry run shows servers, command, rights and queue, and creates nothing") {
  auto [tree, parent] = MadeLock("dry");
  const std::string lock = parent + "/a/lock";
  const auto before = tree.Get(parent);
  const TemporaryDirectory directory;
  const Finished finished = DryRun({"exclusive", "--events", directory.Path("events")}, {lock});
  CHECK(tree.Children(parent).empty());
  CHECK(tree.Get(parent)->children_zxid == before->children_zxid);
  CHECK_FALSE(std::filesystem::exists(directory.Path("events")));
  CheckResult(finished, 0, "would run at once");
  for (const std::string& line :
       {"servers   " + TestServers() + " ($ZKLOCK_SERVERS)\n",
        std::string("identity  a caller without credentials\n"),
        std::string("command   /usr/bin/true\n"), lock + ": free (it does not exist)\n",
        "rights    those of " + parent + ", where it would be created:\n          everyone: all\n",
        std::string("access    granted\n"), std::string("mode      exclusive\n")}) {
    CHECK_THAT(finished.out, Catch::Contains(line));
  }
}

TEST_CASE("a dry run leaves an existing LOCK unchanged") {
  auto [tree, lock] = MadeLock("dry-there");
  const auto before = tree.Get(lock);
  CheckResult(DryRun({"write", "--min-interval", "1h"}, {lock}), 0, "would run at once");
  CheckResult(DryRun({"exclusive", "--reserve", "id"}, {lock}), 0, "would run at once");
  CheckResult(DryRun({"try", "--once-per", "1h", "--history", "4"}, {lock}), 0,
              "would run at once");
  CHECK(tree.Get(lock)->children_zxid == before->children_zxid);
  CHECK(tree.Get(lock)->data_zxid == before->data_zxid);
}

TEST_CASE("a dry run names a chroot that does not exist, and does not create it") {
  const std::string chroot = NewLock("chroot");
  const std::string servers = TestServers() + chroot;
  const Finished finished = DryRun({"exclusive", "-z", servers}, {"/a", "--also-read", "/b"});
  CheckResult(finished, 0, "would run at once");
  CHECK_THAT(finished.out,
             Catch::Contains("\nchroot    " + chroot + " does not exist: a run would create it\n"));
  CHECK(finished.out.find("\nchroot ") == finished.out.rfind("\nchroot "));  // once
  const Finished resumed = DryRun({"exclusive", "-z", servers, "--resume", "id"}, {"/a"});
  CheckResult(resumed, 75, "would not run: /a is not (or no longer) reserved for id");
  CHECK_THAT(resumed.out, Catch::Contains("\nchroot    " + chroot +
                                          " does not exist: no lock in it is reserved\n"));
  CHECK_FALSE(Tree().Exists(chroot));
}

TEST_CASE("a dry run shows the limit of --max-run") {
  const std::string lock = NewLock("dry-limit");
  CHECK_THAT(DryRun({"exclusive", "--max-run", "90m"}, {lock}).out,
             Catch::Contains("\nmax-run   1h30m, then the command is terminated\n"));
  CHECK_THAT(DryRun({"exclusive"}, {lock}).out, !Catch::Contains("max-run"));
  CHECK_THAT(
      RunZklock({"exclusive", "--dry-run", "--hold", "--max-run", "1m", "--owner-pid",
                 std::to_string(getpid()), lock},
                Exited(0))
          .out,
      Catch::Contains("\nmax-run   1m, then that process is signalled and the lock released\n"));
}

TEST_CASE("a dry run whose servers cannot be reached says so on standard error") {
  const Finished finished =
      DryRun({"exclusive", "-z", "127.0.0.1:1", "--connect-timeout", "100ms"}, {"/t/x"});
  CHECK(finished.exit == Exited(69));
  CHECK_THAT(finished.err, Catch::Contains("no ZooKeeper server granted a session"));
}

TEST_CASE("a dry run names the source of the list of servers") {
  const auto first_line = [](Words words, const Words& variables) {
    words.insert(words.begin(), "release");
    words.insert(words.end(), {"--dry-run", "--connect-timeout", "1ms", "/t/x"});
    ChildOptions options = Zklock(words);
    std::erase_if(*options.environment,
                  [](const std::string& one) { return one.starts_with("ZKLOCK_SERVERS="); });
    options.also_environment = variables;
    return Lines(Run(std::move(options)).out).front();
  };
  const TemporaryDirectory directory;
  const std::string file = directory.Write("config", "\nservers = 127.0.0.1:1\n");
  CHECK(first_line({}, {}) == "servers   127.0.0.1:2181 (default)");
  CHECK(first_line({"-z", "127.0.0.1:1"}, {}) == "servers   127.0.0.1:1 (argument)");
  CHECK(first_line({"--config", file}, {}) == "servers   127.0.0.1:1 (" + file + ":2)");
  CHECK(first_line({}, {"ZKLOCK_SERVERS=127.0.0.1:1,[::1]:2/a"}) ==
        "servers   127.0.0.1:1,[::1]:2/a ($ZKLOCK_SERVERS)");
}

TEST_CASE("a dry run names a contender ahead and counts the others") {
  auto [lock, holder] = HoldNewLock("dry-busy", {"read", "--label", "nightly"});
  const Finished read = DryRun({"read"}, {lock});
  CheckResult(read, 0, "would run at once");
  CHECK_THAT(read.out,
             Catch::Contains(lock + ": held by 1, 0 waiting") && Catch::Contains("nightly"));
  const Child waiter = StartWaiter({"write", "--label", "second"}, lock);
  const auto check = [&](const Words& words, int status, const std::string& begin,
                         const std::string& end) {
    const Finished finished = DryRun(words, {lock});
    CAPTURE(words, finished.out);
    CHECK(finished.exit == Exited(status));
    CHECK(finished.err.empty());
    CHECK_THAT(ResultOf(finished), Catch::StartsWith(begin) && Catch::EndsWith(end));
  };
  const std::string more = "'nightly'); 1 more in the queue";
  check({"exclusive"}, 75, "would wait for " + lock + ": it is held by sh (pid ", more + "\n");
  check({"exclusive", "--wait", "90"}, 75,
        "would wait for " + lock + ", at most 1m30s: it is held by sh (pid ", more + "\n");
  check({"try", "-E", "3"}, 3, "would not run: " + lock + " is held by sh (pid ", more + "\n");
  check({"read"}, 75, "would wait for " + lock + ": sh (pid ",
        "'second') is ahead; 1 more in the queue\n");
  check({"write", "--preempt", "waiters"}, 75, "would wait for ",
        more + "; it would ask the waiters to leave\n");
  check({"write", "--preempt", "all"}, 75, "would wait for ",
        more + "; it would ask all of them to leave\n");
  check({"exclusive", "--max-queue", "1"}, 75, "would not run: " + lock + " already has 1 or more",
        "(--max-queue)\n");
  check({"exclusive", "--max-queue", "2"}, 75, "would wait for ", more + "\n");
}

TEST_CASE("a dry run shows only the beginning of a long queue") {
  auto [tree, lock] = MadeLock("dry-long");
  for (int i = 0; i < 20; ++i) {
    (void)tree.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential);
  }
  const Finished finished = DryRun({"exclusive"}, {lock});
  CHECK(finished.exit == Exited(75));
  CHECK_THAT(finished.out, Catch::Contains(lock + ": held by 1, 19 waiting\n") &&
                               Catch::Contains("\n... and 4 more\n"));
  CHECK_THAT(ResultOf(finished), Catch::EndsWith("; 19 more in the queue\n"));
}

TEST_CASE("a dry run shows each of several LOCKs, and names those that it would wait for") {
  const std::string parent = Tree().Create(NewLock("dry-set"));
  const std::string one = parent + "/1";
  const std::string two = parent + "/2";
  const std::string three = parent + "/3";
  const Child first = StartHolder(one);
  const Child third = StartHolder({"read"}, three);
  const Finished finished = DryRun({"exclusive"}, {one, two, three});
  CAPTURE(finished.out);
  CHECK(finished.exit == Exited(75));
  CHECK_THAT(finished.out, Catch::Contains("\n" + one + ": held by 1") &&
                               Catch::Contains("\n" + two + ": free") &&
                               Catch::Contains("\n" + three + ": held by 1"));
  CHECK_THAT(ResultOf(finished), Catch::Contains("would wait for " + one) &&
                                     Catch::Contains("\n          would wait for " + three) &&
                                     !Catch::Contains("would wait for " + two));
}

TEST_CASE("a dry run with --any reports a wait for one LOCK though the queue of another is full") {
  const std::string parent = Tree().Create(NewLock("dry-any"));
  const std::string full = parent + "/1";
  const std::string other = parent + "/2";
  const Child holders[] = {StartHolder(full), StartHolder(other)};
  const Child waiter = StartWaiter(full);
  const Finished finished = DryRun({"exclusive", "--any", "--max-queue", "1"}, {full, other});
  CAPTURE(finished.out);
  CHECK(finished.exit == Exited(75));
  CHECK_THAT(ResultOf(finished), Catch::StartsWith("would not wait for " + full +
                                                   ", which already has 1 or more waiters "
                                                   "(--max-queue)\n          would wait for " +
                                                   other));
}

TEST_CASE(
    "a dry run compares the ACL with the caller: 77 if the caller lacks permission to queue") {
  auto [tree, lock] = MadeLock("dry-acl");
  tree.SetAcl(lock, {{"alice:tulip", kRead | kWrite | kCreate | kDelete | kAdmin},
                     {"bob:rose", kRead | kCreate},
                     {"", kRead}});
  const auto before = tree.Get(lock);
  const Finished alice = DryRun({"exclusive"}, {lock}, "alice:tulip");
  CheckResult(alice, 0, "would run at once");
  CHECK_THAT(alice.out,
             Catch::Contains("identity  digest:alice, as claimed: servers accept any password\n"));
  for (const char* line : {" digest:alice: all\n", " digest:bob: read, create\n",
                           " everyone: read\n", "\naccess    granted\n"}) {
    CHECK_THAT(alice.out, Catch::Contains(line));
  }
  CheckResult(DryRun({"exclusive"}, {lock}, "bob:rose"), 0, "would run at once");
  for (const char* user : {"", "alice:wrong"}) {
    const Finished other = DryRun({"exclusive"}, {lock}, user);
    CheckError(other, 77, "cannot queue in " + lock + ": not authorised: CREATE on");
    CHECK_THAT(other.out,
               Catch::Contains(*user == '\0' ? "access    denied\n"
                                             : "access    denied, though digest:alice may queue: "
                                               "is the password wrong?\n"));
  }
  // A reservation is made by a transaction that deletes the contender.
  const Words reserve = {"exclusive", "--reserve", "ci"};
  CheckError(DryRun(reserve, {lock}, "bob:rose"), 77, "not authorised: DELETE on " + lock);
  CheckResult(DryRun(reserve, {lock}, "alice:tulip"), 0, "would run at once");
  const Finished below = DryRun({"exclusive"}, {lock + "/a/b"});
  CheckError(below, 77, "cannot make " + lock + "/a/b: not authorised");
  CHECK(tree.Get(lock)->children_zxid == before->children_zxid);
}

TEST_CASE("a dry run that reports an error for one LOCK still shows the others") {
  auto [tree, closed] = MadeLock("dry-closed");
  const std::string other = tree.Create(closed + "/open");
  tree.SetAcl(closed, kRead);
  const Child holder = StartHolder(other);
  const Finished finished = DryRun({"exclusive"}, {closed, other});
  CHECK(finished.exit == Exited(77));
  CHECK_THAT(finished.out, Catch::Contains("\n" + other + ": held by 1") &&
                               Catch::Contains(" (status 77)\n          would wait for " + other));
}

TEST_CASE("a dry run has the status of a command that cannot be executed") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("script", "");
  const std::string lock = NewLock("dry-command");
  const auto run = [&](const std::string& command) {
    return RunZklock({"exclusive", "--dry-run", lock, "--", command});
  };
  CheckError(run("no-such-command"), 127, "no-such-command: command not found");
  CheckError(run(file), 126, file + ": cannot execute");
  CHECK_THAT(run("no-such-command").out, Catch::Contains("access    granted"));
  ChildOptions relative = Zklock({"exclusive", "--dry-run", lock, "--", "./program"});
  const std::string program = directory.WriteProgram("program", "#!/bin/sh\n");
  relative.prepare = [&] {
    ResetSignals();
    if (chdir(directory.path().c_str()) != 0) _exit(1);
  };
  CHECK_THAT(Run(std::move(relative)).out, Catch::Contains("command   " + program + "\n"));
}

TEST_CASE("a dry run shows reservations with their reasons and recognises its own") {
  const std::string lock = NewLock("dry-reserved");
  const std::string busy = "would wait for " + lock + ": it is reserved for job: the freeze";
  const auto reserve = [&](const Words& more) {
    Words words = {"write", "--reserve", "job", "--reason", "the freeze", lock};
    words.insert(words.begin() + 1, more.begin(), more.end());
    REQUIRE(RunZklock(words).exit == Exited(0));
  };
  CheckResult(DryRun({"write", "--resume", "job"}, {lock}), 75,
              "would not run: " + lock + " is not (or no longer) reserved for job");
  reserve({});
  CheckResult(DryRun({"exclusive"}, {lock}), 75, busy);
  CheckResult(DryRun({"write", "--reserve", "other"}, {lock}), 75, busy);
  CheckResult(DryRun({"write", "--reserve", "job"}, {lock}), 0, "would run at once");
  CheckResult(DryRun({"write", "--resume", "job"}, {lock}), 0, "would run at once");
  CheckError(DryRun({"exclusive", "--reserve", "job"}, {lock}), 78,
             "is reserved for this ID as write");
  const auto release = [&](const Words& more) {
    Words words = Words{"release", "--reserve", "job", lock} + more;
    return RunZklock(words);
  };
  const Finished released = release({"--dry-run"});
  CHECK(released.exit == Exited(0));
  CHECK_THAT(released.out, Catch::EndsWith("result    would release: " + lock +
                                           ", which is reserved for job: the freeze\n"));
  CheckResult(DryRun({"write", "--resume", "job"}, {lock}), 0, "would run at once");
  CHECK(release({}).exit == Exited(0));
  // A reservation that has ended blocks no one, although it has not been deleted yet.
  reserve({"--for", "1ms"});
  CheckResult(DryRun({"exclusive"}, {lock}), 0, "would run at once");
  CheckResult(DryRun({"write", "--resume", "job"}, {lock}), 75,
              "would not run: " + lock + " is not (or no longer) reserved for job");
}

TEST_CASE("a dry run needs the same permissions as a run to use or renew a reservation") {
  const std::string lock = NewLock("dry-renewed");
  RunZklock({"exclusive", "--reserve", "job", "--for", "1h", lock}, Exited(0));
  Tree tree;
  const auto check = [&](const Words& words, int status, const std::string& missing) {
    CAPTURE(words);
    if (status == 0) return CheckResult(DryRun(words, {lock}), 0, "would run at once");
    CheckError(DryRun(words, {lock}), status, missing + " is missing");
    CHECK_THAT(RunZklock(words + Words{lock, "--", "true"}, Exited(status)).err,
               Catch::Contains(missing + " is missing"));
  };
  const Words resume = {"exclusive", "--resume", "job"};
  const Words renew = {"exclusive", "--reserve", "job", "--for", "2h"};
  const Words keep = {"exclusive", "--reserve", "job", "--for", "1m"};
  const std::string reservation = tree.Children(lock).front();
  tree.SetAcl(lock + "/" + reservation, kRead | kAdmin);
  check(resume, 0, "");
  check(keep, 0, "");
  check(renew, 77, "WRITE on " + lock + "/" + reservation);
  tree.SetAcl(lock, kRead | kWrite | kCreate | kAdmin);
  check(resume, 77, "CREATE and DELETE on " + lock);
  check(renew, 77, "CREATE and DELETE on " + lock);
  tree.SetAcl(lock, kRead | kWrite | kCreate | kDelete | kAdmin);
}

TEST_CASE("a dry run reports a run that would be too soon") {
  const std::string lock = NewLock("dry-interval");
  for (const char* option : {"--once-per", "--min-interval"}) {
    REQUIRE(RunZklock({"exclusive", option, "1ms", lock, "--", "true"}).exit == Exited(0));
    const Finished finished = DryRun({"exclusive", option, "1h"}, {lock});
    CHECK(finished.exit == Exited(75));
    CHECK_THAT(ResultOf(finished),
               Catch::StartsWith("would not run: " + lock + " last ") &&
                   Catch::EndsWith(std::string("is within ") + option + " 1h\n"));
    CheckResult(DryRun({"exclusive", option, "1ms"}, {lock}), 0, "would run at once");
  }
  Tree().SetAcl(lock + "/last-start", kRead | kAdmin);
  CheckError(DryRun({"exclusive", "--once-per", "1ms"}, {lock}), 77,
             "WRITE on " + lock + "/last-start is missing");
  Tree().SetAcl(lock + "/last-start", kRead | kWrite | kAdmin);
  Tree().SetData(lock + "/last-start", "another program's");
  CheckError(DryRun({"exclusive", "--once-per", "1h"}, {lock}), 78, "last-start");
  // What a run records in an ephemeral znode would vanish.
  Tree tree;
  for (const std::string record : {"last-start", "last-run"}) {
    tree.Delete(lock + "/" + record);
    tree.Create(lock + "/" + record, ZnodeKind::kEphemeral);
    const char* const option = record == "last-start" ? "--once-per" : "--min-interval";
    CheckError(DryRun({"exclusive", option, "1h"}, {lock}), 78, record);
    CHECK(RunZklock({"exclusive", option, "1h", lock, "--", "true"}).exit == Exited(78));
  }
}

TEST_CASE("a dry run that would be too soon does not say that it would ask others to leave") {
  auto [lock, holder] = HoldNewLock("dry-preempt", {"exclusive", "--once-per", "1h"});
  const auto result = [&lock = lock](const char* interval) {
    return ResultOf(DryRun({"exclusive", "--preempt", "all", "--once-per", interval}, {lock}));
  };
  CHECK_THAT(result("1h"), Catch::StartsWith("would not run: " + lock + " last started on "));
  CHECK_THAT(result("1ms"), Catch::StartsWith("would wait for " + lock));
}

TEST_CASE("a dry run takes permits and dialects into account") {
  const std::string lock = NewLock("dry-permits");
  const Words permits = {"exclusive", "--permits", "2"};
  CheckResult(DryRun(permits, {lock}), 0, "would run at once");
  const Child one = StartHolder(permits, lock);
  CheckResult(DryRun(permits, {lock}), 0, "would run at once");
  const Child two = StartHolder(permits, lock);
  const Finished full = DryRun(permits, {lock});
  CHECK(full.exit == Exited(75));
  CHECK_THAT(full.out, Catch::Contains(": 2 of 2 permits used") &&
                           Catch::Contains("mode      a permit of 2\n"));
  CheckError(DryRun({"exclusive", "--permits", "3"}, {lock}), 78, "in use with --permits 2");
  CheckError(DryRun({"exclusive"}, {lock}), 78, "use --permits");

  for (const std::string dialect : {"kazoo", "simple"}) {
    const std::string other = NewLock("dry-" + dialect);
    const Words words = {"exclusive", "--dialect", dialect};
    CheckResult(DryRun(words, {other}), 0, "would run at once");
    const Child holder = StartHolder(words, other);
    const Finished busy = DryRun(words, {other});
    CHECK(busy.exit == Exited(75));
    CHECK_THAT(ResultOf(busy),
               Catch::StartsWith("would wait for " + other + ": it is held by sh (pid "));
    CheckError(DryRun({"exclusive"}, {other}), 78, other);
  }
}

TEST_CASE("a dry run is refused, like a run, because of a znode that no session owns") {
  Tree tree;
  const std::string lock = NewLock("dry-stray");
  const std::string stray = kZklockLock + "0000000000";
  tree.Create(lock + "/" + stray);
  CheckError(DryRun({"exclusive"}, {lock}), 78, stray);
  RunZklock({"exclusive", lock, "--", "true"}, Exited(78));
}

TEST_CASE("a dry run finds out that the LOCK's sequence numbers are used up") {
  Tree tree;
  const std::string lock = NewLock("dry-numbers");
  tree.Create(lock);
  Proxy proxy(TestServers());
  proxy.EditReplies([lock](const std::string& request, std::string reply) {
    // The stat is at the end of the reply; the servers count the children made in its cversion.
    if (request == "get " + lock) reply.replace(reply.size() - 32, 4, "\xff\xff\xff", 4);
    return std::optional(std::move(reply));
  });
  CheckError(DryRun({"exclusive", "-z", proxy.address()}, {lock}), 78,
             "its sequence numbers are used up");
}

TEST_CASE("a dry run leaves no cgroup behind and shows which one a command would get") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const auto run = [&](const Words& words) {
    Words all = {"exclusive", "--dry-run", NewLock("dry-cgroup"), "--", "true"};
    all.insert(all.begin() + 1, words.begin(), words.end());
    ChildOptions options = Zklock(all);
    options.prepare = [&cgroup] {
      ResetSignals();
      cgroup.Enter();
    };
    return Run(std::move(options));
  };
  CheckResult(run({}), 0, "would run at once");
  CHECK_THAT(run({}).out, Catch::Contains("contain   in a new cgroup in " + cgroup.path() + "\n"));
  CHECK_THAT(run({"--contain", "off"}).out, Catch::Contains("without a cgroup (--contain off)"));
  CHECK(run({"--contain", "require"}).exit == Exited(0));
  for (const auto& entry : std::filesystem::directory_iterator(cgroup.path())) {
    CHECK_FALSE(entry.is_directory());
  }
}

TEST_CASE("release --dry-run shows which contenders it would ask or delete and does neither") {
  Tree tree;
  auto [lock, holder] = HoldNewLock("dry-release");
  const Child waiter = StartWaiter(lock);
  const auto before = tree.Children(lock);
  REQUIRE(before.size() == 2);
  const Finished asked = RunZklock({"release", "--dry-run", "--all", lock}, Exited(0));
  CHECK(asked.err.empty());
  for (const std::string& name : before) {
    CHECK_THAT(asked.out, Catch::Contains("result    would ask: " + name));
  }
  const Finished forced =
      RunZklock({"release", "--dry-run", "--holders", "--force", lock}, Exited(0));
  CHECK(forced.err.empty());
  CHECK_THAT(forced.out, Catch::Contains("result    would delete: " + InQueueOrder(before)[0]));
  RunZklock({"release", "--dry-run", "--position", "3", lock}, Exited(75));
  CHECK(tree.Children(lock) == before);
  for (const std::string& name : before) {
    const auto znode = tree.Get(lock + "/" + name);
    CHECK(znode->data_zxid == znode->created_zxid);
  }
}

TEST_CASE("release --dry-run by a user without DELETE permission exits with 77") {
  const std::string parent = Tree().Create(NewLock("dry-right"));
  const std::string lock = parent + "/lock";
  ChildOptions options = HolderOptions({"exclusive"}, lock);
  options.also_environment.emplace_back("ZKLOCK_AUTH=digest:alice:tulip");
  Child holder = Child::Start(options);
  REQUIRE(holder.ReadLine() == "held");
  for (const Words& words : {Words{"--holders"}, Words{"--holders", "--force"}}) {
    Words all = Words{"release", "--dry-run", lock} + words;
    const Finished finished = RunZklock(all, Exited(77));
    CHECK_THAT(finished.err, Catch::Contains(": not authorised: "));
    CHECK(finished.out.find("would") == std::string::npos);
  }
}

TEST_CASE("release --dry-run of a shell's own hold releases nothing") {
  ChildOptions options = Zklock({});
  options.argv = {"sh", "-c",
                  "$Z exclusive --hold $L; $Z exclusive --dry-run $L -- true | grep '^[hr]';"
                  "$Z release --dry-run $L; echo $?;"
                  "$Z inspect --mine $L; echo $?;"
                  "$Z exclusive $L -- $Z release --dry-run $L; echo $?"};
  options.also_environment = {"Z=" + Binary(), "L=" + NewLock("dry-own")};
  const Finished finished = Run(std::move(options));
  CAPTURE(finished.err);
  const Words lines = Lines(finished.out);
  REQUIRE(lines.size() == 11);
  CHECK(lines[1] == "holder    this shell, for this run too (--hold)");
  CHECK(lines[2] == "result    would run at once");
  CHECK_THAT(lines[5], Catch::StartsWith("result    would release: ") &&
                           Catch::EndsWith(" holds for this shell"));
  CHECK(lines[6] == "0");
  CHECK(lines[7] == "0");
  CHECK(lines[10] == "64");
}

TEST_CASE("the rows of a dry run are wrapped at blanks") {
  const std::vector<cli::DryRunRow> rows = {{"command", "/usr/bin/make"},
                                            {"contain", "without a cgroup of its own \x1b"}};
  CHECK(cli::FormatRows(rows, 40, false) ==
        "command   /usr/bin/make\n"
        "contain   without a cgroup of its own\n"
        "          \\x1b\n");
  CHECK(cli::FormatRows({{"servers", "zk1.example.org:2181,zk2.example.org:2181 (default)"}}, 10,
                        false) ==
        "servers   zk1.example.org:2181,zk2.example.org:2181\n"
        "          (default)\n");
  CHECK(cli::FormatRows(rows, 0, true) ==
        "\x1b[1mcommand\x1b[0m   /usr/bin/make\n"
        "\x1b[1mcontain\x1b[0m   without a cgroup of its own \\x1b\n");
}

}  // namespace zklock::test
