#include "commands/run/reserve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cli/reports/event.h"
#include "cli/reports/report_reasons.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "cli/text/run_messages.h"
#include "commands/run/recorded_runs.h"
#include "commands/session/console.h"
#include "commands/session/exit.h"
#include "commands/session/session_driver.h"
#include "lock/hold/run_recorder.h"
#include "lock/operations/calls.h"
#include "lock/reserve/existing_reservations.h"
#include "lock/reserve/make_reservations.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;
using cli::EndReason;

constexpr Duration kCheckPatience = 5s;

/// Returns the paths of the LOCKs, for messages.
std::string DisplayPathOf(const TakenLocks& taken) {
  std::vector<std::string> paths;
  for (const lock::Ticket& ticket : taken.tickets) paths.push_back(ticket.lock.display_path());
  for (const lock::ReservedLock& one : taken.reserved) paths.push_back(one.lock.display_path());
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : ", ") + path;
  return text;
}

/// Returns the reservation as seen by a command that runs under it.
lock::Ticket TicketOf(const lock::ReservedLock& one) {
  return {.lock = one.lock,
          .mode = one.reserved.mode,
          .path = one.path,
          .more = one.more,
          .token = one.reserved.reservation.token,
          .created = one.reserved.since};
}

lock::ReservationRun RunOf(const lock::ReservedLock& one) {
  return {one.lock, one.path, lock::RunOf(protocol::BaseOf(one.path), one.reserved)};
}

class Reserver {
 public:
  Reserver(RunContext& context, SessionDriver& session_driver, TakenLocks taken)
      : context_(context), session_driver_(session_driver), taken_(std::move(taken)) {}

  std::optional<std::vector<lock::Ticket>> Run(
      const std::function<std::string(const cli::WantedLock&)>& contender_data) {
    // The search precedes the wait, and is repeated after it if it has not shown enough. An earlier
    // run with our ID leaves all queues when it makes a reservation, so the queues are read before
    // the reservations.
    if (context_.options.any && (taken_.tickets.empty() || taken_.may_be_reserved)) {
      if (IsAfterAnother()) return std::nullopt;  // the next session waits for that run
      if (taken_.reserved.empty()) FindReserved();
    }
    if (taken_.reserved.empty() && taken_.tickets.empty()) return std::nullopt;
    // The wait has already detected every difference in use except in the permits.
    if (context_.options.permits) {
      for (const lock::ReservedLock& one : taken_.reserved) {
        RequireSameUse(one, one.reserved.mode);
      }
    }
    if (!AreInForce() || !Renew()) return std::nullopt;
    std::vector<lock::ReservedLock> made;
    std::vector<lock::ReservationRun> runs;
    if (!taken_.tickets.empty()) {
      std::vector<lock::HeldContender> held;
      for (const lock::Ticket& ticket : taken_.tickets) {
        held.push_back({ticket, contender_data({ticket.lock.display_path(), ticket.mode})});
      }
      made = Make(held);
      for (std::size_t i = 0; i < made.size(); ++i) {
        runs.push_back(RunOf(made[i]));
        runs.back().record.waited = WaitOf(taken_.tickets[i], made[i]);
      }
    }
    for (const lock::ReservedLock& one : taken_.reserved) runs.push_back(RunOf(one));
    if (context_.options.history != 0) EnterInHistory(runs);
    (void)CloseSession();  // an unclosed session expires
    return Publish(made);
  }

  /// Finds the reservations of all LOCKs, for --resume.
  std::vector<lock::Ticket> FindAll() {
    FindReserved();
    if (taken_.reserved.empty()) {
      const std::string locks = DisplayPaths(context_.options.locks);
      End(locks, {.reason = EndReason::kNotReserved,
                  .status = context_.options.conflict_exit_code,
                  .message = fmt::format(cli::message::kNoneReserved, locks,
                                         context_.options.reserve, MissingChroot())});
    }
    (void)CloseSession();
    return Publish({});
  }

