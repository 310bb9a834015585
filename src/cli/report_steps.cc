// The sentences of the steps: each is said with --verbose, a lost place always but with --quiet; a
// lost lock, and who may not see us, always.

#include <fmt/core.h>

#include "cli/duration.h"
#include "cli/printable.h"
#include "cli/report.h"

namespace zklock::cli {

void Report::OnStep(const cli::Step& step) {
  std::visit([this](const auto& one) { Tell(one); }, step);
}

void Report::Tell(const Connected& connected) {
  Step(fmt::format("connected to {}, session time-out {}", Printable(connected.server),
                   FormatDuration(connected.granted)));
}

void Report::Tell(const Queued& queued) {
  Step(fmt::format("queued as {}", Printable(queued.ticket.shown_path())));
}

void Report::Tell(const Waiting& waiting) {
  Step(fmt::format("waiting for {}: {} ahead, next to go {}", waiting.lock, waiting.ahead,
                   Printable(waiting.predecessor)));
}

void Report::Tell(const PlaceLost& lost) {
  Say(fmt::format("the session expired while waiting for {}: queued anew, at the tail", lost.lock));
}

void Report::Tell(const StrangerCame& came) {
  Error(fmt::format("{}: '{}', which came later, is {}: both may hold; {}", came.lock,
                    Printable(came.stranger.child), came.stranger.reason, came.stranger.remedy));
}

void Report::Tell(const Acquired& acquired) {
  const lock::Ticket& ticket = acquired.ticket;
  Step(fmt::format("{} is ours ({}, token {})", ticket.lock.shown(),
                   protocol::ModeName(ticket.mode), ticket.token));
}

void Report::Tell(const Nested& nested) {
  Step(fmt::format("{} is held for us by a zklock above: going on under it", nested.lock));
}

void Report::Tell(const Started& started) {
  Step(fmt::format("running {} (pid {})", Printable(started.command), started.pid));
}

void Report::Tell(const Suspect& suspect) {
  Step(fmt::format("{}: the server does not answer, trying another", suspect.lock));
}

void Report::Tell(const Confirmed& confirmed) {
  Step(fmt::format("{}: confirmed, still ours", confirmed.lock));
}

void Report::Tell(const Lost& lost) {
  const char* consequence = lost.on_lost == OnLost::kStop
                                ? "the command is ended"
                                : "the command runs on, and others may too (--on-lost warn)";
  const char* reason = "";
  switch (lost.loss) {
    case lock::Loss::kRemoved:
      reason = "was taken away (our contender was deleted)";
      break;
    case lock::Loss::kExpired:
      reason = "is lost (the servers ended the session)";
      break;
    case lock::Loss::kUnproven:
      reason = "is lost (no server confirmed it in time)";
      break;
  }
  Error(fmt::format("{} {}: {}", lost.lock, reason, consequence));
}

void Report::Tell(const LeaseRanOut& over) {
  Error(fmt::format("{} could not be proven in time: the command was ended before its lease",
                    over.lock));
}

void Report::Tell(const Exited& exited) {
  Step(fmt::format("the command ended with status {}", process::ShellStatus(exited.wait_status)));
}

void Report::Tell(const Released& released) {
  using Why = Released::Why;
  const bool was_held = released.why == Why::kEnded || released.why == Why::kLost ||
                        released.why == Why::kNotExecuted;
  if (released.confirmed && !was_held) {
    Step(fmt::format("{}: nothing of ours is left there", released.lock));
  } else if (released.confirmed) {
    Step(fmt::format("{}: released", released.lock));
  } else {
    Step(fmt::format("no server confirmed the release of {}: it is free when the session ends",
                     released.lock));
  }
}

}  // namespace zklock::cli
