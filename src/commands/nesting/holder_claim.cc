#include "commands/nesting/holder_claim.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "commands/session/console.h"
#include "commands/session/exit.h"
#include "lock/data/contender_data.h"
#include "process/loop/event_loop.h"
#include "process/nesting/nesting_socket.h"
#include "process/tree/ancestry.h"
#include "process/tree/process_tree.h"
#include "protocol/nesting.h"

namespace zklock::commands {
namespace {

using State = process::NestingLink::State;

// How long to wait for a holder in another namespace to answer, in milliseconds. A holder refuses
// strangers at once.
constexpr int kPatienceElsewhere = 500;

// The time between attempts to ask a holder that has too many connections.
constexpr Duration kAskAgain = std::chrono::milliseconds(20);

bool IsAlive(const process::ProcessId& process) {
  const auto stat = process::ReadProcessStat(process.pid);
  return stat && !stat->is_dead && stat->id == process;
}

/// Waits until `link`, which may be null, has an answer, but not beyond `end`. Throws Exit if a
/// signal arrives.
void AwaitAnswer(process::NestingLink* link, TimePoint end, process::Signals& signals,
                 cli::Report& report) {
  process::EventLoop loop;
  if (link != nullptr) loop.Add(*link);
  const auto signal = RunUntil(
      loop, signals, [&] { return link != nullptr && link->state() != State::kAsking; }, end);
  if (signal) throw Exit(InterruptedBy(*signal, report));
}

process::ProcessId ProcessOf(std::int64_t pid, std::uint64_t start_time) {
  return {static_cast<pid_t>(pid), start_time};
}

/// Returns the entries of $ZKLOCK_HELD for locks that are held or, if `reserved`, for reservations.
std::vector<protocol::HeldLock> HeldInEnvironment(bool reserved) {
  const char* const variable = getenv("ZKLOCK_HELD");
  if (variable == nullptr) return {};
  auto held = protocol::ParseHeld(variable);
  std::erase_if(held, [reserved](const protocol::HeldLock& one) {
    return (one.socket == protocol::kNoSocket) != reserved;
  });
  return held;
}

/// Returns the entries in `held` that belong to the process `pid` or its living ancestors.
std::vector<protocol::HeldLock> OfAncestors(std::vector<protocol::HeldLock> held, pid_t pid) {
  if (held.empty()) return held;  // the usual case: avoids a walk through /proc
  const std::vector<process::ProcessId> lineage = process::Lineage(pid);
  std::erase_if(held, [&](const protocol::HeldLock& one) {
    return std::none_of(lineage.begin(), lineage.end(), [&](const process::ProcessId& ancestor) {
      return ancestor.pid == one.pid && ancestor.start_time == one.start_time;
    });
  });
  return held;
}

}  // namespace

HolderClaim ClaimOf(const protocol::HeldLock& held) {
  const process::ProcessId holder = ProcessOf(held.pid, held.start_time);
  return {.node = held.node, .holder = holder, .socket = held.socket, .owner = holder};
}

std::optional<HolderClaim> ClaimIn(const std::string& data, const std::string& node,
                                   const process::Identity& self) {
  const auto parsed = lock::ParseContenderData(data);
  if (!parsed || !parsed->pid || !parsed->start_time || !parsed->pid_namespace ||
      parsed->boot_id != self.boot_id) {
    return std::nullopt;
  }
  const process::ProcessId holder = ProcessOf(*parsed->pid, *parsed->start_time);
  const auto& owner = parsed->owner;
  return HolderClaim{.node = node,
                     .holder = holder,
                     .socket = owner ? owner->socket : "",
                     .owner = owner ? ProcessOf(owner->pid, owner->start_time) : holder,
                     .is_elsewhere = parsed->pid_namespace != self.pid_namespace};
}

std::vector<protocol::HeldLock> AncestorHolds(pid_t pid) {
  return OfAncestors(HeldInEnvironment(/*reserved=*/false), pid);
}

std::vector<protocol::HeldLock> AncestorReservations(pid_t pid) {
  return OfAncestors(HeldInEnvironment(/*reserved=*/true), pid);
}

std::vector<protocol::HeldLock> HoldsElsewhere(const process::Identity& self) {
  auto held = HeldInEnvironment(/*reserved=*/false);
  if (held.empty()) return held;
  const std::vector<process::ProcessId> lineage = process::Lineage(getpid());
  std::erase_if(held, [&](const protocol::HeldLock& one) {
    if (one.pid_namespace != self.pid_namespace) return false;
    // A time namespace has its own boot time, which shifts all start times.
    return std::none_of(lineage.begin(), lineage.end(), [&](const process::ProcessId& ancestor) {
      return ancestor.pid == one.pid && ancestor.start_time != one.start_time;
    });
  });
  return held;
}

bool IsHeldElsewhere(const HolderClaim& claim) {
  if (!claim.is_elsewhere && IsAlive(claim.holder)) return false;
  const UniqueFd socket = process::ConnectTo(claim.socket);
  const auto peer = socket ? process::PeerOf(socket.get()) : std::nullopt;
  if (!peer || (peer->uid != 0 && peer->uid != geteuid())) return false;
  using Request = protocol::NestingRequest;
  if (!claim.node.empty()) {
    process::SendText(socket.get(), FormatNesting(Request{Request::Kind::kRun, claim.node}));
  }
  pollfd polled{socket.get(), POLLIN, 0};
  poll(&polled, 1, kPatienceElsewhere);
  const process::ReceivedText received = process::ReceiveText(socket.get());
  // The holder refuses a stranger before the stranger has asked for anything.
  if (claim.node.empty()) return !received.text && !received.is_closed;
  return received.text && protocol::ParseNestingLease(*received.text);
}

HolderAnswer AskHolder(const HolderClaim& claim, protocol::NestingRequest::Kind kind,
                       Duration patience, process::Signals& signals, cli::Report& report) {
  const TimePoint deadline = After(BootClock::now(), patience);
  bool was_closed = false;  // closed without an answer: the holder may have too many connections
  while (BootClock::now() < deadline) {
    auto link = process::NestingLink::Open(claim.socket, claim.holder, claim.owner,
                                           {.kind = kind, .node = claim.node});
    if (!link && errno != EAGAIN) {
      const bool may_hold = errno == EPERM || !was_closed;
      return may_hold && IsAlive(claim.holder) ? HolderAnswer(NoProof{}) : HoldsNothing{};
    }
    if (link) {
      AwaitAnswer(link.get(), deadline, signals, report);
      switch (link->state()) {
        case State::kHeld:
        case State::kReleasing:
          return link;
        case State::kAsking:
        case State::kStranger:
          return NoProof{};
        case State::kRefused:
          return Refuses{};
        case State::kEnded:
          was_closed = true;
      }
    }
    const TimePoint again = std::min(BootClock::now() + kAskAgain, deadline);
    AwaitAnswer(nullptr, again, signals, report);
  }
  return Crowded{};
}

}  // namespace zklock::commands
