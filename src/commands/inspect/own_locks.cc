#include "commands/inspect/own_locks.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/exit_status.h"
#include "cli/text/messages.h"
#include "cli/text/queue_messages.h"
#include "commands/session/exit.h"
#include "lock/operations/contender_operations.h"
#include "lock/survey/holders.h"
#include "process/tree/ancestry.h"
#include "protocol/contender_name.h"
#include "protocol/held.h"
#include "protocol/lock_path.h"
#include "protocol/semaphore.h"

namespace zklock::commands {
namespace {

/// Returns the hold claimed by the innermost ancestor that claims to hold `lock`: one contender or,
/// in a semaphore, all permits that it took. Empty if no ancestor claims to hold `lock`.
std::vector<protocol::HeldLock> AncestorHoldOf(const std::string& lock) {
  auto held = AncestorHolds(getpid());
  for (const std::string& parent : {lock, protocol::PermitsPath(lock)}) {
    const auto found = protocol::FindHeld(held, parent);
    if (!found) continue;
    std::erase_if(held, [&](const protocol::HeldLock& one) {
      return protocol::ParentOf(one.node) != parent || one.token != found->token;
    });
    return held;
  }
  return {};
}

/// Returns whether a keeper proves that it holds the LOCK for the calling shell. Throws Exit if
/// that cannot be determined.
bool HasKeeper(const cli::InspectOptions& options, process::Signals& signals, cli::Report& report) {
  ShortSession session(options.server, signals, report);
  // The search starts at this process, not its parent: the shell that holds the LOCK may have
  // become this zklock by exec.
  const auto lock = lock::LockName::In(options.server.servers.chroot, options.path);
  std::optional<pid_t> silent;
  for (const OwnHold& hold : FindOwnHolds(session, lock, getpid())) {
    const HolderAnswer answer = AskHolder(hold.claim, protocol::NestingRequest::Kind::kRun,
                                          options.server.connect_timeout, signals, report);
    if (std::holds_alternative<std::unique_ptr<process::NestingLink>>(answer)) return true;
    if (std::holds_alternative<Crowded>(answer)) {
      report.Error(cli::message::kHolderCrowded, options.path, hold.claim.holder.pid);
      throw Exit(kExitUnavailable);
    }
    if (std::holds_alternative<NoProof>(answer)) silent = hold.claim.holder.pid;
  }
  if (silent) {
    report.Error(cli::message::kMineUnconfirmed, options.path, *silent);
    throw Exit(kExitUnavailable);
  }
  return false;
}

}  // namespace

std::vector<OwnHold> FindOwnHolds(ShortSession& session, const lock::LockName& lock, pid_t pid) {
  const auto holders =
      session.Ask([&](lock::Calls& calls) { return lock::ReadHolders(calls, lock); });
  session.Close();
  const process::Identity self = process::ThisProcess();
  const std::vector<process::ProcessId> lineage = process::Lineage(pid);
  const auto distance_to = [&](const OwnHold& hold) {
    return std::find(lineage.begin(), lineage.end(), hold.claim.owner) - lineage.begin();
  };
  std::vector<OwnHold> found;
  for (const lock::Holder& holder : holders) {
    const auto claim = ClaimIn(holder.data, holder.path, self);
    if (!claim || claim->socket.empty() || claim->is_elsewhere) continue;
    found.push_back({{.lock = lock,
                      .mode = holder.name.mode(),
                      .path = holder.path,
                      .session = holder.stat.ephemeral_owner,
                      .token = holder.stat.created_zxid},
                     *claim});
  }
  std::erase_if(found, [&](const OwnHold& hold) {
    return distance_to(hold) == static_cast<std::ptrdiff_t>(lineage.size());
  });
  std::stable_sort(found.begin(), found.end(), [&](const OwnHold& one, const OwnHold& other) {
    return distance_to(one) < distance_to(other);
  });
  return found;
}

int InspectMine(const cli::InspectOptions& options, process::Signals& signals,
                cli::Report& report) {
  const std::string& chroot = options.server.servers.chroot;
  const std::vector<protocol::HeldLock> held =
      options.path.empty() ? AncestorHolds(getpid()) : AncestorHoldOf(chroot + options.path);
  if (held.empty()) {
    if (options.path.empty()) {
      report.Say(cli::message::kNothingMine);
    } else if (HasKeeper(options, signals, report)) {
      return kExitOk;
    } else {
      report.Say(cli::message::kNotMine, options.path, options.path);
    }
    return kExitLost;
  }
  std::map<std::string, std::vector<lock::ContenderId>> contenders;  // by their parent
  for (const protocol::HeldLock& one : held) {
    contenders[protocol::ParentOf(one.node)].push_back({one.node, one.token});
  }
  ShortSession session(options.server, signals, report);
  for (const auto& one : contenders) {
    const std::string& parent = one.first;
    // A lock outside the chroot is shown by its path on the servers.
    const bool is_within = parent.rfind(chroot + "/", 0) == 0;
    const lock::LockName lock{parent, is_within ? chroot : ""};
    const bool are_held =
        session.Ask([&](lock::Calls& calls) { return lock::AreHeld(calls, lock, one.second); });
    if (!are_held) {
      session.Close();
      report.Say(cli::message::kNoLongerMine, lock.display_path());
      return kExitLost;
    }
  }
  session.Close();
  return kExitOk;
}

}  // namespace zklock::commands
