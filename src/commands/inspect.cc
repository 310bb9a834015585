#include "commands/inspect.h"

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "base/exit_status.h"
#include "cli/queue_view.h"
#include "cli/report_queue.h"
#include "commands/console.h"
#include "commands/visit.h"
#include "lock/survey.h"

namespace zklock::commands {
namespace {

using Scope = lock::SurveyRequest::Scope;

/// What was found, or the exit status.
template <typename T>
using Or = std::variant<T, int>;

struct Findings {
  lock::SurveyResult result;
  Scope scope;
};

lock::LockName PlaceOf(const cli::InspectOptions& options) {
  const std::string& chroot = options.server.servers.chroot;
  if (options.path != "/") return {chroot + options.path, chroot};
  return {chroot.empty() ? "/" : chroot, chroot};
}

Or<lock::SurveyResult> Survey(Visit& visit, const cli::InspectOptions& options, Scope scope) {
  lock::Survey survey(visit.store(), visit.clock(),
                      {.place = PlaceOf(options),
                       .scope = scope,
                       .most_data = cli::kMostContenderData,
                       .connect_timeout = options.server.connect_timeout});
  if (const auto status = visit.Run(survey)) return *status;
  return survey.result();
}

/// A LOCK in use is shown by itself; what is none may have locks below.
Or<Findings> Look(const cli::InspectOptions& options, process::Signals& signals,
                  cli::Report& report) {
  Visit visit(options.server, signals, report);
  Scope scope = options.path == "/" ? Scope::kTree : Scope::kLock;
  Or<lock::SurveyResult> found = Survey(visit, options, scope);
  if (scope == Scope::kLock && std::holds_alternative<lock::SurveyResult>(found)) {
    const lock::LockSurvey& lock = std::get<lock::SurveyResult>(found).locks.front();
    const bool has_children = !lock.entries.empty() || !lock.ignored_children.empty();
    if (!lock.IsHeld() && has_children) {
      scope = Scope::kTree;
      found = Survey(visit, options, scope);
    }
  }
  if (const int* status = std::get_if<int>(&found)) return *status;
  visit.Leave();
  return Findings{std::get<lock::SurveyResult>(std::move(found)), scope};
}

std::string Text(const cli::InspectOptions& options, const Findings& findings) {
  const cli::ViewStyle style{.width = OutputWidth(),
                             .with_names = options.verbosity == cli::Verbosity::kVerbose};
  if (findings.scope == Scope::kLock) {
    return cli::LockText(findings.result.locks.front(), style);
  }
  return cli::TreeText(options.path, findings.result.locks, style);
}

bool IsHeld(const Findings& findings) {
  for (const lock::LockSurvey& lock : findings.result.locks) {
    if (lock.IsHeld()) return true;
  }
  return false;
}

}  // namespace

int Inspect(const cli::InspectOptions& options, process::Signals& signals, cli::Report& report) {
  const Or<Findings> looked = Look(options, signals, report);
  if (const int* status = std::get_if<int>(&looked)) return *status;
  const Findings& findings = std::get<Findings>(looked);
  if (options.verbosity == cli::Verbosity::kQuiet) {
    return IsHeld(findings) ? kExitConflict : kExitOk;
  }
  const PrintResult printed = Print(Text(options, findings), signals);
  if (printed.signal) return StoppedBy(*printed.signal, report);
  // Nobody reads: ended without a word, as PIPE would have ended it.
  if (printed.error == EPIPE || printed.error == EBADF) return kExitSignalBase + SIGPIPE;
  if (printed.error != 0) {
    report.Error(cli::CannotPrint(std::generic_category().message(printed.error)));
    return kExitSystem;
  }
  if (!findings.result.unlistable.empty()) {
    report.Say(cli::Unlistable(findings.result.unlistable));
  }
  return kExitOk;
}

}  // namespace zklock::commands
