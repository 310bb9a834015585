#include "commands/subcommands.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/printable.h"
#include "cli/queue_messages.h"
#include "cli/queue_view.h"
#include "cli/report_queue.h"
#include "commands/console.h"
#include "commands/own_locks.h"
#include "commands/short_session.h"
#include "lock/contender_operations.h"
#include "lock/holders.h"
#include "lock/release_reservation.h"
#include "lock/reserved.h"
#include "lock/survey.h"
#include "process/identity.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

namespace message = cli::message;
using Target = cli::ReleaseOptions::Target;

lock::LockName LockOf(const cli::ReleaseOptions& options, const std::string& lock) {
  return lock::LockName::In(options.server.servers.chroot, lock);
}

lock::LockName LockOf(const cli::ReleaseOptions& options) { return LockOf(options, options.lock); }

/// The znode that has the contender as a child: LOCK, or a queue of a semaphore.
lock::LockName QueueOf(const cli::ReleaseOptions& options, const cli::ContenderView& contender) {
  return {protocol::ParentOf(contender.path), options.server.servers.chroot};
}

lock::ContenderId IdOf(const cli::ContenderView& contender) {
  return {contender.path, contender.token.value_or(0)};
}

bool IsTarget(const cli::ReleaseOptions& options, const cli::ContenderView& contender) {
  switch (options.target) {
    case Target::kOwn:
    case Target::kReservation:
      return false;
    case Target::kContender:
      // While it passes through a semaphore's turnstile it has two names.
      return contender.name == options.contender || contender.turnstile_name == options.contender;
    case Target::kHolders:
      return contender.Holds();
    case Target::kAll:
      return contender.state != cli::ContenderState::kNoContender;
  }
  return false;
}

struct Targets {
  std::vector<cli::ContenderView> contenders;
  bool all = true;  ///< there are no others that were meant
};

/// Removes reservations, which only --reserve, or --force with a name, releases.
void KeepReservations(const cli::ReleaseOptions& options, Targets& targets, cli::Report& report) {
  if (options.force && options.target == Target::kContender) return;
  std::erase_if(targets.contenders, [&](const cli::ContenderView& contender) {
    if (!contender.reserved) return false;
    report.Error(cli::StaysReserved(options.lock, contender));
    targets.all = false;
    return true;
  });
}

/// The contenders to release, at least one, or the exit status.
std::variant<Targets, int> FindTargets(const cli::ReleaseOptions& options,
                                       process::Signals& signals, cli::Report& report) {
  ShortSession session(options.server, signals, report);
  lock::Survey survey(session.store(), session.clock(),
                      {.place = LockOf(options),
                       .most_data = lock::kMostContenderData,
                       .connect_timeout = options.server.connect_timeout});
  if (const auto status = session.Run(survey)) return *status;
  session.Close();

  const lock::LockSurvey& lock = survey.result().locks.front();
  Targets targets{cli::DescribeQueue(lock)};
  std::vector<cli::ContenderView>& contenders = targets.contenders;
  std::erase_if(contenders, [&](const auto& contender) { return !IsTarget(options, contender); });
  const auto& ignored = lock.ignored_children;
  const bool is_ignored =
      options.target == Target::kContender &&
      std::find(ignored.begin(), ignored.end(), options.contender) != ignored.end();
  if (is_ignored ||
      (!contenders.empty() && contenders.front().state == cli::ContenderState::kNoContender)) {
    report.Error(cli::NoContender(options.lock, options.contender));
    return kExitUsage;
  }
  KeepReservations(options, targets, report);
  if (!contenders.empty()) return targets;
  if (!targets.all) return kExitConflict;
  if (options.target == Target::kContender) {
    report.Say(cli::NotThere(options.lock, options.contender));
  } else {
    report.Say(message::kNoSuchContender, options.lock);
  }
  return kExitConflict;
}

/// What is about to happen to the contenders, as a question.
std::string Question(const cli::ReleaseOptions& options, const Targets& targets) {
  const auto& contenders = targets.contenders;
  const bool is_one = contenders.size() == 1;
  const char* const who = is_one ? "it" : "them";
  if (options.force) return fmt::format(message::kForceQuestion, who, options.lock);
  const bool ends = std::any_of(contenders.begin(), contenders.end(),
                                [](const cli::ContenderView& one) { return one.Holds(); });
  if (!ends) return fmt::format(message::kLeaveQuestion, who);
  return fmt::format(message::kEndQuestion, is_one ? message::kItsCommand : message::kTheirCommands,
                     options.lock);
}

/// Asks whether to release them. None: go on. Else the exit status.
std::optional<int> Confirm(const cli::ReleaseOptions& options, const Targets& targets,
                           process::Signals& signals, cli::Report& report) {
  if (options.yes) return std::nullopt;
  const Answer answer = AskYesNo("zklock: " + Question(options, targets), signals);
  if (answer.signal) return InterruptedBy(*answer.signal, report);
  if (answer.yes) return std::nullopt;
  report.Say(message::kNothingReleased, options.lock);
  return kExitConflict;
}

