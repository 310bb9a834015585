#include "protocol/queue.h"
#include "support/contender_names.h"
#include "support/random.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace zklock::protocol {
namespace {

using test::kUuid;
using test::Numbered;

using Names = std::vector<std::string>;

std::string Exclusive(std::int64_t number) { return Numbered("a-" + kUuid + "-lock-", number); }
std::string Write(std::int64_t number) { return Numbered("b-" + kUuid + "-__WRIT__", number); }
std::string Read(std::int64_t number) { return Numbered("c-" + kUuid + "-__READ__", number); }

std::string Permit(std::int64_t number) { return Numbered("d-" + kUuid + "-lease-", number); }
/// Returns the name of a contender that supersedes.
std::string Newest(const std::string& host, std::int64_t number) {
  return Numbered(host + "-" + kUuid + "-newest-lock-", number);
}

const std::string kCuratorMutex = Numbered(test::kCuratorLock, 4);
const std::string kCuratorWriter = Numbered(test::kCuratorWriter, 5);
const std::string kCuratorReader = Numbered(test::kCuratorReader, 6);
const std::string kKazooLock = Numbered(test::kKazooLock, 7);
const std::string kKazooReader = Numbered(test::kKazooReader, 8);

std::string Show(const Decision& decision) {
  struct {
    std::string operator()(const MayHold&) const { return "hold"; }
    std::string operator()(const WaitFor& wait) const { return "wait for " + wait.predecessor; }
    std::string operator()(const OwnMissing&) const { return "own missing"; }
    std::string operator()(const NumbersUsedUp&) const { return "numbers used up"; }
  } words;
  return std::visit(words, decision);
}

Names NamesOf(const std::vector<ContenderName>& contenders) {
  Names names;
  for (const ContenderName& contender : contenders) names.push_back(contender.full);
  return names;
}

std::string Decided(const Names& children, const std::string& own) {
  return Show(Decide(children, own));
}

/// A contender in a generated queue. Whether it is a reader is known from how it was generated, not
/// from the code under test.
struct Simulated {
  std::string name;
  std::int64_t number;
  bool reads;
};

bool Conflict(const Simulated& a, const Simulated& b) { return !a.reads || !b.reads; }

struct Style {
  std::string prefix;
  bool reads;
};
// The first letters differ, so that an order by name would be noticed.
const Style kStyles[] = {
    {"zeta-" + kUuid + "-lock-", false},
    {"alpha-" + kUuid + "-__WRIT__", false},
    {"host-" + kUuid + "-__READ__", true},
    {"beta-1f8fad5b-d9cb-469f-a165-70867728950e-__READ__", true},
    {test::kCuratorLock, false},
    {test::kCuratorReader, true},
    {test::kKazooLock, false},
    {test::kKazooReader, true},
    {"x-0100000000abcdef-", false},
    {"n_", false},
};

/// Returns up to 12 contenders with ascending numbers and gaps, in queue order.
std::vector<Simulated> Generate(std::mt19937_64& random) {
  std::vector<Simulated> queue(random() % 12 + 1);
  const std::int64_t starts[] = {0, 999999990, 2147479900};
  std::int64_t number = starts[random() % 3];
  for (Simulated& contender : queue) {
    number += static_cast<std::int64_t>(random() % 5 + 1);
    const Style& style = kStyles[random() % std::size(kStyles)];
    contender = {Numbered(style.prefix, number), number, style.reads};
  }
  return queue;
}

/// Returns the names as a server might list them: in any order, with children that are not
/// contenders.
Names ChildrenOf(const std::vector<Simulated>& queue, std::mt19937_64& random) {
  Names children;
  for (const char* other : {"0", "zzz", "lock", "last-run", "build-3024010203"}) {
    if (random() % 3 == 0) children.push_back(other);
  }
  for (const Simulated& contender : queue) children.push_back(contender.name);
  std::shuffle(children.begin(), children.end(), random);
  return children;
}

std::vector<Simulated> Holders(const std::vector<Simulated>& queue, const Names& children) {
  std::vector<Simulated> holders;
  for (const Simulated& contender : queue) {
    if (Decided(children, contender.name) == "hold") holders.push_back(contender);
  }
  return holders;
}

}  // namespace

