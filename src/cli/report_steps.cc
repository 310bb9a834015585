// The steps: each is said with --verbose, a lost place always but with --quiet; a
// lost lock, and who may not see us, always.

#include <fmt/core.h>

#include "cli/duration.h"
#include "cli/messages.h"
#include "cli/printable.h"
#include "cli/report.h"
#include "cli/report_reasons.h"
#include "protocol/lease.h"

namespace zklock::cli {

void Report::OnStep(const cli::Step& step) {
  std::visit([this](const auto& one) { Tell(one); }, step);
}

void Report::Tell(const Connected& connected) {
  const std::string server = Printable(connected.server);
  const std::string granted = FormatDuration(connected.granted);
  if (connected.before && connected.effective < *connected.before) {
    Step(fmt::format(message::kTimeoutShortened, server, granted,
                     FormatDuration(*connected.before)));
    const bool is_usable = connected.effective >= protocol::kLeastSessionTimeout;
    if (is_usable && connected.effective < protocol::kComfortableSessionTimeout) {
      ShortSession(connected.effective);
    }
  } else if (connected.effective < connected.granted) {
    Step(fmt::format(message::kShorterTimeoutCounts, server, granted,
                     FormatDuration(connected.effective)));
  } else {
    Step(fmt::format(message::kConnected, server, granted));
  }
}

void Report::Tell(const Queued& queued) {
  Step(fmt::format(message::kQueuedAs, Printable(queued.ticket.display_path())));
}

void Report::Tell(const Waiting& waiting) {
  Step(fmt::format(message::kWaitingBehind, waiting.lock, waiting.ahead,
                   Printable(waiting.predecessor)));
}

void Report::Tell(const PlaceLost& lost) { Say(fmt::format(message::kPlaceLost, lost.lock)); }

void Report::Tell(const IncompatibleArrived& came) {
  Error(fmt::format(message::kIncompatibleArrived, came.lock, Printable(came.incompatible.child),
                    IncompatibleText(came.incompatible.kind)));
}

void Report::Tell(const Acquired& acquired) {
  const lock::Ticket& ticket = acquired.ticket;
  Step(fmt::format(message::kOurs, ticket.lock.display_path(), protocol::ModeName(ticket.mode),
                   ticket.token));
}

void Report::Tell(const Nested& nested) { Step(fmt::format(message::kHeldAbove, nested.lock)); }

void Report::Tell(const Started& started) {
  Step(fmt::format(message::kRunning, Printable(started.command), started.pid));
}

void Report::Tell(const Suspect& suspect) { Step(fmt::format(message::kSuspect, suspect.lock)); }

void Report::Tell(const Confirmed& confirmed) {
  Step(fmt::format(message::kConfirmed, confirmed.lock));
}

void Report::Tell(const Lost& lost) {
  const char* const consequence =
      lost.on_lost == OnLost::kStop ? message::kIsEnded : message::kRunsOn;
  switch (lost.loss) {
    case lock::Loss::kRemoved:
      return Error(fmt::format(message::kTakenAway, lost.lock, consequence));
    case lock::Loss::kExpired:
      return Error(fmt::format(message::kExpired, lost.lock, consequence));
    case lock::Loss::kUnproven:
      return Error(fmt::format(message::kUnproven, lost.lock, consequence));
    case lock::Loss::kShortSession:
      return Error(fmt::format(message::kShortGrant, lost.lock, consequence));
    case lock::Loss::kOuter:
      return Error(fmt::format(message::kOuterLost, lost.lock, consequence));
  }
}

void Report::Tell(const LeaseRanOut& over) { Error(fmt::format(message::kLeaseRanOut, over.lock)); }

void Report::Tell(const Exited& exited) {
  Step(fmt::format(message::kCommandEnded, process::ShellStatus(exited.wait_status)));
}

void Report::Tell(const KeptForNested& kept) {
  Say(fmt::format(message::kKeptForNested, kept.lock, kept.runs, kept.pid));
}

void Report::Tell(const Released& released) {
  if (released.confirmed && !WasHeld(released.reason)) {
    Step(fmt::format(message::kNothingLeft, released.lock));
  } else if (released.confirmed) {
    Step(fmt::format(message::kReleased, released.lock));
  } else {
    Step(fmt::format(message::kNotConfirmed, released.lock));
  }
}

}  // namespace zklock::cli
