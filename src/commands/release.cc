#include "commands/release.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/reports/report_queue.h"
#include "cli/text/printable.h"
#include "cli/text/queue_messages.h"
#include "cli/text/queue_view.h"
#include "commands/inspect/own_locks.h"
#include "commands/run/dry_run.h"
#include "commands/session/console.h"
#include "commands/session/exit.h"
#include "commands/session/short_session.h"
#include "lock/data/reserved.h"
#include "lock/operations/contender_operations.h"
#include "lock/reserve/release_reservation.h"
#include "lock/survey/holders.h"
#include "lock/survey/survey.h"
#include "process/tree/identity.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

namespace message = cli::message;
using Target = cli::ReleaseOptions::Target;

// The time that a contender gets to read the reason before it is deleted: a few round trips within
// a site.
constexpr Duration kTimeToRead = std::chrono::milliseconds(100);

lock::LockName LockOf(const cli::ReleaseOptions& options, const std::string& lock) {
  return lock::LockName::In(options.server.servers.chroot, lock);
}

lock::LockName LockOf(const cli::ReleaseOptions& options) { return LockOf(options, options.lock); }

/// Returns the contender's parent znode: LOCK, or one of the queues of a semaphore.
lock::LockName QueueOf(const cli::ReleaseOptions& options, const cli::ContenderView& contender) {
  return {protocol::ParentOf(contender.path), options.server.servers.chroot};
}

lock::ContenderId IdOf(const cli::ContenderView& contender) {
  // A reservation keeps the token of the contender from which it was converted.
  return {contender.path, contender.reserved ? 0 : contender.token.value_or(0)};
}

bool IsTarget(const cli::ReleaseOptions& options, const cli::ContenderView& contender) {
  switch (options.target) {
    case Target::kOwn:
    case Target::kReservation:
      return false;
    case Target::kContender:
      // A contender has two names while it passes through a semaphore's turnstile, and with --take
      // it always has several.
      return contender.name == options.contender || contender.turnstile_name == options.contender ||
             std::any_of(contender.more.begin(), contender.more.end(), [&](const auto& path) {
               return protocol::BaseOf(path) == options.contender;
             });
    case Target::kPosition:
      return contender.position == options.position;
    case Target::kHost:
      return contender.state != cli::ContenderState::kNoContender &&
             contender.data.host == options.host;
    case Target::kHolders:
      return contender.Holds();
    case Target::kAll:
      return contender.state != cli::ContenderState::kNoContender;
  }
  return false;
}

/// Returns whether LOCK or the chroot does not exist; if so, reports that. Throws Exit.
bool IsMissing(const lock::LockName& lock, const cli::ReleaseOptions& options,
               ShortSession& session, cli::Report& report) {
  const bool exists = session.Ask([&](lock::Calls& calls) {
    return calls.Repeat([&] { return calls.Get(lock.path).error != zookeeper::Error::kNoNode; });
  });
  if (exists) return false;
  if (session.LacksChroot()) {
    report.Say(message::kNoChroot, cli::Printable(options.server.servers.chroot));
  } else {
    report.Say(message::kNoSuchLock, lock.display_path());
  }
  return true;
}

struct Targets {
  std::vector<cli::ContenderView> contenders;
  bool all = true;  ///< false: some contenders that the user selected are left out
};

/// Removes reservations from the targets: only --reserve, or --force with a single contender,
/// releases them.
void KeepReservations(const cli::ReleaseOptions& options, Targets& targets, cli::Report& report) {
  const bool is_one = options.target == Target::kContender || options.target == Target::kPosition;
  if (options.force && is_one) return;
  std::erase_if(targets.contenders, [&](const cli::ContenderView& contender) {
    if (!contender.reserved) return false;
    report.Error(cli::StaysReserved(options.lock, contender));
    targets.all = false;
    return true;
  });
}

/// Returns the current queue. Throws Exit.
lock::LockSurvey ReadQueue(const cli::ReleaseOptions& options, ShortSession& session) {
  lock::Survey survey(session.store(), session.clock(),
                      {.place = LockOf(options),
                       .most_data = lock::kMostContenderData,
                       .connect_timeout = options.server.connect_timeout});
  session.Run(survey);
  return survey.result().locks.front();
}

