#include "commands/holder_claim.h"

#include <algorithm>
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

bool IsAlive(const process::ProcessId& process) {
  const auto stat = process::ReadProcessStat(process.pid);
  return stat && !stat->is_dead && stat->id == process;
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
  if (!parsed || !parsed->owner || !parsed->pid || !parsed->start_time ||
      parsed->boot_id != self.boot_id || parsed->pid_namespace != self.pid_namespace) {
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
  auto link = process::NestingLink::Open(claim.socket, claim.holder, claim.owner,
                                         {.kind = kind, .node = claim.node});
  if (!link) {
    if (IsAlive(claim.holder)) return NoProof{};
    return HoldsNothing{};
  }
  process::EventLoop loop;
  const TimePoint deadline = After(BootClock::now(), patience);
  process::Waker alarm(deadline);
  loop.Add(*link);
  loop.Add(alarm);
  const auto signal = RunUntil(loop, signals, [&] {
    return link->state() != State::kAsking || BootClock::now() >= deadline;
  });
  if (signal) return AskingInterrupted{*signal};
  switch (link->state()) {
    case State::kHeld:
    case State::kReleasing:
      return link;
    case State::kAsking:
      return NoProof{};
    case State::kRefused:
      return Refuses{};
    case State::kEnded:
      break;
  }
  return HoldsNothing{};
}

}  // namespace zklock::commands
