#include "commands/min_interval.h"

#include "cli/duration.h"
#include "cli/printable.h"
#include "cli/run_messages.h"
#include "commands/console.h"
#include "commands/failure_end.h"
#include "commands/lease_first.h"

namespace zklock::commands {

using cli::EndReason;

MinInterval::MinInterval(RunContext& context, SessionDriver& session_driver,
                         const std::vector<lock::Ticket>& tickets)
    : context_(context),
      session_driver_(session_driver),
      tickets_(tickets),
      last_run_(session_driver.session(), tickets) {}

std::optional<MinInterval::Refusal> MinInterval::Check(lock::Hold& hold) {
  if (auto refusal = Serve(hold)) return refusal;
  if (const auto& unknown = last_run_.unknown()) return *unknown;
  if (!last_run_.newest()) return std::nullopt;
  const lock::LastRun::Success& last = *last_run_.newest();
  // The record may be late, and this may be early: an interval never ends too soon.
  const Duration ago =
      tickets_.front().EarliestServerTimeAt(context_.clock.Now()) - last.success.began;
  if (ago >= *context_.options.min_interval) return std::nullopt;
  return TooRecent{last, ago};
}

std::optional<MinInterval::Refusal> MinInterval::Serve(lock::Hold& hold) {
  const LeaseFirst order(context_.loop, session_driver_.session(), {&hold, &last_run_});
  while (!last_run_.IsDone() && !hold.loss()) {
    context_.loop.RunOnce();
    if (const auto signal = TakeEndingSignal(context_.signals)) return Interrupted{*signal};
  }
  if (hold.loss()) return LostMeanwhile{};
  return std::nullopt;
}

cli::RunEnd MinInterval::End(const Refusal& refusal) const {
  const int conflict = context_.options.conflict_exit_code;
  if (const auto* interrupted = std::get_if<Interrupted>(&refusal)) {
    return cli::InterruptedEnd(DisplayPath(), interrupted->signal_number);
  }
  if (std::holds_alternative<LostMeanwhile>(refusal)) {
    return cli::EndWithStatus(conflict, EndReason::kLostBeforeRun, DisplayPath());
  }
  if (const auto* recent = std::get_if<TooRecent>(&refusal)) {
    return cli::EndWithStatus(conflict, EndReason::kTooRecent, recent->last.lock,
                              cli::Printable(recent->last.success.host),
                              cli::FormatDuration(recent->ago),
                              cli::FormatDuration(*context_.options.min_interval));
  }
  // It may have run a moment ago.
  const FailureEnd end(session_driver_, context_.options.server.connect_timeout, DisplayPath());
  return std::visit(end, std::get<lock::LastRun::Unknown>(refusal));
}

void MinInterval::Record(lock::Hold& hold, TimePoint began,
                         std::vector<std::optional<zookeeper::DataWrite>> history) {
  last_run_.Record(began, context_.Self().host, std::move(history));
  (void)Serve(hold);
  if (!last_run_.IsDone() || hold.loss() || !last_run_.refused().empty()) {
    context_.report.Error(cli::message::kNotRecorded, DisplayPath());
  }
}

}  // namespace zklock::commands
