#include "commands/inspect/monitoring.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <variant>

#include "base/exit_status.h"
#include "cli/reports/report_queue.h"
#include "cli/text/printable.h"
#include "cli/text/queue_messages.h"
#include "cli/views/queue_check.h"
#include "cli/views/queue_metrics.h"
#include "commands/inspect/new_file.h"
#include "commands/session/console.h"
#include "commands/session/exit.h"
#include "commands/session/output.h"
#include "commands/session/short_session.h"
#include "lock/survey/survey.h"

namespace zklock::commands {
namespace {

using Scope = lock::SurveyRequest::Scope;

lock::SurveyRequest RequestFor(const cli::InspectOptions& options, const std::string& path,
                               Scope scope) {
  return {.place = lock::LockName::In(options.server.servers.chroot, path),
          .scope = scope,
          .most_data = lock::kMostContenderData,
          .with_last_run = true,
          .with_free = true,
          .connect_timeout = options.server.connect_timeout};
}

/// Whether the servers answer, and only this one path may not be read.
bool IsAboutPath(const lock::ServerOperation& operation) {
  if (!operation.failure()) return false;
  const auto* refused = std::get_if<lock::Refused>(&*operation.failure());
  return refused != nullptr && refused->error == zookeeper::Error::kNoAuth;
}

/// None, or the exit status.
std::optional<int> Replace(const std::string& file, const std::string& text,
                           process::Signals& signals, cli::Report& report) {
  try {
    NewFile written(file);
    written.Write(text);
    if (const auto signal = TakeEndingSignal(signals)) return InterruptedBy(*signal, report);
    written.Replace();
    return std::nullopt;
  } catch (const NotReplaced& error) {
    report.Error(cli::message::kCannotReplace, cli::Printable(file), error.what());
    return kExitSystem;
  }
}

}  // namespace

int InspectCheck(const cli::InspectOptions& options, process::Signals& signals,
                 cli::Report& report) {
  cli::QueueCheck check(options.limits, cli::MillisecondsNow());
  ShortSession session(options.server, signals, report);
  bool lacks_chroot = false;
  for (const std::string& path : options.paths) {
    lock::Survey survey(session.store(), session.clock(),
                        RequestFor(options, path, path == "/" ? Scope::kTree : Scope::kGuess),
                        &check);
    const auto signal = session.RunUntilLeft(survey, [] { return false; });
    if (signal) return InterruptedBy(*signal, report);
    if (const auto end = session.FailureEndOf(survey)) {
      check.AddUnknown(end->message);
      if (!IsAboutPath(survey)) break;
    } else {
      check.EndPath(path, survey.result().unlistable);
      try {
        lacks_chroot = lacks_chroot || (!survey.result().exists && session.LacksChroot());
      } catch (const Exit& exit) {
        // The connection was lost just now. What was found is still true.
        if (exit.status() >= kExitSignalBase) throw;
      }
    }
  }
  session.Close();
  if (lacks_chroot) {
    const std::string chroot = cli::Printable(options.server.servers.chroot);
    check.AddUnknown(fmt::format(cli::message::kNoChroot, chroot));
  }
  const cli::CheckResult result = check.Result();
  const int unknown = static_cast<int>(cli::CheckState::kUnknown);
  if (const auto status = PrintWhole(result.line, signals, report)) {
    return *status == kExitSystem ? unknown : *status;
  }
  return static_cast<int>(result.state);
}

int CheckFailed(std::string_view why) {
  const cli::CheckResult result = cli::UnknownCheck(why);
  (void)std::fwrite(result.line.data(), 1, result.line.size(), stdout);
  (void)std::fflush(stdout);
  return static_cast<int>(result.state);
}

int InspectMetrics(const cli::InspectOptions& options, process::Signals& signals,
                   cli::Report& report) {
  cli::QueueMetrics metrics(cli::MillisecondsNow());
  ShortSession session(options.server, signals, report);
  lock::Survey survey(session.store(), session.clock(),
                      RequestFor(options, options.path, Scope::kTree), &metrics);
  session.Run(survey);
  const bool lacks_chroot = !survey.result().exists && session.LacksChroot();
  session.Close();
  const auto& unlistable = survey.result().unlistable;
  const std::string text = metrics.Text(unlistable.size());
  const auto status = options.output.empty() ? PrintWhole(text, signals, report)
                                             : Replace(options.output, text, signals, report);
  if (status) return *status;
  if (lacks_chroot) {
    report.Say(cli::message::kNoChroot, cli::Printable(options.server.servers.chroot));
  }
  if (!unlistable.empty()) report.Say(cli::Unlistable(unlistable));
  return kExitOk;
}

}  // namespace zklock::commands
