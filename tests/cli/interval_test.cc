// --min-interval: a job that ran a moment ago does not run again, on any host.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <regex>
#include <string>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// `zklock exclusive --min-interval SPAN LOCK -- sh -c 'echo ran; exit STATUS'`.
ChildOptions Job(const std::string& span, const std::string& lock,
                 const std::string& status = "0") {
  return Zklock(
      {"exclusive", "--min-interval", span, lock, "--", "sh", "-c", "echo ran; exit " + status});
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
  CHECK_THAT(again.err, Catch::Contains(lock + " last ran") && Catch::Contains(host) &&
                            Catch::Contains("--min-interval 1h"));
  CHECK(Tree().Children(lock) == std::vector<std::string>{"last-run"});
  // A run without the option is not affected.
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
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
  const auto before = std::chrono::steady_clock::now();
  CHECK(Run(Job("2s", lock)).exit == Exited(0));
  // Nothing announces the end of the interval: ask until it is over.
  Finished finished;
  do {
    finished = Run(Job("2s", lock));
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
  // Not a container, which the servers may delete between the runs.
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
  // inspect still shows it as the last run.
  CHECK_THAT(RunZklock({"inspect", "--json", lock}).out, Catch::Contains("\"mode\":\"read\""));
}

TEST_CASE("the record of the last success outlives an empty LOCK") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock)).exit == Exited(0));
  // A persistent child: the servers delete only childless containers.
  CHECK(Tree().Get(lock + "/last-run").has_value());
}

TEST_CASE("hosts whose clocks are hours apart agree on the interval") {
  const std::string lock = NewLock("interval");
  const auto skewed = [&](const std::string& seconds) {
    ChildOptions options = Job("1h", lock);
    const char* clock = std::getenv("ZKLOCK_TEST_CLOCK");
    REQUIRE(clock != nullptr);
    options.also_environment.push_back(std::string("LD_PRELOAD=") + clock);
    options.also_environment.push_back("SKEW_SECONDS=" + seconds);
    return options;
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
  // The run cannot have begun earlier than this test. The message gives tenths.
  CHECK(std::stod(ago[1]) <= passed.count() - 1.5 + 0.1);
}

TEST_CASE("two jobs started at the same time run once") {
  const std::string lock = NewLock("interval");
  Child first = Child::Start(Job("1h", lock));
  Child second = Child::Start(Job("1h", lock));
  const Exit one = first.Wait();
  const Exit other = second.Wait();
  CHECK(((one == Exited(0) && other == Exited(75)) || (one == Exited(75) && other == Exited(0))));
}

TEST_CASE("an invalid interval, or one for readers or permits, is refused") {
  CHECK(RunZklock({"exclusive", "--min-interval", "soon", "/t/x", "--", "true"}).exit ==
        Exited(64));
  CHECK(RunZklock({"read", "--min-interval", "1h", "/t/x", "--", "true"}).exit == Exited(64));
  CHECK(RunZklock({"try", "--read", "--min-interval", "1h", "/t/x", "--", "true"}).exit ==
        Exited(64));
  CHECK(RunZklock({"exclusive", "--permits", "2", "--min-interval", "1h", "/t/x", "--", "true"})
            .exit == Exited(64));
}

}  // namespace zklock::test
