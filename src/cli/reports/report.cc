#include "cli/reports/report.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "cli/reports/report_reasons.h"
#include "cli/text/duration.h"
#include "cli/text/messages.h"
#include "cli/text/printable.h"
#include "cli/text/run_messages.h"
#include "cli/text/server_messages.h"
#include "process/tree/process_tree.h"

namespace zklock::cli {
namespace {

std::string MoreAwaited(int more) {
  return more > 0 ? fmt::format(message::kMoreAwaited, more) : "";
}

}  // namespace

void Report::Error(const std::string& line) { Write(Level::kAlways, line); }

void Report::Say(const std::string& line) { Write(Level::kUnlessQuiet, line); }

void Report::Write(Level level, const std::string& line) {
  const bool is_shown = level == Level::kAlways ||
                        (level == Level::kUnlessQuiet && verbosity_ != Verbosity::kQuiet) ||
                        verbosity_ == Verbosity::kVerbose;
  if (level != Level::kVerbose) last_line_ = line;
  if (!is_shown) return;
  keeps_back_ ? kept_.push_back(line) : sink_.WriteLine("zklock: " + line);
}

void Report::WriteKept(const std::string& except) {
  keeps_back_ = false;
  for (const std::string& line : kept_) {
    if (line != except) sink_.WriteLine("zklock: " + line);
  }
  kept_.clear();
}

void Report::OnEvent(const Event& event) {
  const EventText shown = Describe(event);
  if (!shown.text.empty()) Write(shown.level, shown.text);
}

void Report::CannotExecute(const std::vector<std::string>& command, process::ExecFailed failure,
                           const std::string& long_variable) {
  const std::string name = Printable(command.front());
  const std::string why = std::generic_category().message(failure.error);
  const bool is_found = process::ExitStatusOf(failure) != kExitNotFound;
  const bool may_be_line = command.size() == 1 && command.front().find(' ') != std::string::npos;
  if (may_be_line && (!is_found || failure.error == ENAMETOOLONG)) {
    return Error(fmt::format(message::kQuotedLine, name));
  }
  if (!is_found) {
    const bool is_path = command.front().find('/') != std::string::npos;
    return Error(is_path ? fmt::format(message::kNoSuchFile, name, why)
                         : fmt::format(message::kNotFound, name));
  }
  if (failure.error == E2BIG && !long_variable.empty()) {
    return Error(fmt::format(message::kVariableTooLong, name, long_variable));
  }
  Error(failure.error == EACCES ? fmt::format(message::kNotExecutable, name, why)
                                : fmt::format(message::kNotExecuted, name, why));
}

void Report::UnusedConfig(const ServerOptions& options) {
  if (!options.unused_config.empty()) Say(Printable(options.unused_config));
}

void Report::Explain(const RunEnd& end) {
  if (end.message.empty()) return;
  IsShownAlways(end.reason) ? Error(end.message) : Say(end.message);
}

void Report::Defect(const std::string& what) { Error(message::kDefect, Printable(what)); }

void Report::SystemRefused(const process::CgroupUnavailable& error) {
  Error(fmt::format(message::kContainRequired, NoCgroupText(error.reason())));
}

void Report::SystemRefused(const process::NoProcessTree& error) {
  ReportSystemError(error, fmt::format(message::kNoProc, error.what()));
}

void Report::SystemRefused(const std::system_error& error) {
  ReportSystemError(error, error.what());
}

void Report::ReportSystemError(const std::system_error& error, const std::string& text) {
  const std::string what = error.what();
  switch (error.code().value()) {
    case EAGAIN:
      return Error(message::kNoProcesses, what);
    case EMFILE:
    case ENFILE:
      return Error(message::kNoDescriptors, what);
    default:
      break;
  }
  Error(text);
}

void Report::NoMemory() { Error(message::kNoMemory); }

void Report::Contained(const std::string& cgroup) {
  Write(Level::kVerbose, fmt::format(message::kContained, Printable(cgroup)));
}

void Report::NotContained(const process::NoCgroup& reason) {
  Write(Level::kVerbose, fmt::format(message::kNotContained, NoCgroupText(reason)));
}

void Report::Undelegated(const std::string& cgroup) {
  Write(Level::kVerbose, fmt::format(message::kUndelegated, Printable(cgroup)));
}

void Report::NoHistory(const lock::RunRecorder::Unkept& unkept) {
  const std::string lock = Printable(unkept.lock);
  if (!unkept.error) {
    Write(Level::kVerbose, fmt::format(message::kForeignLastRun, lock));
  } else if (zookeeper::IsRefusal(*unkept.error)) {
    Write(Level::kVerbose, fmt::format(message::kLastRunRefused, lock, lock));
  } else if (*unkept.error == zookeeper::Error::kQuotaExceeded) {
    Write(Level::kVerbose, fmt::format(message::kLastRunQuota, lock));
  } else {
    Write(Level::kVerbose, fmt::format(message::kLastRunFailed, lock, lock));
  }
}

void Report::OrphanEnded(const process::EndedOrphan& orphan) {
  const std::string path = Printable(orphan.path);
  if (!orphan.is_gone) return Error(fmt::format(message::kOrphansAlive, path));
  Say(fmt::format(message::kOrphansEnded, path));
}

void Report::Survivor(const process::Survivor& survivor) {
  Error(message::kSurvivor, survivor.pid, Printable(survivor.name));
}

void Report::LeftBehind(const process::Survivor& process) {
  Say(message::kLeftBehind, process.pid, Printable(process.name));
}

void Report::Awaited(const process::Survivor& process, int more) {
  Say(message::kAwaited, process.pid, Printable(process.name), MoreAwaited(more));
}

void Report::AwaitedSurvivor(const std::string& locks, const process::Survivor& process, int more) {
  Error(message::kAwaitedSurvivor, locks, process.pid, Printable(process.name), MoreAwaited(more));
}

void Report::Suspending(const std::string& lock, Duration lease_left, Duration run_left,
                        Suspended what) {
  const std::string held = FormatDuration(lease_left);
  switch (what) {
    case Suspended::kCommand:
      if (run_left >= lease_left) return Error(message::kSuspending, lock, held);
      return Error(message::kSuspendingLimited, lock, held, FormatDuration(run_left));
    case Suspended::kCommandUnderWarn:
      return Error(message::kSuspendingUnguarded, lock, held);
    case Suspended::kNestedRuns:
      return Error(message::kSuspendingNested, lock, held);
  }
}

void Report::SuspendingReserved(Duration run_left) {
  Error(message::kSuspendingReserved, FormatDuration(run_left));
}

std::string DroppedLine() { return fmt::format("zklock: {}", message::kDropped); }

std::string UsageLines(const UsageError& error) {
  return fmt::format("{}\n", Printable(error.what())) +
         fmt::format(message::kTry, error.subcommand.empty() ? "" : error.subcommand + " ");
}

}  // namespace zklock::cli
