#include "protocol/queue.h"

#include <algorithm>
#include <cstddef>
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

std::vector<ContenderName> Queue(const std::vector<std::string>& children) {
  std::vector<ContenderName> queue;
  queue.reserve(children.size());
  for (const std::string& child : children) {
    if (auto contender = ParseContenderName(child)) queue.push_back(std::move(*contender));
  }
  std::sort(queue.begin(), queue.end(), Before);
  return queue;
}

bool IsBusy(const std::vector<std::string>& children, Mode mode) {
  return std::any_of(children.begin(), children.end(), [mode](const std::string& child) {
    const auto contender = ParseContenderName(child);
    return contender && (mode != Mode::kRead || !contender->reads());
  });
}

std::optional<Stranger> FindStranger(const std::vector<std::string>& children,
                                     std::string_view own_name, Mode mode) {
  for (ContenderName& other : Queue(children)) {
    if (other.full == own_name) continue;
    if (other.program == Program::kKazoo) {
      return Stranger{std::move(other.full), "a kazoo program's contender, which does not see ours",
                      "use another LOCK"};
    }
    if (other.program != Program::kCurator) continue;
    if (other.mark == Mark::kLock && mode != Mode::kExclusive) {
      return Stranger{std::move(other.full),
                      "a contender of a Curator mutex, which does not see readers and writers",
                      "use `zklock exclusive`, or another LOCK"};
    }
    if (other.mark != Mark::kLock && mode == Mode::kExclusive) {
      return Stranger{
          std::move(other.full),
          "a contender of a Curator read/write lock, which does not see exclusive contenders",
          "use `zklock read` or `zklock write`, or another LOCK"};
    }
  }
  return std::nullopt;
}

std::vector<std::optional<std::size_t>> WaitsFor(const std::vector<ContenderName>& queue) {
  std::vector<std::optional<std::size_t>> waits_for;
  waits_for.reserve(queue.size());
  std::optional<std::size_t> last;
  std::optional<std::size_t> last_that_excludes;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    waits_for.push_back(queue[i].reads() ? last_that_excludes : last);
    last = i;
    if (!queue[i].reads()) last_that_excludes = i;
  }
  return waits_for;
}

}  // namespace zklock::protocol
