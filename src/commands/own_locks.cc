#include "commands/own_locks.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "commands/console.h"
#include "commands/nesting.h"
#include "commands/short_session.h"
#include "lock/ownership_check.h"
#include "protocol/contender_name.h"
#include "protocol/held.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

/// That of one LOCK: the contender is its child, or its lease where it is a semaphore.
std::optional<protocol::HeldLock> HeldIn(const std::string& lock) {
  const auto held = AncestorHolds(getppid());
  for (const std::string& parent : {lock, lock + "/" + std::string(protocol::kLeases)}) {
    if (const auto found = protocol::FindHeld(held, parent)) return *found;
  }
  return std::nullopt;
}

}  // namespace

int InspectMine(const cli::InspectOptions& options, process::Signals& signals,
                cli::Report& report) {
  const std::string& chroot = options.server.servers.chroot;
  std::vector<protocol::HeldLock> held;
  if (options.path.empty()) {
    held = AncestorHolds(getppid());
  } else if (const auto one = HeldIn(chroot + options.path)) {
    held.push_back(*one);
  } else {
    // The shell that holds may have become this zklock, by exec.
    const FoundHolds found = LookForHolds(options.server, lock::LockName::In(chroot, options.path),
                                          getpid(), signals, report);
    if (const auto* status = std::get_if<int>(&found)) return *status;
    if (const auto* stopped = std::get_if<LookStopped>(&found)) {
      return StoppedBy(stopped->signal_number, report);
    }
    for (const OwnHold& hold : std::get<std::vector<OwnHold>>(found)) {
      const HolderAnswer answer = AskHolder(hold.claim, protocol::NestingRequest::Kind::kRun,
                                            options.server.connect_timeout, signals);
      if (const auto* stopped = std::get_if<AskingStopped>(&answer)) {
        return StoppedBy(stopped->signal_number, report);
      }
      if (std::holds_alternative<std::unique_ptr<process::NestingLink>>(answer)) return kExitOk;
    }
  }
  if (held.empty()) {
    report.NothingIsMine(options.path);
    return kExitLost;
  }
  ShortSession visit(options.server, signals, report);
  for (const protocol::HeldLock& one : held) {
    // Of another chroot it is told of by its whole path.
    const bool within = one.node.rfind(chroot + "/", 0) == 0;
    const lock::LockName lock{protocol::ParentOf(one.node), within ? chroot : ""};
    lock::OwnershipCheck check(visit.store(), visit.clock(), lock, {{one.node, one.token}},
                               options.server.connect_timeout);
    if (const auto status = visit.Run(check)) return *status;
    if (!check.is_held()) {
      visit.Leave();
      report.NoLongerMine(lock.display_path());
      return kExitLost;
    }
  }
  visit.Leave();
  return kExitOk;
}

}  // namespace zklock::commands
