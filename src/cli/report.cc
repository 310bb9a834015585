#include "cli/report.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "cli/duration.h"
#include "cli/messages.h"
#include "cli/printable.h"
#include "cli/report_progress.h"
#include "cli/report_queue.h"
#include "cli/report_reasons.h"
#include "process/process_tree.h"

namespace zklock::cli {
namespace {

// Of a foreign word in a message, in columns.
constexpr std::size_t kMostShown = 60;

/// "root on web1 ('for a restart')".
std::string Asker(const RevokeData& revocation) {
  std::string by =
      revocation.by.empty() ? message::kSomebody : Printable(revocation.by, kMostShown);
  if (revocation.reason.empty()) return by;
  return fmt::format(message::kAsker, by, Printable(revocation.reason, 2 * kMostShown));
}

}  // namespace

void Report::Error(const std::string& line) { sink_.WriteLine("zklock: " + line); }

void Report::Say(const std::string& line) {
  if (verbosity_ != Verbosity::kQuiet) Error(line);
}

void Report::Step(const std::string& line) {
  if (verbosity_ == Verbosity::kVerbose) Error(line);
}

void Report::CannotExecute(const std::string& command, process::ExecFailed failure) {
  const std::string name = Printable(command);
  const std::string why = std::generic_category().message(failure.error);
  if (process::ExitStatusOf(failure) == kExitNotFound) {
    const bool is_path = command.find('/') != std::string::npos;
    return Error(is_path ? fmt::format(message::kNoSuchFile, name, why)
                         : fmt::format(message::kNotFound, name));
  }
  Error(failure.error == EACCES ? fmt::format(message::kNotExecutable, name, why)
                                : fmt::format(message::kNotExecuted, name, why));
}

void Report::UnusedConfig(const ServerOptions& options) {
  if (!options.unused_config.empty()) Step(Printable(options.unused_config));
}

void Report::Unreachable(const std::string& tried, Duration time_out, bool hopeless) {
  Error(hopeless ? fmt::format(message::kNoSuchServer, Printable(tried))
                 : fmt::format(message::kNoServer, FormatDuration(time_out), Printable(tried)));
}

void Report::NotTaken(const std::string& lock, const lock::Busy& busy, const RunOptions& options) {
  const std::string blocker =
      busy.blocker.empty() ? ""
                           : fmt::format(message::kBefore, WhoOf(busy.blocker, busy.blocker_data));
  switch (busy.why) {
    case lock::Busy::Why::kTaken:
      return Say(fmt::format(message::kTaken, lock, blocker));
    case lock::Busy::Why::kWaitOver:
      return Say(fmt::format(message::kWaitOver, lock,
                             FormatDuration(options.wait.value_or(Duration::zero())), blocker));
    case lock::Busy::Why::kQueueFull:
      return Say(fmt::format(message::kQueueFull, lock, options.max_queue.value_or(0)));
    case lock::Busy::Why::kSuperseded:
      return Say(fmt::format(message::kSuperseded, lock));
    case lock::Busy::Why::kRemoved:
      return Say(fmt::format(message::kRemoved, lock));
  }
}

void Report::ToldToLeave(const std::string& lock, const RevokeData& revocation) {
  Say(fmt::format(message::kToldToLeave, lock, Asker(revocation)));
}

void Report::Revoked(const std::string& lock, const RevokeData& revocation) {
  Error(fmt::format(message::kRevoked, lock, Asker(revocation)));
}

void Report::NothingIsMine(const std::string& lock) {
  Say(lock.empty() ? message::kNothingMine : fmt::format(message::kNotMine, lock, lock));
}

void Report::NoLongerMine(const std::string& lock) {
  Say(fmt::format(message::kNoLongerMine, lock));
}

void Report::TooRecent(const std::string& lock, const std::string& host, Duration ago,
                       const RunOptions& options) {
  Say(fmt::format(message::kRanLately, lock, Printable(host), FormatDuration(ago),
                  FormatDuration(options.min_interval.value_or(Duration::zero()))));
}

void Report::LostBeforeRun(const std::string& lock) {
  Say(fmt::format(message::kLostBeforeRun, lock));
}

void Report::NotRecorded(const std::string& lock) {
  Error(fmt::format(message::kNotRecorded, lock));
}

void Report::Refused(const lock::Refused& refused) { Error(RefusedText(refused)); }

void Report::OtherSchemeWanted() { Error(message::kOtherSchemeWanted); }

void Report::Unusable(const std::string& lock, const lock::Unusable& unusable) {
  Error(UnusableText(lock, unusable));
}

void Report::QuotaExceeded(const lock::QuotaExceeded& quota) {
  Error(fmt::format(message::kQuotaExceeded, quota.path, quota.limit));
}

void Report::Defect(const lock::Defect& defect) { Defect(DefectText(defect)); }

void Report::Defect(const std::string& what) {
  Error(fmt::format(message::kDefect, Printable(what)));
}

void Report::SystemRefused(const std::system_error& error) {
  const std::string what = error.what();
  switch (error.code().value()) {
    case EAGAIN:
      return Error(fmt::format(message::kNoProcesses, what));
    case EMFILE:
    case ENFILE:
      return Error(fmt::format(message::kNoDescriptors, what));
    default:
      break;
  }
  const bool is_proc = dynamic_cast<const process::NoProcessTree*>(&error) != nullptr;
  Error(is_proc ? fmt::format(message::kNoProc, what) : what);
}

void Report::NoMemory() { Error(message::kNoMemory); }

void Report::StoppedWhileWaiting(const std::string& lock, int signal_number) {
  Say(fmt::format(message::kStoppedWaiting, SignalName(signal_number), lock));
}

void Report::ShortSession(Duration granted) {
  Say(fmt::format(message::kShortSession, FormatDuration(granted)));
}

void Report::Survivor(const process::Survivor& survivor) {
  Error(fmt::format(message::kSurvivor, survivor.pid, Printable(survivor.name)));
}

void Report::LeftBehind(const process::Survivor& process) {
  Say(fmt::format(message::kLeftBehind, process.pid, Printable(process.name)));
}

void Report::GuardFailed() { Error(message::kGuardFailed); }

void Report::Stopping(const std::string& lock, Duration lease_left) {
  Error(fmt::format(message::kStopping, lock, FormatDuration(lease_left)));
}

std::string DroppedLine() { return fmt::format("zklock: {}", message::kDropped); }

std::string NoDescriptor(const std::string& number) {
  return fmt::format(message::kNoDescriptor, number);
}

std::string CannotOpenEvents(const std::string& file) {
  return fmt::format(message::kCannotAppend, Printable(file));
}

std::string UsageLines(const UsageError& error) {
  return fmt::format("{}\n", Printable(error.what())) +
         fmt::format(message::kTry, error.subcommand.empty() ? "" : error.subcommand + " ");
}

}  // namespace zklock::cli
