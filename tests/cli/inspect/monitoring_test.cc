// inspect --check and --prometheus, whose output monitoring systems read.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/zklock.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/temporary.h"
#include "support/wait.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// An address at which nothing listens.
const std::string kNoServers = "127.0.0.1:1";

/// Returns the line that `zklock inspect --check WORDS` prints. It must print nothing else and exit
/// with `status`.
std::string Check(Words words, int status) {
  words.insert(words.begin(), {"inspect", "--check"});
  const Finished finished = RunZklock(words);
  CAPTURE(words, finished.out);
  CHECK(finished.exit == Exited(status));
  CHECK(finished.err.empty());
  CHECK(Lines(finished.out).size() == 1);
  return finished.out;
}

std::string Metrics(const std::string& path) {
  const Finished finished = RunZklock({"inspect", "--prometheus", path});
  CAPTURE(finished.err);
  CHECK(finished.exit == Exited(0));
  return finished.out;
}

/// Checks that promtool accepts the metrics without a warning.
void CheckMetrics(const std::string& text) {
  const Finished finished = Run({.argv = {"promtool", "check", "metrics"}, .stdin_text = text});
  CAPTURE(text, finished.out, finished.err);
  CHECK(finished.exit == Exited(0));
  CHECK(finished.out + finished.err == "");
}

