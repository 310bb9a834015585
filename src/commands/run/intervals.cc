#include "commands/run/intervals.h"

#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "cli/text/run_messages.h"
#include "commands/run/lease_first.h"
#include "commands/session/console.h"
#include "commands/session/failure_end.h"
#include "lock/hold/start_commit.h"

namespace zklock::commands {

using cli::EndReason;

Intervals::Intervals(RunContext& context, SessionDriver& session_driver,
                     const std::vector<lock::Ticket>& tickets)
    : context_(context),
      session_driver_(session_driver),
      tickets_(tickets),
      success_record_(session_driver.session(), tickets) {}

std::optional<Intervals::Refusal> Intervals::Check(lock::Hold& hold) {
  if (context_.options.min_interval) {
    if (auto refusal = CheckLastRun(hold)) return refusal;
  }
  // Comes last: a start is committed only if nothing else keeps the command from running.
  if (context_.options.once_per) return CommitStart(hold);
  return std::nullopt;
}

std::optional<Intervals::Refusal> Intervals::CheckLastRun(lock::Hold& hold) {
  if (auto refusal = Serve(hold, success_record_, [this] { return success_record_.IsDone(); }))
    return refusal;
  if (const auto& unknown = success_record_.unknown()) return *unknown;
  if (!success_record_.newest()) return std::nullopt;
  const lock::SuccessRecord::Success& last = *success_record_.newest();
  // The record may be late, and this may be early: an interval never ends too soon.
  const Duration ago =
      tickets_.front().EarliestServerTimeAt(context_.clock.Now()) - last.success.began;
  const Duration interval = *context_.options.min_interval;
  if (ago >= interval) return std::nullopt;
  return TooRecent{"--min-interval", "succeeded", last.lock, last.success.host, ago, interval};
}

std::optional<Intervals::Refusal> Intervals::CommitStart(lock::Hold& hold) {
  const Duration interval = *context_.options.once_per;
  lock::StartCommit start(session_driver_.session(), context_.clock, tickets_, context_.Self().host,
                          interval);
  // The commit may have taken most of the lease: the heartbeats continue until it suffices again.
  const auto is_done = [&] {
    return start.refusal() || (start.IsCommitted() && hold.SufficesToStart());
  };
  if (auto refusal = Serve(hold, start, is_done)) {
    if (auto* lost = std::get_if<LostMeanwhile>(&*refusal)) {
      lost->may_have_started = start.MayBeCommitted();
    }
    return refusal;
  }
  if (!start.refusal()) return std::nullopt;
  if (const auto* recent = std::get_if<lock::StartCommit::TooRecent>(&*start.refusal())) {
    return TooRecent{"--once-per", "started", recent->lock, recent->host, recent->ago, interval};
  }
  return std::get<lock::RecordFailure>(*start.refusal());
}

std::optional<Intervals::Refusal> Intervals::Serve(lock::Hold& hold, EventSource& source,
                                                   const std::function<bool()>& is_done) {
  const LeaseFirst order(context_.loop, session_driver_.session(), {&hold, &source});
  while (!is_done() && !hold.loss()) {
    context_.loop.RunOnce();
    if (const auto signal = TakeEndingSignal(context_.signals)) return Interrupted{*signal};
  }
  if (hold.loss()) return LostMeanwhile{};
  return std::nullopt;
}

cli::RunEnd Intervals::End(const Refusal& refusal) const {
  const int conflict = context_.options.conflict_exit_code;
  if (const auto* interrupted = std::get_if<Interrupted>(&refusal)) {
    return cli::InterruptedEnd(DisplayPath(), interrupted->signal_number,
                               session_driver_.unconfirmed());
  }
  if (const auto* lost = std::get_if<LostMeanwhile>(&refusal)) {
    return cli::EndWithStatus(
        conflict, lost->may_have_started ? EndReason::kLostStarting : EndReason::kLostBeforeRun,
        DisplayPath());
  }
  if (const auto* recent = std::get_if<TooRecent>(&refusal)) {
    return cli::EndWithStatus(conflict, EndReason::kTooRecent, recent->lock, recent->what,
                              cli::Printable(recent->host), cli::FormatDuration(recent->ago),
                              recent->option, cli::FormatDuration(recent->interval));
  }
  // It may have run a moment ago.
  const FailureEnd end(session_driver_, context_.options.server.connect_timeout, DisplayPath());
  const auto& failure = std::get<lock::RecordFailure>(refusal);
  if (const auto* unusable = std::get_if<lock::Unusable>(&failure)) return end(*unusable);
  return std::visit(end, std::get<lock::OperationFailure>(failure));
}

void Intervals::RecordSuccess(lock::Hold& hold, TimePoint began,
                              std::vector<std::optional<zookeeper::DataWrite>> history) {
  success_record_.Record(began, context_.Self().host, std::move(history));
  (void)Serve(hold, success_record_, [this] { return success_record_.IsDone(); });
  if (!success_record_.IsDone() || hold.loss() || !success_record_.refused().empty()) {
    context_.report.Error(cli::message::kNotRecorded, DisplayPath());
  }
}

}  // namespace zklock::commands
