#include "commands/nesting/nesting.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/text/messages.h"
#include "commands/nesting/holder_claim.h"
#include "commands/nesting/run_metadata.h"
#include "commands/session/console.h"
#include "commands/session/short_session.h"
#include "lock/data/reserved.h"
#include "lock/operations/contender_operations.h"
#include "lock/survey/holders.h"
#include "process/tree/ancestry.h"
#include "protocol/held.h"
#include "protocol/semaphore.h"

namespace zklock::commands {
namespace {

using protocol::Mode;

cli::UsageError UsageErrorOf(Mode mode, const std::string& text) {
  return {text, std::string(protocol::ModeName(mode))};
}

/// Returns whether a run may wait for an ancestor: there is no deadlock if both only read, or if
/// the wait has a limit.
bool MayQueueBehind(Mode held, const cli::RunOptions& options, Mode mode) {
  const bool both_read = held == Mode::kRead && mode == Mode::kRead;
  return both_read || options.try_only || options.wait;
}

/// Returns whether the run queues although an ancestor holds the LOCK in mode `held` (--no-nest).
bool QueuesBeside(Mode held, const cli::RunOptions& options, Mode mode) {
  return options.no_nest && MayQueueBehind(held, options, mode);
}

/// Returns whether the run would wait forever if another contender queued between it and the
/// ancestor that holds the LOCK in mode `held`.
bool QueuesBesideForEver(Mode held, const cli::RunOptions& options, Mode mode) {
  return QueuesBeside(held, options, mode) && !options.try_only && !options.wait;
}

/// Throws unless a run in `mode` may use an existing hold of `lock` in mode `held`.
void RequireCovered(Mode held, const cli::RunOptions& options, const lock::LockName& lock,
                    Mode mode) {
  if (const auto intervals = options.Intervals(); !intervals.empty()) {
    // The zklock that acquires the lock checks and records the interval. A nested run would ignore
    // it.
    throw UsageErrorOf(mode, fmt::format(cli::message::kIntervalHeldAbove, lock.display_path(),
                                         intervals.front()));
  }
  const bool is_covered = protocol::Covers(held, mode);
  if (!options.no_nest && is_covered) return;
  if (QueuesBesideForEver(held, options, mode)) throw WaitsBehindWriter(lock.display_path());
  const char* const format = !options.reserve.empty() ? cli::message::kWaitsByReserve
                             : is_covered             ? cli::message::kWaitsByNoNest
                                                      : cli::message::kNotCovered;
  throw UsageErrorOf(mode, fmt::format(fmt::runtime(format), lock.display_path(),
                                       protocol::ModeName(held), protocol::ModeName(mode)));
}

/// Returns the error if the holder in `claim` may hold the lock for us, but gave no usable
/// `answer`. None if the answer means that we have to queue, or if we may queue anyway.
std::optional<cli::UsageError> NoAnswer(const HolderAnswer& answer, const HolderClaim& claim,
                                        const lock::LockName& lock, Mode mode,
                                        bool may_queue_behind) {
  if (std::holds_alternative<Crowded>(answer)) {
    return UsageErrorOf(
        mode, fmt::format(cli::message::kHolderCrowded, lock.display_path(), claim.holder.pid));
  }
  if (!std::holds_alternative<NoProof>(answer) || may_queue_behind) return std::nullopt;
  return UsageErrorOf(mode, fmt::format(cli::message::kHolderSilent, lock.display_path(),
                                        claim.holder.pid, protocol::ModeName(mode)));
}

/// Returns whether all `nodes`, which are in `lock`, still exist. Throws Exit.
bool AreHeld(RunContext& context, const lock::LockName& lock,
             const std::vector<lock::ContenderId>& nodes) {
  ShortSession session(context.options.server, context.signals, context.report);
  const bool are_held =
      session.Ask([&](lock::Calls& calls) { return lock::AreHeld(calls, lock, nodes); });
  session.Close();
  return are_held;
}

/// An ancestor's lock that we may run under. Without a link, we have to queue.
struct InheritedLock {
  lock::Ticket ticket{};
  std::unique_ptr<process::NestingLink> link{};
  bool queues_beside = false;  // AncestorLocks::QueueBeside()
};

/// Asks the ancestor that holds `lock` according to `held`.
InheritedLock AskAncestor(RunContext& context, const lock::LockName& lock, Mode mode,
                          const protocol::HeldLock& held) {
  const HolderClaim claim = ClaimOf(held);
  HolderAnswer answer =
      AskHolder(claim, protocol::NestingRequest::Kind::kRun, context.options.server.connect_timeout,
                context.signals, context.report);
  if (auto* link = std::get_if<std::unique_ptr<process::NestingLink>>(&answer)) {
    return InheritedLock{{.lock = lock, .mode = held.mode, .path = held.node, .token = held.token},
                         std::move(*link)};
  }
  const auto silence =
      NoAnswer(answer, claim, lock, mode, MayQueueBehind(held.mode, context.options, mode));
  if (!silence) return {};
  // The ancestor may have released the lock while we asked.
  if (AreHeld(context, lock, {{held.node, held.token}})) throw *silence;
  return {};
}

cli::UsageError HeldElsewhere(const cli::RunOptions& options, const lock::LockName& lock, Mode held,
                              pid_t holder, Mode mode) {
  return UsageErrorOf(
      mode, fmt::format(cli::message::kHeldElsewhere, lock.display_path(), protocol::ModeName(held),
                        holder, protocol::ModeName(mode),
                        MayQueueBehind(held, options, mode) ? "" : cli::message::kAndWait));
}

/// Handles a `lock` that no visible ancestor holds: the run queues, unless an ancestor in another
/// PID or time namespace holds it. In that case, throws cli::UsageError: we could not use the
/// ancestor's lease, which counts by another clock, and could not see the ancestor end.
InheritedLock QueueUnlessHeldElsewhere(RunContext& context, const lock::LockName& lock, Mode mode) {
  if (!GetEnvironment("ZKLOCK_HELD")) return {};
  const auto held = protocol::FindHeld(HoldsElsewhere(context.Self()), lock.path);
  if (!held) return {};
  if (QueuesBeside(held->mode, context.options, mode)) {
    return InheritedLock{.queues_beside = QueuesBesideForEver(held->mode, context.options, mode)};
  }
  if (!AreHeld(context, lock, {{held->node, held->token}})) return {};
  throw HeldElsewhere(context.options, lock, held->mode, static_cast<pid_t>(held->pid), mode);
}

/// Finds the ancestor's lock to run under instead of queueing for `lock`.
InheritedLock FindInheritedLock(RunContext& context, const lock::LockName& lock, Mode mode,
                                pid_t beneficiary) {
  const cli::RunOptions& options = context.options;
  const auto held = protocol::FindHeld(AncestorHolds(getpid()), lock.path);
  if (!held) return QueueUnlessHeldElsewhere(context, lock, mode);
  if (!AreHeld(context, lock, {{held->node, held->token}})) return {};
  const auto held_for_beneficiary = AncestorHolds(beneficiary);
  if (std::find(held_for_beneficiary.begin(), held_for_beneficiary.end(), *held) !=
      held_for_beneficiary.end()) {
    if (QueuesBeside(held->mode, options, mode)) {
      return InheritedLock{.queues_beside = QueuesBesideForEver(held->mode, options, mode)};
    }
    RequireCovered(held->mode, options, lock, mode);
    return AskAncestor(context, lock, mode, *held);
  }
  // That hold ends with its command, which we are part of, perhaps long before the owner does.
  if (MayQueueBehind(held->mode, options, mode)) return {};
  throw UsageErrorOf(
      mode, fmt::format(cli::message::kWaitsForOwner, lock.display_path(),
                        protocol::ModeName(held->mode), beneficiary, protocol::ModeName(mode)));
}

/// Returns the permits of `lock` that ancestors claim to hold. A nested run needs permits of its
/// own.
std::vector<lock::ContenderId> PermitsHeldAbove(RunContext& context, const lock::LockName& lock) {
  std::vector<lock::ContenderId> permits;
  if (!context.options.permits) return permits;
  const std::string queue = protocol::PermitsPath(lock.path);
  for (const auto& holds : {AncestorHolds(getpid()), HoldsElsewhere(context.Self())}) {
    for (const protocol::HeldLock& one : holds) {
      if (protocol::ParentOf(one.node) == queue) permits.push_back({one.node, one.token});
    }
  }
  return permits;
}

/// Returns the reservations in `lock` under which ancestors claim to run their commands, one entry
/// for each permit. Unlike a lock, an ancestor's reservation does not admit nested runs: they must
/// queue.
std::vector<protocol::HeldLock> ReservedAbove(RunContext& context, const lock::LockName& lock,
                                              Mode mode) {
  std::vector<protocol::HeldLock> reserved = AncestorReservations(getpid());
  std::erase_if(reserved, [&](const protocol::HeldLock& one) {
    const auto parent = protocol::ParentOf(one.node);
    return (parent != lock.path && parent != protocol::PermitsPath(lock.path)) ||
           MayQueueBehind(one.mode, context.options, mode);
  });
  return reserved;
}

/// Those of `reserved` that still exist, except a reservation for the run's own ID.
struct InTheWay {
  std::size_t permits = 0;
  std::string id;  ///< of one of the reservations
};
InTheWay FindInTheWay(RunContext& context, const lock::LockName& lock,
                      const std::vector<protocol::HeldLock>& reserved) {
  ShortSession session(context.options.server, context.signals, context.report);
  const auto holders =
      session.Ask([&](lock::Calls& calls) { return lock::ReadHolders(calls, lock); });
  session.Close();
  InTheWay in_the_way;
  for (const lock::Holder& holder : holders) {
    const auto found = lock::FindReservation(holder.name.full, holder.data, holder.stat);
    const bool is_ancestors = std::any_of(reserved.begin(), reserved.end(),
                                          [&](const auto& one) { return one.node == holder.path; });
    if (!found || !is_ancestors || found->reservation.id == context.options.reserve) continue;
    in_the_way.id = found->reservation.id;
    in_the_way.permits += 1 + holder.more.size();
  }
  return in_the_way;
}

/// Throws cli::UsageError if the run would wait for itself, since its ancestors hold or have
/// reserved too many permits, or have reserved the LOCK. Throws Exit if that could not be
/// determined.
void RefuseToWaitForAncestors(RunContext& context, const lock::LockName& lock, Mode mode) {
  const cli::RunOptions& options = context.options;
  if (options.try_only || options.wait) return;
  const std::size_t limit = options.permits.value_or(1);
  const auto permits = PermitsHeldAbove(context, lock);
  const auto reserved = ReservedAbove(context, lock, mode);
  if (permits.size() + reserved.size() + options.take <= limit) return;
  const bool are_held = !permits.empty() && AreHeld(context, lock, permits);
  const std::size_t held = are_held ? permits.size() : 0;
  if (held >= limit) {
    throw UsageErrorOf(mode,
                       fmt::format(cli::message::kPermitsHeldAbove, lock.display_path(), limit));
  }
  if (held + options.take > limit) {
    throw UsageErrorOf(mode, fmt::format(cli::message::kTooFewLeftAbove, lock.display_path(), held,
                                         limit, options.take));
  }
  if (reserved.empty()) return;
  const InTheWay in_the_way = FindInTheWay(context, lock, reserved);
  if (held + in_the_way.permits + options.take <= limit) return;
  throw UsageErrorOf(mode, fmt::format(cli::message::kReservedAbove, lock.display_path(),
                                       in_the_way.id, protocol::ModeName(mode), in_the_way.id));
}

/// Finds the ancestor's lock that lets the run use `wanted`. Throws cli::UsageError if the run
/// would wait for itself.
InheritedLock FindInheritance(RunContext& context, const cli::WantedLock& wanted,
                              pid_t beneficiary) {
  const lock::LockName lock = context.NameOf(wanted);
  RefuseToWaitForAncestors(context, lock, wanted.mode);
  return FindInheritedLock(context, lock, wanted.mode, beneficiary);
}

/// Returns whether $ZKLOCK_HELD names `holder`, one of our ancestors. It does not if the
/// environment was cleared on the way, as by sudo(8).
bool IsNamedInEnvironment(const process::ProcessId& holder) {
  const auto held = AncestorHolds(getpid());
  return std::any_of(held.begin(), held.end(),
                     [&](const protocol::HeldLock& one) { return ClaimOf(one).holder == holder; });
}

}  // namespace

void RemoveInheritedLocks(RunContext& context, std::vector<cli::WantedLock>& wanted,
                          pid_t beneficiary) {
  const bool has_choice = context.options.any;
  std::vector<cli::UsageError> endless;
  for (auto one = wanted.begin(); one != wanted.end();) {
    InheritedLock inherited;
    try {
      inherited = FindInheritance(context, *one, beneficiary);
    } catch (const cli::UsageError& error) {
      if (!has_choice) throw;
      endless.push_back(error);  // it may still get another LOCK
    }
    if (inherited.queues_beside && !has_choice) context.ancestors.QueueBeside(one->path);
    if (inherited.link) {
      context.ancestors.Add(inherited.ticket, std::move(inherited.link));
      context.events.Publish(cli::AcquiredByOuterEvent{one->path});
      if (has_choice) return wanted.clear();
      one = wanted.erase(one);
    } else {
      ++one;
    }
  }
  if (has_choice && endless.size() == wanted.size()) throw endless.front();
}

lock::HoldsForUs HoldsFor(RunContext& context, pid_t beneficiary, Mode mode,
                          const DisprovenKeepers& disproven) {
  // One permit does not replace another: the holder of one may want more. And a run that would
  // queue beside an exclusive holder would queue beside any holder.
  if (context.options.permits || QueuesBeside(Mode::kExclusive, context.options, mode)) return {};
  const auto warned = std::make_shared<bool>(false);
  return [&context, &disproven, beneficiary, mode, warned](Mode held, const std::string& data) {
    const cli::RunOptions& options = context.options;
    if (QueuesBeside(held, options, mode) && !QueuesBesideForEver(held, options, mode)) {
      return false;
    }
    const process::Identity& self = context.Self();
    const auto claim = ClaimIn(data, "", self);
    if (!claim || disproven.count(claim->socket) > 0) return false;
    // This is our own contender, from a session that we have abandoned but that has not ended yet.
    if (!claim->is_elsewhere && claim->holder == process::ProcessId{self.pid, self.start_time}) {
      return false;
    }
    if (IsHeldElsewhere(*claim)) return true;
    const std::vector<process::ProcessId> lineage = process::Lineage(beneficiary);
    const bool is_ours = !claim->is_elsewhere &&
                         std::find(lineage.begin(), lineage.end(), claim->owner) != lineage.end();
    if (!claim->socket.empty()) return is_ours;
    // An ancestor that $ZKLOCK_HELD does not name cannot be asked. One that it does name has been
    // asked already, and is about to release the lock.
    const bool waits = !options.any && !MayQueueBehind(held, options, mode);
    if (is_ours && waits && !IsNamedInEnvironment(claim->holder) && !std::exchange(*warned, true)) {
      context.report.Say(cli::message::kHeldByAncestor, claim->holder.pid);
    }
    return false;
  };
}

std::optional<lock::Preempt> PreemptFor(RunContext& context, pid_t beneficiary) {
  const cli::RunOptions& options = context.options;
  if (options.preempt == cli::Preempt::kNobody) return std::nullopt;
  const process::Identity& self = context.Self();
  std::vector<std::string> locks;
  for (const cli::WantedLock& one : options.locks) locks.push_back(context.NameOf(one).path);
  std::string reason = options.reserve_reason;
  if (reason.empty()) reason = options.label;
  return lock::Preempt{
      .holders = options.preempt == cli::Preempt::kAll,
      .intervals = {options.min_interval, options.once_per},
      .locks = locks,
      .request = {.by = self.user + " on " + self.host,
                  .reason = reason,
                  .only_waiting = options.preempt == cli::Preempt::kWaiters},
      .spares = [&context, beneficiary](const std::string& path, const std::string& data) {
        std::vector<protocol::HeldLock> held = AncestorHolds(getpid());
        const auto elsewhere = HoldsElsewhere(context.Self());
        held.insert(held.end(), elsewhere.begin(), elsewhere.end());
        const bool is_ancestors = std::any_of(held.begin(), held.end(),
                                              [&](const auto& one) { return one.node == path; });
        const auto claim = ClaimIn(data, path, context.Self());
        if (is_ancestors || !claim) return is_ancestors;
        const std::vector<process::ProcessId> lineage = process::Lineage(beneficiary);
        return !claim->is_elsewhere &&
               std::find(lineage.begin(), lineage.end(), claim->owner) != lineage.end();
      }};
}

std::unique_ptr<process::NestingLink> UseExistingHold(RunContext& context, const KeeperFound& found,
                                                      Mode mode, DisprovenKeepers& disproven) {
  const auto claim = ClaimIn(found.data, found.holder.path, context.Self());
  if (IsHeldElsewhere(*claim)) {
    throw HeldElsewhere(context.options, found.holder.lock, found.holder.mode, claim->holder.pid,
                        mode);
  }
  HolderAnswer answer =
      AskHolder(*claim, protocol::NestingRequest::Kind::kRun,
                context.options.server.connect_timeout, context.signals, context.report);
  if (auto* link = std::get_if<std::unique_ptr<process::NestingLink>>(&answer)) {
    RequireCovered(found.holder.mode, context.options, found.holder.lock, mode);
    return std::move(*link);
  }
  // Either our keeper is stopped, or the claim is forged. In the first case, it would be wrong to
  // wait without a limit; in the second, to run alongside the holder.
  const auto silence = NoAnswer(answer, *claim, found.holder.lock, mode,
                                MayQueueBehind(found.holder.mode, context.options, mode));
  if (silence) throw *silence;
  disproven.insert(claim->socket);
  return nullptr;
}

cli::UsageError WaitsBehindWriter(const std::string& lock) {
  return UsageErrorOf(Mode::kRead, fmt::format(cli::message::kWaitsBehindWriter, lock));
}

}  // namespace zklock::commands
