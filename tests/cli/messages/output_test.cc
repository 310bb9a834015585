// How LOCKs and servers are specified, and the output of zklock.

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "cli/zklock.h"
#include "support/stalled_pipe.h"

namespace zklock::test {
namespace {

/// Returns `options` with its standard error in a pipe that nobody reads.
ChildOptions WithStalledError(ChildOptions options, const StalledPipe& pipe) {
  options.prepare = [fd = pipe.write.get()] {
    ResetSignals();
    dup2(fd, STDERR_FILENO);
  };
  return options;
}

}  // namespace

TEST_CASE("a run that succeeds prints nothing by default") {
  const Finished finished = RunZklock(
      {"exclusive", NewLock("quiet"), "--", "sh", "-c", "echo out; echo err >&2"}, Exited(0));
  CHECK(finished.out == "out\n");
  CHECK(finished.err == "err\n");
}

TEST_CASE("-v prints each event on standard error") {
  const std::string lock = NewLock("verbose");
  const Finished finished = RunZklock(
      {"exclusive", "-v", lock, "--", "sh", "-c", "echo $ZKLOCK_NODE $ZKLOCK_TOKEN"}, Exited(0));
  const std::string node = finished.out.substr(0, finished.out.find(' '));
  const std::string token = finished.out.substr(node.size() + 1);
  const Words said = Lines(finished.err);
  REQUIRE(said.size() == 7);
  CHECK(said[0] == "zklock: connected to " + TestServers() + ", session timeout 30s");
  CHECK(said[1] == "zklock: queued as " + node);
  CHECK(said[2] == "zklock: acquired " + lock + " (exclusive, token " +
                       token.substr(0, token.size() - 1) + ")");
  // The host determines which of the two is printed.
  CHECK_THAT(said[3], Catch::StartsWith("zklock: the command runs in the cgroup ") ||
                          Catch::StartsWith("zklock: the command runs without a cgroup"));
  CHECK_THAT(said[4], Catch::StartsWith("zklock: running sh (pid "));
  CHECK(said[5] == "zklock: the command ended with status 0");
  CHECK(said[6] == "zklock: released " + lock);
}

TEST_CASE("-q suppresses the line about a conflict, so that cron sends no mail") {
  auto [lock, holder] = HoldNewLock("quiet");
  for (const Words& words : {Words{"try", "-q"}, Words{"exclusive", "--quiet", "-w", "1ms"}}) {
    Words all = words;
    for (const std::string& word : Words{lock, "--", "true"}) all.push_back(word);
    const Finished finished = RunZklock(all, Exited(75));
    CHECK(finished.out.empty());
    CHECK(finished.err.empty());
  }
}

TEST_CASE("a lost lock is reported with -q too") {
  auto [lock, holder] = HoldNewLock("quiet", {"exclusive", "-q", "--session-timeout", "40s"});
  Tree tree;
  tree.Delete(lock + "/" + tree.Children(lock).front());
  CHECK(holder.Wait(std::chrono::seconds(20)) ==
        Exited(76));  // because of the loss, not the lease's end
  CHECK_THAT(holder.err(), Catch::Contains("lost " + lock + ": "));
}

TEST_CASE("zklock warns of a short session timeout, but not with -q") {
  const std::string lock = NewLock("warned");
  CHECK_THAT(RunZklock({"exclusive", "--session-timeout", "5s", lock, "--", "true"}).err,
             Catch::StartsWith("zklock: the servers grant a session timeout of only 5s: "));
  CHECK(RunZklock({"exclusive", "-q", "--session-timeout", "5s", lock, "--", "true"}).err.empty());
  CHECK(RunZklock({"exclusive", "--session-timeout", "10s", lock, "--", "true"}).err.empty());
}

TEST_CASE("--help of each subcommand is on standard output, whatever the other arguments") {
  const std::vector<std::string> subcommands = {"exclusive", "read",    "write",
                                                "try",       "inspect", "release"};
  for (const std::string& subcommand : subcommands) {
    CAPTURE(subcommand);
    for (const char* option : {"--help", "-h"}) {
      const Finished finished = RunZklock({subcommand, option}, Exited(0));
      CHECK(finished.err.empty());
      CHECK_THAT(finished.out, Catch::Contains("zklock " + subcommand + " "));
      CHECK_THAT(finished.out, Catch::Contains("--servers"));
    }
  }
  // After --, --help belongs to the command.
  CHECK(
      RunZklock({"exclusive", NewLock("help"), "--", "sh", "-c", "echo $1", "sh", "--help"}).out ==
      "--help\n");
}

TEST_CASE("zklock's own --help and --version are on standard output") {
  for (const char* option : {"--help", "-h"}) {
    const Finished finished = RunZklock({option}, Exited(0));
    CHECK(finished.err.empty());
    for (const char* word : {"exclusive", "read", "write", "try", "inspect", "release"}) {
      CHECK_THAT(finished.out, Catch::Contains(std::string("zklock ") + word));
    }
  }
  const Finished version = RunZklock({"--version"}, Exited(0));
  CHECK(version.err.empty());
  CHECK_THAT(version.out, Catch::StartsWith("zklock ") &&
                              Catch::Contains("ZooKeeper C client 3.") &&
                              Catch::Contains("\ntransports: proxy command, TLS, SASL"));
}

TEST_CASE("zklock fails if it cannot write its text, without a message if nobody reads the text") {
  const Words words = GENERATE(Words{"exclusive", "--help"}, Words{"--print-config"});
  ChildOptions options = Zklock(words);
  Exit expected = Exited(128 + SIGPIPE);
  SECTION("because nobody reads it") {
    options.prepare = [] {
      ResetSignals();
      int ends[2];
      if (pipe(ends) == 0) dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
    };
  }
  SECTION("because there is no standard output") {
    options.prepare = [] {
      ResetSignals();
      close(STDOUT_FILENO);
    };
    expected = Exited(71);
  }
  SECTION("because the disk is full") {
    options.prepare = [] {
      ResetSignals();
      dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
    };
    expected = Exited(71);
  }
  const Finished finished = Run(options);
  CHECK(finished.exit == expected);
  CHECK(finished.err.empty() == (expected != Exited(71)));
}

TEST_CASE("a LOCK without a slash is below the root") {
  const std::string root = NewLock("root");
  const Words shows = {"--", "sh", "-c", "echo $ZKLOCK_LOCK"};
  const auto lock_of = [&](Words words, const Words& environment = {}) {
    words.insert(words.end(), shows.begin(), shows.end());
    ChildOptions options = Zklock(words);
    options.also_environment = environment;
    return Run(options).out;
  };
  CHECK(lock_of({"exclusive", "--root", root, "a"}) == root + "/a\n");
  CHECK(lock_of({"exclusive", "--root", root, "a/b"}) == root + "/a/b\n");
  CHECK(lock_of({"exclusive", "a"}, {"ZKLOCK_ROOT=" + root}) == root + "/a\n");
  CHECK(lock_of({"exclusive", "a/b"}, {"ZKLOCK_ROOT=" + root}) == root + "/a/b\n");
  CHECK(lock_of({"exclusive", "--root", root + "/x", "a"}, {"ZKLOCK_ROOT=/other"}) ==
        root + "/x/a\n");
  CHECK(lock_of({"exclusive", "--root", root, root + "/c"}) == root + "/c\n");
  CHECK(lock_of({"exclusive", "--root", "/", root.substr(1)}) == root + "\n");
  CHECK(lock_of({"exclusive", BaseName(root)}) == "/zklock/" + BaseName(root) + "\n");
  // The LOCK is held, because the servers delete empty LOCKs once a minute.
  Child holder = StartHolder({"exclusive", "--root", root}, "a/b");
  CHECK(Tree().Children(root + "/a/b").size() == 1);
}

TEST_CASE("a LOCK is taken literally, whatever it looks like") {
  const std::string root = NewLock("odd");
  for (const char* lock :
       {"[a]", "[a,b]", "{}", "%a", "a b", "a=b", "-", "'a'", "\"a\"", "a,b", "\\"}) {
    CAPTURE(lock);
    CHECK(RunZklock({"exclusive", "--root", root, "--label=", lock, "--", "sh", "-c",
                     "printf '%s\n' \"$ZKLOCK_LOCK\""},
                    Exited(0))
              .out == root + "/" + lock + "\n");
  }
}

TEST_CASE("a LOCK and its missing parents are created, and the next run uses them too") {
  const std::string lock = NewLock("made") + "/deep/down";
  Child holder = StartHolder(lock);
  CHECK(Tree().Children(lock).size() == 1);
  CHECK(Finish(holder) == Exited(0));
  RunZklock({"exclusive", lock, "--", "true"}, Exited(0));
}

TEST_CASE("a missing chroot is created, and the command does not see it") {
  const std::string chroot = NewLock("chroot") + "/app";
  const std::string servers = TestServers() + chroot;
  const std::vector<Words> spellings = {{"exclusive", "--servers", servers},
                                        {"exclusive", "--servers", servers + "/"}};
  for (Words words : spellings) {
    for (const char* word : {"/lock", "--", "sh", "-c", "echo $ZKLOCK_LOCK $ZKLOCK_NODE; read x"}) {
      words.emplace_back(word);
    }
    ChildOptions options = Zklock(words);
    options.keep_stdin = true;
    Child child = Child::Start(options);
    const std::string told = child.ReadLine();
    CHECK_THAT(told, Catch::StartsWith("/lock /lock/"));
    CHECK(Tree().Children(chroot + "/lock") == Words{BaseName(told)});
  }
}

TEST_CASE("a run names the chroot that it creates, unless --quiet is given") {
  const std::string chroot = NewLock("chroot");
  const auto run = [&](const std::string& below, const Words& words) {
    const Words at = {"-z", TestServers() + chroot + below, "/lock"};
    return Run(Zklock(words + at + Words{"--", "true"}), Exited(0)).err;
  };
  const std::string created = "zklock: created the chroot " + chroot;
  const std::string why = ", which did not exist; if it is misspelt, correct --servers\n";
  CHECK(run("/exclusive", {"exclusive"}) == created + "/exclusive" + why);
  CHECK(run("/exclusive", {"exclusive"}).empty());
  CHECK(run("/try", {"try"}) == created + "/try" + why);
  CHECK(run("/permits", {"try", "--permits", "2"}) == created + "/permits" + why);
  CHECK(run("/simple", {"exclusive", "--dialect", "simple"}) == created + "/simple" + why);
  CHECK(run("/two", {"read", "--also-write", "/other"}) == created + "/two" + why);
  CHECK(run("/reserve", {"exclusive", "--reserve", "id"}) == created + "/reserve" + why);
  CHECK(run("/quiet", {"exclusive", "--quiet"}).empty());
}

TEST_CASE("--resume names a chroot that does not exist, and creates nothing") {
  const std::string chroot = NewLock("chroot");
  const Finished finished = RunZklock(
      {"exclusive", "-z", TestServers() + chroot, "--resume", "id", "/lock", "--", "true"},
      Exited(75));
  CHECK(finished.err == "zklock: /lock is not (or no longer) reserved for id: the chroot " +
                            chroot + " does not exist; the command was not run\n");
  CHECK_FALSE(Tree().Exists(chroot));
}

TEST_CASE("the environment names the servers, and an argument overrides it") {
  ChildOptions options = Zklock({"exclusive", NewLock("env"), "--", "true"});
  options.also_environment = {"ZKLOCK_SERVERS=127.0.0.1:1", "ZKLOCK_CONNECT_TIMEOUT=100ms"};
  CHECK_THAT(Run(options, Exited(69)).err,
             Catch::Contains("127.0.0.1:1 ") && Catch::Contains("100ms"));
  ChildOptions argument = Zklock({"exclusive", "-z", TestServers(), NewLock("env"), "--", "true"});
  argument.also_environment = {"ZKLOCK_SERVERS=127.0.0.1:1"};
  Run(argument, Exited(0));
  ChildOptions session = Zklock({"exclusive", NewLock("env"), "--", "true"});
  session.also_environment = {"ZKLOCK_SESSION_TIMEOUT=5s"};
  CHECK_THAT(Run(session).err, Catch::Contains("only 5s"));
}

TEST_CASE("the contender's data identifies the run, but contains only the name of its command") {
  const std::string lock = NewLock("data");
  const auto data_with = [&](Words words) {
    for (const std::string& word :
         Words{lock, "--", "sh", "-c", "echo held; read x", "secret argument"}) {
      words.push_back(word);
    }
    ChildOptions options = Zklock(words);
    options.keep_stdin = true;
    Child holder = Child::Start(options);
    holder.ReadLine();
    Tree tree;
    const std::string data = tree.Get(lock + "/" + tree.Children(lock).front()).value().data;
    CHECK_THAT(data, Catch::Contains("\"pid\":" + std::to_string(holder.pid())));
    holder.CloseInput();
    holder.Wait();
    return data;
  };
  const std::string plain = data_with({"exclusive", "-l", "a \"label\"\x01"});
  CHECK_THAT(plain, Catch::Contains("\"sh\"") && !Catch::Contains("secret"));
  CHECK_THAT(plain, Catch::Contains("\"a \\\"label\\\"\\u0001\""));
  CHECK_THAT(data_with({"exclusive", "--publish-command"}), Catch::Contains("secret argument"));
}

TEST_CASE("a standard error that nobody reads does not delay zklock") {
  const StalledPipe stalled;
  const std::string lock = NewLock("stalled");
  Tree tree;

  SECTION("a run from its start to its end") {
    Child child = Child::Start(WithStalledError(
        HolderOptions({"exclusive", "-v", "--session-timeout", "12s"}, lock), stalled));
    CHECK(child.ReadLine() == "held");
    tree.WaitForChildren(lock, 1);
    child.Write("6\n");
    // zklock waits for the reader only after the release.
    tree.WaitForChildren(lock, 0);
    CHECK(child.Wait() == Exited(6));
  }
  SECTION("a command that must be terminated") {
    Child child = Child::Start(WithStalledError(HolderOptions({"exclusive", "-v"}, lock), stalled));
    CHECK(child.ReadLine() == "held");
    tree.Delete(lock + "/" + tree.Children(lock).front());
    child.ReadToEnd();  // the command has ended
    CHECK(child.Wait() == Exited(76));
  }
  SECTION("a wait that is over") {
    Child holder = StartHolder(lock);
    Child waiter = Child::Start(
        WithStalledError(Zklock({"exclusive", "-v", "-w", "2s", lock, "--", "true"}), stalled));
    CHECK(waiter.Wait() == Exited(75));
    tree.WaitForChildren(lock, 1);
    // It had queued: the next contender's number follows its own.
    CHECK_THAT(tree.Create(lock + "/x-", ZnodeKind::kEphemeralSequential),
               Catch::EndsWith("-0000000002"));
  }
}

TEST_CASE("a standard error whose reader is gone neither delays nor ends a run") {
  const std::string lock = NewLock("gone");
  ChildOptions options = HolderOptions({"exclusive", "-v"}, lock);
  options.prepare = [] {
    ResetSignals();
    int ends[2];
    if (pipe(ends) == 0) dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
  };
  Child child = Child::Start(options);
  CHECK(child.ReadLine() == "held");
  child.Write("3\n");
  CHECK(child.Wait() == Exited(3));
  CHECK(Tree().Children(lock).empty());
}

}  // namespace zklock::test