TEST_CASE("The only contender holds the lock") {
  CHECK(Decided({Exclusive(0)}, Exclusive(0)) == "hold");
  CHECK(Decided({Write(3)}, Write(3)) == "hold");
  CHECK(Decided({Read(3)}, Read(3)) == "hold");
}

TEST_CASE("A contender that is missing from the list is never the first") {
  CHECK(Decided({}, Exclusive(0)) == "own missing");
  CHECK(Decided({Exclusive(5)}, Exclusive(0)) == "own missing");
  CHECK(Decided({Exclusive(5)}, "") == "own missing");
  CHECK(Decided({"", "zzz"}, "zzz") == "own missing");
}

TEST_CASE("An exclusive contender or a writer waits for the nearest earlier one of any mode") {
  CHECK(Decided({Exclusive(1), Read(2), Exclusive(3)}, Exclusive(3)) == "wait for " + Read(2));
  CHECK(Decided({Exclusive(1), Read(2), Write(3)}, Write(3)) == "wait for " + Read(2));
  CHECK(Decided({Read(1), Write(2), Write(3)}, Write(3)) == "wait for " + Write(2));
}

TEST_CASE("A reader waits for the nearest earlier contender that is not a reader") {
  CHECK(Decided({Write(1), Read(2), Read(3)}, Read(3)) == "wait for " + Write(1));
  CHECK(Decided({Write(1), Exclusive(2), Read(3), Read(4)}, Read(4)) == "wait for " + Exclusive(2));
  CHECK(Decided({Write(1), "n_0000000002", Read(3)}, Read(3)) == "wait for n_0000000002");
}

TEST_CASE("Readers hold together, including those of other programs") {
  const Names children{Read(1), kCuratorReader, Read(7), kKazooReader, Read(9)};
  CHECK(Decided(children, Read(1)) == "hold");
  CHECK(Decided(children, Read(7)) == "hold");
  CHECK(Decided(children, Read(9)) == "hold");
}

TEST_CASE("A later contender never counts") {
  // kazoo 2.8 makes a reader wait for a later writer, which in turn waits for the reader.
  CHECK(Decided({Read(1), Write(2)}, Read(1)) == "hold");
  CHECK(Decided({Exclusive(1), Exclusive(2)}, Exclusive(1)) == "hold");
}

TEST_CASE("A reader does not overtake a waiting writer") {
  CHECK(Decided({Read(1), Write(2), Read(3)}, Read(3)) == "wait for " + Write(2));
}

TEST_CASE("The order is by number, not by name or by position in the list") {
  CHECK(Decided({"zzz-lock-0000000001", Exclusive(2)}, Exclusive(2)) ==
        "wait for zzz-lock-0000000001");
  CHECK(Decided({Exclusive(9), Exclusive(10)}, Exclusive(9)) == "hold");
  CHECK(Decided({Exclusive(10), Exclusive(9), Exclusive(3), Exclusive(7)}, Exclusive(10)) ==
        "wait for " + Exclusive(9));
  CHECK(Decided({Exclusive(999999999), Exclusive(1000000000)}, Exclusive(1000000000)) ==
        "wait for " + Exclusive(999999999));
}

TEST_CASE("Contenders with equal numbers are ordered by name") {
  // Curator's downgrade creates a reader with the number of its writer.
  const Names children{kCuratorWriter, Numbered(test::kCuratorReader, 5), Read(6)};
  CHECK(Decided(children, Read(6)) == "wait for " + kCuratorWriter);
  CHECK(Decided({"a-lock-0000000001", "b-lock-0000000001"}, "a-lock-0000000001") == "hold");
  CHECK(Decided({"a-lock-0000000001", "b-lock-0000000001"}, "b-lock-0000000001") ==
        "wait for a-lock-0000000001");
}