std::size_t FilesIn(const std::string& directory) {
  const std::filesystem::directory_iterator files(directory);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

/// Runs `zklock inspect --prometheus --output FILE` with an fsync() that does `what`.
Finished WriteWithBadFsync(const std::string& what, const std::string& file) {
  const char* const library = getenv("ZKLOCK_TEST_FSYNC_LIBRARY");
  REQUIRE(library != nullptr);
  ChildOptions options = Zklock({"inspect", "--prometheus", "--output", file, NewLock("metrics")});
  options.also_environment = {std::string("LD_PRELOAD=") + library, "ZKLOCK_TEST_FSYNC=" + what};
  return Run(options);
}

TEST_CASE("a check has four states") {
  const std::string lock = NewLock("check");
  CHECK_THAT(Check({lock}, 0), Catch::StartsWith("OK - " + lock + ": free (it does not exist) | "));
  CHECK_THAT(
      Check({"--max-age", "1h", lock}, 2),
      Catch::StartsWith("CRITICAL - " + lock + ": no success is known (it does not exist) | "));
  // Not a container znode, which the servers may delete together with its record of the success.
  Tree().Create(lock, ZnodeKind::kPersistent, "zklock/1");
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
  CHECK_THAT(Check({"--max-age", "1h", lock}, 0), Catch::Contains("last success began"));

  Child holder = StartHolder(lock);
  CHECK_THAT(Check({"--max-held", "1h", lock}, 0),
             Catch::StartsWith("OK - " + lock + ": held for"));
  Child waiter = Child::Start(HolderOptions({"exclusive"}, lock));
  Tree().WaitForChildren(lock, 2);
  CHECK_THAT(Check({"--max-waiting", "0:1", lock}, 1),
             Catch::StartsWith("WARNING - " + lock + ": 1 waiting (more than 0) | ") &&
                 Catch::Contains("'waiting'=1;0;1;0;"));
  CHECK_THAT(Check({"--max-waiting", "0", lock}, 2), Catch::StartsWith("CRITICAL - "));
  std::this_thread::sleep_for(5ms);
  CHECK_THAT(Check({"--max-wait", "1ms:1h", lock}, 1), Catch::Contains(": one has waited for "));
  CHECK_THAT(Check({"--max-held", "1ms", lock}, 2),
             Catch::Contains(" by pid " + std::to_string(holder.pid()) + " on "));
}

TEST_CASE("a check reports a last run that failed or was lost, until the next one succeeds") {
  const std::string lock = NewLock("check");
  Tree tree;
  tree.Create(lock, ZnodeKind::kPersistent, "zklock/1");
  const auto run = [&](const std::string& script) {
    return RunZklock({"exclusive", "--history", "8", lock, "--", "sh", "-c", script}).exit;
  };
  CHECK(run("exit 3") == Exited(3));
  CHECK_THAT(
      Check({"--last-run", lock}, 2),
      Catch::StartsWith("CRITICAL - " + lock + ": the last recorded run failed with status 3 ("));
  CHECK(run("exit 0") == Exited(0));
  CHECK_THAT(Check({"--last-run", lock}, 0), Catch::StartsWith("OK - "));

  Child holder = StartHolder({"exclusive", "--history", "8"}, lock);
  WaitUntil([&] {
    return RunZklock({"inspect", "--history", lock}).out.find("running") != std::string::npos;
  });
  CHECK_THAT(Check({"--last-run", lock}, 0), Catch::StartsWith("OK - "));
  holder.Signal(SIGKILL);
  (void)holder.Wait();
  tree.WaitForChildren(lock, 1);  // its guard closes the session
  CHECK_THAT(Check({"--last-run", lock}, 2),
             Catch::StartsWith("CRITICAL - " + lock + ": the last recorded run was lost ("));
  const std::string metrics = Metrics(lock);
  CheckMetrics(metrics);
  CHECK_THAT(metrics, Catch::Contains("zklock_last_run_lost{lock=\"" + lock + "\"} 1\n") &&
                          Catch::Contains("zklock_lost_runs{lock=\"" + lock + "\"} 1\n"));
  CHECK(run("exit 0") == Exited(0));
  CHECK_THAT(Check({"--last-run", lock}, 0), Catch::StartsWith("OK - "));
}

// Each run tries the servers in its own random order. About 10 of 30 begin with the one that hangs.
TEST_CASE("a check is never unknown because one of three servers hangs") {
  const Peer hung(Peer::Manner::kSaysNothing);
  const Proxy other(TestServers());
  const std::string servers = hung.address() + "," + TestServers() + "," + other.address();
  std::vector<Child> checks;
  for (int i = 0; i < 30; ++i) {
    checks.push_back(Child::Start(Zklock(
        {"inspect", "--check", "--connect-timeout", "10s", "-z", servers, NewLock("check")})));
  }
  for (Child& check : checks) {
    CHECK(check.Wait() == Exited(0));
    CAPTURE(check.out());
    CHECK_THAT(check.out(), Catch::StartsWith("OK - "));
  }
  CHECK(hung.connections() > 0);
}

TEST_CASE("without servers the state of a check is unknown, within the connect timeout") {
  const auto began = std::chrono::steady_clock::now();
  CHECK_THAT(Check({"-z", kNoServers, "--connect-timeout", "300ms", "/l"}, 3),
             Catch::StartsWith("UNKNOWN - no ZooKeeper server "));
  CHECK(std::chrono::steady_clock::now() - began < kPatience);
}

TEST_CASE("a usage error makes the state of a check unknown") {
  CHECK_THAT(Check({"--max-held", "soon", "/l"}, 3),
             Catch::StartsWith("UNKNOWN - --max-held: invalid duration 'soon'"));
  CHECK_THAT(Check({"--max-hold", "1h", "/l"}, 3), Catch::StartsWith("UNKNOWN - unknown option "));
  CHECK_THAT(Check({"--config", "/nowhere", "/l"}, 3), Catch::StartsWith("UNKNOWN - /nowhere"));
  CHECK(RunZklock({"inspect", "--max-hold", "--", "--check"}).exit == Exited(64));
}

TEST_CASE("several locks and trees are judged together, the worst first") {
  const std::string root = NewLock("check");
  Tree().Create(root + "/free", ZnodeKind::kPersistent, "zklock/1");  // stays when it is empty
  CHECK(RunZklock({"exclusive", root + "/free", "--", "true"}).exit == Exited(0));
  Child holder = StartHolder(root + "/held");
  CHECK_THAT(Check({root}, 0), Catch::StartsWith("OK - 2 locks, 1 held, 0 waiting | "));
  CHECK_THAT(Check({"--max-age", "1h", root + "/free", root + "/never"}, 2),
             Catch::StartsWith("CRITICAL - " + root +
                               "/never: no success is known (it does not exist) | "));
}

TEST_CASE("a check of several locks names those that do not exist") {
  const std::string lock = NewLock("check");
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
  CHECK_THAT(
      Check({lock, lock + "-typo"}, 0),
      Catch::StartsWith("OK - 2 locks, 0 held, 0 waiting; " + lock + "-typo does not exist | "));
  CHECK_THAT(Check({"--max-age", "1h", lock, lock + "-typo"}, 2),
             Catch::StartsWith("CRITICAL - " + lock +
                               "-typo: no success is known (it does not exist) | "));
  CHECK_THAT(Check({lock, lock + "-1", lock + "-2", lock + "-3", lock + "-4"}, 0),
             Catch::Contains("-3 and 1 more do not exist | "));
}

TEST_CASE("a check of a path includes the locks below it even while someone holds the path") {
  const std::string root = NewLock("check");
  const Child holder = StartHolder(root + "/a");
  std::this_thread::sleep_for(20ms);
  const Words limit = {"--max-held", "1ms", root};
  CHECK_THAT(Check(limit, 2), Catch::StartsWith("CRITICAL - " + root + "/a: held for "));
  Tree tree;
  tree.Create(root + "/_c_x-lock-", ZnodeKind::kEphemeralSequential);
  CHECK_THAT(Check(limit, 2), Catch::Contains(root + "/a: held for "));
}

TEST_CASE("missing permission to read makes the state of a check unknown") {
  const std::string root = NewLock("check");
  Tree tree;
  tree.Create(root + "/open", ZnodeKind::kPersistent, "zklock/1");
  tree.SetAcl(tree.Create(root + "/closed"), kAdmin);
  CHECK_THAT(Check({root}, 3), Catch::StartsWith("UNKNOWN - not authorised to list " + root));
  CHECK_THAT(Check({root + "/closed", root + "/open"}, 3), Catch::Contains(root + "/closed"));

  const std::string record = tree.Create(root + "/open/last-run");
  tree.SetData(root + "/open/last-run", "\xff\xfe|no record");
  CHECK_THAT(Check({"--max-age", "1h", root + "/open"}, 3),
             Catch::StartsWith("UNKNOWN - " + root + "/open: the record of its last success"));
  tree.SetData(record, "zklock/1 9999999999999999 evil|host");
  CHECK_THAT(Check({"--max-age", "1h", root + "/open"}, 0), Catch::StartsWith("OK - "));
  tree.SetAcl(record, kAdmin);
  CHECK_THAT(Check({"--max-age", "1h", root + "/open"}, 3), Catch::StartsWith("UNKNOWN - "));
}

TEST_CASE("an unreadable contender makes the state of a check unknown, even without limits") {
  auto [lock, holder] = HoldNewLock("check");
  Tree tree;
  tree.SetAcl(lock + "/" + tree.Children(lock).at(0), kAdmin);
  const std::string unknown = "UNKNOWN - " + lock + ": a contender cannot be read | ";
  CHECK_THAT(Check({lock}, 3), Catch::StartsWith(unknown));
  CHECK_THAT(Check({"--max-waiting", "5", lock}, 3), Catch::StartsWith(unknown));
  CHECK_THAT(Check({"--max-held", "1h", lock}, 3),
             Catch::StartsWith("UNKNOWN - " + lock +
                               ": held for an unknown time: a contender cannot be read | "));
}

TEST_CASE("a | in the path of a check does not begin the performance data") {
  const std::string root = NewLock("check");
  Tree tree;
  tree.Create(root + "/open", ZnodeKind::kPersistent, "zklock/1");
  tree.SetAcl(tree.Create(root + "/a|b"), kAdmin);
  for (const std::string& refused : {root + "/a|b", root}) {
    const std::string line = Check({refused, root + "/open"}, 3);
    const std::string text = line.substr(0, line.find('|'));
    CHECK_THAT(text, Catch::Contains(root + "/a\\x7cb") && !Catch::Contains("\\\\"));
    CHECK_THAT(line.substr(text.size()), Catch::StartsWith("| 'held'="));
  }
  const Finished no_chroot =
      RunZklock({"inspect", "--check", "-z", TestServers() + "/no|chroot", "/jobs"});
  CHECK(no_chroot.exit == Exited(3));
  CHECK_THAT(no_chroot.out, Catch::Contains("/no\\x7cchroot does not exist"));
}

TEST_CASE("promtool accepts the metrics, whatever the names of locks and contenders") {
  const std::string root = NewLock("metrics");
  const Words names = {"a\"b", "back\\slash", "pipe|}", "umlaut-\u00e4", "{lock=\"x\"} 1 #"};
  Tree tree;
  for (const std::string& name : names) {
    tree.Create(root + "/" + name, ZnodeKind::kPersistent, "zklock/1");
    tree.Create(root + "/" + name + "/_c_x-lock-", ZnodeKind::kEphemeralSequential,
                "\"\n\\ zklock_held 2\n");
  }
  tree.Create(root + "/run", ZnodeKind::kPersistent, "zklock/1");  // stays when it is empty
  CHECK(RunZklock({"exclusive", root + "/run", "--", "true"}).exit == Exited(0));
  CHECK(RunZklock({"exclusive", "--reserve", "a.b:c@d", "--for", "1h", root + "/reserved"}).exit ==
        Exited(0));
  const std::string text = Metrics(root);
  CheckMetrics(text);
  CHECK_THAT(text, Catch::Contains("zklock_held{lock=\"" + root + "/a\\\"b\"} 1\n") &&
                       Catch::Contains("zklock_held{lock=\"" + root + "/back\\\\slash\"} 1\n") &&
                       Catch::Contains("zklock_last_run_status{lock=\"" + root + "/run\"} 0\n") &&
                       Catch::Contains("{lock=\"" + root + "/reserved\",id=\"a.b:c@d\"} "));
  CheckMetrics(Metrics(root + "/nothing"));
}

TEST_CASE("the metrics replace the whole file") {
  const TemporaryDirectory directory;
  const std::string root = NewLock("metrics");
  Tree().Create(root + "/l", ZnodeKind::kPersistent, "zklock/1");
  const std::string file = directory.Path("zklock.prom");
  const auto write = [&] {
    ChildOptions options = Zklock({"inspect", "--prometheus", "--output", "zklock.prom", root});
    options.directory = directory.path();
    options.prepare = [] {
      ResetSignals();
      umask(027);
    };
    const Finished finished = Run(options);
    CHECK(finished.exit == Exited(0));
    CHECK(finished.out + finished.err == "");
  };
  write();
  write();
  CheckMetrics(directory.Read("zklock.prom"));
  CHECK_THAT(directory.Read("zklock.prom"), Catch::Contains("{lock=\"" + root + "/l\"} 0"));
  CHECK(FilesIn(directory.path()) == 1);
  struct stat status {};
  REQUIRE(stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0640);
  SECTION("and keep its mode and owner") {
    REQUIRE(chmod(file.c_str(), 0664) == 0);
    const bool is_root = geteuid() == 0;
    if (is_root) REQUIRE(chown(file.c_str(), 12, 34) == 0);
    write();
    REQUIRE(stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0664);
    CHECK((!is_root || (status.st_uid == 12 && status.st_gid == 34)));
  }
}

TEST_CASE("if metrics cannot be written completely, the old file stays and no other file is left") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.prom", "old");
  SECTION("a full disk") {
    const Finished finished = WriteWithBadFsync("ENOSPC", file);
    CHECK(finished.exit == Exited(71));
    CHECK(finished.err == "zklock: cannot write to " + file + ": No space left on device\n");
  }
  SECTION("a limit on the size of files") {
    ChildOptions options =
        Zklock({"inspect", "--prometheus", "--output", file, NewLock("metrics")});
    options.prepare = [] {
      ResetSignals();  // XFSZ would end the process
      const rlimit small{100, 100};
      setrlimit(RLIMIT_FSIZE, &small);
    };
    const Finished finished = Run(options);
    CHECK(finished.exit == Exited(71));
    CHECK(finished.err == "zklock: cannot write to " + file + ": File too large\n");
  }
  SECTION("a signal") {
    const Finished finished = WriteWithBadFsync("TERM", file);
    CHECK(finished.exit == Exited(128 + SIGTERM));
    CHECK(finished.err == "zklock: interrupted by SIGTERM\n");
  }
  SECTION("no server") {
    CHECK(RunZklock({"inspect", "--prometheus", "--output", file, "-z", kNoServers,
                     "--connect-timeout", "100ms"})
              .exit == Exited(69));
  }
  SECTION("a directory that is not writable") {
    // Root may write to that directory, but even root cannot create a file below a plain file.
    const std::string below = directory.Write("plain", "") + "/zklock.prom";
    CHECK(RunZklock({"inspect", "--prometheus", "--output", below}).exit == Exited(71));
    std::filesystem::remove(directory.Path("plain"));
  }
  SECTION("a link, which would be lost") {
    const std::string link = directory.Path("link");
    REQUIRE(symlink(file.c_str(), link.c_str()) == 0);
    CHECK(RunZklock({"inspect", "--prometheus", "--output", link}).exit == Exited(71));
    CHECK(std::filesystem::is_symlink(link));
    std::filesystem::remove(link);
  }
  CHECK(directory.Read("zklock.prom") == "old");
  CHECK(FilesIn(directory.path()) == 1);
}

