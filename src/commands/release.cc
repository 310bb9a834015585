#include "commands/release.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/queue_view.h"
#include "cli/report_queue.h"
#include "commands/console.h"
#include "commands/own_locks.h"
#include "commands/short_session.h"
#include "lock/delete_contender.h"
#include "lock/request_release.h"
#include "lock/survey.h"
#include "lock/wait_until_gone.h"
#include "process/identity.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

lock::LockName LockOf(const cli::ReleaseOptions& options) {
  return lock::LockName::In(options.server.servers.chroot, options.lock);
}

/// The znode that has the contender as a child: LOCK, or what a semaphore has its queue in.
lock::LockName QueueOf(const cli::ReleaseOptions& options, const cli::ContenderView& contender) {
  return {protocol::ParentOf(contender.path), options.server.servers.chroot};
}

lock::ContenderId IdOf(const cli::ContenderView& contender) {
  return {contender.path, contender.token.value_or(0)};
}

using Target = cli::ReleaseOptions::Target;

bool IsMeant(const cli::ReleaseOptions& options, const cli::ContenderView& contender) {
  switch (options.target) {
    case Target::kOwn:
      return false;
    case Target::kContender:
      // On its way through a semaphore's turnstile it has two names.
      return contender.name == options.contender || contender.turnstile_name == options.contender;
    case Target::kHolders:
      return contender.state == cli::ContenderState::kHeld;
    case Target::kAll:
      return contender.state != cli::ContenderState::kNoContender;
  }
  return false;
}