/// How to ask the contender in its data. None if its program does not read such a request.
std::optional<std::function<std::string(const std::string&)>> EditFor(
    const cli::ContenderView& contender, const lock::ReleaseRequest& request) {
  switch (contender.program) {
    case protocol::Program::kZklock:
      return [request](const std::string& old) { return lock::AddReleaseRequest(old, request); };
    case protocol::Program::kCurator:
      // Curator's semaphores do not read the message.
      if (contender.for_permit) return std::nullopt;
      return [](const std::string& /*old*/) { return std::string(lock::kCuratorRevoke); };
    default:
      return std::nullopt;
  }
}

/// Asks contenders to leave, or deletes them, over one session.
class Releaser {
 public:
  enum class Fate {
    kReleasing,  ///< asked or deleted
    kGone,       ///< it was gone already
    kCannotBeAsked,
  };
  using FateOrStatus = std::variant<Fate, int>;

  Releaser(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report)
      : options_(options), report_(report), session_(options.server, signals, report) {}

  FateOrStatus Delete(const cli::ContenderView& contender) {
    lock::DeleteContender deletion(session_.store(), session_.clock(), QueueOf(options_, contender),
                                   IdOf(contender), options_.server.connect_timeout);
    if (const auto status = session_.Run(deletion)) return *status;
    if (!deletion.has_removed()) return Fate::kGone;
    report_.Say(cli::ForcedOut(options_.lock, contender.name));
    return Fate::kReleasing;
  }

  FateOrStatus Ask(const cli::ContenderView& contender, const lock::ReleaseRequest& request) {
    const auto edit = EditFor(contender, request);
    if (!edit) {
      report_.Error(cli::CannotBeAsked(contender));
      return Fate::kCannotBeAsked;
    }
    lock::RequestRelease operation(session_.store(), session_.clock(), QueueOf(options_, contender),
                                   IdOf(contender), *edit, options_.server.connect_timeout);
    if (const auto status = session_.Run(operation)) return *status;
    if (!operation.has_asked()) return Fate::kGone;
    report_.Say(cli::Asked(options_.lock, contender));
    return Fate::kReleasing;
  }

  /// Returns the exit status if it failed.
  std::optional<int> WaitUntilGone(const cli::ContenderView& contender) {
    lock::WaitUntilGone wait(session_.store(), session_.clock(), QueueOf(options_, contender),
                             IdOf(contender), options_.server.connect_timeout);
    return session_.Run(wait);
  }

  void Close() { session_.Close(); }

 private:
  const cli::ReleaseOptions& options_;
  cli::Report& report_;
  ShortSession session_;
};

lock::ReleaseRequest RequestOf(const cli::ReleaseOptions& options) {
  const process::Identity self = process::ThisProcess();
  return {.by = self.user + " on " + self.host, .reason = options.reason};
}

/// In a new session: an open one could expire while the user is asked.
int ReleaseAll(const cli::ReleaseOptions& options, const Targets& targets,
               process::Signals& signals, cli::Report& report) {
  using Fate = Releaser::Fate;
  Releaser releaser(options, signals, report);
  std::vector<cli::ContenderView> releasing;
  bool all_can = targets.all;
  // The last first, so that no waiter among them acquires what another releases.
  for (auto one = targets.contenders.rbegin(); one != targets.contenders.rend(); ++one) {
    const cli::ContenderView& contender = *one;
    const auto fate =
        options.force ? releaser.Delete(contender) : releaser.Ask(contender, RequestOf(options));
    if (const int* status = std::get_if<int>(&fate)) return *status;
    if (std::get<Fate>(fate) == Fate::kReleasing) releasing.push_back(contender);
    if (std::get<Fate>(fate) == Fate::kGone) {
      report.Say(cli::NotThere(options.lock, contender.name));
    }
    all_can = all_can && std::get<Fate>(fate) != Fate::kCannotBeAsked;
  }
  if (options.wait) {
    for (const cli::ContenderView& contender : releasing) {
      if (const auto status = releaser.WaitUntilGone(contender)) return *status;
    }
  }
  releaser.Close();
  return releasing.empty() || !all_can ? kExitConflict : kExitOk;
}

cli::ContenderView ViewOf(const lock::Ticket& ticket) {
  cli::ContenderView contender;
  contender.program = protocol::Program::kZklock;
  contender.path = ticket.path;
  contender.token = ticket.token;
  contender.name = protocol::BaseOf(ticket.path);
  return contender;
}

