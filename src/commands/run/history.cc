#include "commands/run/history.h"

#include <algorithm>

namespace zklock::commands {
History::History(RunContext& context, SessionDriver& session_driver,
                 const std::vector<lock::Ticket>& tickets)
    : context_(context),
      session_driver_(session_driver),
      is_shared_(context.options.permits.has_value()),
      writer_(session_driver.session(), tickets,
              {.most_runs = context.options.history,
               .is_shared = is_shared_,
               .host = context.Self().host,
               .user = context.Self().user,
               .label = context.options.label,
               // The contender that waited in the turnstile is not the one that holds the permit.
               .queued_at = is_shared_ ? std::optional(context.began) : std::nullopt}) {}

TimePoint History::Deadline(const lock::Hold& hold) const {
  return std::min(context_.clock.Now() + kLongestHistoryWait, hold.lease_end());
}

void History::Release(lock::Hold& hold, const lock::FinishedRun& run) {
  const TimePoint deadline = Deadline(hold);
  // After a very short run its beginning is still being written. If that is refused, the release
  // must do without, or it would be refused too.
  if (!is_shared_) context_.ServeUntil(writer_, deadline, [this] { return writer_.IsSettled(); });
  writer_.Release(hold, run);
  // Where no other holder of a permit makes it write again, a silent server gets no more time than
  // for the close, which another server can do.
  const TimePoint answered = context_.clock.Now() + session_driver_.session().CloseAnswerTime();
  context_.ServeUntil(writer_, is_shared_ ? deadline : std::min(deadline, answered),
                      [this] { return writer_.IsReleaseOver(); });
}

History::Writes History::End(const lock::Hold& hold, const lock::FinishedRun& run) {
  context_.ServeUntil(writer_, Deadline(hold), [this] { return writer_.IsSettled(); });
  return writer_.End(run);
}

void History::ReportUnkept() {
  writer_.EndRelease();
  for (; reported_ < writer_.unkept().size(); ++reported_) {
    context_.report.NoHistory(writer_.unkept()[reported_]);
  }
}

}  // namespace zklock::commands
