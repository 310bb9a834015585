#include "protocol/queue.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace zklock::protocol {
namespace {

/// Returns whether a later contender must wait until an earlier one is gone. A contender watches
/// only the nearest one that it must wait for: while that one exists, the others do not matter, and
/// a release wakes only one waiter (no herd).
bool Blocks(bool earlier_reads, bool later_reads) { return !earlier_reads || !later_reads; }

bool HasKazooMark(const ContenderNameView& name) {
  return name.mark == Mark::kKazooLock || name.mark == Mark::kKazooRead;
}

using Why = IncompatibleContender::Kind;

/// Returns why `other` cannot see our contender with this `mode` and Curator's names; none if it
/// can. Tested with these programs: Curator's mutex orders children by the text after `lock-`, its
/// read/write lock ignores that mark, and the C recipe orders by the text after the last dash.
std::optional<Why> CannotSeeCuratorNames(const ContenderNameView& other, Mode mode) {
  if (HasKazooMark(other)) {
    return other.program() == Program::kZklock ? Why::kZklockKazoo : Why::kKazoo;
  }
  if (mode != Mode::kExclusive && other.mark == Mark::kCRecipe) return Why::kCRecipe;
  if (!other.is_curators()) return std::nullopt;
  if (mode != Mode::kExclusive && other.mark == Mark::kLock) return Why::kCuratorMutex;
  if (mode == Mode::kExclusive && other.mark != Mark::kLock) return Why::kCuratorReadWrite;
  return std::nullopt;
}

/// Returns why `other` cannot see our contender with kazoo's names; none if it can. Kazoo's own
/// contenders can. Kazoo's Lock, unlike its WriteLock, does not see readers, but the two use the
/// same names.
std::optional<Why> CannotSeeKazooNames(const ContenderNameView& other) {
  if (HasKazooMark(other)) return std::nullopt;
  if (other.program() == Program::kZklock) return Why::kZklockCurator;
  if (!other.is_curators() && other.mark != Mark::kCRecipe) return std::nullopt;
  return Why::kCuratorNames;
}

/// Returns why `other` cannot see the single znode of Dialect::kSimple; no queued contender can.
std::optional<Why> CannotSeeSimple(const ContenderNameView& other) {
  if (other.mark == Mark::kNone) return std::nullopt;  // it may be any znode
  return Why::kQueue;
}

std::optional<Why> WhyIncompatible(const ContenderNameView& other, Mode mode, Dialect dialect) {
  switch (dialect) {
    case Dialect::kCurator:
      return CannotSeeCuratorNames(other, mode);
    case Dialect::kKazoo:
      return CannotSeeKazooNames(other);
    case Dialect::kSimple:
      return CannotSeeSimple(other);
  }
  return std::nullopt;
}

/// Returns the first contender in queue order that `matches` accepts; null if there is none. One
/// pass, no sorting.
template <typename Predicate>
const ContenderNameView* FirstOf(const Contenders& contenders, Predicate matches) {
  const ContenderNameView* first = nullptr;
  for (const ContenderNameView& one : contenders) {
    if ((first == nullptr || IsBefore(one, *first)) && matches(one)) first = &one;
  }
  return first;
}

/// Distinguishes the contenders in a list that hold the lock from those that wait.
class Waiters {
 public:
  explicit Waiters(const Contenders& contenders)
      : blocks_readers_(FirstConflict(contenders, Mode::kRead)),
        blocks_others_(FirstConflict(contenders, Mode::kExclusive)) {}

  /// Returns whether `one`, which is in the list, waits.
  [[nodiscard]] bool Has(const ContenderNameView& one) const {
    const ContenderNameView* const blocker = one.reads() ? blocks_readers_ : blocks_others_;
    return blocker != nullptr && IsBefore(*blocker, one);
  }

