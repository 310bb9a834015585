#include "protocol/queue.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

namespace zklock::protocol {
namespace {

/// By number; by name where numbers are equal, which Curator's downgrade makes (5.5 and later).
bool Before(const ContenderName& a, const ContenderName& b) {
  return std::tie(a.number, a.full) < std::tie(b.number, b.full);
}

/// Whether `later` must wait until `earlier` has gone. The nearest such one is whom to watch: while
/// it is there the rest does not matter, and a release wakes only who watches it (no herd).
bool Blocks(const ContenderName& earlier, const ContenderName& later) {
  return !earlier.reads() || !later.reads();
}

bool HasKazooMark(const ContenderName& name) {
  return name.mark == Mark::kKazooLock || name.mark == Mark::kKazooRead;
}

using Kind = Stranger::Kind;

/// Whether `other` is blind to our contender of `mode` with Curator's names (measured, with the
/// programs themselves: Curator's mutex orders children by what follows `lock-`, its read/write
/// lock does not look for that at all, the C recipe orders by what follows the last dash).
std::optional<Kind> BlindToCuratorNames(const ContenderName& other, Mode mode) {
  if (other.program == Program::kZklock && HasKazooMark(other)) return Kind::kZklockKazoo;
  if (other.program == Program::kKazoo) return Kind::kKazoo;
  if (mode != Mode::kExclusive && other.program == Program::kCRecipe) return Kind::kCRecipe;
  if (other.program != Program::kCurator) return std::nullopt;
  if (mode != Mode::kExclusive && other.mark == Mark::kLock) return Kind::kCuratorMutex;
  if (mode == Mode::kExclusive && other.mark != Mark::kLock) return Kind::kCuratorReadWrite;
  return std::nullopt;
}

/// Whether `other` is blind to our contender with kazoo's names. Kazoo's own are not: that its
/// Lock, unlike its WriteLock, does not see readers cannot be told from a name.
std::optional<Kind> BlindToKazooNames(const ContenderName& other) {
  if (other.program == Program::kZklock && !HasKazooMark(other)) return Kind::kZklockCurator;
  if (other.program != Program::kCurator && other.program != Program::kCRecipe) return std::nullopt;
  return Kind::kCuratorNames;
}

/// Whether `other` is blind to the one znode of Dialect::kSimple: all that queue are.
std::optional<Kind> BlindToSimple(const ContenderName& other) {
  if (other.mark == Mark::kNone) return std::nullopt;  // a znode below, for all we know
  return Kind::kQueue;
}

std::optional<Kind> WhyBlind(const ContenderName& other, Mode mode, Dialect dialect) {
  switch (dialect) {
    case Dialect::kCurator:
      return BlindToCuratorNames(other, mode);
    case Dialect::kKazoo:
      return BlindToKazooNames(other);
    case Dialect::kSimple:
      return BlindToSimple(other);
  }
  return std::nullopt;
}

/// The whole of a UUID's hex digits, as kazoo's Semaphore names its children. Its waiters queue
/// elsewhere, at LOCK's path and `-__lock__`.
bool IsKazooPermit(std::string_view child) {
  return child.size() == 32 &&
         child.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Decision Decide(const std::vector<std::string>& children, std::string_view own_name) {
  if (std::find(children.begin(), children.end(), own_name) == children.end()) return OwnMissing{};
  const std::optional<ContenderName> own = ParseContenderName(own_name);
  if (!own) return OwnMissing{};
  if (own->number < 0 || own->number > kLastUsableNumber) return NumbersUsedUp{};

  std::optional<ContenderName> predecessor;
  for (const std::string& child : children) {
    std::optional<ContenderName> other = ParseContenderName(child);
    if (!other || !Before(*other, *own) || !Blocks(*other, *own)) continue;
    if (!predecessor || Before(*predecessor, *other)) predecessor = std::move(other);
  }
  if (!predecessor) return Hold{};
  return WaitFor{std::move(predecessor->full)};
}

Decision DecidePermit(const std::vector<std::string>& leases, std::string_view own_name,
                      std::size_t permits) {
  const std::vector<ContenderName> queue = Queue(leases);
  const auto own = std::find_if(queue.begin(), queue.end(),
                                [&](const ContenderName& lease) { return lease.full == own_name; });
  if (own == queue.end()) return OwnMissing{};
  if (own->number < 0 || own->number > kLastUsableNumber) return NumbersUsedUp{};
  if (queue.size() <= permits) return Hold{};
  return WaitFor{(own == queue.begin() ? own + 1 : queue.begin())->full};
}

std::vector<ContenderName> Queue(const std::vector<std::string>& children) {
  std::vector<ContenderName> queue;
  queue.reserve(children.size());
  for (const std::string& child : children) {
    if (auto contender = ParseContenderName(child)) queue.push_back(std::move(*contender));
  }
  std::sort(queue.begin(), queue.end(), Before);
  return queue;
}

std::vector<ContenderName> HoldersIn(const std::vector<std::string>& children) {
  std::vector<ContenderName> readers;
  std::optional<ContenderName> excludes;  // the first that does
  std::vector<ContenderName> holders;
  for (const std::string& child : children) {
    if (child == kSimpleName) holders.push_back({.full = child});
    auto contender = ParseContenderName(child);
    if (!contender || (excludes && Before(*excludes, *contender))) continue;
    if (contender->reads()) {
      readers.push_back(std::move(*contender));
    } else {
      excludes = std::move(contender);
    }
  }
  if (excludes) {
    std::erase_if(readers, [&](const auto& reader) { return Before(*excludes, reader); });
    if (readers.empty()) readers.push_back(std::move(*excludes));
  }
  std::sort(readers.begin(), readers.end(), Before);
  std::move(readers.begin(), readers.end(), std::back_inserter(holders));
  return holders;
}

bool IsBusy(const std::vector<std::string>& children, Mode mode) {
  return std::any_of(children.begin(), children.end(), [mode](const std::string& child) {
    const auto contender = ParseContenderName(child);
    return contender && (mode != Mode::kRead || !contender->reads());
  });
}

Rank RankOf(const std::vector<std::string>& children, std::string_view own_name) {
  const std::vector<ContenderName> queue = Queue(children);
  const auto waits_for = WaitsFor(queue);
  Rank rank;
  for (; rank.ahead < queue.size() && queue[rank.ahead].full != own_name; ++rank.ahead) {
    if (waits_for[rank.ahead]) ++rank.waiting;
  }
  return rank;
}

bool IsSuperseded(const std::vector<std::string>& children, std::string_view own_name) {
  const std::optional<ContenderName> own = ParseContenderName(own_name);
  return own && std::any_of(children.begin(), children.end(), [&](const std::string& child) {
           const auto other = ParseContenderName(child);
           return other && other->supersedes && Before(*own, *other);
         });
}

std::optional<Stranger> FindStranger(const std::vector<std::string>& children,
                                     std::string_view own_name, Mode mode, Dialect dialect) {
  for (ContenderName& other : Queue(children)) {
    if (other.full == own_name) continue;
    if (const auto kind = WhyBlind(other, mode, dialect)) {
      return Stranger{std::move(other.full), *kind};
    }
  }
  return std::nullopt;
}

std::vector<Stranger> FindUnnumbered(const std::vector<std::string>& children, Dialect dialect) {
  std::vector<Stranger> found;
  for (const std::string& child : children) {
    if (child == kSimpleName && dialect != Dialect::kSimple) {
      found.push_back({child, Kind::kOneZnode});
    } else if (IsKazooPermit(child)) {
      found.push_back({child, Kind::kKazooPermit});
    }
  }
  return found;
}

std::optional<std::size_t> Predecessors::Next(const ContenderName& contender) {
  const std::size_t index = count_++;
  if (contender.reads()) return last_that_excludes_;
  last_that_excludes_ = index;
  return index == 0 ? std::nullopt : std::optional<std::size_t>(index - 1);
}

std::vector<std::optional<std::size_t>> WaitsFor(const std::vector<ContenderName>& queue) {
  std::vector<std::optional<std::size_t>> waits_for;
  waits_for.reserve(queue.size());
  Predecessors predecessors;
  for (const ContenderName& contender : queue) waits_for.push_back(predecessors.Next(contender));
  return waits_for;
}

}  // namespace zklock::protocol
