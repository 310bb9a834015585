// --min-interval and --once-per: a job that ran a moment ago does not run again, on any host.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/gate.h"
#include "cli/inspect/inspect_output.h"
#include "cli/skewed_clock.h"
#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// Returns `zklock exclusive --min-interval SPAN LOCK -- sh -c 'echo ran; exit STATUS'`.
ChildOptions Job(const std::string& span, const std::string& lock,
                 const std::string& status = "0") {
  return Zklock(
      {"exclusive", "--min-interval", span, lock, "--", "sh", "-c", "echo ran; exit " + status});
}

/// Returns the same job with --once-per.
ChildOptions Once(const std::string& span, const std::string& lock,
                  const std::string& status = "0") {
  ChildOptions options = Job(span, lock, status);
  options.argv.at(2) = "--once-per";
  return options;
}

}  // namespace

TEST_CASE("a job that succeeded less than the interval ago is not run again") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock)).out == "ran\n");
  const Finished again = Run(Job("1h", lock));
  CHECK(again.exit == Exited(75));
  CHECK(again.out.empty());
  char host[256] = {};
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  CHECK_THAT(again.err, Catch::Contains(lock + " last succeeded") && Catch::Contains(host) &&
                            Catch::Contains("--min-interval 1h"));
  CHECK(Tree().Children(lock) == std::vector<std::string>{"last-run"});
  // A run without the option is not affected.
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
}

TEST_CASE("inspect shows the last start of a job with --once-per") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Once("1h", lock, "3")).exit == Exited(3));
  const nlohmann::json found = InspectJson(lock)[0];
  CHECK(found["lastStart"]["token"] == found["lastRun"]["token"]);
  CHECK(found["lastStart"]["host"] == found["lastRun"]["host"]);
  CHECK(found["lastStart"]["began"] <= found["lastRun"]["ended"]);
  const std::string line = "\nlast start with --once-per: ";
  CHECK_THAT(Inspect({"-v", lock}), Catch::Contains(line));
  CHECK_THAT(Inspect({lock}), !Catch::Contains(line));
  const std::string other = NewLock("interval");
  CHECK(Run(Job("1h", other)).exit == Exited(0));
  CHECK(InspectJson(other)[0]["lastStart"].is_null());
}

TEST_CASE("a crontab line can stay quiet about a skipped run") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock)).exit == Exited(0));
  const Finished quiet =
      RunZklock({"try", "-q", "-E", "0", "--min-interval", "1h", lock, "--", "false"});
  CHECK(quiet.exit == Exited(0));
  CHECK(quiet.err.empty());
}

TEST_CASE("a job whose last run cannot be determined does not run") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock)).out == "ran\n");
  Tree().SetAcl(lock + "/last-run", kWrite | kAdmin);
  const Finished again = Run(Job("1h", lock));
  CHECK(again.exit == Exited(77));
  CHECK(again.out.empty());
  CHECK_THAT(again.err, Catch::Contains("READ on " + lock + "/last-run is missing"));
  // The lock has been released.
  CHECK(RunZklock({"try", lock, "--", "true"}).exit == Exited(0));
}

TEST_CASE("when the interval is over the job runs again") {
  const std::string lock = NewLock("interval");
  const ChildOptions job = GENERATE(false, true) ? Once("2s", lock) : Job("2s", lock);
  const auto before = std::chrono::steady_clock::now();
  CHECK(Run(job).exit == Exited(0));
  // Nothing announces the end of the interval: ask until it is over.
  Finished finished;
  do {
    finished = Run(job);
  } while (finished.exit == Exited(75));
  CHECK(finished.out == "ran\n");
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::seconds(2));  // not earlier
}

TEST_CASE("a failed run does not count, and does not hide an earlier success") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock, "3")).exit == Exited(3));
  CHECK(Run(Job("1h", lock)).exit == Exited(0));
  CHECK(RunZklock({"exclusive", lock, "--", "false"}).exit == Exited(1));
  CHECK(Run(Job("1h", lock)).exit == Exited(75));
}