 private:
  /// With --any: returns whether an earlier run with our ID is in one of the queues. Ends the run
  /// if that queue is full: the run would only have to leave it again.
  bool IsAfterAnother() {
    if (taken_.tickets.empty()) return false;
    const auto& wanted = context_.options.locks;
    return std::any_of(wanted.begin(), wanted.end(), [&](const cli::WantedLock& one) {
      const lock::LockName lock = context_.NameOf(one);
      const auto waiting = Ask(lock.display_path(), Signals::kEnd, [&](lock::Calls& calls) {
        return lock::CountWaitingAtEarlierPool(calls, lock, context_.options.reserve,
                                               taken_.tickets.front());
      });
      const auto& most = context_.options.max_queue;
      if (waiting && most && *waiting >= *most) {
        End(lock.display_path(),
            cli::EndWithStatus(context_.options.conflict_exit_code, EndReason::kQueueFull,
                               lock.display_path(), cli::QueueFullText(*most)));
      }
      return waiting.has_value();
    });
  }

  /// Finds the reservations for our ID: one in each LOCK or, with --any, the first one found. With
  /// --resume, ends the run if a reservation that it needs is missing.
  void FindReserved() {
    std::vector<lock::ReservedLock> reserved;
    for (const cli::WantedLock& wanted : context_.options.locks) {
      const lock::LockName lock = context_.NameOf(wanted);
      std::optional<lock::Reserved> other;
      const auto found = Ask(lock.display_path(), Signals::kEnd, [&](lock::Calls& calls) {
        return lock::FindHeldReservation(calls, lock, context_.options.reserve, &other);
      });
      if (found) {
        RequireSameUse(*found, wanted.mode);
        reserved.push_back(*found);
        if (context_.options.any) break;
      } else if (!context_.options.any) {
        End(lock.display_path(),
            cli::EndWithStatus(context_.options.conflict_exit_code, EndReason::kNotReserved,
                               lock.display_path(), context_.options.reserve,
                               other ? cli::OtherReservationText(other) : MissingChroot()));
      }
    }
    if (!reserved.empty()) taken_ = {.reserved = std::move(reserved)};
  }

  /// Ends the run unless it uses the LOCK in the same way as the reservation.
  void RequireSameUse(const lock::ReservedLock& one, protocol::Mode mode) {
    const std::string path = one.lock.display_path();
    const auto unusable = Ask(path, Signals::kEnd, [&](lock::Calls& calls) {
      return lock::FindOtherUse(calls, one, mode, context_.options.permits, context_.options.take);
    });
    if (!unusable) return;
    const FailureEnd end(session_driver_, context_.options.server.connect_timeout, path);
    End(path, end(*unusable));
  }

  /// Returns whether the reservations that were found still exist and have not reached their ends:
  /// after one was found, the run may have waited for another LOCK.
  bool AreInForce() {
    if (taken_.reserved.empty() || context_.options.any || context_.options.locks.size() == 1) {
      return true;
    }
    std::vector<lock::Ticket> reserved;
    for (const lock::ReservedLock& one : taken_.reserved) reserved.push_back(TicketOf(one));
    return Ask(DisplayPathOf(taken_), Signals::kEnd,
               [&](lock::Calls& calls) { return lock::FindOutlived(calls, reserved); })
        .empty();
  }

  /// Returns the part of a message that says that the chroot does not exist; empty if it exists, or
  /// there is none.
  std::string MissingChroot() {
    const std::string& chroot = context_.options.server.servers.chroot;
    if (chroot.empty()) return "";
    const std::string locks = DisplayPaths(context_.options.locks);
    const bool is_missing = Ask(locks, Signals::kEnd, [&](lock::Calls& calls) {
      return calls.Repeat([&] { return calls.Get(chroot).error == zookeeper::Error::kNoNode; });
    });
    return is_missing ? fmt::format(cli::message::kMissingChroot, cli::Printable(chroot)) : "";
  }