TEST_CASE("Children that are not contenders are ignored") {
  CHECK(Decided({"0", "lock", "last-run", Exclusive(5)}, Exclusive(5)) == "hold");
}

TEST_CASE("A contender waits for an unknown name with a server's number") {
  CHECK(Decided({"build-2024010203", Exclusive(2024010204)}, Exclusive(2024010204)) ==
        "wait for build-2024010203");
  CHECK(Decided({"build-2024010203", Exclusive(5)}, Exclusive(5)) == "hold");
}

TEST_CASE("Numbers near the server's overflow are refused") {
  CHECK(Decided({Exclusive(2147479999)}, Exclusive(2147479999)) == "hold");
  CHECK(Decided({Exclusive(2147480000)}, Exclusive(2147480000)) == "numbers used up");
  CHECK(Decided({Exclusive(2147483647)}, Exclusive(2147483647)) == "numbers used up");
  CHECK(Decided({Exclusive(-1)}, Exclusive(-1)) == "numbers used up");
  CHECK(Decided({Read(-2147483648LL)}, Read(-2147483648LL)) == "numbers used up");
  CHECK(Decided({Exclusive(1), Exclusive(2147480000)}, Exclusive(2147480000)) == "numbers used up");
}

TEST_CASE("A negative number of another contender is lower than a positive one") {
  CHECK(Decided({Exclusive(-5), Exclusive(5)}, Exclusive(5)) == "wait for " + Exclusive(-5));
}

TEST_CASE("The queue lists the contenders in order") {
  CHECK(NamesOf(Queue({Exclusive(10), "zzz", Read(-3), "lock", Write(9), kKazooLock})) ==
        Names{Read(-3), kKazooLock, Write(9), Exclusive(10)});
  CHECK(Queue({}).empty());
}

TEST_CASE("The holders are the first contender or the first readers, in order") {
  CHECK(HoldersIn({}).empty());
  CHECK(HoldersIn({"zzz", "last-run"}).empty());
  CHECK(NamesOf(HoldersIn({Read(7), Write(5), Exclusive(6)})) == Names{Write(5)});
  CHECK(NamesOf(HoldersIn({Write(6), Read(5), Read(7), Exclusive(9), Read(4), kKazooLock})) ==
        Names{Read(4), Read(5)});
  CHECK(NamesOf(HoldersIn({Read(2), kKazooReader, Read(1)})) ==
        Names{Read(1), Read(2), kKazooReader});
}

TEST_CASE("The simple dialect's only znode holds the lock ahead of a queue") {
  CHECK(NamesOf(HoldersIn({"lock"})) == Names{"lock"});
  CHECK(NamesOf(HoldersIn({Exclusive(3), "lock"})) == Names{"lock", Exclusive(3)});
}

TEST_CASE("A lock is busy for a reader only if there is a contender of another mode") {
  CHECK(FirstConflict({}, Mode::kRead) == nullptr);
  CHECK(FirstConflict({Read(1), kKazooReader}, Mode::kRead) == nullptr);
  CHECK(FirstConflict({Read(1), Write(2)}, Mode::kRead) != nullptr);
  CHECK(FirstConflict({Exclusive(1)}, Mode::kRead) != nullptr);
  CHECK(FirstConflict({"n_0000000001"}, Mode::kRead) != nullptr);
}

TEST_CASE("A lock is busy for a writer if there is any contender") {
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite}) {
    CHECK(FirstConflict({}, mode) == nullptr);
    CHECK(FirstConflict({"0", "lock", "last-run"}, mode) == nullptr);
    CHECK(FirstConflict({Read(1)}, mode) != nullptr);
    CHECK(FirstConflict({Exclusive(1)}, mode) != nullptr);
  }
}

