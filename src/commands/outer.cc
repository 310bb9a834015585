#include "commands/outer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/messages.h"
#include "commands/surroundings.h"
#include "commands/visit.h"
#include "lock/held_check.h"
#include "lock/holders.h"
#include "process/ancestry.h"
#include "process/identity.h"

namespace zklock::commands {
namespace {

/// Whom the holder with this data holds for, if that is a process of which we could know.
std::optional<cli::OwnerData> OwnerHere(const std::string& text, const process::Identity& self) {
  const auto data = cli::ParseContenderData(text);
  if (!data || data->boot_id != self.boot_id || data->pid_namespace != self.pid_namespace) {
    return std::nullopt;
  }
  return data->owner;
}

std::vector<process::ProcessId>::const_iterator FindIn(
    const std::vector<process::ProcessId>& lineage, const cli::OwnerData& owner) {
  return std::find_if(lineage.begin(), lineage.end(), [&](const process::ProcessId& one) {
    return one.pid == owner.pid && one.start_time == owner.start_time;
  });
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

/// The contender of a zklock above us under which to go on, instead of queueing for `lock`. Or the
/// exit status.
std::variant<std::optional<lock::Ticket>, int> NestsIn(const cli::RunOptions& options,
                                                       const lock::LockName& lock,
                                                       protocol::Mode mode, pid_t below,
                                                       process::Signals& signals,
                                                       cli::Report& report) {
  const auto held = protocol::FindHeld(HeldAbove(getppid()), lock.path);
  if (!held) return std::nullopt;

  Visit visit(options.server, signals, report);
  lock::HeldCheck check(visit.store(), visit.clock(), lock, {{held->node, held->token}},
                        options.server.connect_timeout);
  if (const auto status = visit.Run(check)) return *status;
  visit.Leave();
  if (!check.is_held()) return std::nullopt;
  const auto held_there = HeldAbove(below);
  if (std::find(held_there.begin(), held_there.end(), *held) != held_there.end()) {
    if (StaysOut(held->mode, options, mode)) return std::nullopt;
    GoOnUnder(held->mode, options, lock, mode);
    return lock::Ticket{.lock = lock, .mode = held->mode, .path = held->node, .token = held->token};
  }
  // What is held here ends with our command, which may be long before that process does.
  if (MayWaitBehind(held->mode, options, mode)) return std::nullopt;
  throw cli::UsageError(
      fmt::format(cli::message::kWaitsForOwner, lock.shown(), protocol::ModeName(held->mode), below,
                  protocol::ModeName(mode)),
      std::string(protocol::ModeName(mode)));
}

/// One permit does not stand for another, but who waits for one where all are held above us waits
/// for itself: throws the cli::UsageError. Or the exit status, when that could not be found out.
std::optional<int> RequireFreePermit(const cli::RunOptions& options, const lock::LockName& lock,
                                     process::Signals& signals, cli::Report& report) {
  if (options.try_only || options.wait) return std::nullopt;
  const std::string leases = lock.path + "/" + std::string(protocol::kLeases);
  std::vector<lock::ContenderId> leases_above;
  for (const protocol::HeldLock& one : HeldAbove(getppid())) {
    if (protocol::ParentOf(one.node) == leases) leases_above.push_back({one.node, one.token});
  }
  if (leases_above.size() < *options.permits) return std::nullopt;

  Visit visit(options.server, signals, report);
  lock::HeldCheck check(visit.store(), visit.clock(), lock, leases_above,
                        options.server.connect_timeout);
  if (const auto status = visit.Run(check)) return *status;
  visit.Leave();
  if (!check.is_held()) return std::nullopt;
  throw cli::UsageError(
      fmt::format(cli::message::kPermitsHeldAbove, lock.shown(), *options.permits), "exclusive");
}

}  // namespace

std::vector<protocol::HeldLock> HeldAbove(pid_t below) {
  const auto variable = GetEnvironment("ZKLOCK_HELD");
  if (!variable) return {};
  auto held = protocol::ParseHeld(*variable);
  const std::vector<process::ProcessId> lineage = process::Lineage(below);
  std::erase_if(held, [&](const protocol::HeldLock& one) {
    return std::none_of(lineage.begin(), lineage.end(), [&](const process::ProcessId& process) {
      return process.pid == one.pid && process.start_time == one.start_time;
    });
  });
  return held;
}

std::optional<int> LeaveOutWhatIsHeldAbove(const cli::RunOptions& options,
                                           std::vector<cli::WantedLock>& wanted,
                                           std::vector<lock::Ticket>& above, pid_t below,
                                           process::Signals& signals, cli::Report& report,
                                           Steps& steps) {
  const std::string& chroot = options.server.servers.chroot;
  for (auto one = wanted.begin(); one != wanted.end();) {
    const lock::LockName lock = lock::LockName::In(chroot, one->path);
    if (options.permits) {
      if (const auto status = RequireFreePermit(options, lock, signals, report)) return status;
    }
    const auto nests = NestsIn(options, lock, one->mode, below, signals, report);
    if (const auto* status = std::get_if<int>(&nests)) return *status;
    if (const auto& holder = std::get<std::optional<lock::Ticket>>(nests)) {
      above.push_back(*holder);
      steps.Tell(cli::Nested{one->path});
      one = wanted.erase(one);
    } else {
      ++one;
    }
  }
  return std::nullopt;
}

lock::HoldsForUs HoldsFor(const cli::RunOptions& options, const process::Identity& self,
                          pid_t below, protocol::Mode mode) {
  // One permit does not stand for another: who holds one may want more. And who would stay out of
  // one that excludes stays out of all.
  if (options.permits || StaysOut(protocol::Mode::kExclusive, options, mode)) return {};
  return [&options, &self, below, mode](protocol::Mode held, const std::string& data) {
    if (StaysOut(held, options, mode)) return false;
    const auto owner = OwnerHere(data, self);
    if (!owner) return false;
    const std::vector<process::ProcessId> lineage = process::Lineage(below);
    return FindIn(lineage, *owner) != lineage.end();
  };
}

FoundHold LookForHold(const cli::ServerOptions& server, const lock::LockName& lock, pid_t below,
                      process::Signals& signals, cli::Report& report) {
  Visit visit(server, signals, report);
  lock::Holders holders(visit.store(), visit.clock(), lock, server.connect_timeout);
  const auto never = [] { return false; };
  if (const auto signal = visit.RunUntilLeft(holders, never)) return LookStopped{*signal};
  if (const auto status = visit.Failure(holders)) return *status;
  const process::Identity self = process::ThisProcess();
  const std::vector<process::ProcessId> lineage = process::Lineage(below);
  auto nearest = lineage.end();
  OwnHold found;
  for (const lock::Holder& holder : holders.holders()) {
    const auto owner = OwnerHere(holder.data, self);
    if (!owner) continue;
    const auto match = FindIn(lineage, *owner);
    if (match >= nearest) continue;
    nearest = match;
    found = {{.lock = lock,
              .mode = holder.name.mode(),
              .path = holder.path,
              .session = holder.stat.ephemeral_owner,
              .token = holder.stat.created_zxid},
             *owner};
  }
  if (nearest == lineage.end()) {
    visit.Leave();
    return NotHeldForUs{};
  }
  lock::HeldCheck check(visit.store(), visit.clock(), lock, {found.ticket.id()},
                        server.connect_timeout);
  if (const auto signal = visit.RunUntilLeft(check, never)) return LookStopped{*signal};
  if (const auto status = visit.Failure(check)) return *status;
  visit.Leave();
  if (!check.is_held()) return NotHeldForUs{};
  return found;
}

void GoOnUnder(protocol::Mode held, const cli::RunOptions& options, const lock::LockName& lock,
               protocol::Mode mode) {
  if (options.min_interval) {
    // The interval is read and written by whoever takes the lock: without it this would always run.
    throw cli::UsageError(fmt::format(cli::message::kIntervalHeldAbove, lock.shown()),
                          std::string(protocol::ModeName(mode)));
  }
  if (!options.no_nest && protocol::Covers(held, mode)) return;
  throw cli::UsageError(fmt::format(cli::message::kWaitsForItself, lock.shown(),
                                    protocol::ModeName(held), protocol::ModeName(mode)),
                        std::string(protocol::ModeName(mode)));
}

}  // namespace zklock::commands
