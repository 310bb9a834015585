#include "protocol/queue_ahead.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace zklock::protocol {
namespace {

using Names = std::vector<std::string>;

/// Returns a contender of zklock with the number `number`.
std::string Zklock(std::string_view mark, std::size_t number) {
  const std::string digits = std::to_string(10'000'000'000 + number).substr(1);
  return "host-00000000-0000-4000-8000-" + digits + "00" + std::string(mark) + digits;
}
std::string ExclusiveName(std::size_t number) { return Zklock("-lock-", number); }
std::string WriterName(std::size_t number) { return Zklock("-__WRIT__", number); }
std::string ReaderName(std::size_t number) { return Zklock("-__READ__", number); }

ReleaseRecord RecordOf(const std::string& contender) { return {.contender = contender}; }

/// Returns what is ahead of the last contender in `queue`.
QueueAhead AheadOfLast(const Names& queue) {
  const Contenders contenders(queue);
  const Decision decision = Decide(contenders, queue.back());
  return {contenders, queue.back(), std::get<WaitFor>(decision).predecessor};
}

}  // namespace

TEST_CASE("Without a list nothing is known about the contenders ahead") {
  QueueAhead ahead;
  CHECK_FALSE(ahead.IsSettledByDeletion());
  CHECK_FALSE(ahead.IsNextInLine());
  ahead.Take(RecordOf(ExclusiveName(0)));
  CHECK_FALSE(ahead.IsSettledByDeletion());
  CHECK_FALSE(ahead.IsNextInLine());
}

TEST_CASE("The queue's list as seen by its last contender") {
  struct Case {
    Names queue;
    bool settled;  ///< the deletion of the predecessor settles the turn
    bool next;     ///< the contender is next in line
  };
  const auto [queue, settled, next] = GENERATE(values<Case>({
      {{ExclusiveName(0), ExclusiveName(1)}, true, true},
      {{ExclusiveName(0), ExclusiveName(1), ExclusiveName(2)}, false, false},
      {{WriterName(0), ReaderName(1)}, true, true},
      {{WriterName(0), ReaderName(1), ReaderName(2)}, true, false},
      {{ReaderName(0), WriterName(1)}, true, true},
      {{ReaderName(0), ReaderName(1), WriterName(2)}, false, true},
      {{WriterName(0), ReaderName(1), WriterName(2)}, false, false},
      {{ReaderName(0), WriterName(1), ReaderName(2)}, false, false},
      {{ReaderName(0), WriterName(1), WriterName(2)}, false, false},
      {{"_c_1-lock-0000000000", ExclusiveName(1)}, false, true},
      {{"1__lock__0000000000", Zklock("-__lock__", 1)}, false, true},
      {{"x-1-0000000000", ExclusiveName(1)}, false, true},
      {{"something-0000000000", ExclusiveName(1)}, false, true},
  }));
  CAPTURE(queue);
  const QueueAhead ahead = AheadOfLast(queue);
  CHECK(ahead.IsSettledByDeletion() == settled);
  CHECK(ahead.IsNextInLine() == next);
}

TEST_CASE(
    "The deletion of a contender that reserves settles nothing, since it may be a conversion") {
  const QueueAhead ahead = AheadOfLast({Zklock("-reserve-lock-", 0), ExclusiveName(1)});
  CHECK_FALSE(ahead.IsSettledByDeletion());
  CHECK(ahead.IsNextInLine());
  CHECK(AheadOfLast({ExclusiveName(0), Zklock("-reserve-lock-", 1)}).IsSettledByDeletion());
}

TEST_CASE("A waiter is near while few contenders are before it, of whatever mode") {
  Names queue;
  for (std::size_t number = 0; number < QueueAhead::kNear; ++number) {
    queue.push_back(number % 3 == 0 ? ReaderName(number) : ExclusiveName(number));
  }
  queue.push_back(ExclusiveName(100));
  CHECK(AheadOfLast(queue).IsNear());
  queue.insert(queue.begin(), ReaderName(99));
  CHECK_FALSE(AheadOfLast(queue).IsNear());
  CHECK_FALSE(QueueAhead().IsNear());
}

TEST_CASE("A record of the last excluding contender before the predecessor shows who is next") {
  const Names queue{ExclusiveName(3), ExclusiveName(5), ExclusiveName(7), ExclusiveName(9)};
  QueueAhead ahead = AheadOfLast(queue);
  ahead.Take(RecordOf(ExclusiveName(5)));
  CHECK(ahead.IsSettledByDeletion());
  CHECK(ahead.IsNextInLine());
}

TEST_CASE("A stale record, one of a reader and one of no contender show nothing") {
  const std::string released =
      GENERATE(ExclusiveName(3), ExclusiveName(4), ReaderName(5), ReaderName(6), "-", "");
  QueueAhead ahead =
      AheadOfLast({ExclusiveName(3), ExclusiveName(5), ExclusiveName(7), ExclusiveName(9)});
  ahead.Take(RecordOf(released));
  CHECK_FALSE(ahead.IsSettledByDeletion());
  CHECK_FALSE(ahead.IsNextInLine());
}

TEST_CASE(
    "The record of a contender that the list did not show says nothing, whatever its number") {
  const std::string released =
      GENERATE(ExclusiveName(6), WriterName(6), WriterName(5), ExclusiveName(8),
               ExclusiveName(5000), "host-11111111-1111-4111-8111-111111111111-lock-0000000005",
               "host-11111111-1111-4111-8111-111111111111-lock-0000000007");
  QueueAhead ahead =
      AheadOfLast({ExclusiveName(3), ExclusiveName(5), ExclusiveName(7), ExclusiveName(9)});
  ahead.Take(RecordOf(released));
  CHECK_FALSE(ahead.IsSettledByDeletion());
  CHECK_FALSE(ahead.IsNextInLine());
}

TEST_CASE(
    "Once the writer ahead of some readers has released the lock, the writer after them is next") {
  QueueAhead ahead = AheadOfLast({WriterName(0), ReaderName(1), ReaderName(2), WriterName(3)});
  ahead.Take(RecordOf(WriterName(0)));
  CHECK(ahead.IsNextInLine());
  CHECK_FALSE(ahead.IsSettledByDeletion());  // another reader may hold
}

TEST_CASE("Readers before the predecessor hold it up, whatever was released before them") {
  QueueAhead ahead = AheadOfLast({WriterName(0), ReaderName(1), WriterName(2), WriterName(3)});
  ahead.Take(RecordOf(WriterName(0)));
  CHECK_FALSE(ahead.IsSettledByDeletion());
  CHECK_FALSE(ahead.IsNextInLine());
}

TEST_CASE("Generated queues: what is known of the contenders ahead is true") {
  std::mt19937_64 random(Catch::rngSeed());
  CAPTURE(Catch::rngSeed());
  std::size_t settled = 0;
  std::size_t next = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    Names queue;
    for (std::size_t number = 0; number < 2 + random() % 5; ++number) {
      queue.push_back(random() % 2 == 0 ? ReaderName(number) : WriterName(number));
    }
    const std::string own = queue.back();
    const Decision decision = Decide(queue, own);
    const auto* const wait = std::get_if<WaitFor>(&decision);
    if (wait == nullptr) continue;
    QueueAhead ahead(queue, own, wait->predecessor);
    std::optional<ReleaseRecord> record;
    while (queue.size() > 1) {
      const Contenders contenders(queue);
      const Rank rank = RankOf(contenders, own);
      if (ahead.IsSettledByDeletion()) {
        ++settled;
        REQUIRE(contenders.First()->number >= ViewContenderName(wait->predecessor)->number);
      }
      if (ahead.IsNextInLine()) {
        ++next;
        REQUIRE(rank.waiting == 0);
      }
      // A contender ahead of the last one leaves: a holder with or without a record, a waiter
      // without one.
      const std::size_t leaving = random() % (queue.size() - 1);
      const bool holds = std::holds_alternative<MayHold>(Decide(contenders, queue[leaving]));
      if (holds && random() % 2 == 0) record = RecordOf(queue[leaving]);
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(leaving));
      if (record && random() % 2 == 0) ahead.Take(*record);
    }
  }
  CHECK(settled > 100);
  CHECK(next > 100);
}

}  // namespace zklock::protocol