/// A `zklock inspect` that loses its server after some of its requests have been answered.
class CutShort {
 public:
  /// Returns when those answers have arrived; the others never arrive.
  CutShort(const OwnServer& server, Words words) : proxy_(server.address()) {
    constexpr int kAnswers = 50;
    // Counts the answers on all connections together. Runs in the proxy's thread.
    proxy_.EditReplies(
        [this](const std::string& /*request*/, std::string reply) -> std::optional<std::string> {
          if (++answers_ < kAnswers) return reply;
          if (answers_ == kAnswers) lost_.set_value();
          return std::nullopt;
        });
    words.insert(words.begin(), "inspect");
    // zklock gives up on a silent server well before the session timeout.
    words.insert(words.end(),
                 {"-z", proxy_.address(), "--session-timeout", "6s", "--connect-timeout", "3s"});
    child_.emplace(Child::Start(Zklock(words)));
    REQUIRE(lost_.get_future().wait_for(kPatience) == std::future_status::ready);
  }
  CutShort(const CutShort&) = delete;
  CutShort& operator=(const CutShort&) = delete;

  Child& child() { return *child_; }

 private:
  int answers_ = 0;
  std::promise<void> lost_;
  Proxy proxy_;
  std::optional<Child> child_;
};

TEST_CASE("if the server is lost during a survey, a check is unknown and no metrics are written") {
  const OwnServer server({});
  {
    Tree tree("", server.address());
    for (int i = 0; i < 100; ++i) tree.Create("/l" + std::to_string(i));
  }
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.prom", "old");
  const auto lose = [&](const std::function<void()>& stop) {
    CutShort check(server, {"--check", "/"});
    CutShort written(server, {"--prometheus", "--output", file, "/"});
    CutShort printed(server, {"--prometheus", "/"});
    stop();
    CHECK(check.child().Wait() == Exited(3));
    CHECK_THAT(check.child().out(), Catch::StartsWith("UNKNOWN - no ZooKeeper server "));
    CHECK(Lines(check.child().out()).size() == 1);
    CHECK(check.child().err().empty());
    for (CutShort* const metrics : {&written, &printed}) {
      CHECK(metrics->child().Wait() == Exited(69));
      CHECK(metrics->child().out().empty());
      CHECK_THAT(metrics->child().err(), Catch::StartsWith("zklock: no ZooKeeper server "));
    }
    CHECK(directory.Read("zklock.prom") == "old");
    CHECK(FilesIn(directory.path()) == 1);
  };
  lose([&] { server.Pause(1); });
  server.Resume(1);
  lose([&] { server.Stop(1); });
}

