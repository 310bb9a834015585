#include "commands/run/recorded_runs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "cli/text/run_messages.h"
#include "commands/run/lease_first.h"
#include "commands/session/console.h"
#include "commands/session/session_driver.h"
#include "lock/hold/start_commit.h"

namespace zklock::commands {

using cli::EndReason;

RecordedRuns::RecordedRuns(RunContext& context, SessionDriver& session_driver,
                           const std::vector<lock::Ticket>& tickets)
    : context_(context),
      session_driver_(session_driver),
      tickets_(tickets),
      is_shared_(context.options.permits.has_value()),
      recorder_(session_driver.session(), tickets,
                {.most_runs = context.options.history,
                 .is_shared = is_shared_,
                 .host = context.Self().host,
                 .user = context.Self().user,
                 .label = context.options.label,
                 // The contender that waited in the turnstile is not the one that holds the permit.
                 .queued_at = is_shared_ ? std::optional(context.began) : std::nullopt}) {}

// ---- before the command -----------------------------------------------------------------------

RecordedRuns::Refusal RecordedRuns::Check(lock::Hold& hold) {
  Refusal refusal;
  if (context_.options.min_interval) refusal = CheckLastSuccess(hold);
  // This must come last: a start is committed only if nothing else keeps the command from running.
  if (!refusal && context_.options.once_per) refusal = CommitStart(hold);
  return refusal;
}

RecordedRuns::Refusal RecordedRuns::CheckLastSuccess(lock::Hold& hold) {
  recorder_.FindLastSuccess();
  const auto signal =
      Serve(hold, recorder_, [this] { return recorder_.unknown() || recorder_.IsDone(); });
  if (signal || hold.loss()) return Stopped(signal, EndReason::kLostBeforeRun);
  if (recorder_.unknown()) return Unknown(*recorder_.unknown());
  if (!recorder_.newest()) return {};
  const lock::RunRecorder::Success& last = *recorder_.newest();
  // The recorded time is never too early and this time never too late: no interval ends too soon.
  const Duration ago =
      tickets_.front().EarliestServerTimeAt(context_.clock.Now()) - last.success.began;
  const Duration interval = *context_.options.min_interval;
  if (ago >= interval) return {};
  return TooRecent("--min-interval", interval, "succeeded", last.lock, last.success.host, ago);
}

RecordedRuns::Refusal RecordedRuns::CommitStart(lock::Hold& hold) {
  const Duration interval = *context_.options.once_per;
  lock::StartCommit start(session_driver_.session(), context_.clock, tickets_, context_.Self().host,
                          interval);
  // The commit may have taken most of the lease: the heartbeats continue until the lease suffices
  // again.
  const auto signal = Serve(hold, start, [&] {
    return start.refusal() || (start.IsCommitted() && hold.SufficesToStart());
  });
  start_may_count_ = start.MayBeCommitted();
  if (signal || hold.loss()) {
    return Stopped(signal, start_may_count_ ? EndReason::kLostStarting : EndReason::kLostBeforeRun);
  }
  if (!start.refusal()) return {};
  if (const auto* recent = std::get_if<lock::StartCommit::TooRecent>(&*start.refusal())) {
    return TooRecent("--once-per", interval, "started", recent->lock, recent->host, recent->ago);
  }
  return Unknown(std::get<lock::RecordFailure>(*start.refusal()));
}

std::optional<int> RecordedRuns::Serve(lock::Hold& hold, EventSource& source,
                                       const std::function<bool()>& is_done) {
  const LeaseFirst order(context_.loop, session_driver_.session(), {&hold, &source});
  while (!is_done() && !hold.loss()) {
    context_.loop.RunOnce();
    if (const auto signal = TakeEndingSignal(context_.signals)) return signal;
  }
  return std::nullopt;
}

RecordedRuns::Refusal RecordedRuns::Stopped(std::optional<int> signal, EndReason lost) const {
  return [this, signal, lost] {
    if (!signal) {
      return cli::EndWithStatus(context_.options.conflict_exit_code, lost, DisplayPath());
    }
    return cli::InterruptedEnd(DisplayPath(), *signal, session_driver_.unconfirmed());
  };
}

RecordedRuns::Refusal RecordedRuns::TooRecent(const char* option, Duration interval,
                                              const char* what, const std::string& lock,
                                              const std::string& host, Duration ago) const {
  return [end = cli::EndWithStatus(context_.options.conflict_exit_code, EndReason::kTooRecent, lock,
                                   what, cli::Printable(host), cli::FormatDuration(ago), option,
                                   cli::FormatDuration(interval))] { return end; };
}

RecordedRuns::Refusal RecordedRuns::Unknown(const lock::RecordFailure& failure) const {
  return [this, failure] {
    const FailureEnd end(session_driver_, context_.options.server.connect_timeout, DisplayPath());
    if (const auto* unusable = std::get_if<lock::Unusable>(&failure)) return end(*unusable);
    return std::visit(end, std::get<lock::OperationFailure>(failure));
  };
}

// ---- after the command ------------------------------------------------------------------------

void RecordedRuns::End(lock::Hold& hold, TimePoint began, const lock::FinishedRun& run) {
  if (context_.options.min_interval && run.status == 0) {
    // The success is confirmed before the release, and not written again with it.
    recorder_.RecordSuccess(began, run);
    (void)Serve(hold, recorder_, [this] { return recorder_.IsDone(); });
    recorder_.GiveUpRest();
    if (hold.loss() || !recorder_.HasRecordedSuccess()) {
      context_.report.Error(cli::message::kNotRecorded, DisplayPath());
    }
    return;
  }
  if (context_.options.history == 0) return;
  const TimePoint deadline = std::min(context_.clock.Now() + kLongestHistoryWait, hold.lease_end());
  // After a very short run, the write of its start may be unanswered. If it is refused, the release
  // must not include a write of the history, or it would also be refused.
  if (!is_shared_) {
    context_.ServeUntil(recorder_, deadline, [this] { return recorder_.IsSettled(); });
  }
  recorder_.Release(hold, run);
  // If no other holder of permits can force another write, do not wait longer for a silent server
  // than for its answer to the close: another server can close the session.
  const TimePoint answered = context_.clock.Now() + session_driver_.session().CloseAnswerTime();
  context_.ServeUntil(recorder_, is_shared_ ? deadline : std::min(deadline, answered),
                      [this] { return recorder_.IsDone(); });
}

void RecordedRuns::ReportUnkept() {
  for (; reported_ < recorder_.unkept().size(); ++reported_) {
    context_.report.NoHistory(recorder_.unkept()[reported_]);
  }
}

}  // namespace zklock::commands
