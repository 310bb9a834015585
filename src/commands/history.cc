#include "commands/history.h"

#include <algorithm>

#include "commands/lease_first.h"
#include "process/waker.h"

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

History::Writes History::End(lock::Hold& hold, const lock::FinishedRun& run) {
  if (is_shared_) {
    writer_.Release(hold, run);
    ServeUntil(hold, [this] { return writer_.IsReleaseOver(); });
    return {};
  }
  // After a very short run its beginning is still being written. If that is refused, the release
  // must do without, or it would be refused too.
  ServeUntil(hold, [this] { return writer_.IsSettled(); });
  Writes writes = writer_.End(run);
  has_written_ = std::any_of(writes.begin(), writes.end(),
                             [](const auto& write) { return write.has_value(); });
  return writes;
}

template <typename IsDone>
void History::ServeUntil(const lock::Hold& hold, IsDone is_done) {
  process::EventLoop& loop = context_.loop;
  loop.Remove(context_.signals);  // nobody takes them meanwhile
  const TimePoint deadline = std::min(context_.clock.Now() + kLongestHistoryWait, hold.lease_end());
  process::Waker alarm(deadline);
  {
    const LeaseFirst order(loop, session_driver_.session(), {&writer_, &alarm});
    while (!is_done() && context_.clock.Now() < deadline) loop.RunOnce();
  }
  loop.Add(context_.signals);
}

void History::ReportUnkept() {
  for (; reported_ < writer_.unkept().size(); ++reported_) {
    context_.report.NoHistory(writer_.unkept()[reported_]);
  }
}

void History::ReportEnd(const std::string& locks) {
  ReportUnkept();
  if (has_written_ && session_driver_.session().is_release_refused()) {
    context_.report.EndNotKept(locks);
  }
}

}  // namespace zklock::commands
