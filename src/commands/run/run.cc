#include "commands/run/run.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/reports/end_reason.h"
#include "cli/reports/report_queue.h"
#include "cli/text/run_messages.h"
#include "commands/nesting/run_metadata.h"
#include "commands/run/acquire_locks.h"
#include "commands/run/dry_run.h"
#include "commands/run/keeper.h"
#include "commands/run/locked_run.h"
#include "commands/run/preforked_command.h"
#include "commands/run/reserve.h"
#include "commands/run/running_command.h"
#include "commands/session/console.h"
#include "commands/session/exit.h"
#include "commands/session/run_context.h"
#include "process/guard/owner_guard.h"
#include "process/loop/descriptors.h"
#include "process/tree/executable.h"
#include "process/tree/process_tree.h"
#include "protocol/held.h"

namespace zklock::commands {
namespace {

/// Runs the command without a session: under locks that only ancestors hold, or that are
/// `reserved`.
int RunWithoutSession(RunContext& context, PreforkedCommand& command,
                      const std::vector<lock::Ticket>& reserved) {
  const AncestorLocks& ancestors = context.ancestors;
  const std::string locks = reserved.empty() ? ancestors.DisplayPath() : DisplayPaths(reserved);
  command.FinishForksWithoutSession();
  // An outer lock may have been lost in the meantime, or its lease shortened.
  context.loop.RunReady();
  if (ancestors.is_lost()) {
    return context.End(locks,
                       cli::EndWithStatus(context.options.conflict_exit_code,
                                          cli::EndReason::kLostBeforeRun, locks),
                       std::nullopt);
  }
  process::LeaveWorkingDirectory();
  if (const auto signal = TakeEndingSignal(context.signals)) {
    if (reserved.empty()) {
      return context.End(locks, cli::InterruptedBeforeRun(locks, *signal), std::nullopt);
    }
    context.report.Error(cli::message::kStaysReservedAfterSignal, cli::SignalName(*signal), locks,
                         context.options.reserve);
    return kExitSignalBase + *signal;
  }
  process::Supervisor& supervisor = command.supervisor();
  RunningCommand running(context, supervisor, locks);
  running.FollowAncestors(kNever, context.options.kill_after);
  command.Begin(reserved.empty() ? EnvironmentFor({}, ancestors.tickets(), context.Self(), "")
                                 : EnvironmentFor(reserved, {}, context.Self(),
                                                  std::string(protocol::kNoSocket)));
  context.loop.Add(supervisor);
  while (!supervisor.is_over()) {
    context.loop.RunOnce();
    running.FollowAncestors(kNever, context.options.kill_after);
    running.PublishProgress();
    running.HandleSignals(kNever);
  }
  context.loop.Remove(supervisor);
  if (const auto* failed = supervisor.exec_failed()) {
    return CannotExecute(context, *failed, command.long_variable());
  }
  if (const auto lost = running.EndIfLostBeforeStart(cli::EndReason::kLostBeforeRun)) {
    return context.End(locks, *lost, std::nullopt);
  }
  running.PublishEnd();
  running.ReportEnd();
  if (!reserved.empty()) ReportOutlived(context, reserved);
  return running.Status();
}

int ReserveOnly(RunContext& context) {
  std::optional<process::OwnerGuard> guard;
  (void)AcquireLocks(context, {.beneficiary = getpid(),
                               .depends_on_existing_holds = true,
                               .contender_data =
                                   [&context](const cli::WantedLock& wanted) {
                                     return ContenderDataFor(context.options, wanted,
                                                             context.Self(),
                                                             /*contained=*/false);
                                   },
                               .fork_guard =
                                   [&] {
                                     if (!guard)
                                       guard.emplace(context.session_for_guard.GuardDuty());
                                   }});
  return kExitOk;
}

int RunCommand(RunContext& context) {
  if (context.options.command.empty()) return ReserveOnly(context);
  const auto executable =
      process::FindExecutable(context.options.command.front(), GetEnvironment("PATH"));
  if (const auto* failed = std::get_if<process::ExecFailed>(&executable)) {
    return CannotExecute(context, *failed);
  }
  process::RequireProcessTree();  // do not queue for a command that could not be terminated
  auto command = std::make_unique<PreforkedCommand>(context, std::get<std::string>(executable));
  if (context.options.contain == cli::Contain::kRequire) command->RequireCgroup();
  // The shell that holds locks with --hold may have become this zklock by exec, so the beneficiary
  // is this process, not its parent.
  HeldLocks locks =
      AcquireLocks(context, {.beneficiary = getpid(),
                             .depends_on_existing_holds = true,
                             .contender_data =
                                 [&context, &command](const cli::WantedLock& wanted) {
                                   return ContenderDataFor(context.options, wanted, context.Self(),
                                                           command->HasCgroup());
                                 },
                             .command = command.get()});
  if (locks.tickets.empty()) return RunWithoutSession(context, *command, locks.reserved);
  return RunUnderLocks(context, std::move(locks), std::move(command));
}

}  // namespace

int Run(const cli::RunOptions& options, process::Signals& signals, process::MessageSink& sink) {
  if (options.dry_run) return DryRun(options, signals, sink);
  if (options.hold) return HoldForOwner(options, signals, sink);
  signals.AddWindowChanges();
  RunContext context(options, signals, sink);
  int status = kExitOk;
  try {
    status = RunCommand(context);
  } catch (const Exit& exit) {
    status = exit.status();
  }
  if (context.event_writer) {
    const std::string why = context.event_writer->Finish();
    if (!why.empty()) context.report.Error(cli::message::kEventsUnwritten, why);
  }
  return status;
}

}  // namespace zklock::commands