TEST_CASE("kazoo's contenders are incompatible with every mode") {
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    for (const std::string& child : {kKazooLock, kKazooReader}) {
      CHECK(FindIncompatible({child}, Exclusive(9), mode, Dialect::kCurator) ==
            IncompatibleContender{child, IncompatibleContender::Kind::kKazoo});
    }
  }
}

TEST_CASE("A single-znode lock and a kazoo permit are recognised by their names") {
  const std::string permit = "0123456789abcdef0123456789abcdef";
  const std::vector<std::string> children = {"lock",
                                             permit,
                                             "last-run",
                                             kCuratorMutex,
                                             "0123456789ABCDEF0123456789ABCDEF",
                                             "0123456789abcdef0123456789abcde"};
  const IncompatibleContender semaphore = {permit, IncompatibleContender::Kind::kKazooPermit};
  const IncompatibleContender one = {"lock", IncompatibleContender::Kind::kOneZnode};
  CHECK(FindUnnumbered(children, Dialect::kCurator) ==
        std::vector<IncompatibleContender>{one, semaphore});
  CHECK(FindUnnumbered(children, Dialect::kKazoo) ==
        std::vector<IncompatibleContender>{one, semaphore});
  CHECK(FindUnnumbered(children, Dialect::kSimple) ==
        std::vector<IncompatibleContender>{semaphore});
}

TEST_CASE("A Curator mutex is incompatible with readers and writers") {
  for (const Mode mode : {Mode::kWrite, Mode::kRead}) {
    CHECK(FindIncompatible({kCuratorMutex}, Read(9), mode, Dialect::kCurator) ==
          IncompatibleContender{kCuratorMutex, IncompatibleContender::Kind::kCuratorMutex});
  }
  CHECK_FALSE(FindIncompatible({kCuratorMutex}, Exclusive(9), Mode::kExclusive, Dialect::kCurator));
}

TEST_CASE("A Curator read/write lock is incompatible with exclusive contenders") {
  for (const std::string& child : {kCuratorWriter, kCuratorReader}) {
    CHECK(FindIncompatible({child}, Exclusive(9), Mode::kExclusive, Dialect::kCurator) ==
          IncompatibleContender{child, IncompatibleContender::Kind::kCuratorReadWrite});
    CHECK_FALSE(FindIncompatible({child}, Write(9), Mode::kWrite, Dialect::kCurator));
    CHECK_FALSE(FindIncompatible({child}, Read(9), Mode::kRead, Dialect::kCurator));
  }
}

TEST_CASE("The C recipe's contender is incompatible with readers and writers") {
  // The C recipe orders by the text after the last dash, and "__WRIT__0000000009" sorts after every
  // number.
  const std::string child = "x-0100000000abcdef-0000000004";
  for (const Mode mode : {Mode::kWrite, Mode::kRead}) {
    CHECK(FindIncompatible({child}, Read(9), mode, Dialect::kCurator) ==
          IncompatibleContender{child, IncompatibleContender::Kind::kCRecipe});
  }
  CHECK_FALSE(FindIncompatible({child}, Exclusive(9), Mode::kExclusive, Dialect::kCurator));
}

TEST_CASE("In kazoo's dialect, programs that ignore kazoo's names are incompatible") {
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    for (const std::string& child : {kCuratorMutex, kCuratorWriter, kCuratorReader,
                                     std::string("x-0100000000abcdef-0000000004")}) {
      CHECK(FindIncompatible({child}, "", mode, Dialect::kKazoo) ==
            IncompatibleContender{child, IncompatibleContender::Kind::kCuratorNames});
    }
    CHECK_FALSE(
        FindIncompatible({kKazooLock, kKazooReader, "n_0000000005"}, "", mode, Dialect::kKazoo));
  }
}