/// Who is meant, at least one, or the exit status.
std::variant<std::vector<cli::ContenderView>, int> Find(const cli::ReleaseOptions& options,
                                                        process::Signals& signals,
                                                        cli::Report& report) {
  ShortSession visit(options.server, signals, report);
  lock::Survey survey(visit.store(), visit.clock(),
                      {.place = LockOf(options),
                       .most_data = cli::kMostContenderData,
                       .connect_timeout = options.server.connect_timeout});
  if (const auto status = visit.Run(survey)) return *status;
  visit.Close();

  const lock::LockSurvey& lock = survey.result().locks.front();
  std::vector<cli::ContenderView> meant = cli::DescribeQueue(lock);
  std::erase_if(meant, [&](const auto& contender) { return !IsMeant(options, contender); });
  const auto& ignored = lock.ignored_children;
  const bool is_ignored =
      options.target == Target::kContender &&
      std::find(ignored.begin(), ignored.end(), options.contender) != ignored.end();
  if (is_ignored || (!meant.empty() && meant.front().state == cli::ContenderState::kNoContender)) {
    report.Error(cli::NoContender(options.lock, options.contender));
    return kExitUsage;
  }
  if (!meant.empty()) return meant;
  report.Say(options.target == Target::kContender ? cli::NotThere(options.lock, options.contender)
                                                  : cli::NobodyThere(options.lock));
  return kExitConflict;
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

/// What was come of one contender.
enum class Fate { kLetGo, kGone, kCannotBeAsked };
using FateOr = std::variant<Fate, int>;

FateOr Force(ShortSession& visit, const cli::ReleaseOptions& options,
             const cli::ContenderView& contender, cli::Report& report) {
  lock::DeleteContender removal(visit.store(), visit.clock(), QueueOf(options, contender),
                                IdOf(contender), options.server.connect_timeout);
  if (const auto status = visit.Run(removal)) return *status;
  if (!removal.has_removed()) return Fate::kGone;
  report.Say(cli::ForcedOut(options.lock, contender.name));
  return Fate::kLetGo;
}

/// None: its program heeds nothing of the kind.
std::optional<std::function<std::string(const std::string&)>> EditFor(
    const cli::ContenderView& contender, const cli::RevokeData& revoke) {
  switch (contender.program) {
    case protocol::Program::kZklock:
      return [revoke](const std::string& old) {
        cli::ContenderData data = cli::ParseContenderData(old).value_or(cli::ContenderData{});
        data.revoke = revoke;
        return cli::FormatContenderData(data);
      };
    case protocol::Program::kCurator:
      // Its semaphores look at no such message.
      if (contender.for_permit) return std::nullopt;
      return [](const std::string& /*old*/) { return std::string(cli::kCuratorRevoke); };
    default:
      return std::nullopt;
  }
}

FateOr Ask(ShortSession& visit, const cli::ReleaseOptions& options,
           const cli::ContenderView& contender, const cli::RevokeData& revoke,
           cli::Report& report) {
  const auto edit = EditFor(contender, revoke);
  if (!edit) {
    report.Error(cli::CannotBeAsked(contender));
    return Fate::kCannotBeAsked;
  }
  lock::RequestRelease revocation(visit.store(), visit.clock(), QueueOf(options, contender),
                                  IdOf(contender), *edit, options.server.connect_timeout);
  if (const auto status = visit.Run(revocation)) return *status;
  if (!revocation.has_asked()) return Fate::kGone;
  report.Say(cli::Asked(options.lock, contender));
  return Fate::kLetGo;
}

/// None: they have gone. Else the exit status.
std::optional<int> Await(ShortSession& visit, const cli::ReleaseOptions& options,
                         const std::vector<cli::ContenderView>& asked) {
  for (const cli::ContenderView& contender : asked) {
    lock::WaitUntilGone departure(visit.store(), visit.clock(), QueueOf(options, contender),
                                  IdOf(contender), options.server.connect_timeout);
    if (const auto status = visit.Run(departure)) return status;
  }
  return std::nullopt;
}

cli::RevokeData AskedByUs(const std::string& reason) {
  const process::Identity self = process::ThisProcess();
  return {.by = self.user + " on " + self.host, .reason = reason};
}

/// In a session of its own: the last one may have expired while the user was thinking.
int ReleaseAll(const cli::ReleaseOptions& options, const std::vector<cli::ContenderView>& meant,
               process::Signals& signals, cli::Report& report) {
  ShortSession visit(options.server, signals, report);
  std::vector<cli::ContenderView> asked;
  bool all_can = true;
  // The last first: of those who wait nobody gets what the others let go of.
  for (auto one = meant.rbegin(); one != meant.rend(); ++one) {
    const cli::ContenderView& contender = *one;
    const FateOr fate = options.force
                            ? Force(visit, options, contender, report)
                            : Ask(visit, options, contender, AskedByUs(options.reason), report);
    if (const int* status = std::get_if<int>(&fate)) return *status;
    if (std::get<Fate>(fate) == Fate::kLetGo) asked.push_back(contender);
    if (std::get<Fate>(fate) == Fate::kGone)
      report.Say(cli::NotThere(options.lock, contender.name));
    all_can = all_can && std::get<Fate>(fate) != Fate::kCannotBeAsked;
  }
  if (options.wait) {
    if (const auto status = Await(visit, options, asked)) return *status;
  }
  visit.Close();
  return asked.empty() || !all_can ? kExitConflict : kExitOk;
}

/// The keeper releases it as soon as nothing runs under it any more.
int AwaitRelease(const cli::ReleaseOptions& options, const lock::Ticket& ticket,
                 const protocol::NestingRelease& release, process::Signals& signals,
                 cli::Report& report) {
  if (release.runs > 0) report.Say(cli::ReleaseWaits(options.lock, release.runs, release.pid));
  cli::ContenderView contender;
  contender.program = protocol::Program::kZklock;
  contender.path = ticket.path;
  contender.token = ticket.token;
  contender.name = protocol::BaseOf(ticket.path);
  ShortSession visit(options.server, signals, report);
  if (const auto status = Await(visit, options, {contender})) return *status;
  visit.Close();
  return kExitOk;
}

/// What the calling shell holds by --hold: asks its keeper, and waits until that has released it.
int ReleaseOwn(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  // The shell that holds may have become this zklock, by exec.
  ShortSession session(options.server, signals, report);
  const auto found = FindOwnHolds(session, LockOf(options), getpid());
  if (const int* status = std::get_if<int>(&found)) return *status;
  std::optional<pid_t> silent;
  for (const OwnHold& hold : std::get<std::vector<OwnHold>>(found)) {
    const HolderAnswer answer = AskHolder(hold.claim, protocol::NestingRequest::Kind::kRelease,
                                          options.server.connect_timeout, signals);
    if (const auto* link = std::get_if<std::unique_ptr<process::NestingLink>>(&answer)) {
      return AwaitRelease(options, hold.ticket, (*link)->release(), signals, report);
    }
    if (const auto* stopped = std::get_if<AskingStopped>(&answer)) {
      return StoppedBy(stopped->signal_number, report);
    }
    if (std::holds_alternative<Refuses>(answer)) {
      report.Error(cli::ReleaseBelow(options.lock));
      return kExitUsage;
    }
    if (std::holds_alternative<NoProof>(answer)) silent = hold.claim.holder.pid;
  }
  if (silent) {
    report.Error(cli::KeeperSilent(options.lock, *silent));
    return kExitUnavailable;
  }
  report.Say(cli::NothingHeld(options.lock));
  return kExitConflict;
}

}  // namespace

int Release(const cli::ReleaseOptions& options, process::Signals& signals, cli::Report& report) {
  if (options.target == Target::kOwn) return ReleaseOwn(options, signals, report);
  if (!options.yes && !CanAsk()) {
    report.Error(cli::WantsYes());
    return kExitUsage;
  }
  const auto found = Find(options, signals, report);
  if (const int* status = std::get_if<int>(&found)) return *status;
  const auto& meant = std::get<std::vector<cli::ContenderView>>(found);
  for (const cli::ContenderView& contender : meant) {
    if (options.yes) {
      report.Say(cli::Meant(options.lock, contender));
    } else {
      // A question is not asked without saying about whom.
      report.Error(cli::Meant(options.lock, contender));
    }
  }
  if (const auto status = Confirm(options, signals, report)) return *status;
  return ReleaseAll(options, meant, signals, report);
}

}  // namespace zklock::commands