  /// Returns how long the reservation's contender was queued until it was converted.
  [[nodiscard]] std::chrono::milliseconds WaitOf(const lock::Ticket& ticket,
                                                 const lock::ReservedLock& made) const {
    // The contender that waited in the turnstile is not the one that holds the permit.
    const Duration in_turnstile =
        context_.options.permits ? ticket.created_after - context_.began : Duration::zero();
    return made.reserved.since - ticket.created +
           std::chrono::duration_cast<std::chrono::milliseconds>(in_turnstile);
  }

  /// Adds the reservations to the history. If that fails, the reservations still remain.
  void EnterInHistory(const std::vector<lock::ReservationRun>& runs) {
    lock::RunRecorder recorder(session_driver_.session(), runs, context_.options.history);
    context_.ServeUntil(recorder, context_.clock.Now() + kLongestHistoryWait,
                        [&] { return recorder.IsDone() || session_driver_.IsHopeless(); });
    recorder.GiveUpRest();
    for (const auto& unkept : recorder.unkept()) context_.report.NoHistory(unkept);
  }

  /// Whether signals end an operation.
  enum class Signals { kEnd, kWait };

  /// Runs `work(calls)`, and returns its result. On failure, closes the session and throws Exit,
  /// but passes on lock::ReservingFailed.
  template <typename F>
  std::invoke_result_t<F&, lock::Calls&> Ask(const std::string& locks, Signals signals, F work) {
    const auto serve = [&](EventSource& source, const std::function<bool()>& is_done) {
      const auto is_over = [&] { return is_done() || session_driver_.IsHopeless(); };
      std::optional<int> signal;
      if (signals == Signals::kEnd) {
        context_.loop.Remove(context_.signals);
        context_.loop.Add(source);
        signal = RunUntil(context_.loop, context_.signals, is_over);
        context_.loop.Remove(source);
        context_.loop.Add(context_.signals);
      } else {
        context_.ServeUntil(source, kNever, is_over);
      }
      if (signal) {
        const bool is_looking = !session_driver_.session().lease().newest_sent();
        const auto unconfirmed = CloseSession();
        const auto end = is_looking
                             ? cli::InterruptedLooking(locks, *signal, session_driver_.Tried())
                             : cli::InterruptedEnd(locks, *signal, unconfirmed);
        throw Exit(context_.End(locks, end, unconfirmed));
      }
      if (!is_done()) throw lock::OperationFailed(lock::Unreachable{});
    };
    zookeeper::Session& session = session_driver_.session();
    Duration patience = context_.options.server.connect_timeout;
    // An existing session may last longer than that.
    if (session.session_id() != 0) patience = std::max(patience, session.lease().timeout());
    lock::Calls calls(session, context_.clock, patience, serve);
    try {
      return work(calls);
    } catch (const lock::ReservingFailed&) {
      throw;
    } catch (const lock::OperationFailed& failed) {
      EndAfterClose(locks, failed.failure());
    }
  }

  /// Ends the run.
  [[noreturn]] void End(const std::string& locks, const cli::RunEnd& end) {
    const auto unconfirmed = CloseSession();
    throw Exit(context_.End(locks, end, unconfirmed));
  }

  /// Ends the run after a failure. Closes the session first: only the close shows whether
  /// credentials would help.
  [[noreturn]] void EndAfterClose(const std::string& locks, const lock::OperationFailure& failure,
                                  const std::string& addition = "") {
    const auto unconfirmed = CloseSession();
    const FailureEnd end(session_driver_, context_.options.server.connect_timeout, locks);
    const int status = context_.End(locks, std::visit(end, failure), unconfirmed);
    if (!addition.empty()) context_.report.Error(addition);
    throw Exit(status);
  }