TEST_CASE("A zklock of another dialect is incompatible: its programs might not see this one") {
  const std::string kazoo =
      Numbered(MakeContenderPrefix("h", kUuid, Mode::kRead, Dialect::kKazoo), 3);
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    CHECK(FindIncompatible({kazoo}, "", mode, Dialect::kCurator) ==
          IncompatibleContender{kazoo, IncompatibleContender::Kind::kZklockKazoo});
    CHECK_FALSE(FindIncompatible({kazoo}, "", mode, Dialect::kKazoo));
    CHECK(FindIncompatible({Read(1)}, "", mode, Dialect::kKazoo) ==
          IncompatibleContender{Read(1), IncompatibleContender::Kind::kZklockCurator});
  }
}

TEST_CASE("Our own names and unknown names are compatible") {
  const Names children{Exclusive(1), Write(2), Read(3),          "n_0000000005",
                       "lock",       "zzz",    "lock-0000000006"};
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    CHECK_FALSE(FindIncompatible(children, Exclusive(1), mode, Dialect::kCurator));
  }
}

TEST_CASE("A single-znode lock is incompatible with every queue, but not with unknown names") {
  for (const std::string& other :
       {Exclusive(1), Write(2), Read(3), kCuratorMutex, kCuratorWriter, kCuratorReader, kKazooLock,
        kKazooReader, std::string("x-0100000000abcdef-0000000009"), Permit(10),
        Numbered("h-" + kUuid + "-newest-lock-", 11)}) {
    CAPTURE(other);
    const auto incompatible =
        FindIncompatible({"lock", "zzz", other}, "lock", Mode::kExclusive, Dialect::kSimple);
    REQUIRE(incompatible);
    CHECK(incompatible->child == other);
    CHECK(incompatible->kind == IncompatibleContender::Kind::kQueue);
  }
  CHECK_FALSE(FindIncompatible({"lock", "zzz", "0", "n_0000000005", "build-2024010203"}, "lock",
                               Mode::kExclusive, Dialect::kSimple));
  CHECK_FALSE(FindIncompatible({"lock"}, "", Mode::kExclusive, Dialect::kSimple));
}

TEST_CASE("A rank counts the contenders ahead, and those of them that wait") {
  const auto rank = [](const Names& children, const std::string& own) {
    const Rank its = RankOf(children, own);
    return std::pair(its.ahead, its.waiting);
  };
  using Pair = std::pair<std::size_t, std::size_t>;
  CHECK(rank({Exclusive(1)}, Exclusive(1)) == Pair(0, 0));
  CHECK(rank({Exclusive(3), "zzz", Exclusive(2), Exclusive(1)}, Exclusive(3)) == Pair(2, 1));
  // Readers hold together; after a writer they wait.
  CHECK(rank({Read(1), Read(2), Read(3)}, Read(3)) == Pair(2, 0));
  CHECK(rank({Read(1), Write(2), Read(3), Read(4)}, Read(4)) == Pair(3, 2));
  // Later contenders do not count.
  CHECK(rank({Exclusive(1), Exclusive(2), Exclusive(3)}, Exclusive(2)) == Pair(1, 0));
}

TEST_CASE("Only a later contender that supersedes ends the wait of those before it") {
  const auto superseded = [](const Names& children, const std::string& own) {
    return IsSuperseded(children, SupersedingUpTo(children, own));
  };
  CHECK(superseded({Newest("a", 1), Newest("b", 2)}, Newest("a", 1)));
  CHECK_FALSE(superseded({Newest("a", 1), Newest("b", 2)}, Newest("b", 2)));
  CHECK_FALSE(superseded({Newest("a", 1)}, Newest("a", 1)));
  CHECK_FALSE(superseded({}, Newest("a", 1)));
  CHECK_FALSE(superseded({Newest("a", 1), Exclusive(2), Read(3), Permit(4)}, Newest("a", 1)));
  // "Later" refers to the number, not to the name or the position in the list.
  CHECK(superseded({Newest("a", 10), Newest("h", 9)}, Newest("h", 9)));
  CHECK_FALSE(superseded({Newest("z", 8), Newest("h", 9)}, Newest("h", 9)));
  // A create that was repeated has the same name, but for the number.
  CHECK_FALSE(superseded({Newest("a", 1), Newest("a", 2)}, Newest("a", 1)));
}

