// The input is the children of a LOCK, one per line. Each name is parsed; then the decisions about
// the queue that they form are checked. The first line is also used as a host name.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "fuzz/fuzz.h"
#include "protocol/contender_name.h"
#include "protocol/queue.h"

namespace zklock::fuzz {
namespace {

using protocol::ContenderName;
using protocol::Decision;
using protocol::Dialect;
using protocol::Mark;
using protocol::Mode;
using protocol::Program;

using Names = std::vector<std::string>;

constexpr std::size_t kMostChildren = 16;
constexpr std::string_view kUuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
constexpr std::array kModes{Mode::kExclusive, Mode::kWrite, Mode::kRead};
constexpr std::array kDialects{Dialect::kCurator, Dialect::kKazoo};  // the dialects with a queue

bool HasKazooMark(const ContenderName& name) {
  return name.mark == Mark::kKazooLock || name.mark == Mark::kKazooRead;
}

/// A sequence number as the servers print it.
std::string Numbered(std::int64_t number) {
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%010lld", static_cast<long long>(number));
  return digits.data();
}

std::string_view TextOf(Mark mark) {
  switch (mark) {
    case Mark::kLock:
      return "lock-";
    case Mark::kCuratorWrite:
      return "__WRIT__";
    case Mark::kCuratorRead:
      return "__READ__";
    case Mark::kKazooLock:
      return "__lock__";
    case Mark::kKazooRead:
      return "__rlock__";
    case Mark::kPermit:
      return "lease-";
    case Mark::kCRecipe:
      return "-";
    case Mark::kNone:
      break;
  }
  return "";
}

/// Whether the servers can have made `name` by appending a 32-bit number to another name.
bool CanBeSequential(std::string_view name) {
  for (std::size_t size = 10; size <= 11 && size <= name.size(); ++size) {
    const std::string end(name.substr(name.size() - size));
    if (end.find_first_not_of("-0123456789") != std::string::npos) continue;
    const long long value = std::strtoll(end.c_str(), nullptr, 10);
    const bool fits = value >= std::numeric_limits<std::int32_t>::min() &&
                      value <= std::numeric_limits<std::int32_t>::max();
    if (fits && Numbered(value) == end) return true;
  }
  return false;
}

void TryName(const std::string& name) {
  const auto parsed = protocol::ParseContenderName(name);
  Require(parsed.has_value() == CanBeSequential(name), "a name ending in a sequence number counts");
  if (!parsed) return;
  Require(parsed->full == name, "a name keeps its text");
  const std::string number = Numbered(parsed->number);
  Require(name.ends_with(number), "a name ends in its number");
  const auto before = std::string_view(name).substr(0, name.size() - number.size());
  Require(before.ends_with(TextOf(parsed->mark)), "a name has the mark that was found");
  for (const Mark mark : {Mark::kLock, Mark::kCuratorWrite, Mark::kCuratorRead, Mark::kKazooLock,
                          Mark::kKazooRead, Mark::kPermit}) {
    if (before.ends_with(TextOf(mark))) Require(parsed->mark == mark, "a mark in a name is found");
  }
  const bool says_read = parsed->mark == Mark::kCuratorRead || parsed->mark == Mark::kKazooRead;
  Require(parsed->reads() == says_read, "a reader has a reader's mark");
  Require((parsed->mode() == Mode::kRead) == says_read,
          "a contender in read mode has a reader's mark");
  if (parsed->supersedes) {
    Require(parsed->program == Program::kZklock && name.find("-newest") != std::string::npos,
            "only a zklock name with -newest supersedes");
  }
  if (parsed->reserves) {
    Require(parsed->program == Program::kZklock && name.find("-reserve") != std::string::npos,
            "only a zklock name with -reserve reserves");
  }
  if (parsed->program == Program::kKazoo) {
    Require(HasKazooMark(*parsed), "kazoo's contenders have kazoo's marks");
  } else if (HasKazooMark(*parsed)) {
    Require(parsed->program == Program::kZklock, "kazoo's marks belong to kazoo or zklock");
  }
}

/// Checks the names that zklock creates on a host with this name.
void TryHost(const std::string& host) {
  for (const Mode mode : kModes) {
    for (const Dialect dialect : kDialects) {
      for (const int words : {0, 1, 2, 3}) {
        const bool supersedes = (words & 1) != 0;
        const bool reserves = (words & 2) != 0;
        const std::string prefix =
            protocol::MakeContenderPrefix(host, kUuid, mode, dialect, supersedes, reserves);
        const std::size_t most_words = (supersedes ? 7 : 0) + (reserves ? 8 : 0);
        Require(prefix.size() <= 40 + 1 + kUuid.size() + most_words + 9, "a long host name is cut");
        for (const std::int64_t number : {std::int64_t{0}, protocol::kLastUsableNumber}) {
          const auto parsed = protocol::ParseContenderName(prefix + Numbered(number));
          Require(parsed && parsed->number == number && parsed->program == Program::kZklock &&
                      parsed->reads() == (mode == Mode::kRead) &&
                      HasKazooMark(*parsed) == (dialect == Dialect::kKazoo) &&
                      parsed->supersedes == supersedes && parsed->reserves == reserves,
                  "a zklock name is read back as one");
        }
      }
    }
  }
  const std::string permit = protocol::MakePermitPrefix(host, kUuid);
  Require(permit.size() <= 40 + 1 + kUuid.size() + 7, "a long host name is cut in a permit's name");
  const auto parsed = protocol::ParseContenderName(permit + Numbered(7));
  Require(parsed && parsed->mark == Mark::kPermit && parsed->program == Program::kZklock &&
              !parsed->supersedes,
          "the name of a zklock permit is read back as one");
}

bool Conflict(const ContenderName& a, const ContenderName& b) { return !a.reads() || !b.reads(); }

bool Lower(const ContenderName& a, const ContenderName& b) {
  return a.number != b.number ? a.number < b.number : a.full < b.full;
}

const ContenderName* Find(const std::vector<ContenderName>& queue, std::string_view name) {
  const auto found = std::find_if(queue.begin(), queue.end(), [&](const ContenderName& contender) {
    return contender.full == name;
  });
  return found == queue.end() ? nullptr : &*found;
}

/// Checks the decision about one contender against all others in the list.
void TryDecision(const std::vector<ContenderName>& queue, const ContenderName& own,
                 const Decision& decision) {
  const bool usable = own.number >= 0 && own.number <= protocol::kLastUsableNumber;
  Require(std::holds_alternative<protocol::NumbersUsedUp>(decision) == !usable,
          "a number near the overflow is refused, and only such a one");
  Require(!std::holds_alternative<protocol::OwnMissing>(decision), "a name in the list is found");
  const auto* const wait = std::get_if<protocol::WaitFor>(&decision);
  const ContenderName* predecessor = nullptr;
  if (wait != nullptr) {
    predecessor = Find(queue, wait->predecessor);
    Require(predecessor != nullptr, "a predecessor is in the list");
    Require(Lower(*predecessor, own), "a predecessor has a lower number");
    Require(Conflict(*predecessor, own), "a predecessor conflicts");
  }
  for (const ContenderName& other : queue) {
    if (!usable || !Lower(other, own) || !Conflict(other, own)) continue;
    Require(predecessor != nullptr, "a holder has no lower conflicting contender");
    Require(!Lower(*predecessor, other), "a predecessor is the nearest conflict");
  }
}

void TryDecisions(const Names& children, const std::vector<ContenderName>& queue) {
  const Names backwards(children.rbegin(), children.rend());
  protocol::Predecessors predecessors;
  std::vector<const ContenderName*> holders;
  for (const ContenderName& own : queue) {
    const auto waits_for = predecessors.Next(own);
    const Decision decision = protocol::Decide(children, own.full);
    TryDecision(queue, own, decision);
    Require(decision == protocol::Decide(backwards, own.full), "the list's order does not matter");
    if (std::holds_alternative<protocol::NumbersUsedUp>(decision)) continue;
    const auto* const wait = std::get_if<protocol::WaitFor>(&decision);
    Require(waits_for.has_value() == (wait != nullptr), "a contender shown as waiting waits");
    if (wait != nullptr) {
      Require(queue[*waits_for].full == wait->predecessor, "it waits for the predecessor shown");
      continue;
    }
    for (const ContenderName* const other : holders) {
      Require(!Conflict(*other, own), "no two holders conflict");
    }
    holders.push_back(&own);
  }
  if (!queue.empty() && queue.front().number >= 0 &&
      queue.front().number <= protocol::kLastUsableNumber) {
    Require(!holders.empty(), "a queue has a holder");
  }
}

void TryNewcomer(Names children, const std::vector<ContenderName>& queue) {
  if (!queue.empty() && queue.back().number >= protocol::kLastUsableNumber) return;
  for (const Mode mode : kModes) {
    const bool busy = protocol::FirstConflict(children, mode) != nullptr;
    const std::string own = protocol::MakeContenderPrefix("us", kUuid, mode, Dialect::kCurator) +
                            Numbered(protocol::kLastUsableNumber);
    Require(protocol::Decide(children, own) == Decision(protocol::OwnMissing{}),
            "a name not in the list is missing");
    children.push_back(own);
    const bool holds = protocol::Decide(children, own) == Decision(protocol::MayHold{});
    Require(holds == !busy, "a queue is busy if a newcomer would wait");
    children.pop_back();
  }
}

bool IsIncompatible(const ContenderName& other, Mode mode, Dialect dialect) {
  if (dialect == Dialect::kSimple) return other.mark != Mark::kNone;
  if (other.program == Program::kZklock) {
    return HasKazooMark(other) != (dialect == Dialect::kKazoo);
  }
  if (dialect == Dialect::kKazoo) {
    return other.program == Program::kCurator || other.program == Program::kCRecipe;
  }
  if (other.program == Program::kKazoo) return true;
  if (other.program == Program::kCRecipe) return mode != Mode::kExclusive;
  if (other.program != Program::kCurator) return false;
  return (other.mark == Mark::kLock) != (mode == Mode::kExclusive);
}

void TryIncompatible(const Names& children, const std::vector<ContenderName>& queue,
                     const std::string& own, Mode mode, Dialect dialect) {
  const auto expected =
      std::find_if(queue.begin(), queue.end(), [&](const ContenderName& contender) {
        return contender.full != own && IsIncompatible(contender, mode, dialect);
      });
  const auto incompatible = protocol::FindIncompatible(children, own, mode, dialect);
  Require(incompatible.has_value() == (expected != queue.end()),
          "an incompatible contender is found");
  if (!incompatible) return;
  Require(incompatible->child == expected->full, "the first incompatible contender is named");
}

void TryAllIncompatible(const Names& children, const std::vector<ContenderName>& queue) {
  for (const std::string& own : {children.front(), std::string("nobody")}) {
    for (const Mode mode : kModes) {
      for (const Dialect dialect : {Dialect::kCurator, Dialect::kKazoo, Dialect::kSimple}) {
        TryIncompatible(children, queue, own, mode, dialect);
      }
    }
  }
}

/// Checks the ranks used by --max-queue, --supersede and --permits.
void TryRanks(const Names& children, const std::vector<ContenderName>& queue) {
  protocol::Predecessors predecessors;
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::string& own = queue[i].full;
    const protocol::Rank rank = protocol::RankOf(children, own);
    Require(rank.ahead == i && rank.waiting == waiting, "a rank is the position in the queue");
    if (predecessors.Next(queue[i])) ++waiting;

    // Apart from the server's number, names are unique unless a create was repeated.
    Names older;
    bool newer = false;
    for (const ContenderName& other : queue) {
      if (!other.supersedes) continue;
      const std::string made(protocol::ViewContenderName(other.full)->before_mark);
      if (!Lower(queue[i], other)) {
        older.push_back(made);
      } else if (std::find(older.begin(), older.end(), made) == older.end()) {
        newer = true;
      }
    }
    Require(protocol::IsSuperseded(children, protocol::SupersedingUpTo(children, own)) == newer,
            "a later -newest contender supersedes");

    if (queue[i].number < 0 || queue[i].number > protocol::kLastUsableNumber) continue;
    for (const std::size_t permits : {std::size_t{1}, queue.size(), queue.size() + 1}) {
      const Decision decision = protocol::DecidePermit(children, own, permits);
      const auto* const wait = std::get_if<protocol::WaitFor>(&decision);
      Require((wait == nullptr) == (queue.size() <= permits),
              "a contender waits only if no permit is free");
      Require(wait == nullptr ||
                  (wait->predecessor != own && Find(queue, wait->predecessor) != nullptr),
              "a permit's predecessor is another permit");
    }
  }
}

}  // namespace

void Try(std::string_view input) {
  Names children = Split(input, '\n', kMostChildren);
  TryHost(children.front());
  // The names of siblings are unique.
  std::sort(children.begin(), children.end());
  children.erase(std::unique(children.begin(), children.end()), children.end());

  for (const std::string& name : children) TryName(name);
  const std::vector<ContenderName> queue = protocol::Queue(children);
  Require(std::is_sorted(queue.begin(), queue.end(), Lower), "the queue is ordered by number");
  const auto counting = std::count_if(children.begin(), children.end(), CanBeSequential);
  Require(queue.size() == static_cast<std::size_t>(counting), "all valid names are in the queue");
  TryDecisions(children, queue);
  TryRanks(children, queue);
  TryNewcomer(children, queue);
  TryAllIncompatible(children, queue);
}

}  // namespace zklock::fuzz