/// Releases what the calling shell holds by --hold: asks its keeper, and waits until that has
/// released it.
int ReleaseOwn(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  // The shell that holds may have become this zklock, by exec.
  ShortSession session(options.server, signals, report);
  const auto found = FindOwnHolds(session, LockOf(options), getpid());
  if (const int* status = std::get_if<int>(&found)) return *status;
  std::optional<pid_t> silent;
  for (const OwnHold& hold : std::get<std::vector<OwnHold>>(found)) {
    const HolderAnswer answer = AskHolder(hold.claim, protocol::NestingRequest::Kind::kRelease,
                                          options.server.connect_timeout, signals);
    if (const auto* link = std::get_if<std::unique_ptr<process::NestingLink>>(&answer)) {
      // The keeper releases it as soon as nothing runs under it any more.
      const protocol::NestingRelease& release = (*link)->release();
      if (release.runs > 0) {
        report.Say(message::kReleaseWaits, options.lock, release.runs, release.pid);
      }
      Releaser releaser(options, signals, report);
      if (const auto status = releaser.WaitUntilGone(ViewOf(hold.ticket))) return *status;
      releaser.Close();
      return kExitOk;
    }
    if (const auto* interrupted = std::get_if<AskingInterrupted>(&answer)) {
      return InterruptedBy(interrupted->signal_number, report);
    }
    if (std::holds_alternative<Refuses>(answer)) {
      report.Error(message::kReleaseBelow, options.lock);
      return kExitUsage;
    }
    if (std::holds_alternative<NoProof>(answer) || std::holds_alternative<Crowded>(answer)) {
      silent = hold.claim.holder.pid;
    }
  }
  if (silent) {
    report.Error(message::kKeeperSilent, options.lock, *silent);
    return kExitUnavailable;
  }
  report.Say(message::kNothingHeld, options.lock);
  return kExitConflict;
}

/// Releases the reservations for an ID in one LOCK. Returns the exit status.
int ReleaseReservationsIn(const lock::LockName& lock, const cli::ReleaseOptions& options,
                          ShortSession& session, cli::Report& report) {
  const Duration connect_timeout = options.server.connect_timeout;
  lock::Holders holders(session.store(), session.clock(), lock, connect_timeout, lock::kAllHolders);
  if (const auto status = session.Run(holders)) return *status;
  bool released = false;
  std::string others;
  // Two readers that made a reservation for this ID at the same time have left two.
  for (const lock::Holder& holder : holders.holders()) {
    const auto reserved = lock::FindReservation(holder.name.full, holder.data, holder.stat);
    if (!reserved) continue;
    const std::string& id = reserved->reservation.id;
    if (id != options.reserve) {
      others += (others.empty() ? "" : ", ") + id;
      continue;
    }
    lock::ReleaseReservation release(session.store(), session.clock(), lock, holder.path,
                                     options.reserve, connect_timeout);
    if (const auto status = session.Run(release)) return *status;
    released = released || release.has_released();
    if (release.has_released() && release.unkept()) {
      report.NoHistory({lock.display_path(), *release.unkept()});
    }
  }
  if (released) {
    report.Write(cli::Level::kVerbose,
                 fmt::format(message::kReservationReleased, lock.display_path(), options.reserve));
    return kExitOk;
  }
  if (others.empty()) {
    report.Say(message::kNotReserved, lock.display_path(), options.reserve);
  } else {
    report.Say(message::kReservedForOthers, lock.display_path(), options.reserve,
               cli::Printable(others));
  }
  return kExitConflict;
}

/// LOCK after LOCK. One that cannot be released does not keep the others.
int ReleaseReservations(const cli::ReleaseOptions& options, process::Signals& signals,
                        cli::Report& report) {
  ShortSession session(options.server, signals, report);
  int status = kExitOk;
  for (const std::string& path : options.locks) {
    const int ended = ReleaseReservationsIn(LockOf(options, path), options, session, report);
    if (ended != kExitOk && ended != kExitConflict && ended != kExitRefused) return ended;
    status = std::max(status, ended);
  }
  session.Close();
  return status;
}

}  // namespace

int Release(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  if (options.target == Target::kOwn) return ReleaseOwn(options, signals, report);
  if (options.target == Target::kReservation) return ReleaseReservations(options, signals, report);
  if (!options.yes && !CanAsk()) {
    report.Error(message::kNoTerminal);
    return kExitUsage;
  }
  const auto found = FindTargets(options, signals, report);
  if (const int* status = std::get_if<int>(&found)) return *status;
  const auto& targets = std::get<Targets>(found);
  for (const cli::ContenderView& contender : targets.contenders) {
    if (options.yes) {
      report.Say(cli::Meant(options.lock, contender));
    } else {
      // Even with --quiet: the question needs its subject.
      report.Error(cli::Meant(options.lock, contender));
    }
  }
  if (const auto status = Confirm(options, targets, signals, report)) return *status;
  return ReleaseAll(options, targets, signals, report);
}

}  // namespace zklock::commands
