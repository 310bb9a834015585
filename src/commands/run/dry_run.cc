#include "commands/run/dry_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "base/read_file.h"
#include "cli/reports/end_reason.h"
#include "cli/reports/report_reasons.h"
#include "cli/views/dry_run_text.h"
#include "cli/views/queue_text.h"
#include "commands/nesting/nesting.h"
#include "commands/nesting/run_metadata.h"
#include "commands/run/keeper.h"
#include "commands/run/preforked_command.h"
#include "commands/run/reserve.h"
#include "commands/run/running_command.h"
#include "commands/session/exit.h"
#include "commands/session/output.h"
#include "commands/session/run_context.h"
#include "commands/session/short_session.h"
#include "lock/reserve/existing_reservations.h"
#include "lock/several/acquire_set.h"
#include "lock/survey/join_preview.h"
#include "lock/survey/survey.h"
#include "process/tree/executable.h"
#include "process/tree/process_tree.h"
#include "protocol/contender_name.h"
#include "protocol/lease.h"

namespace zklock::commands {
namespace {

using Finding = cli::DryRunFinding;

/// How many contenders of a LOCK are shown.
constexpr std::size_t kMostShown = 16;

/// Returns whether the reservation has ended according to this host's clock: only by creating a
/// contender could we learn the servers' time.
bool IsOverdue(const lock::Reserved& reserved) {
  const auto end = reserved.end();
  return end && end->count() <= cli::MillisecondsNow();
}

void Print(const std::string& text, process::Signals& signals, cli::Report& report) {
  if (const auto status = PrintWhole(text, signals, report)) throw Exit(*status);
}

void PrintRows(RunContext& context, const std::vector<cli::DryRunRow>& rows) {
  commands::PrintRows(rows, context.signals, context.report);
}

// ---- the command -----------------------------------------------------------------------------

cli::DryRunRow Containment(cli::Contain contain) {
  if (contain == cli::Contain::kOff) return cli::ContainRow("", {});
  const auto found = FindCgroupParent(contain);
  const auto* const own = std::get_if<process::OwnCgroup>(&found);
  const std::optional<process::NoCgroup> none =
      own != nullptr ? process::Cgroup::Probe(own->directory) : std::get<process::NoCgroup>(found);
  if (none && contain == cli::Contain::kRequire) throw process::CgroupUnavailable(*none);
  return cli::ContainRow(none ? "" : own->directory, none);
}

/// Shows the servers, the command and its containment. If the command cannot be executed, reports
/// that and returns the exit status; otherwise returns 0.
int ShowCommand(RunContext& context, const process::Owner* owner) {
  const cli::RunOptions& options = context.options;
  PrintRows(context, {cli::ServersRow(options.server), cli::IdentityRow(options.server)});
  const auto show_limit = [&] {
    if (options.max_run) PrintRows(context, {cli::MaxRunRow(*options.max_run, owner != nullptr)});
  };
  if (options.command.empty()) {
    PrintRows(context, {cli::NoCommandRow(owner)});
    show_limit();
    return kExitOk;
  }
  const auto executable = process::FindExecutable(options.command.front(), GetEnvironment("PATH"));
  if (const auto* failed = std::get_if<process::ExecFailed>(&executable)) {
    return CannotExecute(context, *failed);
  }
  process::RequireProcessTree();
  PrintRows(context, {cli::CommandRow(AbsolutePath(std::get<std::string>(executable)))});
  PrintRows(context, {Containment(options.contain)});
  show_limit();
  return kExitOk;
}

// ---- one LOCK --------------------------------------------------------------------------------

/// Examines and shows one LOCK.
class LockExamination {
 public:
  LockExamination(RunContext& context, ShortSession& session, const cli::WantedLock& wanted,
                  pid_t beneficiary)
      : context_(context),
        session_(session),
        wanted_(wanted),
        beneficiary_(beneficiary),
        lock_(context.NameOf(wanted)),
        requests_(Requests()) {}