TEST_CASE("a success without the option counts too, as long as LOCK keeps its record") {
  // Not a container: the servers may delete that between the runs.
  const std::string lock = Tree().Create(NewLock("interval"), ZnodeKind::kPersistent, "zklock/1");
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
  CHECK(Run(Job("1h", lock)).exit == Exited(75));
}

TEST_CASE("readers do not count as runs and do not hide a writer's last run") {
  const std::string lock = NewLock("interval");
  const auto write = [&] {
    return RunZklock({"write", "--min-interval", "1h", lock, "--", "true"}).exit;
  };
  const auto read = [&](const Words& mode) {
    Words words = mode;
    words.insert(words.end(), {lock, "--", "true"});
    CHECK(RunZklock(words).exit == Exited(0));
  };
  read({"read"});
  read({"try", "--read"});
  CHECK(write() == Exited(0));
  read({"read"});
  CHECK(write() == Exited(75));
  // inspect still shows this run as the last one.
  CHECK_THAT(RunZklock({"inspect", "--json", lock}).out, Catch::Contains("\"mode\":\"read\""));
}

TEST_CASE("hosts whose clocks are hours apart agree on the interval") {
  const std::string lock = NewLock("interval");
  const auto skewed = [&](const std::string& seconds) {
    return WithSkewedClock(Job("1h", lock), seconds);
  };
  const Finished first = Run(skewed("10800"));
  CAPTURE(first.err);
  CHECK(first.out == "ran\n");
  CHECK(Run(Job("1h", lock)).exit == Exited(75));
  CHECK(Run(skewed("-10800")).exit == Exited(75));
  CHECK(Run(skewed("7200")).exit == Exited(75));
  // The clock really is skewed.
  ChildOptions date = skewed("86400000");
  date.argv = {"date", "+%s"};
  const std::int64_t now = std::stoll(Run(date).out);
  CHECK(now > std::chrono::duration_cast<std::chrono::seconds>(
                  std::chrono::system_clock::now().time_since_epoch())
                      .count() +
                  86'000'000);
}

TEST_CASE("a slow network does not make the last run look older than it is") {
  const std::string lock = NewLock("interval");
  const auto before = std::chrono::steady_clock::now();
  CHECK(Run(Job("1h", lock)).exit == Exited(0));
  Proxy proxy(TestServers());
  proxy.Delay(std::chrono::milliseconds(1500));
  ChildOptions far = Job("1h", lock);
  far.argv.insert(far.argv.begin() + 2, {"-z", proxy.address()});
  const Finished again = Run(far);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - before;
  CAPTURE(again.err);
  CHECK(again.exit == Exited(75));
  std::smatch ago;
  REQUIRE(std::regex_search(again.err, ago, std::regex(R"( ([0-9.]+)s ago)")));
  // The run cannot have begun earlier than this test. The message gives tenths of a second.
  CHECK(std::stod(ago[1]) <= passed.count() - 1.5 + 0.1);
}

TEST_CASE("hosts that start a short job one after another run it once") {
  const std::string lock = NewLock("once");
  CHECK(Run(Once("1h", lock)).out == "ran\n");
  const Finished again = Run(Once("1h", lock));
  CHECK(again.exit == Exited(75));
  CHECK(again.out.empty());
  char host[256] = {};
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  CHECK_THAT(again.err, Catch::Contains(lock + " last started on ") && Catch::Contains(host) &&
                            Catch::Contains("within --once-per 1h; the command was not run"));
  CHECK(Lines(again.err).size() == 1);
  CHECK(Tree().Children(lock) == std::vector<std::string>{"last-start"});
  const Finished quiet =
      RunZklock({"try", "-q", "-E", "0", "--once-per", "1h", lock, "--", "false"});
  CHECK(quiet.exit == Exited(0));
  CHECK(quiet.err.empty());
}

TEST_CASE("hosts that start a job at the same time run it once") {
  const std::string lock = NewLock("once");
  const ChildOptions job = GENERATE(false, true) ? Once("1h", lock) : Job("1h", lock);
  std::vector<Child> hosts;
  for (int i = 0; i < 4; ++i) hosts.push_back(Child::Start(job));
  int ran = 0;
  for (Child& host : hosts) {
    const Exit exit = host.Wait();
    CHECK((exit == Exited(0) || exit == Exited(75)));
    if (exit == Exited(0)) ++ran;
  }
  CHECK(ran == 1);
}

