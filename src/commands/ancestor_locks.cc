#include "commands/ancestor_locks.h"

#include <algorithm>

#include "commands/console.h"
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
  const auto parsed = cli::ParseContenderData(data);
  if (!parsed || !parsed->owner || !parsed->pid || !parsed->start_time ||
      parsed->boot_id != self.boot_id || parsed->pid_namespace != self.pid_namespace) {
    return std::nullopt;
  }
  return HolderClaim{.node = node,
                     .holder = ProcessOf(*parsed->pid, *parsed->start_time),
                     .socket = parsed->owner->socket,
                     .owner = ProcessOf(parsed->owner->pid, parsed->owner->start_time)};
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
  if (signal) return AskingStopped{*signal};
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

void AncestorLocks::Add(lock::Ticket ticket, std::unique_ptr<process::NestingLink> link) {
  tickets_.push_back(std::move(ticket));
  links_.push_back(std::move(link));
}

std::string AncestorLocks::DisplayPath() const {
  std::string shown;
  for (const lock::Ticket& ticket : tickets_) {
    shown += (shown.empty() ? "" : ", ") + ticket.lock.display_path();
  }
  return shown;
}

TimePoint AncestorLocks::lease_end() const {
  TimePoint end = kNever;
  for (const auto& link : links_) end = std::min(end, link->lease().end);
  return end;
}

Duration AncestorLocks::session_timeout() const {
  Duration timeout = links_.front()->lease().session_timeout;
  for (const auto& link : links_) timeout = std::min(timeout, link->lease().session_timeout);
  return timeout;
}

bool AncestorLocks::is_lost() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->state() != State::kHeld; });
}

std::vector<int> AncestorLocks::descriptors() const {
  std::vector<int> descriptors;
  for (const auto& link : links_) descriptors.push_back(link->fd());
  return descriptors;
}

void AncestorLocks::AddTo(process::EventLoop& loop) const {
  for (const auto& link : links_) loop.Add(*link);
}

void AncestorLocks::RemoveFrom(process::EventLoop& loop) const {
  for (const auto& link : links_) loop.Remove(*link);
}

}  // namespace zklock::commands
