// How a late guard that hangs is distinguished from one that is only slow.

#include "process/guard/guard_watch.h"

#include <sys/types.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Child;
using Verdict = GuardWatch::Verdict;

constexpr TimePoint kStart{seconds(1000)};

// A guard that has promised to look at kStart, and is checked whenever the watch asks for it.
struct Watched {
  GuardSighting seen{'S', 1};
  GuardTerms terms{.looks_at = kStart,
                   .lease_end = kStart + seconds(60),
                   .grace = seconds(5),
                   .ordered_at = std::nullopt};
  GuardWatch watch{[this] { return std::optional(seen); }};
  TimePoint now = kStart;

  // Looks at every moment that Wake() returns, until `end` or until the guard is given up.
  Verdict LookUntil(TimePoint end) {
    for (;;) {
      const TimePoint wake = watch.Wake(terms);
      if (wake > end) return Verdict::kTrusted;
      REQUIRE(wake >= now);
      now = wake;
      if (const Verdict verdict = watch.Look(now, terms); verdict != Verdict::kTrusted) {
        return verdict;
      }
    }
  }
};

TEST_CASE("a stopped guard hangs, even if its lease has time left") {
  Watched guard;
  guard.seen.state = 'T';
  CHECK(guard.LookUntil(kStart + seconds(10)) == Verdict::kHangs);
  CHECK(guard.now < kStart + seconds(4));
}

TEST_CASE("a guard that sleeps past its promise hangs") {
  Watched guard;
  CHECK(guard.LookUntil(kStart + seconds(10)) == Verdict::kHangs);
}

TEST_CASE("a guard that waits long for a disk hangs") {
  Watched guard;
  guard.seen.state = 'D';
  CHECK(guard.LookUntil(kStart + seconds(10)) == Verdict::kHangs);
}

TEST_CASE("a guard that is runnable is only slow, and trusted while the lease has time") {
  Watched guard;
  guard.seen.state = 'R';
  SECTION("without an order") {}
  SECTION("with an order that it has not begun to carry out") { guard.terms.ordered_at = kStart; }
  CHECK(guard.LookUntil(kStart + seconds(54)) == Verdict::kTrusted);
  CHECK(guard.now > kStart + seconds(50));
}

TEST_CASE("a guard that runs now and then is only slow") {
  Watched guard;
  const TimePoint end = kStart + seconds(54);
  while (guard.now < end) {
    const TimePoint wake = guard.watch.Wake(guard.terms);
    if (wake > end) break;
    guard.now = wake;
    ++guard.seen.run_time;
    REQUIRE(guard.watch.Look(wake, guard.terms) == Verdict::kTrusted);
  }
  CHECK(guard.now > kStart + seconds(50));
}

TEST_CASE("a slow guard is given up soon after the stop time, as slow") {
  Watched guard;
  guard.seen.state = 'R';
  CHECK(guard.LookUntil(kStart + seconds(60)) == Verdict::kSlow);
  CHECK(guard.now >= kStart + seconds(55));
  CHECK(guard.now <= kStart + seconds(56));
}

TEST_CASE("a slow guard is given up before the lease ends, however short the grace") {
  Watched guard;
  guard.seen.state = 'R';
  guard.terms.grace = {};
  CHECK(guard.LookUntil(kStart + seconds(60)) == Verdict::kSlow);
  CHECK(guard.now < guard.terms.lease_end);
}

TEST_CASE("a guard that is stopped at the stop time is given up 150 ms before the lease ends") {
  Watched guard;
  guard.seen.state = 'T';
  guard.terms.grace = {};
  guard.terms.looks_at = guard.terms.lease_end - milliseconds(250);
  CHECK(guard.LookUntil(kStart + seconds(60)) == Verdict::kHangs);
  CHECK(guard.now <= guard.terms.lease_end - milliseconds(150));
}

TEST_CASE("a slow guard that is then stopped hangs") {
  Watched guard;
  guard.seen.state = 'R';
  REQUIRE(guard.LookUntil(kStart + seconds(20)) == Verdict::kTrusted);
  guard.seen.state = 'T';
  CHECK(guard.LookUntil(kStart + seconds(30)) == Verdict::kHangs);
}

TEST_CASE("a slow guard that has finally looked is trusted again") {
  Watched guard;
  guard.seen.state = 'R';
  REQUIRE(guard.LookUntil(kStart + seconds(20)) == Verdict::kTrusted);
  guard.terms.looks_at = kStart + seconds(50);
  guard.seen.state = 'S';
  CHECK(guard.watch.Look(kStart + seconds(21), guard.terms) == Verdict::kTrusted);
  CHECK(guard.watch.Wake(guard.terms) == guard.terms.looks_at + milliseconds(50));
}

TEST_CASE("a guard that cannot be seen does not count as slow") {
  GuardWatch watch([] { return std::optional<GuardSighting>(); });
  const GuardTerms terms{.looks_at = kStart, .ordered_at = std::nullopt};
  CHECK(watch.Look(kStart + seconds(1), terms) == Verdict::kTrusted);
  CHECK(watch.Look(kStart + seconds(5), terms) == Verdict::kHangs);
}

TEST_CASE("the state of a process and the CPU time it has used are read") {
  Child child = Child::Start({.argv = {"sh", "-c", "echo up; while :; do :; done"}});
  REQUIRE(child.ReadLine() == "up");
  const auto before = SeeGuard(child.pid());
  REQUIRE(before);
  test::WaitUntil([&] { return SeeGuard(child.pid())->run_time != before->run_time; });
  CHECK(SeeGuard(child.pid())->state == 'R');
  child.Signal(SIGSTOP);
  child.WaitUntilStopped();
  CHECK(SeeGuard(child.pid())->state == 'T');
  CHECK_FALSE(SeeGuard(0));
}

}  // namespace
}  // namespace zklock::process