  /// With --for, renews the reservations that exist. Returns false if one of them no longer exists.
  bool Renew() {
    const auto& lasts = context_.options.reserve_for;
    const std::string& reason = context_.options.reserve_reason;
    if (!lasts) {
      for (const lock::ReservedLock& one : taken_.reserved) {
        if (reason.empty() || reason == one.reserved.reservation.reason) continue;
        context_.report.Say(cli::message::kReasonKept, one.lock.display_path(),
                            context_.options.reserve);
      }
      return true;
    }
    if (taken_.reserved.empty()) return true;
    const auto renewed = Ask(DisplayPathOf(taken_), Signals::kWait, [&](lock::Calls& calls) {
      return lock::RenewReservations(
          calls, taken_.reserved,
          {.lasts = std::chrono::duration_cast<std::chrono::milliseconds>(*lasts),
           .reason = reason,
           .label = context_.options.label});
    });
    if (!renewed) return false;
    const bool is_shown =
        context_.options.verbosity == cli::Verbosity::kNormal && isatty(STDERR_FILENO) == 1;
    for (std::size_t i = 0; i < renewed->size(); ++i) {
      const auto& until = (*renewed)[i].reserved.until;
      if (!until) {
        context_.report.Say(cli::message::kStaysEndless, (*renewed)[i].lock.display_path(),
                            context_.options.reserve);
        continue;
      }
      if (!is_shown || until == taken_.reserved[i].reserved.until) continue;
      context_.report.Say(cli::message::kRenewed, (*renewed)[i].lock.display_path(),
                          context_.options.reserve, cli::FormatTime(until->count()));
    }
    taken_.reserved = *renewed;
    return true;
  }

  /// Converts the contenders into reservations. On failure, closes the session and throws Exit.
  std::vector<lock::ReservedLock> Make(const std::vector<lock::HeldContender>& held) {
    const std::string locks = DisplayPathOf(taken_);
    // A contender that waited in a turnstile may stay until the session is closed.
    const auto passed = context_.options.any ? taken_.passed : std::vector<std::string>();
    try {
      // Once the requests are sent, the reservations may be made whatever happens to this process.
      auto result = Ask(locks, Signals::kWait, [&](lock::Calls& calls) {
        return lock::MakeReservations(calls, held, taken_.reserved, passed,
                                      *ReservationRequestOf(context_.options));
      });
      if (auto* made = std::get_if<std::vector<lock::ReservedLock>>(&result)) {
        return std::move(*made);
      }
      End(locks, EndOf(std::get<lock::NotReserved>(result), locks));
    } catch (const lock::ReservingFailed& failed) {
      EndAfterClose(locks, failed.failure(),
                    failed.may_be_made()
                        ? fmt::format(cli::message::kMayBeReserved, locks, context_.options.reserve,
                                      taken_.tickets.front().lock.display_path())
                        : "");
    }
  }

  [[nodiscard]] cli::RunEnd EndOf(const lock::NotReserved& obstacle,
                                  const std::string& locks) const {
    const int conflict = context_.options.conflict_exit_code;
    switch (obstacle.why) {
      case lock::NotReserved::Why::kExpired:
        return cli::EndRun(EndReason::kUnreachable,
                           fmt::format(cli::message::kExpiredWhileReserving, locks));
      case lock::NotReserved::Why::kAskedToLeave:
        return cli::EndWithStatus(conflict, EndReason::kAskedToLeave, locks,
                                  cli::AskerText(obstacle.request));
      case lock::NotReserved::Why::kRemoved:
        break;
    }
    return cli::EndWithStatus(conflict, EndReason::kRemoved, locks);
  }

  std::vector<lock::Ticket> Publish(const std::vector<lock::ReservedLock>& made) {
    std::vector<lock::Ticket> reserved;
    reserved.reserve(made.size() + taken_.reserved.size());
    for (const lock::ReservedLock& one : made) {
      reserved.push_back(Publish(one, /*is_new=*/true));
    }
    for (const lock::ReservedLock& one : taken_.reserved) {
      reserved.push_back(Publish(one, /*is_new=*/false));
    }
    std::sort(reserved.begin(), reserved.end(),
              [](const auto& one, const auto& other) { return one.lock.path < other.lock.path; });
    return reserved;
  }