  Finding Run() {
    lock::Survey survey(session_.store(), session_.clock(),
                        {.place = lock_,
                         .most_data = lock::kMostContenderData,
                         .with_last_run = true,
                         .connect_timeout = context_.options.server.connect_timeout});
    session_.Run(survey);
    found_ = survey.result().locks.front();
    ShowQueue();
    if (session_.store().lease().timeout() < protocol::kLeastSessionTimeout) {
      Fail({lock::Unusable::Why::kShortSessions});
    }
    if (context_.options.resumes) {
      if (const lock::QueueEntry* const ours = FindReservation()) return FreeFor(*ours);
      Finding missing = Of(Finding::What::kNotReserved);
      for (const lock::QueueEntry& entry : found_.entries) {
        const bool holds = entry.reserved && entry.position && !entry.Waits();
        if (holds && entry.reserved->reservation.id != context_.options.reserve) {
          missing.busy.reserved = entry.reserved;
        }
      }
      return missing;
    }
    CheckRights();
    CheckCompatibility();
    CheckStrays();
    if (const lock::QueueEntry* const ours = FindReservation()) return FreeFor(*ours);
    auto busy = FindAhead();
    const cli::RunOptions& options = context_.options;
    const bool joins = !busy || !options.try_only;
    if (joins && !options.permits && found_.stat.children_made > protocol::kLastUsableNumber) {
      Fail({lock::Unusable::Why::kNumbersUsedUp});
    }
    const bool asks = options.preempt != cli::Preempt::kNobody;
    if (busy && (!asks || busy->what == Finding::What::kQueueFull)) return *std::move(busy);
    // A run that would be too soon asks nobody to leave.
    Finding intervals = CheckIntervals();
    if (busy && intervals.what != Finding::What::kTooRecent) return *std::move(busy);
    return intervals;
  }

 private:
  [[nodiscard]] Finding Of(Finding::What what) const {
    return {.what = what, .lock = lock_.display_path()};
  }
  [[nodiscard]] Finding Free() const { return Of(Finding::What::kFree); }

  /// Throws Exit if the run cannot use our reservation.
  [[nodiscard]] Finding FreeFor(const lock::QueueEntry& ours) {
    const cli::RunOptions& options = context_.options;
    const lock::ReservedLock reserved{lock_, ours.path, *ours.reserved};
    const auto unusable = session_.Ask([&](lock::Calls& calls) {
      return lock::FindOtherUse(calls, reserved, wanted_.mode, options.permits, options.take);
    });
    if (unusable) Fail(*unusable);
    if (const auto end = reserved.reserved.end()) {
      const std::chrono::milliseconds now(cli::MillisecondsNow());
      const bool renews = options.reserve_for && now + *options.reserve_for > *end;
      if (renews || options.resumes) {
        session_.Ask(
            [&](lock::Calls& calls) { lock::RequireReservationIsUsable(calls, reserved, renews); });
      }
    }
    Finding free = Free();
    free.is_ours = true;
    return free;
  }

  [[nodiscard]] std::vector<lock::AcquireRequest> Requests() {
    lock::AcquireRequest request{
        .lock = lock_,
        .mode = wanted_.mode,
        .dialect = context_.options.dialect,
        .data = ContenderDataFor(context_.options, wanted_, context_.Self(), false),
        .permits = context_.options.permits,
        .take = context_.options.take,
        .reserve = ReservationRequestOf(context_.options)};
    if (context_.options.permits) return lock::RequestsForPermit(std::move(request));
    return {std::move(request)};
  }

  void ShowQueue() {
    const cli::RunOptions& options = context_.options;
    std::string text = "\n";
    cli::QueueText view(wanted_.path,
                        {.width = OutputSize().columns,
                         .colours = OutputHasColours(),
                         .with_names = options.verbosity == cli::Verbosity::kVerbose},
                        [&text](const std::string& more) { text += more; });
    view.OnLock(found_);
    for (std::size_t i = 0; i < std::min(found_.entries.size(), kMostShown); ++i) {
      view.OnEntry(found_.entries[i]);
    }
    view.OnLockEnd(found_);
    view.OnEnd();
    Print(text + "\n", context_.signals, context_.report);
    PrintRows(context_, {cli::ModeRow(wanted_.mode, options.permits, options.take)});
  }

