#include "cli/reports/report_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cli/text/printable.h"
#include "cli/text/queue_messages.h"

namespace zklock::cli {
namespace {

std::string WhyUnknown(const ContenderView& contender) {
  if (!contender.readable) return message::kDataUnread;
  if (contender.program == protocol::Program::kUnknown) return message::kUnknownProgram;
  return fmt::format(message::kUnknownOwner, ProgramName(contender));
}

/// Returns "user ci on build7, pid 4242, backup.sh", as far as known.
std::string Who(const ContenderView& contender) {
  const lock::ContenderData& data = contender.data;
  std::string who;
  const auto add = [&who](const std::string& part) { who += (who.empty() ? "" : ", ") + part; };
  if (data.user && data.host) {
    add(fmt::format(message::kUserOn, Printable(*data.user), Printable(*data.host)));
  } else if (data.host) {
    add(fmt::format(message::kOn, Printable(*data.host)));
  }
  if (data.pid) add(fmt::format(message::kPid, *data.pid));
  if (data.command) add(Printable(*data.command));
  if (data.label) add(fmt::format(message::kLabel, Printable(*data.label)));
  return who.empty() ? WhyUnknown(contender) : who;
}

}  // namespace

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format(message::kSignal, name)
                         : fmt::format(message::kSignalNumber, number);
}

std::string Unlistable(const std::vector<std::string>& paths) {
  const std::string others =
      paths.size() == 1 ? "" : fmt::format(message::kMorePaths, paths.size() - 1);
  return fmt::format(message::kUnlistable, Printable(paths.front()), others);
}

std::string InterruptedBy(int signal_number) {
  return fmt::format(message::kInterruptedBy, SignalName(signal_number));
}

std::string DescribeTarget(const std::string& lock, const ContenderView& contender) {
  const std::string name = Printable(contender.name);
  const std::string what =
      contender.for_permit && contender.take == 1 ? message::kPermit : ModeText(contender);
  if (contender.reserved) {
    return fmt::format(message::kReserver, name, lock, contender.reserved->reservation.id, what,
                       Who(contender));
  }
  return contender.state == ContenderState::kHeld
             ? fmt::format(message::kHolder, name, lock, what, Who(contender))
             : fmt::format(message::kWaiter, name, lock, what, Who(contender));
}

std::string Described(const ContenderView& contender, std::int64_t now_ms) {
  const lock::ContenderData& data = contender.data;
  const auto foreign = [](const std::string& text) { return Printable(text, kWidestForeign); };
  std::vector<std::string> details;
  if (data.pid) details.push_back(fmt::format(message::kPid, *data.pid));
  if (data.host) {
    const std::string on = fmt::format(message::kOn, foreign(*data.host));
    details.push_back(data.user ? foreign(*data.user) + " " + on : on);
  }
  if (details.empty()) details.push_back(WhyUnknown(contender));
  const bool waits = contender.state == ContenderState::kWaiting;
  if (const std::string span = ForText(contender, now_ms); !span.empty()) {
    details.push_back(
        fmt::format(fmt::runtime(waits ? message::kWaitingFor : message::kFor), span));
  }
  if (data.label) details.push_back("'" + PrintableEnd(*data.label, kWidestForeign) + "'");
  std::string what = fmt::format(message::kNamed, foreign(contender.name));
  if (contender.reserved) {
    what = fmt::format(message::kNamedReservation, foreign(contender.reserved->reservation.id));
  } else if (data.command) {
    what = foreign(*data.command);
  }
  return fmt::format("{} ({})", what, fmt::join(details, ", "));
}

std::string Listed(const ContenderView& contender, std::int64_t now_ms) {
  return fmt::format(message::kListed, contender.position.value_or(0), StateName(contender.state),
                     Described(contender, now_ms));
}

std::string ReleaseQuestion(const std::string& lock, const std::vector<ContenderView>& contenders,
                            bool force, std::int64_t now_ms) {
  const bool is_one = contenders.size() == 1;
  const bool ends = std::any_of(contenders.begin(), contenders.end(),
                                [](const ContenderView& one) { return one.Holds(); });
  const std::string whom = is_one ? Described(contenders.front(), now_ms)
                                  : fmt::format(message::kThese, contenders.size());
  if (force) {
    return ends ? fmt::format(message::kForceQuestion, lock, whom)
                : fmt::format(message::kRemoveQuestion, whom, lock);
  }
  return fmt::format(fmt::runtime(ends ? message::kEndQuestion : message::kLeaveQuestion), whom,
                     lock);
}

std::string ContenderNotFound(const std::string& lock, const std::string& contender) {
  return fmt::format(message::kNotThere, Printable(contender), lock);
}

std::string NoContender(const std::string& lock, const std::string& contender) {
  return fmt::format(message::kChildNotContender, Printable(contender), lock);
}

std::string NoQueueNumber(const std::string& lock, const std::string& contender) {
  return fmt::format(message::kChildUnnumbered, Printable(contender), lock);
}

std::string CannotBeAsked(const ContenderView& contender) {
  return fmt::format(message::kCannotBeAsked, Printable(contender.name));
}

std::string StaysReserved(const std::string& lock, const ContenderView& contender) {
  const std::string& id = contender.reserved->reservation.id;
  return fmt::format(message::kStaysReserved, lock, id, id);
}

std::string ReleaseRequested(const std::string& lock, const ContenderView& contender,
                             std::int64_t now_ms) {
  const std::string whom = Described(contender, now_ms);
  if (!contender.Holds()) return fmt::format(message::kAskedWaiter, whom, lock);
  return contender.program == protocol::Program::kCurator
             ? fmt::format(message::kAskedCurator, whom, lock)
             : fmt::format(message::kAsked, whom, lock);
}

std::string Gone(const std::string& lock, const ContenderView& contender, std::int64_t now_ms) {
  return fmt::format(fmt::runtime(contender.Holds() ? message::kHasReleased : message::kHasLeft),
                     Described(contender, now_ms), lock);
}

std::string HasAcquired(const std::string& lock, const ContenderView& contender,
                        std::int64_t now_ms) {
  return fmt::format(message::kHasAcquired, Described(contender, now_ms), lock);
}

std::string ForcedOut(const std::string& lock, const ContenderView& contender) {
  const std::string name = Printable(contender.name);
  if (contender.state == ContenderState::kWaiting) {
    return fmt::format(message::kForcedWaiter, name, lock);
  }
  if (!contender.reserved) return fmt::format(message::kForcedOut, name, lock);
  return fmt::format(message::kForcedReservation, name, lock, contender.reserved->reservation.id);
}

}  // namespace zklock::cli