TEST_CASE("with standard output on a full disk a check is unknown, and metrics fail") {
  const std::string lock = NewLock("full");
  const auto run_full = [](const Words& words) {
    ChildOptions options = Zklock(words);
    options.argv.insert(options.argv.begin(), {"sh", "-c", "exec \"$@\" >/dev/full", "sh"});
    return Run(options);
  };
  const std::string reason = "zklock: cannot write to standard output: No space left on device\n";
  const Finished check = run_full({"inspect", "--check", lock});
  CHECK(check.exit == Exited(3));
  CHECK(check.err == reason);
  CHECK(run_full({"inspect", "--check", "--max-held", "soon", lock}).exit == Exited(3));
  CHECK(
      run_full({"inspect", "--check", "-z", kNoServers, "--connect-timeout", "100ms", lock}).exit ==
      Exited(3));
  const Finished metrics = run_full({"inspect", "--prometheus", lock});
  CHECK(metrics.exit == Exited(71));
  CHECK(metrics.err == reason);
}

TEST_CASE("with standard output closed a check is unknown, and says so") {
  ChildOptions options = Zklock({"inspect", "--check", NewLock("full")});
  options.argv.insert(options.argv.begin(), {"sh", "-c", "exec \"$@\" >&-", "sh"});
  const Finished check = Run(options);
  CHECK(check.exit == Exited(3));
  CHECK(check.err == "zklock: cannot write to standard output: Bad file descriptor\n");
}

}  // namespace
}  // namespace zklock::test