  /// Shows who has which permissions. Throws Exit if we lack permission to queue.
  void CheckRights() {
    for (const lock::AcquireRequest& request : requests_) {
      // If the reservation already exists, no contender is converted into it.
      const bool converts = request.reserve && FindReservation() == nullptr &&
                            request.QueuePath() == request.ReservationsPath();
      const bool deletes = context_.options.any || request.is_for_turnstile() || converts;
      const lock::QueueAccess access = session_.Ask(
          [&](lock::Calls& calls) { return lock::FindQueueAccess(calls, request, deletes); });
      // The queues of a semaphore are created together, with the same permissions.
      if (&request == &requests_.back() || access.refusal) {
        PrintRows(context_, cli::RightsRows(access.acl, lock_.DisplayPath(access.path),
                                            access.path == request.QueuePath(), !access.refusal,
                                            deletes, context_.options.server.access));
      }
      if (!access.refusal) continue;
      if (const auto* unusable = std::get_if<lock::Unusable>(&*access.refusal)) Fail(*unusable);
      session_.Fail(std::get<lock::OperationFailure>(*access.refusal));
    }
  }

  [[noreturn]] void Fail(const lock::Unusable& unusable) {
    const cli::RunEnd end =
        cli::EndRun(cli::EndReason::kUnusable, cli::UnusableText(lock_.display_path(), unusable));
    context_.report.Explain(end);
    throw Exit(end.status);
  }

  /// Throws Exit if other users of LOCK would not see our contender, or we would not see theirs.
  void CheckCompatibility() {
    for (const lock::AcquireRequest& request : requests_) {
      const auto unusable =
          session_.Ask([&](lock::Calls& calls) { return lock::FindUnusable(calls, request); });
      if (unusable) Fail(*unusable);
    }
    const auto& permits = context_.options.permits;
    if (permits && found_.permit_limit && found_.IsHeld() && *found_.permit_limit != *permits) {
      Fail({.why = lock::Unusable::Why::kOtherPermits, .permits = *found_.permit_limit});
    }
  }

  /// Returns the reservation for our ID that holds LOCK; null if there is none, or its end has
  /// passed.
  [[nodiscard]] const lock::QueueEntry* FindReservation() const {
    const std::string& id = context_.options.reserve;
    for (const lock::QueueEntry& entry : found_.entries) {
      const bool counts = !id.empty() && entry.reserved && entry.position && !entry.Waits();
      if (!counts || entry.reserved->reservation.id != id || IsOverdue(*entry.reserved)) continue;
      return &entry;
    }
    return nullptr;
  }

  /// Returns the contenders of LOCK except overdue reservations, which a run would delete.
  [[nodiscard]] std::vector<const lock::QueueEntry*> Contenders() const {
    std::vector<const lock::QueueEntry*> contenders;
    for (const lock::QueueEntry& entry : found_.entries) {
      const bool has_ended = entry.reserved && IsOverdue(*entry.reserved);
      if (entry.position && !has_ended) contenders.push_back(&entry);
    }
    return contenders;
  }

  /// Throws Exit if the run would wait forever for a znode that no session owns.
  void CheckStrays() {
    using enum lock::Unusable::Why;
    for (const lock::QueueEntry& entry : found_.entries) {
      if (entry.position || !Conflicts(entry)) continue;
      // A stray permit stays in use forever, whatever its number.
      const bool is_permit = found_.IsSemaphore() && !entry.in_turnstile;
      if (is_permit ? HasFreePermits() : entry.blocking.empty()) continue;
      Fail({.why = kNobodysContender, .child = entry.name.full});
    }
    const auto& ignored = found_.ignored_children;
    const std::string simple(protocol::kSimpleName);
    if (context_.options.dialect == protocol::Dialect::kSimple &&
        std::find(ignored.begin(), ignored.end(), simple) != ignored.end()) {
      Fail({.why = kNobodysContender, .child = simple});
    }
  }

