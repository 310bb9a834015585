#include "commands/reserve.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "cli/event.h"
#include "cli/report_reasons.h"
#include "cli/run_messages.h"
#include "commands/failure_end.h"
#include "commands/history.h"
#include "lock/history_writer.h"
#include "lock/make_reservations.h"
#include "process/waker.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

using cli::EndReason;

/// The path of the LOCKs, for messages.
std::string DisplayPathOf(const TakenLocks& taken) {
  std::vector<std::string> paths;
  for (const lock::Ticket& ticket : taken.tickets) paths.push_back(ticket.lock.display_path());
  for (const lock::ReservedLock& one : taken.reserved) paths.push_back(one.lock.display_path());
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : ", ") + path;
  return text;
}

/// The reservation as a command that runs under it sees it.
lock::Ticket TicketOf(const lock::ReservedLock& one) {
  return {.lock = one.lock,
          .mode = one.reserved.mode,
          .path = one.path,
          .token = one.reserved.reservation.token,
          .created = one.reserved.since};
}

lock::ReservationRun RunOf(const lock::ReservedLock& one) {
  return {one.lock, one.path, lock::RunOf(protocol::BaseOf(one.path), one.reserved)};
}

class Reserver {
 public:
  Reserver(RunContext& context, SessionDriver& session_driver, const TakenLocks& taken)
      : context_(context), session_driver_(session_driver), taken_(taken) {}

  std::variant<std::vector<lock::Ticket>, int> Run(
      const std::function<std::string(protocol::Mode)>& contender_data) {
    std::vector<lock::ReservedLock> made;
    std::vector<lock::ReservationRun> runs;
    if (!taken_.tickets.empty()) {
      // Once it is under way, the reservations may stand whatever happens to this process.
      context_.loop.Remove(context_.signals);
      std::vector<lock::MakeReservations::Held> held;
      for (const lock::Ticket& ticket : taken_.tickets) {
        held.push_back({ticket, contender_data(ticket.mode)});
      }
      zookeeper::Session& session = session_driver_.session();
      const Duration patience =
          std::max(context_.options.server.connect_timeout, session.lease().timeout());
      lock::MakeReservations reservations(session, context_.clock, std::move(held), taken_.reserved,
                                          *ReservationRequestOf(context_.options), patience);
      context_.loop.Add(reservations);
      while (!reservations.IsOver() && !session_driver_.IsHopeless()) context_.loop.RunOnce();
      context_.loop.Remove(reservations);
      context_.loop.Add(context_.signals);
      if (const auto failed = FailureOf(reservations)) return *failed;
      made = reservations.made();
      for (std::size_t i = 0; i < made.size(); ++i) {
        runs.push_back(RunOf(made[i]));
        runs.back().record.waited = WaitOf(taken_.tickets[i], made[i]);
      }
    }
    for (const lock::ReservedLock& one : taken_.reserved) runs.push_back(RunOf(one));
    if (context_.options.history != 0) EnterInHistory(runs);
    (void)CloseSession();  // what it leaves expires
    return Publish(made);
  }

 private:
  /// How long its contender was queued, until it was converted.
  [[nodiscard]] std::chrono::milliseconds WaitOf(const lock::Ticket& ticket,
                                                 const lock::ReservedLock& made) const {
    // The contender that waited in the turnstile is not the one that holds the permit.
    const Duration in_turnstile =
        context_.options.permits ? ticket.created_after - context_.began : Duration::zero();
    return made.reserved.since - ticket.created +
           std::chrono::duration_cast<std::chrono::milliseconds>(in_turnstile);
  }

  /// The reservations stand whatever happens to their entries.
  void EnterInHistory(const std::vector<lock::ReservationRun>& runs) {
    lock::HistoryWriter writer(session_driver_.session(), runs, context_.options.history);
    const TimePoint deadline = context_.clock.Now() + kLongestHistoryWait;
    process::Waker alarm(deadline);
    process::EventLoop& loop = context_.loop;
    loop.Remove(context_.signals);  // nobody takes them meanwhile
    loop.Add(writer);
    loop.Add(alarm);
    while (!writer.IsEntered() && !session_driver_.IsHopeless() &&
           context_.clock.Now() < deadline) {
      loop.RunOnce();
    }
    loop.Remove(alarm);
    loop.Remove(writer);
    loop.Add(context_.signals);
    writer.GiveUpRest();
    for (const auto& unkept : writer.unkept()) context_.report.NoHistory(unkept);
  }

  /// Returns the exit status, if there is one.
  std::optional<int> FailureOf(const lock::MakeReservations& reservations) {
    using Result = lock::MakeReservations::Result;
    const std::string locks = DisplayPathOf(taken_);
    const bool has_result = reservations.IsOver() && !reservations.failure();
    if (has_result && reservations.result() == Result::kMade) return std::nullopt;
    const bool confirmed = CloseSession();
    if (!has_result) {
      const FailureEnd end(session_driver_, context_.options.server.connect_timeout, locks);
      const int status = context_.End(
          locks, std::visit(end, reservations.failure().value_or(lock::OperationFailure{})),
          confirmed);
      if (reservations.may_be_made()) {
        context_.report.Error(cli::message::kMayBeReserved, locks, context_.options.reserve,
                              taken_.tickets.front().lock.display_path());
      }
      return status;
    }
    return context_.End(locks, EndOf(reservations, locks), confirmed);
  }

  /// None were made.
  [[nodiscard]] cli::RunEnd EndOf(const lock::MakeReservations& reservations,
                                  const std::string& locks) const {
    using Result = lock::MakeReservations::Result;
    const int conflict = context_.options.conflict_exit_code;
    if (reservations.result() == Result::kExpired) {
      return cli::EndRun(EndReason::kUnreachable,
                         fmt::format(cli::message::kExpiredWhileReserving, locks));
    }
    if (reservations.result() == Result::kAskedToLeave) {
      return cli::EndWithStatus(conflict, EndReason::kAskedToLeave, locks,
                                cli::AskerText(reservations.release_request()));
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

  bool CloseSession() {
    context_.loop.Remove(context_.signals);  // nobody takes them meanwhile
    const bool confirmed = session_driver_.Close();
    context_.loop.Add(context_.signals);
    return confirmed;
  }

  RunContext& context_;
  SessionDriver& session_driver_;
  const TakenLocks& taken_;
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

std::variant<std::vector<lock::Ticket>, int> Reserve(
    RunContext& context, SessionDriver& session_driver, const TakenLocks& taken,
    const std::function<std::string(protocol::Mode)>& contender_data) {
  return Reserver(context, session_driver, taken).Run(contender_data);
}

}  // namespace zklock::commands