TEST_CASE("hosts whose clocks are hours apart run a job once") {
  const std::string lock = NewLock("once");
  CHECK(Run(WithSkewedClock(Once("1h", lock), "10800")).out == "ran\n");
  CHECK(Run(Once("1h", lock)).exit == Exited(75));
  CHECK(Run(WithSkewedClock(Once("1h", lock), "-10800")).exit == Exited(75));
  CHECK(Run(WithSkewedClock(Once("1h", lock), "86400")).exit == Exited(75));
}

TEST_CASE("with --once-per a run counts whatever its result") {
  const std::string lock = NewLock("once");
  SECTION("it fails") { CHECK(Run(Once("1h", lock, "3")).exit == Exited(3)); }
  SECTION("it cannot be executed") {
    const TemporaryDirectory directory;
    const std::string script = directory.WriteProgram("script", "#!/no/such/interpreter\n");
    CHECK(RunZklock({"exclusive", "--once-per", "1h", lock, "--", script}).exit == Exited(127));
  }
  CHECK(Run(Once("1h", lock)).exit == Exited(75));
  // --min-interval lets another host try.
  CHECK(Run(Job("1h", lock)).out == "ran\n");
}

TEST_CASE("a command that is not found before the lock is taken does not count as a start") {
  const std::string lock = NewLock("once");
  CHECK(RunZklock({"exclusive", "--once-per", "1h", lock, "--", "/no/such/command"}).exit ==
        Exited(127));
  CHECK(Run(Once("1h", lock)).out == "ran\n");
}

TEST_CASE("only runs with --once-per set the last start, or are refused because of it") {
  const std::string lock = NewLock("once");
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
  CHECK(Run(Job("1ms", lock)).exit == Exited(0));
  CHECK(Run(Once("1h", lock)).out == "ran\n");
  const std::int64_t written = Tree().Get(lock + "/last-start")->data_zxid;
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
  CHECK(Run(Job("1ms", lock)).exit == Exited(0));
  CHECK(Tree().Get(lock + "/last-start")->data_zxid == written);
}

TEST_CASE(
    "with both options both must allow the run, and a refused run does not count as a start") {
  const std::string lock = NewLock("once");
  const auto both = [&](const std::string& status) {
    ChildOptions options = Job("1h", lock, status);
    options.argv.insert(options.argv.begin() + 2, {"--once-per", "1h"});
    return Run(options);
  };
  SECTION("--min-interval refuses") {
    CHECK(Run(Job("1h", lock)).exit == Exited(0));
    const Finished refused = both("0");
    CHECK(refused.exit == Exited(75));
    CHECK_THAT(refused.err, Catch::Contains("--min-interval 1h"));
    CHECK_FALSE(Tree().Get(lock + "/last-start"));
  }
  SECTION("--once-per refuses") {
    CHECK(both("3").exit == Exited(3));  // no success
    const Finished refused = both("0");
    CHECK(refused.exit == Exited(75));
    CHECK_THAT(refused.err, Catch::Contains("--once-per 1h"));
  }
  SECTION("both allow it") {
    CHECK(both("0").out == "ran\n");
    CHECK(Tree().Children(lock).size() == 2);
    CHECK(Run(Job("1h", lock)).exit == Exited(75));
    CHECK(Run(Once("1h", lock)).exit == Exited(75));
  }
}

TEST_CASE("the start is committed under all LOCKs of a set, or under none") {
  const std::string one = NewLock("once");
  const std::string other = NewLock("once");
  const Words words = {"exclusive", "--once-per", "1h", one, other, "--", "true"};
  CHECK(Run(Once("1h", other)).exit == Exited(0));
  const Finished refused = RunZklock(words);
  CHECK(refused.exit == Exited(75));
  CHECK_THAT(refused.err, Catch::Contains(other + " last started"));
  CHECK(Run(Once("1h", one)).out == "ran\n");
}