  lock::Ticket Publish(const lock::ReservedLock& one, bool is_new) {
    lock::Ticket ticket = TicketOf(one);
    const auto& until = one.reserved.until;
    context_.events.Publish(cli::ReservedEvent{
        .ticket = ticket,
        .id = one.reserved.reservation.id,
        .since_ms = is_new ? std::nullopt : std::optional(one.reserved.since.count()),
        .until_ms = until ? std::optional(until->count()) : std::nullopt});
    return ticket;
  }

  std::optional<Duration> CloseSession() {
    context_.loop.Remove(context_.signals);  // nothing reads signals in this loop
    const auto unconfirmed = session_driver_.Close();
    context_.loop.Add(context_.signals);
    return unconfirmed;
  }

  RunContext& context_;
  SessionDriver& session_driver_;
  TakenLocks taken_;
};

}  // namespace

std::optional<protocol::ReservationRequest> ReservationRequestOf(const cli::RunOptions& options) {
  if (options.reserve.empty()) return std::nullopt;
  protocol::ReservationRequest request{.id = options.reserve, .reason = options.reserve_reason};
  if (options.reserve_for) {
    request.lasts = std::chrono::duration_cast<std::chrono::milliseconds>(*options.reserve_for);
  }
  return request;
}

std::optional<std::vector<lock::Ticket>> Reserve(
    RunContext& context, SessionDriver& session_driver, const TakenLocks& taken,
    const std::function<std::string(const cli::WantedLock&)>& contender_data) {
  return Reserver(context, session_driver, taken).Run(contender_data);
}

std::vector<lock::Ticket> Resume(RunContext& context, SessionDriver& session_driver) {
  return Reserver(context, session_driver, {}).FindAll();
}

void ReportOutlived(RunContext& context, const std::vector<lock::Ticket>& reserved) {
  const std::string command = cli::Printable(context.options.command.front(), cli::kWidestForeign);
  const std::string& id = context.options.reserve;
  const auto report_unknown = [&](const std::string& why) {
    context.report.Say(cli::message::kOutlivedUnknown, DisplayPaths(reserved), id, command, why);
  };
  cli::ServerOptions server = context.options.server;
  server.connect_timeout = std::min(server.connect_timeout, kCheckPatience);
  context.loop.Remove(context.signals);  // RunUntil() adds them
  try {
    SessionDriver session_driver(context.loop, server, context.clock);
    const auto serve = [&](EventSource& source, const std::function<bool()>& is_done) {
      context.loop.Add(source);
      const auto signal = RunUntil(context.loop, context.signals,
                                   [&] { return is_done() || session_driver.IsHopeless(); });
      context.loop.Remove(source);
      if (signal) throw Exit(kExitOk);  // the signal is for the command, which has ended
      if (!is_done()) throw lock::OperationFailed(lock::Unreachable{});
    };
    lock::Calls calls(session_driver.session(), context.clock, server.connect_timeout, serve);
    try {
      for (const lock::Outlived& one : lock::FindOutlived(calls, reserved)) {
        const std::string lock = one.lock.display_path();
        if (!one.overdue) {
          context.report.Error(cli::message::kOutlived, lock, id, command);
        } else {
          context.report.Say(cli::message::kRanPastEnd, lock, id,
                             cli::FormatTime(one.overdue->until->count()), command);
        }
      }
    } catch (const lock::OperationFailed& failed) {
      const FailureEnd end(session_driver, server.connect_timeout, DisplayPaths(reserved));
      report_unknown(std::visit(end, failed.failure()).message);
    }
    (void)session_driver.Close();
  } catch (const std::system_error& error) {
    report_unknown(error.what());  // the exit status is still the command's
  } catch (const Exit&) {
  }
}

}  // namespace zklock::commands