  /// Returns whether enough permits are free, even if no contender leaves.
  [[nodiscard]] bool HasFreePermits() const {
    std::size_t taken = context_.options.take;
    for (const lock::QueueEntry& entry : found_.entries) {
      if (!entry.in_turnstile) taken += 1 + entry.more.size();
    }
    return taken <= context_.options.permits.value_or(1);
  }

  [[nodiscard]] bool Conflicts(const lock::QueueEntry& entry) const {
    return wanted_.mode != protocol::Mode::kRead || !entry.name.reads();
  }

  /// Returns why another contender would keep the run from starting immediately; none if no
  /// contender would.
  [[nodiscard]] std::optional<Finding> FindAhead() {
    const auto contenders = Contenders();
    const lock::QueueEntry* const first = FirstConflict(contenders);
    if (first == nullptr || IsHeldForUs(contenders)) return std::nullopt;
    if (context_.ancestors.IsQueuedBeside(wanted_.path)) throw WaitsBehindWriter(wanted_.path);
    const cli::RunOptions& options = context_.options;
    const std::size_t waiting = CountWaiting(contenders);
    if (!options.try_only && options.max_queue && waiting >= *options.max_queue) {
      return Of(Finding::What::kQueueFull);
    }
    Finding busy = Of(Finding::What::kBusy);
    busy.busy = {.why = lock::Busy::Why::kTaken,
                 .blocker = first->name.full,
                 .blocker_data = first->data,
                 .reserved = first->reserved,
                 .holds = !first->Waits()};
    busy.more = contenders.size() - 1;
    return busy;
  }

  /// Returns the first contender that a new one at the tail would have to wait for; null if there
  /// is none.
  [[nodiscard]] const lock::QueueEntry* FirstConflict(
      const std::vector<const lock::QueueEntry*>& contenders) const {
    const auto& permits = context_.options.permits;
    std::size_t taken = 0;
    for (const auto* one : contenders) taken += 1 + one->more.size();
    if (permits && taken + context_.options.take <= *permits) return nullptr;
    const auto found = std::find_if(contenders.begin(), contenders.end(),
                                    [this](const auto* one) { return Conflicts(*one); });
    return found != contenders.end() ? *found : nullptr;
  }

  /// Counts the waiters as --max-queue does.
  [[nodiscard]] std::size_t CountWaiting(
      const std::vector<const lock::QueueEntry*>& contenders) const {
    return static_cast<std::size_t>(
        std::count_if(contenders.begin(), contenders.end(), [this](const auto* one) {
          return one->Waits() && !(context_.options.supersede && one->name.supersedes);
        }));
  }

  /// Returns whether the shell holds LOCK with --hold. Throws cli::UsageError if the wait would
  /// never end.
  [[nodiscard]] bool IsHeldForUs(const std::vector<const lock::QueueEntry*>& contenders) {
    DisprovenKeepers disproven;
    const auto holds = HoldsFor(context_, beneficiary_, wanted_.mode, disproven);
    if (!holds) return false;
    return std::any_of(contenders.begin(), contenders.end(), [&](const lock::QueueEntry* one) {
      const protocol::Mode mode = one->name.mode();
      if (one->Waits() || !holds(mode, one->data)) return false;
      const KeeperFound found{
          {.lock = lock_, .mode = mode, .path = one->path, .token = one->stat.created_zxid},
          one->data};
      if (!UseExistingHold(context_, found, wanted_.mode, disproven)) return false;
      PrintRows(context_, {cli::HeldByShellRow()});
      return true;
    });
  }