/// Finds the contenders to release. Throws Exit if there is none.
Targets FindTargets(const cli::ReleaseOptions& options, process::Signals& signals,
                    cli::Report& report) {
  ShortSession session(options.server, signals, report);
  const lock::LockSurvey lock = ReadQueue(options, session);
  const bool is_missing = !lock.exists && IsMissing(LockOf(options), options, session, report);
  session.Close();
  if (is_missing) throw Exit(kExitConflict);

  Targets targets{cli::DescribeQueue(lock)};
  std::vector<cli::ContenderView>& contenders = targets.contenders;
  std::erase_if(contenders, [&](const auto& contender) { return !IsTarget(options, contender); });
  const auto& ignored = lock.ignored_children;
  const bool is_ignored =
      options.target == Target::kContender &&
      std::find(ignored.begin(), ignored.end(), options.contender) != ignored.end();
  // A znode `lock` needs no number.
  const bool is_unnumbered = is_ignored && options.contender != protocol::kSimpleName;
  if (is_ignored ||
      (!contenders.empty() && contenders.front().state == cli::ContenderState::kNoContender)) {
    report.Error(is_unnumbered ? cli::NoQueueNumber(options.lock, options.contender)
                               : cli::NoContender(options.lock, options.contender));
    throw Exit(kExitUsage);
  }
  KeepReservations(options, targets, report);
  if (!contenders.empty()) return targets;
  if (targets.all && options.target == Target::kContender) {
    report.Say(cli::ContenderNotFound(options.lock, options.contender));
  } else if (targets.all) {
    report.Say(message::kNoSuchContender, options.lock);
  }
  throw Exit(kExitConflict);
}

/// Shows what will happen to the contenders and, without --yes, asks for confirmation. Throws Exit
/// if the user does not confirm.
void Confirm(const cli::ReleaseOptions& options, const std::vector<cli::ContenderView>& contenders,
             process::Signals& signals, cli::Report& report) {
  if (options.yes) {
    for (const auto& one : contenders) report.Say(cli::DescribeTarget(options.lock, one));
    return;
  }
  const std::int64_t now_ms = cli::MillisecondsNow();
  // Listed even with --quiet: the question would make no sense without the list.
  if (contenders.size() > 1) {
    for (const auto& contender : contenders) report.Error(cli::Listed(contender, now_ms));
  }
  const Answer answer = AskYesNo(
      "zklock: " + cli::ReleaseQuestion(options.lock, contenders, options.force, now_ms), signals);
  if (answer.signal) throw Exit(InterruptedBy(*answer.signal, report));
  if (answer.yes) return;
  report.Say(message::kNothingReleased, options.lock);
  throw Exit(kExitConflict);
}

/// Returns whether the contender was waiting when the user confirmed. Such a contender may only be
/// asked to leave the queue: the user has not agreed to end a command that starts later.
bool IsToLeaveQueue(const cli::ReleaseOptions& options, const cli::ContenderView& contender) {
  return !options.yes && contender.state == cli::ContenderState::kWaiting;
}

/// Removes and reports the contenders that may only be asked to leave the queue but have since
/// acquired the lock. Returns whether there are any. Throws Exit.
bool KeepNewHolders(const cli::ReleaseOptions& options, std::vector<cli::ContenderView>& contenders,
                    ShortSession& session, cli::Report& report) {
  const auto waited = [&](const auto& one) { return IsToLeaveQueue(options, one); };
  if (std::none_of(contenders.begin(), contenders.end(), waited)) return false;
  const std::vector<cli::ContenderView> queue = cli::DescribeQueue(ReadQueue(options, session));
  return std::erase_if(contenders, [&](const cli::ContenderView& target) {
           const auto now = std::find_if(queue.begin(), queue.end(), [&](const auto& one) {
             return one.path == target.path || one.turnstile_name == target.name;
           });
           if (!waited(target) || now == queue.end() || !now->Holds()) return false;
           report.Say(cli::HasAcquired(options.lock, *now, cli::MillisecondsNow()));
           return true;
         }) != 0;
}

/// Returns how to edit the contender's data to ask it to leave; none if its program does not read
/// such requests.
std::optional<std::function<std::string(const std::string&)>> EditFor(
    const cli::ContenderView& contender, const lock::ReleaseRequest& request) {
  switch (contender.program) {
    case protocol::Program::kZklock:
      return [request](const std::string& old) { return lock::AddReleaseRequest(old, request); };
    case protocol::Program::kCurator:
      // Neither Curator's semaphores nor go-zookeeper read this message.
      if (contender.for_permit || cli::IsGoZooKeeper(contender.name)) return std::nullopt;
      return [](const std::string& /*old*/) { return std::string(lock::kCuratorRevoke); };
    default:
      return std::nullopt;
  }
}