 private:
  const ContenderNameView* blocks_readers_;  // the first contender that blocks readers; null if
                                             // none
  const ContenderNameView* blocks_others_;
};

/// Returns whether the name consists of 32 hex digits, like the UUIDs that name the children of
/// kazoo's Semaphore. The semaphore's waiters queue elsewhere, below the LOCK's path with
/// `-__lock__` appended.
bool IsKazooPermit(std::string_view child) {
  return child.size() == 32 &&
         child.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

bool IsBefore(const ContenderNameView& a, const ContenderNameView& b) {
  return std::tie(a.number, a.full) < std::tie(b.number, b.full);
}

const ContenderNameView* Contenders::Find(std::string_view name) const {
  const auto found =
      std::find_if(begin(), end(), [&](const ContenderNameView& one) { return one.full == name; });
  return found == end() ? nullptr : &*found;
}

const ContenderNameView* Contenders::First() const {
  return FirstOf(*this, [](const ContenderNameView&) { return true; });
}

Decision Decide(const Contenders& contenders, std::string_view own_name) {
  const ContenderNameView* const own = contenders.Find(own_name);
  if (own == nullptr) return OwnMissing{};
  if (own->number < 0 || own->number > kLastUsableNumber) return NumbersUsedUp{};

  const ContenderNameView* predecessor = nullptr;
  for (const ContenderNameView& other : contenders) {
    if (!IsBefore(other, *own) || !Blocks(other.reads(), own->reads())) continue;
    if (predecessor == nullptr || IsBefore(*predecessor, other)) predecessor = &other;
  }
  if (predecessor == nullptr) return MayHold{};
  return WaitFor{std::string(predecessor->full)};
}

Contenders RunsOf(const Contenders& permits) {
  std::map<std::string_view, const ContenderNameView*> firsts;
  for (const ContenderNameView& one : permits) {
    const auto first = firsts.try_emplace(one.run(), &one).first;
    if (IsBefore(one, *first->second)) first->second = &one;
  }
  std::vector<std::string_view> names;
  for (const ContenderNameView& one : permits) {
    if (firsts.at(one.run()) == &one) names.push_back(one.full);
  }
  return names;
}

std::vector<std::string> PermitsOfRun(const Contenders& permits, std::string_view one) {
  const auto own = ViewContenderName(one);
  std::vector<ContenderNameView> found;
  for (const ContenderNameView& other : permits) {
    if (own && other.run() == own->run()) found.push_back(other);
  }
  std::sort(found.begin(), found.end(), IsBefore);
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const ContenderNameView& other : found) names.emplace_back(other.full);
  return names;
}

Decision DecidePermit(const Contenders& permits, std::string_view own_name, std::size_t limit) {
  const ContenderNameView* const own = permits.Find(own_name);
  if (own == nullptr) return OwnMissing{};
  if (own->number < 0 || own->number > kLastUsableNumber) return NumbersUsedUp{};
  if (permits.size() <= limit) return MayHold{};
  const ContenderNameView* first = FirstOf(
      permits, [run = own->run()](const ContenderNameView& other) { return other.run() != run; });
  if (first == nullptr) {  // the others are from a create whose reply was lost
    first = FirstOf(permits, [own](const ContenderNameView& other) { return &other != own; });
  }
  return WaitFor{std::string(first->full)};
}

std::vector<ContenderName> Queue(const Contenders& contenders) {
  std::vector<ContenderNameView> sorted(contenders.begin(), contenders.end());
  std::sort(sorted.begin(), sorted.end(), IsBefore);
  std::vector<ContenderName> queue;
  queue.reserve(sorted.size());
  for (const ContenderNameView& one : sorted) queue.push_back(one.ToName());
  return queue;
}

std::vector<ContenderName> HoldersIn(const Children& children) {
  const Contenders contenders(children);
  const Waiters waiters(contenders);
  std::vector<ContenderNameView> holding;
  for (const ContenderNameView& one : contenders) {
    if (!waiters.Has(one)) holding.push_back(one);
  }
  std::sort(holding.begin(), holding.end(), IsBefore);
  std::vector<ContenderName> holders;
  if (children.Has(kSimpleName)) holders.push_back({.full = std::string(kSimpleName)});
  for (const ContenderNameView& one : holding) holders.push_back(one.ToName());
  return holders;
}

std::size_t CountHolders(const Contenders& contenders) {
  const Waiters waiters(contenders);
  return static_cast<std::size_t>(
      std::count_if(contenders.begin(), contenders.end(),
                    [&](const ContenderNameView& one) { return !waiters.Has(one); }));
}

const ContenderNameView* FirstConflict(const Contenders& contenders, Mode mode) {
  return FirstOf(contenders, [mode](const ContenderNameView& one) {
    return Blocks(one.reads(), mode == Mode::kRead);
  });
}

Rank RankOf(const Contenders& contenders, std::string_view own_name) {
  const ContenderNameView* const own = contenders.Find(own_name);
  if (own == nullptr && !own_name.empty()) return {};
  const Waiters waiters(contenders);
  Rank rank;
  for (const ContenderNameView& one : contenders) {
    if (own != nullptr && !IsBefore(one, *own)) continue;
    ++rank.ahead;
    if (!waiters.Has(one)) continue;
    ++rank.waiting;
    if (one.supersedes()) ++rank.superseding;
  }
  return rank;
}

std::vector<std::string> SupersedingUpTo(const Contenders& contenders, std::string_view own_name) {
  const auto own = ViewContenderName(own_name);
  std::vector<std::string> older;
  for (const ContenderNameView& other : contenders) {
    if (own && !IsBefore(*own, other) && other.supersedes()) older.emplace_back(other.before_mark);
  }
  return older;
}

bool IsSuperseded(const Contenders& contenders, const std::vector<std::string>& older) {
  return std::any_of(contenders.begin(), contenders.end(), [&](const ContenderNameView& other) {
    return other.supersedes() &&
           std::find(older.begin(), older.end(), other.before_mark) == older.end();
  });
}

std::optional<IncompatibleContender> FindIncompatible(const Contenders& contenders,
                                                      std::string_view own_name, Mode mode,
                                                      Dialect dialect) {
  const ContenderNameView* const first = FirstOf(contenders, [&](const ContenderNameView& other) {
    return other.full != own_name && WhyIncompatible(other, mode, dialect);
  });
  if (first == nullptr) return std::nullopt;
  return IncompatibleContender{std::string(first->full), *WhyIncompatible(*first, mode, dialect)};
}

std::optional<IncompatibleContender> FindIncompatible(const Contenders& contenders) {
  std::set<std::pair<Mode, Dialect>> ours;
  for (const ContenderNameView& one : contenders) {
    // Permits do not exclude each other.
    const bool excludes = one.mark != Mark::kNone && one.mark != Mark::kPermit;
    if (!excludes || one.program() != Program::kZklock) continue;
    const Dialect dialect = HasKazooMark(one) ? Dialect::kKazoo : Dialect::kCurator;
    ours.emplace(one.ToName().mode(), dialect);
  }
  for (const auto& [mode, dialect] : ours) {
    if (auto found = FindIncompatible(contenders, "", mode, dialect)) return found;
  }
  return std::nullopt;
}

std::vector<IncompatibleContender> FindUnnumbered(const Children& children, Dialect dialect) {
  std::vector<IncompatibleContender> found;
  for (const std::string_view child : children) {
    if (child == kSimpleName && dialect != Dialect::kSimple) {
      found.push_back({std::string(child), Why::kOneZnode});
    } else if (IsKazooPermit(child)) {
      found.push_back({std::string(child), Why::kKazooPermit});
    }
  }
  return found;
}

std::optional<std::size_t> Predecessors::Next(const ContenderName& contender) {
  std::optional<std::size_t> predecessor;
  for (const bool reads : {false, true}) {
    if (Blocks(reads, contender.reads())) predecessor = std::max(predecessor, last_[reads]);
  }
  last_[contender.reads()] = count_++;
  return predecessor;
}

}  // namespace zklock::protocol