  /// Judges the intervals by this host's clock.
  [[nodiscard]] Finding CheckIntervals() {
    const cli::RunOptions& options = context_.options;
    if (options.Intervals().empty()) return Free();
    const lock::RunIntervals intervals{options.min_interval, options.once_per};
    const lock::LastRuns last = session_.Ask(
        [&](lock::Calls& calls) { return lock::ReadLastRuns(calls, lock_, intervals); });
    if (last.unknown) Fail(*last.unknown);
    const std::chrono::milliseconds now(cli::MillisecondsNow());
    if (const auto recent = lock::FindTooSoon(intervals, last, now)) {
      return TooRecent({.option = recent->is_start ? "--once-per" : "--min-interval",
                        .host = recent->host,
                        .ago = recent->ago,
                        .interval = recent->interval});
    }
    if (options.once_per) {
      session_.Ask([&](lock::Calls& calls) { lock::RequireStartIsWritable(calls, lock_); });
    }
    return Free();
  }

  [[nodiscard]] Finding TooRecent(cli::RecentRun run) const {
    Finding finding = Of(Finding::What::kTooRecent);
    finding.recent = std::move(run);
    return finding;
  }

  RunContext& context_;
  ShortSession& session_;
  const cli::WantedLock& wanted_;
  const pid_t beneficiary_;
  const lock::LockName lock_;
  const std::vector<lock::AcquireRequest> requests_;
  lock::LockSurvey found_;
};

/// Examines all LOCKs. Returns the exit status of the first error; without errors, 0 or the status
/// for a conflict.
int ShowLocks(RunContext& context, pid_t beneficiary, int status) {
  std::string why = status != kExitOk ? context.report.last_line() : "";
  std::vector<cli::WantedLock> wanted = context.options.locks;
  if (!context.options.resumes) RemoveInheritedLocks(context, wanted, beneficiary);
  for (const lock::Ticket& ticket : context.ancestors.tickets()) {
    Print("\n" + cli::HeldAboveText(ticket.lock.display_path()), context.signals, context.report);
  }
  std::vector<Finding> findings;
  for (const cli::WantedLock& one : wanted) {
    ShortSession session(context.options.server, context.signals, context.report);
    if (&one == &wanted.front() && session.LacksChroot()) {
      PrintRows(context, {cli::MissingChrootRow(context.options)});
    }
    try {
      findings.push_back(LockExamination(context, session, one, beneficiary).Run());
      session.Close();
    } catch (const Exit& exit) {
      // An error with one LOCK says nothing about the others.
      if (exit.status() != kExitRefused && exit.status() != kExitConfiguration) throw;
      if (status != kExitOk) continue;
      status = exit.status();
      why = context.report.last_line();
    }
  }
  const auto is_one_free = [](const Finding& one) { return one.what == Finding::What::kFree; };
  const bool is_free = context.options.any && !findings.empty()
                           ? std::any_of(findings.begin(), findings.end(), is_one_free)
                           : std::all_of(findings.begin(), findings.end(), is_one_free);
  Print("\n", context.signals, context.report);
  PrintRows(context, cli::ResultRows(context.options, findings, status, why));
  context.report.WriteKept(why);  // the result shows it
  return status != kExitOk || is_free ? status : context.options.conflict_exit_code;
}

}  // namespace

void PrintRows(const std::vector<cli::DryRunRow>& rows, process::Signals& signals,
               cli::Report& report) {
  Print(cli::FormatRows(rows, OutputSize().columns, OutputHasColours()), signals, report);
}

int DryRun(const cli::RunOptions& options, process::Signals& signals, process::MessageSink& sink) {
  cli::RunOptions without_events = options;  // a dry run has no events, and creates no file
  without_events.events.clear();
  RunContext context(without_events, signals, sink);
  std::optional<process::Owner> owner;
  if (options.hold) owner.emplace(FindOwner(options));
  int status = kExitOk;
  context.report.KeepBack();
  try {
    status = ShowCommand(context, owner ? &*owner : nullptr);
    return ShowLocks(context, owner ? owner->id().pid : getpid(), status);
  } catch (const Exit& exit) {
    return status != kExitOk ? status : exit.status();
  }
}

}  // namespace zklock::commands