lock::ReleaseRequest RequestOf(const cli::ReleaseOptions& options) {
  const process::Identity self = process::ThisProcess();
  return {.by = self.user + " on " + self.host, .reason = options.reason, .forced = options.force};
}

/// Call this before deleting contenders. Tells zklock's contenders, through their data, who deletes
/// them and why, and gives them a moment to read it. Skips contenders whose data we lack permission
/// to write.
void Announce(const cli::ReleaseOptions& options, const std::vector<cli::ContenderView>& contenders,
              ShortSession& session, process::Signals& signals, cli::Report& report) {
  const lock::ReleaseRequest request = RequestOf(options);
  bool is_any_written = false;
  for (auto one = contenders.rbegin(); one != contenders.rend(); ++one) {
    if (one->program != protocol::Program::kZklock || one->reserved) continue;
    const bool is_written = session.Ask([&](lock::Calls& calls) {
      try {
        return lock::RequestRelease(calls, QueueOf(options, *one), IdOf(*one),
                                    *EditFor(*one, request));
      } catch (const lock::OperationFailed& failed) {
        if (std::holds_alternative<lock::Unreachable>(failed.failure())) throw;
        return false;
      }
    });
    is_any_written = is_any_written || is_written;
  }
  if (!is_any_written) return;
  const auto signal = RunUntil(
      session.loop(), signals, [] { return false; }, session.clock().Now() + kTimeToRead);
  if (signal) throw Exit(InterruptedBy(*signal, report));
}

/// Asks the contender to leave, or deletes it. Returns none if it cannot be asked; otherwise,
/// whether it still existed.
std::optional<bool> ReleaseOne(const cli::ReleaseOptions& options,
                               const cli::ContenderView& contender, ShortSession& session,
                               process::Signals& signals, cli::Report& report) {
  const lock::LockName queue = QueueOf(options, contender);
  lock::ReleaseRequest request = RequestOf(options);
  request.only_waiting = IsToLeaveQueue(options, contender);
  const auto edit = EditFor(contender, request);
  if (!options.force && !edit) {
    report.Error(cli::CannotBeAsked(contender));
    return std::nullopt;
  }
  if (options.dry_run) {
    const bool is_there = session.Ask([&](lock::Calls& calls) {
      return options.force ? lock::MayDelete(calls, queue, contender.path)
                           : lock::MayRequestRelease(calls, queue, contender.path);
    });
    if (!is_there) return false;
    PrintRows(cli::ReleaseRows(options.force ? cli::ReleaseAction::kDeleteContender
                                             : cli::ReleaseAction::kAskProgram,
                               cli::DescribeTarget(options.lock, contender)),
              signals, report);
    return true;
  }
  if (options.force) {
    const bool was_there = session.Ask(
        [&](lock::Calls& calls) { return lock::DeleteContender(calls, queue, IdOf(contender)); });
    if (!was_there) return false;
    report.Say(cli::ForcedOut(options.lock, contender));
    const auto& reserved = contender.reserved;
    const std::int64_t token = reserved ? reserved->reservation.token : contender.token.value_or(0);
    const auto unkept = session.Ask([&](lock::Calls& calls) {
      return lock::EnterTaken(calls, LockOf(options), token, RequestOf(options));
    });
    if (unkept) report.NoHistory({LockOf(options).display_path(), *unkept});
    return true;
  }
  const bool was_there = session.Ask([&](lock::Calls& calls) {
    return lock::RequestRelease(calls, queue, IdOf(contender), *edit);
  });
  if (was_there) report.Say(cli::ReleaseRequested(options.lock, contender, cli::MillisecondsNow()));
  return was_there;
}

/// Waits until a contender that was asked to release the lock has done so. Returns false if it
/// acquired the lock before it could read the request to leave the queue.
bool AwaitRelease(const cli::ReleaseOptions& options, const cli::ContenderView& contender,
                  ShortSession& session, cli::Report& report) {
  for (;;) {
    const bool is_gone = session.Ask([&](lock::Calls& calls) {
      return lock::IsGoneSoon(calls, QueueOf(options, contender), IdOf(contender));
    });
    // Other programs do not distinguish requests to leave the queue from requests to release.
    const bool may_stay = contender.program == protocol::Program::kZklock;
    // A contender that has left a turnstile may hold a permit.
    std::vector<cli::ContenderView> one{contender};
    if (may_stay && KeepNewHolders(options, one, session, report)) return false;
    if (is_gone) break;
  }
  report.Write(cli::Level::kVerbose, cli::Gone(options.lock, contender, cli::MillisecondsNow()));
  return true;
}