TEST_CASE("Whether a run is superseded depends on its first list, not on its present number") {
  const Names first = {Newest("a", 1), Exclusive(2), Newest("b", 3)};
  const auto older = SupersedingUpTo(first, Newest("b", 3));
  CHECK(older.size() == 2);
  CHECK_FALSE(IsSuperseded({Newest("a", 1), Exclusive(5)}, older));
  CHECK(IsSuperseded({Newest("a", 1), Newest("c", 4), Exclusive(5)}, older));
  CHECK(IsSuperseded({Newest("c", 0), Exclusive(2)}, older));  // in a LOCK that was created again
}

TEST_CASE("A permit is held while there are no more permits than the limit") {
  const auto decided = [](const Names& permits, const std::string& own, std::size_t limit) {
    return Show(DecidePermit(permits, own, limit));
  };
  CHECK(decided({Permit(1)}, Permit(1), 1) == "hold");
  CHECK(decided({Permit(1), Permit(2)}, Permit(2), 2) == "hold");
  CHECK(decided({Permit(1), Permit(2)}, Permit(2), 1) == "wait for " + Permit(1));
  CHECK(decided({Permit(3), Permit(2), Permit(1)}, Permit(3), 2) == "wait for " + Permit(1));
  // By Curator's rule, the number of permits is what counts, not their sequence numbers.
  CHECK(decided({Permit(1), Permit(2)}, Permit(1), 1) == "wait for " + Permit(2));
  // Other children do not count; permits of other programs do.
  CHECK(decided({Permit(1), "zzz", "lock"}, Permit(1), 1) == "hold");
  const std::string curators = Numbered(test::kCuratorPermit, 1);
  CHECK(decided({Permit(2), curators}, Permit(2), 1) == "wait for " + curators);
  CHECK(decided({Permit(1)}, Permit(2), 5) == "own missing");
  CHECK(decided({}, Permit(2), 5) == "own missing");
  CHECK(decided({Permit(2147480000)}, Permit(2147480000), 5) == "numbers used up");
}

TEST_CASE("The first incompatible contender in the queue is named, never our own") {
  const auto incompatible = FindIncompatible({kKazooReader, Exclusive(1), kKazooLock}, Exclusive(1),
                                             Mode::kExclusive, Dialect::kCurator);
  REQUIRE(incompatible);
  CHECK(incompatible->child == kKazooLock);
  CHECK_FALSE(FindIncompatible({kKazooLock}, kKazooLock, Mode::kExclusive, Dialect::kCurator));
}

TEST_CASE("The predecessors of a whole queue are found") {
  using Index = std::optional<std::size_t>;
  std::vector<Index> waits;
  Predecessors predecessors;
  for (const auto& one : Queue({Read(1), Read(2), Write(3), Read(4), Read(5), Exclusive(6)})) {
    waits.push_back(predecessors.Next(one));
  }
  CHECK(waits == std::vector<Index>{Index{}, Index{}, Index{1}, Index{2}, Index{2}, Index{4}});
}

