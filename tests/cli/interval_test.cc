// --min-interval: a job that ran a moment ago is not run again, on whichever host.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/zklock.h"
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
  CHECK_THAT(again.err, Catch::Contains(lock + " ran") && Catch::Contains(host) &&
                            Catch::Contains("--min-interval 1h"));
  CHECK(Tree().Children(lock) == std::vector<std::string>{"last-run"});
  // Whoever does not ask is not kept from it.
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
}

TEST_CASE("a crontab's line is quiet about it") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock)).exit == Exited(0));
  const Finished quiet =
      RunZklock({"try", "-q", "-E", "0", "--min-interval", "1h", lock, "--", "false"});
  CHECK(quiet.exit == Exited(0));
  CHECK(quiet.err.empty());
}

TEST_CASE("a job whose last run cannot be found out is not run") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock)).out == "ran\n");
  Tree().SetAcl(lock + "/last-run", kWrite | kAdmin);
  const Finished again = Run(Job("1h", lock));
  CHECK(again.exit == Exited(77));
  CHECK(again.out.empty());
  CHECK_THAT(again.err, Catch::Contains("READ on " + lock + "/last-run is missing"));
  // The lock is free again.
  CHECK(RunZklock({"try", lock, "--", "true"}).exit == Exited(0));
}

TEST_CASE("when the interval is over it runs again") {
  const std::string lock = NewLock("interval");
  const auto before = std::chrono::steady_clock::now();
  CHECK(Run(Job("2s", lock)).exit == Exited(0));
  // Its end is the event, and who asks again and again sees it.
  Finished finished;
  do {
    finished = Run(Job("2s", lock));
  } while (finished.exit == Exited(75));
  CHECK(finished.out == "ran\n");
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::seconds(2));  // and not sooner
}

TEST_CASE("a failed run does not count, and does not hide a success") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock, "3")).exit == Exited(3));
  CHECK(Run(Job("1h", lock)).exit == Exited(0));
  CHECK(RunZklock({"exclusive", lock, "--", "false"}).exit == Exited(1));
  CHECK(Run(Job("1h", lock)).exit == Exited(75));
}

TEST_CASE("a success without the option counts too, for as long as the LOCK keeps its record") {
  // No container, which the servers may take between the runs.
  const std::string lock = Tree().Create(NewLock("interval"), ZnodeKind::kPersistent, "zklock/1");
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
  CHECK(Run(Job("1h", lock)).exit == Exited(75));
}

TEST_CASE("readers keep no writer from its run, and show nobody that one has run") {
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
  // It is still the last run, to who asks for that.
  CHECK_THAT(RunZklock({"inspect", "--json", lock}).out, Catch::Contains("\"mode\":\"read\""));
}

TEST_CASE("what the last success needs outlives an empty LOCK") {
  const std::string lock = NewLock("interval");
  CHECK(Run(Job("1h", lock)).exit == Exited(0));
  // A persistent child: the servers reap containers without children only.
  CHECK(Tree().Get(lock + "/last-run").has_value());
}

TEST_CASE("hosts whose clocks are hours apart agree") {
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
  // The clock that they have is the skewed one.
  ChildOptions date = skewed("86400000");
  date.argv = {"date", "+%s"};
  const std::int64_t now = std::stoll(Run(date).out);
  CHECK(now > std::chrono::duration_cast<std::chrono::seconds>(
                  std::chrono::system_clock::now().time_since_epoch())
                      .count() +
                  86'000'000);
}

TEST_CASE("two that come together run it once") {
  const std::string lock = NewLock("interval");
  Child first = Child::Start(Job("1h", lock));
  Child second = Child::Start(Job("1h", lock));
  const Exit one = first.Wait();
  const Exit other = second.Wait();
  CHECK(((one == Exited(0) && other == Exited(75)) || (one == Exited(75) && other == Exited(0))));
}

TEST_CASE("an interval that is no span, or for readers or permits, is refused") {
  CHECK(RunZklock({"exclusive", "--min-interval", "soon", "/t/x", "--", "true"}).exit ==
        Exited(64));
  CHECK(RunZklock({"read", "--min-interval", "1h", "/t/x", "--", "true"}).exit == Exited(64));
  CHECK(RunZklock({"try", "--read", "--min-interval", "1h", "/t/x", "--", "true"}).exit ==
        Exited(64));
  CHECK(RunZklock({"exclusive", "--permits", "2", "--min-interval", "1h", "/t/x", "--", "true"})
            .exit == Exited(64));
}

}  // namespace zklock::test
