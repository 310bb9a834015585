#include "commands/holder_claim.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "commands/console.h"
#include "lock/contender_data.h"
#include "process/ancestry.h"
#include "process/event_loop.h"
#include "process/process_tree.h"
#include "process/waker.h"

namespace zklock::commands {
namespace {

using State = process::NestingLink::State;

// How soon a holder is asked again that has too many connections.
constexpr Duration kAskAgain = std::chrono::milliseconds(20);

bool IsAlive(const process::ProcessId& process) {
  const auto stat = process::ReadProcessStat(process.pid);
  return stat && !stat->is_dead && stat->id == process;
}

/// Waits until `link`, which may be null, has an answer, but no longer than until `end`. Returns
/// the signal that interrupted it.
std::optional<int> AwaitAnswer(process::NestingLink* link, TimePoint end,
                               process::Signals& signals) {
  process::EventLoop loop;
  process::Waker alarm(end);
  loop.Add(alarm);
  if (link != nullptr) loop.Add(*link);
  return RunUntil(loop, signals, [&] {
    return (link != nullptr && link->state() != State::kAsking) || BootClock::now() >= end;
  });
}

process::ProcessId ProcessOf(std::int64_t pid, std::uint64_t start_time) {
  return {static_cast<pid_t>(pid), start_time};
}

}  // namespace

HolderClaim ClaimOf(const protocol::HeldLock& held) {
  const process::ProcessId holder = ProcessOf(held.pid, held.start_time);
  return {.node = held.node, .holder = holder, .socket = held.socket, .owner = holder};
}

std::optional<HolderClaim> ClaimIn(const std::string& data, const std::string& node,
                                   const process::Identity& self) {
  const auto parsed = lock::ParseContenderData(data);
  if (!parsed || !parsed->owner || !parsed->pid || !parsed->start_time || !parsed->pid_namespace ||
      parsed->boot_id != self.boot_id) {
    return std::nullopt;
  }
  return HolderClaim{.node = node,
                     .holder = ProcessOf(*parsed->pid, *parsed->start_time),
                     .socket = parsed->owner->socket,
                     .owner = ProcessOf(parsed->owner->pid, parsed->owner->start_time)};
}

std::vector<protocol::HeldLock> AncestorHolds(pid_t pid) {
  const char* const variable = getenv("ZKLOCK_HELD");
  if (variable == nullptr) return {};
  auto held = protocol::ParseHeld(variable);
  const std::vector<process::ProcessId> lineage = process::Lineage(pid);
  std::erase_if(held, [&](const protocol::HeldLock& one) {
    return std::none_of(lineage.begin(), lineage.end(), [&](const process::ProcessId& ancestor) {
      return ancestor.pid == one.pid && ancestor.start_time == one.start_time;
    });
  });
  return held;
}

HolderAnswer AskHolder(const HolderClaim& claim, protocol::NestingRequest::Kind kind,
                       Duration patience, process::Signals& signals) {
  const TimePoint deadline = After(BootClock::now(), patience);
  bool was_closed = false;  // our connection, without an answer: there may be too many of them
  while (BootClock::now() < deadline) {
    auto link = process::NestingLink::Open(claim.socket, claim.holder, claim.owner,
                                           {.kind = kind, .node = claim.node});
    if (!link && errno != EAGAIN) {
      if (!was_closed && IsAlive(claim.holder)) return NoProof{};
      return HoldsNothing{};
    }
    if (link) {
      if (const auto signal = AwaitAnswer(link.get(), deadline, signals)) {
        return AskingInterrupted{*signal};
      }
      switch (link->state()) {
        case State::kHeld:
        case State::kReleasing:
          return link;
        case State::kAsking:
          return NoProof{};
        case State::kRefused:
          return Refuses{};
        case State::kEnded:
          was_closed = true;
      }
    }
    const TimePoint again = std::min(BootClock::now() + kAskAgain, deadline);
    if (const auto signal = AwaitAnswer(nullptr, again, signals)) return AskingInterrupted{*signal};
  }
  return Crowded{};
}

}  // namespace zklock::commands