/// Releases the targets in a new session: an older one might have expired while the user was being
/// asked. If the servers refuse one release, the others still proceed. Returns the exit status.
int ReleaseAll(const cli::ReleaseOptions& options, Targets targets, process::Signals& signals,
               cli::Report& report) {
  ShortSession session(options.server, signals, report);
  bool all_can = targets.all;
  if (!options.dry_run && KeepNewHolders(options, targets.contenders, session, report)) {
    all_can = false;
  }
  std::vector<cli::ContenderView> releasing;
  int refused = kExitOk;
  if (options.force && !options.dry_run) {
    Announce(options, targets.contenders, session, signals, report);
  }
  // In reverse order, so that no waiter among them acquires the lock when another one releases it.
  for (auto one = targets.contenders.rbegin(); one != targets.contenders.rend(); ++one) {
    std::optional<bool> was_there;
    try {
      was_there = ReleaseOne(options, *one, session, signals, report);
    } catch (const Exit& exit) {
      if (exit.status() != kExitRefused || !session.IsOnlyForbidden()) throw;
      refused = exit.status();
      continue;
    }
    all_can = all_can && was_there;
    if (was_there && *was_there) releasing.push_back(*one);
    if (was_there && !*was_there) report.Say(cli::ContenderNotFound(options.lock, one->name));
  }
  if (options.wait && !options.dry_run) {
    for (const cli::ContenderView& contender : releasing) {
      all_can = AwaitRelease(options, contender, session, report) && all_can;
    }
  }
  session.Close();
  if (refused != kExitOk) return refused;
  return releasing.empty() || !all_can ? kExitConflict : kExitOk;
}

/// Returns the holds of the calling shell. If the servers cannot be asked, says that nothing was
/// released, since the script may go on, and throws Exit.
std::vector<OwnHold> FindHoldsToRelease(const cli::ReleaseOptions& options,
                                        process::Signals& signals, cli::Report& report) {
  ShortSession session(options.server, signals, report);
  try {
    // The search starts at this process, not its parent: the shell that holds the LOCK may have
    // become this zklock by exec.
    return FindOwnHolds(session, LockOf(options), getpid());
  } catch (const Exit&) {
    if (!options.dry_run) report.Error(message::kNotReleased, options.lock);
    throw;
  }
}

