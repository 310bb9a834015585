#include "commands/nesting.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cli/messages.h"
#include "commands/console.h"
#include "commands/holder_claim.h"
#include "commands/short_session.h"
#include "lock/ownership_check.h"
#include "process/ancestry.h"
#include "process/identity.h"

namespace zklock::commands {
namespace {

std::vector<process::ProcessId>::const_iterator FindIn(
    const std::vector<process::ProcessId>& lineage, const process::ProcessId& process) {
  return std::find(lineage.begin(), lineage.end(), process);
}

/// Who does not wait for ever may find out by itself.
bool MayWaitBehind(protocol::Mode held, const cli::RunOptions& options, protocol::Mode mode) {
  const bool both_read = held == protocol::Mode::kRead && mode == protocol::Mode::kRead;
  return both_read || options.try_only || options.wait;
}

/// It queues all the same.
bool StaysOut(protocol::Mode held, const cli::RunOptions& options, protocol::Mode mode) {
  return options.no_nest && MayWaitBehind(held, options, mode);
}

/// It would wait for ever if anybody was between it and the holder of `held`, above us.
bool WaitsWithoutEnd(protocol::Mode held, const cli::RunOptions& options, protocol::Mode mode) {
  return StaysOut(held, options, mode) && !options.try_only && !options.wait;
}

/// What runs below a holder of `held` goes on under it, if that covers `mode`.
void RequireCovered(protocol::Mode held, const cli::RunOptions& options, const lock::LockName& lock,
                    protocol::Mode mode) {
  if (options.min_interval) {
    // The interval is read and written by whoever takes the lock: without it this would always run.
    throw cli::UsageError(fmt::format(cli::message::kIntervalHeldAbove, lock.display_path()),
                          std::string(protocol::ModeName(mode)));
  }
  if (!options.no_nest && protocol::Covers(held, mode)) return;
  if (WaitsWithoutEnd(held, options, mode)) throw WaitsBehindWriter(lock.display_path());
  throw cli::UsageError(fmt::format(cli::message::kWaitsForItself, lock.display_path(),
                                    protocol::ModeName(held), protocol::ModeName(mode)),
                        std::string(protocol::ModeName(mode)));
}

cli::UsageError NoAnswerFrom(const HolderClaim& holder, const lock::LockName& lock,
                             protocol::Mode mode) {
  return {fmt::format(cli::message::kHolderSilent, lock.display_path(), holder.holder.pid,
                      protocol::ModeName(mode)),
          std::string(protocol::ModeName(mode))};
}

/// Whether all `nodes`, which are in `lock`, are still there. Or the exit status.
std::variant<bool, int> AreHeld(const cli::RunOptions& options, const lock::LockName& lock,
                                const std::vector<lock::ContenderId>& nodes,
                                process::Signals& signals, cli::Report& report) {
  ShortSession visit(options.server, signals, report);
  lock::OwnershipCheck check(visit.store(), visit.clock(), lock, nodes,
                             options.server.connect_timeout);
  if (const auto status = visit.Run(check)) return *status;
  visit.Close();
  return check.is_held();
}

/// A zklock above us, and our link to it. Without a link we queue.
struct Nesting {
  lock::Ticket ticket;
  std::unique_ptr<process::NestingLink> link;
  bool queues_beside = false;  // AncestorLocks::QueueBeside()
};

/// Asks the zklock above us that holds `held`, which is in `lock`. Or the exit status.
std::variant<Nesting, int> AskOuter(const cli::RunOptions& options, const lock::LockName& lock,
                                    protocol::Mode mode, const protocol::HeldLock& held,
                                    process::Signals& signals, cli::Report& report) {
  const HolderClaim claim = ClaimOf(held);
  HolderAnswer answer = AskHolder(claim, protocol::NestingRequest::Kind::kRun,
                                  options.server.connect_timeout, signals);
  if (auto* link = std::get_if<std::unique_ptr<process::NestingLink>>(&answer)) {
    return Nesting{{.lock = lock, .mode = held.mode, .path = held.node, .token = held.token},
                   std::move(*link)};
  }
  if (const auto* stopped = std::get_if<AskingStopped>(&answer)) {
    return StoppedBy(stopped->signal_number, report);
  }
  if (!std::holds_alternative<NoProof>(answer) || MayWaitBehind(held.mode, options, mode)) {
    return Nesting{};
  }
  // It may have released the lock while we asked.
  const auto is_held = AreHeld(options, lock, {{held.node, held.token}}, signals, report);
  if (const auto* status = std::get_if<int>(&is_held)) return *status;
  if (std::get<bool>(is_held)) throw NoAnswerFrom(claim, lock, mode);
  return Nesting{};
}

/// The zklock above us under whose lock we go on, instead of queueing for `lock`. Or the exit
/// status.
std::variant<Nesting, int> NestsIn(const cli::RunOptions& options, const lock::LockName& lock,
                                   protocol::Mode mode, pid_t below, process::Signals& signals,
                                   cli::Report& report) {
  const auto held = protocol::FindHeld(AncestorHolds(getppid()), lock.path);
  if (!held) return Nesting{};
  const auto is_held = AreHeld(options, lock, {{held->node, held->token}}, signals, report);
  if (const auto* status = std::get_if<int>(&is_held)) return *status;
  if (!std::get<bool>(is_held)) return Nesting{};
  const auto held_there = AncestorHolds(below);
  if (std::find(held_there.begin(), held_there.end(), *held) != held_there.end()) {
    if (StaysOut(held->mode, options, mode)) {
      Nesting none;
      none.queues_beside = WaitsWithoutEnd(held->mode, options, mode);
      return none;
    }
    RequireCovered(held->mode, options, lock, mode);
    return AskOuter(options, lock, mode, *held, signals, report);
  }
  // What is held here ends with our command, which may be long before that process does.
  if (MayWaitBehind(held->mode, options, mode)) return Nesting{};
  throw cli::UsageError(
      fmt::format(cli::message::kWaitsForOwner, lock.display_path(), protocol::ModeName(held->mode),
                  below, protocol::ModeName(mode)),
      std::string(protocol::ModeName(mode)));
}

/// One permit does not stand for another, but who waits for one where all are held above us waits
/// for itself: throws the cli::UsageError. Or the exit status, when that could not be found out.
std::optional<int> RequireFreePermit(const cli::RunOptions& options, const lock::LockName& lock,
                                     process::Signals& signals, cli::Report& report) {
  if (options.try_only || options.wait) return std::nullopt;
  const std::string leases = lock.path + "/" + std::string(protocol::kLeases);
  std::vector<lock::ContenderId> leases_above;
  for (const protocol::HeldLock& one : AncestorHolds(getppid())) {
    if (protocol::ParentOf(one.node) == leases) leases_above.push_back({one.node, one.token});
  }
  if (leases_above.size() < *options.permits) return std::nullopt;

  const auto is_held = AreHeld(options, lock, leases_above, signals, report);
  if (const auto* status = std::get_if<int>(&is_held)) return *status;
  if (!std::get<bool>(is_held)) return std::nullopt;
  throw cli::UsageError(
      fmt::format(cli::message::kPermitsHeldAbove, lock.display_path(), *options.permits),
      "exclusive");
}

}  // namespace

std::optional<int> RemoveInheritedLocks(const cli::RunOptions& options,
                                        std::vector<cli::WantedLock>& wanted, AncestorLocks& outer,
                                        pid_t below, process::Signals& signals, cli::Report& report,
                                        EventBroadcaster& steps) {
  const std::string& chroot = options.server.servers.chroot;
  for (auto one = wanted.begin(); one != wanted.end();) {
    const lock::LockName lock = lock::LockName::In(chroot, one->path);
    if (options.permits) {
      if (const auto status = RequireFreePermit(options, lock, signals, report)) return status;
    }
    auto nests = NestsIn(options, lock, one->mode, below, signals, report);
    if (const auto* status = std::get_if<int>(&nests)) return *status;
    auto& nesting = std::get<Nesting>(nests);
    if (nesting.queues_beside) outer.QueueBeside(one->path);
    if (nesting.link) {
      outer.Add(nesting.ticket, std::move(nesting.link));
      steps.Publish(cli::NestedEvent{one->path});
      one = wanted.erase(one);
    } else {
      ++one;
    }
  }
  return std::nullopt;
}

lock::HoldsForUs HoldsFor(const cli::RunOptions& options, const process::Identity& self,
                          pid_t below, protocol::Mode mode, const PassedOver& passed_over) {
  // One permit does not stand for another: who holds one may want more. And who would stay out of
  // one that excludes stays out of all.
  if (options.permits || StaysOut(protocol::Mode::kExclusive, options, mode)) return {};
  return
      [&options, &self, &passed_over, below, mode](protocol::Mode held, const std::string& data) {
        if (StaysOut(held, options, mode) && !WaitsWithoutEnd(held, options, mode)) return false;
        const auto claim = ClaimIn(data, "", self);
        if (!claim || passed_over.count(claim->socket) > 0) return false;
        const std::vector<process::ProcessId> lineage = process::Lineage(below);
        return FindIn(lineage, claim->owner) != lineage.end();
      };
}

cli::UsageError WaitsBehindWriter(const std::string& lock) {
  return {fmt::format(cli::message::kWaitsBehindWriter, lock),
          std::string(protocol::ModeName(protocol::Mode::kRead))};
}

std::variant<std::unique_ptr<process::NestingLink>, int> GoOnUnderKeeper(
    const KeeperFound& found, const cli::RunOptions& options, protocol::Mode mode,
    const process::Identity& self, PassedOver& passed_over, process::Signals& signals,
    cli::Report& report) {
  const auto claim = ClaimIn(found.data, found.holder.path, self);
  HolderAnswer answer = AskHolder(*claim, protocol::NestingRequest::Kind::kRun,
                                  options.server.connect_timeout, signals);
  if (auto* link = std::get_if<std::unique_ptr<process::NestingLink>>(&answer)) {
    RequireCovered(found.holder.mode, options, found.holder.lock, mode);
    return std::move(*link);
  }
  if (const auto* stopped = std::get_if<AskingStopped>(&answer)) {
    return StoppedBy(stopped->signal_number, report);
  }
  // Perhaps a keeper of ours that is stopped, or one that somebody invented: to run beside the
  // holder would be wrong for the one, to wait without end for the other.
  if (std::holds_alternative<NoProof>(answer) && !MayWaitBehind(found.holder.mode, options, mode)) {
    throw NoAnswerFrom(*claim, found.holder.lock, mode);
  }
  passed_over.insert(claim->socket);
  return nullptr;
}

}  // namespace zklock::commands
