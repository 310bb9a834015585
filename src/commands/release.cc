#include "commands/release.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/queue_view.h"
#include "cli/report_queue.h"
#include "commands/console.h"
#include "commands/visit.h"
#include "lock/removal.h"
#include "lock/survey.h"

namespace zklock::commands {
namespace {

lock::LockName LockOf(const cli::ReleaseOptions& options) {
  const std::string& chroot = options.server.servers.chroot;
  return {chroot + options.lock, chroot};
}

/// Who is meant, or the exit status.
std::variant<cli::ContenderView, int> Find(const cli::ReleaseOptions& options,
                                           process::Signals& signals, cli::Report& report) {
  Visit visit(options.server, signals, report);
  lock::Survey survey(visit.store(), visit.clock(),
                      {.place = LockOf(options),
                       .most_data = cli::kMostContenderData,
                       .connect_timeout = options.server.connect_timeout});
  if (const auto status = visit.Run(survey)) return *status;
  visit.Leave();

  const lock::LockSurvey& lock = survey.result().locks.front();
  const std::vector<cli::ContenderView> queue = cli::DescribeQueue(lock);
  const auto found = std::find_if(queue.begin(), queue.end(), [&](const auto& contender) {
    return contender.name == options.contender;
  });
  const auto& ignored = lock.ignored_children;
  const bool is_ignored =
      std::find(ignored.begin(), ignored.end(), options.contender) != ignored.end();
  if (is_ignored || (found != queue.end() && found->state == cli::ContenderState::kNoContender)) {
    report.Error(cli::NoContender(options.lock, options.contender));
    return kExitUsage;
  }
  if (found == queue.end()) {
    report.Say(cli::NotThere(options.lock, options.contender));
    return kExitConflict;
  }
  return *found;
}

/// None: go on. Else the exit status.
std::optional<int> Confirm(const cli::ReleaseOptions& options, process::Signals& signals,
                           cli::Report& report) {
  if (options.yes) return std::nullopt;
  const Answer answer = AskYesNo("zklock: " + cli::ReleaseQuestion(), signals);
  if (answer.signal) return StoppedBy(*answer.signal, report);
  if (answer.yes) return std::nullopt;
  report.Say(cli::NothingReleased(options.lock));
  return kExitConflict;
}

/// In a session of its own: the last one may have expired while the user was thinking.
int Delete(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  Visit visit(options.server, signals, report);
  lock::Removal removal(visit.store(), visit.clock(), LockOf(options), options.contender,
                        options.server.connect_timeout);
  if (const auto status = visit.Run(removal)) return *status;
  visit.Leave();
  if (!removal.has_removed()) {
    report.Say(cli::NotThere(options.lock, options.contender));
    return kExitConflict;
  }
  report.Say(cli::ForcedOut(options.lock, options.contender));
  return kExitOk;
}

}  // namespace

int Release(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  if (!options.yes && !CanAsk()) {
    report.Error(cli::WantsYes());
    return kExitUsage;
  }
  const auto found = Find(options, signals, report);
  if (const int* status = std::get_if<int>(&found)) return *status;
  const std::string meant = cli::Meant(options.lock, std::get<cli::ContenderView>(found));
  if (options.yes) {
    report.Say(meant);
  } else {
    report.Error(meant);  // a question is not asked without saying about whom
  }
  if (const auto status = Confirm(options, signals, report)) return *status;
  return Delete(options, signals, report);
}

}  // namespace zklock::commands