TEST_CASE("a message says that --once-per may count a start that only some LOCKs recorded") {
  const std::string one = NewLock("once");
  const std::string other = NewLock("once");
  CHECK(Run(Once("1ms", other)).exit == Exited(0));
  Tree().SetAcl(other + "/last-start", kRead | kAdmin);
  const Finished refused =
      RunZklock({"exclusive", "--once-per", "1ms", one, other, "--", "true"}, Exited(77));
  CHECK_THAT(refused.err, Catch::Contains("WRITE on " + other + "/last-start is missing") &&
                              Catch::Contains("--once-per may count this run of " + one));
}

TEST_CASE(
    "without permission, or with another program's data, a job with --once-per does not run") {
  const std::string lock = NewLock("once");
  Tree tree;
  int status = 77;
  std::string says;
  SECTION("to write to last-start") {
    CHECK(Run(Once("1ms", lock)).exit == Exited(0));
    tree.SetAcl(lock + "/last-start", kRead | kAdmin);
    says = "WRITE on " + lock + "/last-start is missing";
  }
  SECTION("to read last-start") {
    CHECK(Run(Once("1ms", lock)).exit == Exited(0));
    tree.SetAcl(lock + "/last-start", kWrite | kAdmin);
    says = "READ on " + lock + "/last-start is missing";
  }
  SECTION("another program's data") {
    tree.Create(lock + "/last-start", ZnodeKind::kPersistent, "yesterday");
    status = 78;
    says = lock + " cannot be used with --once-per: the record in its child 'last-start'";
  }
  const Finished refused = Run(Once("1ms", lock));
  CHECK(refused.exit == Exited(status));
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Catch::Contains(says) && !Catch::Contains("may count this run"));
  // The lock has been released.
  CHECK(RunZklock({"try", lock, "--", "true"}).exit == Exited(0));
}

TEST_CASE("a start whose commit was not answered does not block its own run") {
  const std::string lock = NewLock("once");
  Gate gate("create " + lock + "/last-start");
  Child zklock = Child::Start(gate.Before(HolderOptions({"exclusive", "--once-per", "1h"}, lock)));
  gate.WaitUntilReached();
  gate.Break();
  CHECK(zklock.ReadLine() == "held");
  zklock.CloseInput();
  CHECK(zklock.Wait() == Exited(0));
}

TEST_CASE(
    "a signal that arrives before the start's commit is known ends zklock without the command") {
  const std::string lock = NewLock("once");
  Gate gate("create " + lock + "/last-start");
  Child zklock = Child::Start(gate.Before(HolderOptions({"exclusive", "--once-per", "1h"}, lock)));
  gate.WaitUntilReached();
  zklock.Signal(SIGTERM);
  CHECK(zklock.Wait() == Exited(128 + SIGTERM));
  CHECK(zklock.out().empty());
  CHECK_THAT(zklock.err(), Catch::Contains("--once-per may count this run of " + lock));
  gate.Open();
  Tree().WaitForChildren(lock, 1);
  CHECK(Run(Once("1h", lock)).exit == Exited(75));
}

TEST_CASE("if too little of the lease is left after the commit, the command does not start") {
  const std::string lock = NewLock("once");
  // The commit is answered late, and no heartbeat after it is answered.
  std::promise<void> reached;
  std::promise<void> open;
  Proxy proxy(TestServers());
  proxy.EditReplies(
      [&, is_over = std::make_shared<bool>(false)](const std::string& request, std::string reply) {
        if (*is_over) return std::optional<std::string>();
        if (request == "create " + lock + "/last-start") {
          *is_over = true;
          reached.set_value();
          open.get_future().wait();
        }
        return std::optional(std::move(reply));
      });
  ChildOptions options =
      HolderOptions({"exclusive", "--session-timeout", "4s", "--once-per", "1h"}, lock);
  options.also_environment.push_back("ZKLOCK_SERVERS=" + proxy.address());
  Child zklock = Child::Start(options);
  REQUIRE(reached.get_future().wait_for(kPatience) == std::future_status::ready);
  zklock.Signal(SIGSTOP);
  open.set_value();
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // of a lease of 3.5 s
  zklock.Signal(SIGCONT);
  // The status must not be that of a conflict, which a crontab line would not report: no other host
  // runs the job.
  CHECK(zklock.Wait() == Exited(76));
  CHECK(zklock.out().empty());
}

}  // namespace zklock::test