/// Releases the LOCK that the calling shell holds with --hold: asks the keeper, and waits until it
/// has released the LOCK.
int ReleaseOwn(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  std::optional<pid_t> silent;
  for (const OwnHold& hold : FindHoldsToRelease(options, signals, report)) {
    using Kind = protocol::NestingRequest::Kind;
    const HolderAnswer answer =
        AskHolder(hold.claim, options.dry_run ? Kind::kMayRelease : Kind::kRelease,
                  options.server.connect_timeout, signals, report);
    if (const auto* link = std::get_if<std::unique_ptr<process::NestingLink>>(&answer)) {
      // The keeper releases the LOCK as soon as nothing runs under it any longer.
      const protocol::NestingRelease& release = (*link)->release();
      if (release.locks > 1) report.Say(message::kReleasesAll, options.lock, release.locks);
      if (release.runs > 0) {
        report.Say(message::kReleaseWaits, options.lock, release.runs, release.pid);
      }
      if (options.dry_run) {
        PrintRows(cli::ReleaseRows(cli::ReleaseAction::kReleaseLock,
                                   cli::OwnHoldText(options.lock, hold.claim.holder.pid)),
                  signals, report);
        return kExitOk;
      }
      ShortSession waiting(options.server, signals, report);
      try {
        waiting.Ask([&](lock::Calls& calls) {
          lock::WaitUntilGone(calls, hold.ticket.lock, hold.ticket.id());
        });
      } catch (const Exit&) {
        report.Error(message::kReleaseUnseen, options.lock, hold.claim.holder.pid);
        throw;
      }
      waiting.Close();
      report.Write(cli::Level::kVerbose, fmt::format(message::kOwnReleased, options.lock));
      return kExitOk;
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
  ShortSession asking(options.server, signals, report);
  const bool is_missing = IsMissing(LockOf(options), options, asking, report);
  asking.Close();
  if (!is_missing) report.Say(message::kNothingHeld, options.lock);
  return kExitConflict;
}

/// Releases the reservations for an ID in one LOCK. Returns the exit status: success or conflict.
/// Reports a conflict unless one of several LOCKs is enough (--any).
int ReleaseReservationsIn(const lock::LockName& lock, const cli::ReleaseOptions& options,
                          ShortSession& session, process::Signals& signals, cli::Report& report) {
  std::vector<lock::Holder> unreadable;
  const auto holders = session.Ask([&](lock::Calls& calls) {
    return lock::ReadHolders(calls, lock, lock::kAllHolders, &unreadable);
  });
  bool released = false;
  std::string others;
  // There are two if two readers made a reservation for this ID at the same time.
  for (const lock::Holder& holder : holders) {
    const auto reserved = lock::FindReservation(holder.name.full, holder.data, holder.stat);
    if (!reserved) continue;
    const std::string& id = reserved->reservation.id;
    if (id != options.reserve) {
      others += (others.empty() ? "" : ", ") + id;
      continue;
    }
    if (options.dry_run) {
      const lock::LockName queue = {protocol::ParentOf(holder.path),
                                    options.server.servers.chroot};  // a permit is in a child
      const bool is_there = session.Ask(
          [&](lock::Calls& calls) { return lock::MayDelete(calls, queue, holder.path); });
      if (!is_there) continue;
      PrintRows(cli::ReleaseRows(cli::ReleaseAction::kReleaseLock,
                                 cli::ReservationHoldText(lock.display_path(), *reserved)),
                signals, report);
      released = true;
      continue;
    }
    const auto release = session.Ask([&](lock::Calls& calls) {
      return lock::ReleaseReservation(calls, lock, holder.path, options.reserve);
    });
    released = released || release.has_released;
    if (release.has_released && release.unkept) {
      report.NoHistory({lock.display_path(), *release.unkept});
    }
  }
  if (released) return kExitOk;
  // A holder that we lack permission to read may be the reservation.
  for (const lock::Holder& holder : unreadable) {
    if (holder.name.reserves) session.Fail(lock::MayNotRead(lock, holder).failure());
  }
  if (options.any) return kExitConflict;
  if (others.empty() && IsMissing(lock, options, session, report)) return kExitConflict;
  if (others.empty()) {
    report.Say(message::kNotReserved, lock.display_path(), options.reserve);
  } else {
    report.Say(message::kReservedForOthers, lock.display_path(), options.reserve,
               cli::Printable(others));
  }
  return kExitConflict;
}

/// Releases the reservations in one LOCK after another. A missing permission in one LOCK does not
/// keep the others from being released.
int ReleaseReservations(const cli::ReleaseOptions& options, process::Signals& signals,
                        cli::Report& report) {
  ShortSession session(options.server, signals, report);
  int status = kExitOk;
  std::vector<std::string> released;
  const auto report_released = [&](bool is_all) {
    if (options.dry_run) return;
    // If some were not released, the others are named even without --verbose.
    const cli::Level level = is_all ? cli::Level::kVerbose : cli::Level::kUnlessQuiet;
    for (const std::string& path : released) {
      report.Write(level, fmt::format(message::kReservationReleased, path, options.reserve));
    }
  };
  for (const std::string& path : options.locks) {
    try {
      const int ended =
          ReleaseReservationsIn(LockOf(options, path), options, session, signals, report);
      if (ended == kExitOk) released.push_back(path);
      status = std::max(status, ended);
    } catch (const Exit& exit) {
      if (exit.status() != kExitRefused || !session.IsOnlyForbidden()) {
        report_released(/*is_all=*/false);
        throw;
      }
      status = std::max(status, exit.status());
    }
  }
  if (options.any && !released.empty()) {
    status = kExitOk;
  } else if (options.any && status == kExitConflict) {
    report.Say(message::kNoneReservedFor, fmt::join(options.locks, ", "), options.reserve);
  }
  report_released(status == kExitOk);
  session.Close();
  return status;
}

}  // namespace

int Release(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  if (options.dry_run) {
    PrintRows({cli::ServersRow(options.server), cli::IdentityRow(options.server)}, signals, report);
  }
  if (options.target == Target::kOwn) return ReleaseOwn(options, signals, report);
  if (options.target == Target::kReservation) return ReleaseReservations(options, signals, report);
  if (options.dry_run) {
    return ReleaseAll(options, FindTargets(options, signals, report), signals, report);
  }
  if (!options.yes && !CanAsk()) {
    report.Error(message::kNoTerminal,
                 options.target == Target::kPosition ? message::kInPlaceOfPosition : "");
    return kExitUsage;
  }
  Targets targets = FindTargets(options, signals, report);
  Confirm(options, targets.contenders, signals, report);
  return ReleaseAll(options, std::move(targets), signals, report);
}

}  // namespace zklock::commands