TEST_CASE(
    "Generated queues: there is a holder, no two holders conflict, all wait for lower numbers") {
  test::ForRandomRounds(2000, [](std::mt19937_64& random) {
    const auto queue = Generate(random);
    const Names children = ChildrenOf(queue, random);
    const auto holders = Holders(queue, children);
    REQUIRE_FALSE(holders.empty());
    for (const Simulated& a : holders) {
      for (const Simulated& b : holders) {
        if (a.name != b.name && Conflict(a, b)) FAIL(a.name + " and " + b.name + " both hold");
      }
    }
    Names names;
    for (const Simulated& holder : holders) names.push_back(holder.name);
    Names listed = NamesOf(HoldersIn(children));
    std::erase(listed, "lock");
    CHECK(listed == names);
    for (const Simulated& contender : queue) {
      const Decision decision = Decide(children, contender.name);
      const auto* wait = std::get_if<WaitFor>(&decision);
      if (wait == nullptr) continue;
      const auto predecessor =
          std::find_if(queue.begin(), queue.end(),
                       [&](const Simulated& other) { return other.name == wait->predecessor; });
      REQUIRE(predecessor != queue.end());
      // The predecessor's number is strictly lower, so there is no cycle.
      CHECK(predecessor->number < contender.number);
      CHECK(Conflict(*predecessor, contender));
    }
  });
}

TEST_CASE("Generated queues: the predecessors are those that each contender determines") {
  test::ForRandomRounds(2000, [](std::mt19937_64& random) {
    const Names children = ChildrenOf(Generate(random), random);
    const auto queue = Queue(children);
    Predecessors predecessors;
    for (const ContenderName& contender : queue) {
      const auto predecessor = predecessors.Next(contender);
      const std::string shown = predecessor ? "wait for " + queue[*predecessor].full : "hold";
      CHECK(shown == Decided(children, contender.full));
    }
  });
}

TEST_CASE("Generated queues: busy means that a new contender at the tail would wait") {
  test::ForRandomRounds(2000, [](std::mt19937_64& random) {
    auto queue = Generate(random);
    if (random() % 2 == 0) {
      queue.erase(std::remove_if(queue.begin(), queue.end(),
                                 [](const Simulated& contender) { return !contender.reads; }),
                  queue.end());
    }
    Names children = ChildrenOf(queue, random);
    for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
      Names with_us = children;
      with_us.push_back(
          Numbered(MakeContenderPrefix("us", kUuid, mode, Dialect::kCurator), 2147479999));
      CHECK((FirstConflict(children, mode) != nullptr) ==
            (Decided(with_us, with_us.back()) != "hold"));
    }
  });
}

TEST_CASE("Generated queues: all drain, each contender holds once, conflicting ones in order") {
  test::ForRandomRounds(500, [](std::mt19937_64& random) {
    auto queue = Generate(random);
    std::set<std::string> has_held;
    const std::size_t everyone = queue.size();
    while (!queue.empty()) {
      const auto holders = Holders(queue, ChildrenOf(queue, random));
      REQUIRE_FALSE(holders.empty());
      for (const Simulated& holder : holders) {
        has_held.insert(holder.name);
        for (const Simulated& other : queue) {
          const bool passed = other.number < holder.number && Conflict(other, holder);
          if (passed) FAIL(holder.name + " passed " + other.name);
        }
      }
      const std::string done = holders[random() % holders.size()].name;
      queue.erase(std::find_if(queue.begin(), queue.end(),
                               [&](const Simulated& contender) { return contender.name == done; }));
    }
    CHECK(has_held.size() == everyone);
  });
}

TEST_CASE("Generated queues: a holder remains one while others join and leave") {
  test::ForRandomRounds(2000, [](std::mt19937_64& random) {
    auto queue = Generate(random);
    const auto holders = Holders(queue, ChildrenOf(queue, random));
    const Simulated holder = holders[random() % holders.size()];
    for (auto it = queue.begin(); it != queue.end();) {
      it = it->name != holder.name && random() % 2 == 0 ? queue.erase(it) : it + 1;
    }
    const std::int64_t next = queue.back().number + 1;
    const Style& style = kStyles[random() % std::size(kStyles)];
    queue.push_back({Numbered(style.prefix, next), next, style.reads});
    CHECK(Decided(ChildrenOf(queue, random), holder.name) == "hold");
  });
}

}  // namespace zklock::protocol
