#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "base/end_cause.h"
#include "base/overloaded.h"
#include "lock/data/contender_data.h"
#include "lock/hold/hold.h"
#include "lock/hold/run_recorder.h"
#include "lock/hold/start_commit.h"
#include "lock/operations/calls.h"
#include "lock/operations/contender_operations.h"
#include "lock/reserve/existing_reservations.h"
#include "lock/reserve/make_reservations.h"
#include "lock/reserve/release_reservation.h"
#include "lock/several/acquire_any.h"
#include "lock/several/acquire_set.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "simulation/life.h"
#include "zookeeper/orphaned_session.h"

// A run of zklock, structured like src/commands: acquire_locks, queue_wait, locked_run,
// session_driver.

namespace zklock::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCloseTimeout = 800ms;
constexpr Duration kLongestHistoryWait = 5s;  // as in commands/run/recorded_runs.h

// The grant or the reconnect gives the first proof. The withdrawal follows it. If one contender is
// already gone, the deletes of the others follow the next proof.
constexpr int kProofsToWithdraw = 4;

std::string MakeUuid() {
  const std::uint64_t last = world->random.Next() & 0xffffffffffffU;
  const std::uint64_t first = world->random.Next() & 0xffffffffU;
  return fmt::format("{:08x}-5eed-4000-8000-{:012x}", first, last);
}

/// Serves a session until it is closed, for at most `patience`.
void AwaitClose(Process& process, zookeeper::Session& session, Duration patience) {
  const TimePoint deadline = VirtualClock().Now() + patience;
  while (!session.IsClosed() && !session.IsCloseRefused() && VirtualClock().Now() < deadline) {
    process.RunOnce(deadline);
  }
  if (!session.IsClosed()) world->Count("closes without an answer");
  process.Remove(session);
}

lock::Calls::Serve Serving(Process& process) {
  return [&process](EventSource& source, const std::function<bool()>& is_done) {
    process.Add(source);
    while (!is_done()) process.RunOnce();
    process.Remove(source);
  };
}

/// Like commands/session/short_session.
struct ShortSession {
  ShortSession(Process& its_process, Life& life, Duration timeout = 10s,
               Duration connect_timeout = 15s)
      : process(its_process),
        session(life.Endpoints(), timeout, clock),
        calls(session, clock, connect_timeout, Serving(process)) {
    process.Add(session);
  }
  void Close(Duration patience = kCloseTimeout) {
    session.BeginClose();
    AwaitClose(process, session, patience);
  }

  Process& process;
  const VirtualClock clock{};
  zookeeper::Session session;
  lock::Calls calls;
};

class Observer {
 public:
  explicit Observer(Run& run) : run_(run) {}
  void OnAcquire(const lock::AcquireEvent& event) {
    std::visit(Overloaded{[this](const lock::SessionAcceptedEvent&) {
                            run_.sessions.insert(run_.session_id());
                            proofs = 0;
                          },
                          [this](const lock::QueuedEvent& queued) { OnQueued(queued.ticket); },
                          [this](const lock::OwnDataEvent& own) {
                            if (lock::FindReleaseRequest(own.data)) asked.push_back(own.contender);
                          },
                          [this](const lock::WaitingEvent&) { has_waited = true; },
                          [](const lock::PlaceLostEvent&) { world->Count("places lost"); },
                          [](const auto&) {}},
               event);
  }
  void OnHold(const lock::HoldEvent& event) {
    std::visit(Overloaded{[this](const lock::SessionAcceptedEvent&) { proofs = 0; },
                          [this](const lock::OwnDataEvent& own) {
                            const auto request = lock::FindReleaseRequest(own.data);
                            if (request && !request->only_waiting) is_asked_to_leave = true;
                          },
                          [this](const lock::LeaseEvent& lease) { OnLease(lease.end); },
                          [](const auto&) {}},
               event);
  }

  std::vector<std::string> paths;
  std::map<std::string, std::string> places;  ///< the newest contender in each LOCK
  bool has_waited = false;
  int proofs = 0;                  ///< how often this connection has proven the lease
  std::vector<std::string> asked;  ///< contenders asked to leave before the locks are held
  bool is_asked_to_leave = false;  ///< asked to leave while the locks are held
  Time lease_end = 0;
  std::shared_ptr<Command> command;

 private:
  void OnQueued(const lock::Ticket& ticket) {
    for (const std::string& path : ticket.paths()) paths.push_back(path);
    places[ticket.lock.path] = ticket.path;
    world->Trace("{}: queued as {}", run_.name, ticket.path);
  }
  void OnLease(TimePoint end) {
    ++proofs;
    lease_end = TimeOf(end);
    if (command) Command::Extend(command, lease_end);
  }

  Run& run_;
};

class ZklockRun {
 public:
  ZklockRun(Process& process, Life& life, Run& run)
      : process_(process),
        life_(life),
        run_(run),
        options_(run.options),
        request_(run.options.request),
        observer_(run),
        session_(life.Endpoints(), options_.timeout, clock_) {
    session_.SetConnectTimeout(request_.connect_timeout);
    run_.session = &session_;
  }

  std::string Execute() {
    process_.Add(session_);
    if (options_.resumes) return Resume();
    const std::string failure = Acquire();
    if (!failure.empty()) {
      Close(0);
      return failure;
    }
    return request_.reserve ? Reserve() : RunCommand();
  }

 private:
  [[nodiscard]] std::string Data(const std::string& lock) const {
    lock::ContenderData data{.mode = request_.mode};
    for (const std::string& other : options_.locks) {
      if (options_.any && !request_.try_only && other != lock) data.any.push_back(other);
    }
    if (request_.reserve) data.reserve = request_.reserve->id;
    data.preempts = request_.preempt.has_value();
    data.take = request_.take;
    return lock::FormatContenderData(data);
  }

  [[nodiscard]] std::vector<lock::AcquireRequest> Requests() const {
    std::vector<lock::AcquireRequest> requests;
    for (const std::string& path : options_.locks) {
      lock::AcquireRequest request = request_;
      request.lock = {.path = path, .chroot = ""};
      request.host = fmt::format("host{}", process_.place());
      request.data = Data(path);
      const auto all = request.permits ? lock::RequestsForPermit(request) : std::vector{request};
      requests.insert(requests.end(), all.begin(), all.end());
    }
    return requests;
  }

  /// Like commands/run/queue_wait.
  std::unique_ptr<lock::Acquisition> BeginWait() {
    using Take = lock::AcquireSet::Take;
    const auto publish = [this](const lock::AcquireEvent& event) { observer_.OnAcquire(event); };
    if (options_.any && !request_.try_only) {
      return std::make_unique<lock::AcquireAny>(session_, clock_, Requests(), MakeUuid, publish);
    }
    return std::make_unique<lock::AcquireSet>(session_, clock_, Requests(), MakeUuid, publish,
                                              options_.any ? Take::kFirstFree : Take::kAll);
  }

  /// Acquires the locks. Returns an empty string if they are held, otherwise the reason.
  std::string Acquire() {
    const std::unique_ptr<lock::Acquisition> acquire = BeginWait();
    process_.Add(*acquire);
    run_.waits = options_.any;
    std::optional<std::string> failure;
    while (!failure) {
      process_.RunOnce();
      if (acquire->IsNearTurn()) LetGuardKnow();
      if (request_.wait && observer_.has_waited && acquire->wait_end() == kNever) {
        throw Violation(run_.name + " waits without the end of its --wait");
      }
      if (!observer_.asked.empty() && !GiveUp(*acquire)) {
        failure = "asked to leave";
      } else if (acquire->outcome()) {
        failure = FailureOf(*acquire->outcome());
      } else if (run_.is_told_to_end) {
        failure = "told to end";
      }
    }
    run_.waits = false;
    process_.Remove(*acquire);
    tickets_ = acquire->tickets();
    reserved_ = acquire->reserved();
    passed_ = acquire->passed();
    may_be_reserved_ = acquire->MayBeReserved();
    return *failure;
  }

  /// Leaves the queues that the run was asked to leave. Returns false if no queue remains, or if
  /// the LOCK in question was just taken.
  bool GiveUp(lock::Acquisition& acquire) {
    if (!WasAsked()) throw Violation(run_.name + " leaves, though nobody asked it to");
    run_.has_left = true;
    for (const std::string& one : std::exchange(observer_.asked, {})) {
      if (!acquire.GiveUp(one)) {
        if (!acquire.outcome()) RequireAllLeft();
        return false;
      }
      world->Count("queues left on request");
    }
    return true;
  }

  /// Checks that a pool gives up only when it was asked to leave all queues.
  void RequireAllLeft() const {
    if (!options_.any || request_.try_only || request_.wait || request_.max_queue) return;
    if (request_.reserve) return;  // it may have left a queue to an earlier one with its ID
    if (life_.checks.WasRobbed(run_.sessions)) return;
    for (const auto& [lock, path] : observer_.places) {
      if (life_.checks.WasAsked(path) || life_.checks.IsExcused(path)) continue;
      throw Violation(run_.name + " leaves " + lock + ", though nobody asked it to");
    }
  }

  /// Checks that a pool has left all queues but that of the LOCK it has taken.
  void RequireOneContender() const {
    for (const std::string& path : life_.ensemble.truth().EphemeralsOf(session_.session_id())) {
      if (path == tickets_.front().path) continue;
      throw Violation(path + " is left, though " + run_.name + " has taken another LOCK");
    }
  }

  /// Returns the reason if the outcome is a failure, otherwise an empty string. Throws Violation
  /// for an outcome that these options do not allow.
  std::string FailureOf(const lock::AcquireOutcome& outcome) const {
    if (std::holds_alternative<lock::Acquired>(outcome)) return "";
    if (std::holds_alternative<lock::ReservedLock>(outcome)) return "";
    if (const auto* busy = std::get_if<lock::Busy>(&outcome)) return FailureOf(*busy);
    if (std::holds_alternative<lock::Unreachable>(outcome)) return OnlyAfterFaults("unreachable");
    if (const auto* slow = std::get_if<lock::TooSlow>(&outcome)) {
      if (slow->answer < 50ms && slow->ping_span <= slow->timeout / 4) {
        throw Violation(run_.name + " calls fast servers too slow");
      }
      return "too slow";
    }
    if (const auto* unusable = std::get_if<lock::Unusable>(&outcome)) {
      return FailureOf(*unusable);
    }
    if (const auto* defect = std::get_if<lock::Defect>(&outcome)) {
      throw Violation(fmt::format("{}: defect {} of {}: {} {}", run_.name,
                                  static_cast<int>(defect->what), defect->path, defect->operation,
                                  static_cast<int>(defect->error)));
    }
    throw Violation(fmt::format("{}: outcome {}", run_.name, outcome.index()));
  }

  /// Only the dialects and the modes of other runs can make a LOCK unusable: all of a semaphore's
  /// runs ask for the same number of permits, reservations have one permit, the servers grant
  /// sessions of at least four seconds, and nothing writes other programs' data.
  std::string FailureOf(const lock::Unusable& unusable) const {
    using Why = lock::Unusable::Why;
    std::string outcome = fmt::format("unusable {}", static_cast<int>(unusable.why));
    if (unusable.why != Why::kIncompatible && unusable.why != Why::kReservedInOtherMode) {
      throw Violation(run_.name + ": " + outcome);
    }
    return outcome;
  }

  /// The only acceptable failure is an unreachable server: no server refuses an operation.
  std::string FailureOf(const std::string& what, const lock::OperationFailed& failed) const {
    if (!std::holds_alternative<lock::Unreachable>(failed.failure())) {
      throw Violation(fmt::format("{}: {} {}", run_.name, what, failed.failure().index()));
    }
    return OnlyAfterFaults(what);
  }

  /// Returns `outcome`, which is not allowed where nothing goes wrong.
  [[nodiscard]] std::string OnlyAfterFaults(std::string outcome) const {
    if (!life_.HasFaults()) throw Violation(run_.name + ": " + outcome + ", without any fault");
    return outcome;
  }

  std::string FailureOf(const lock::Busy& busy) const {
    using Why = lock::Busy::Why;
    const bool was_removed = WasRemoved();
    const bool is_allowed = busy.why == Why::kTaken        ? request_.try_only
                            : busy.why == Why::kWaitOver   ? request_.wait.has_value()
                            : busy.why == Why::kQueueFull  ? request_.max_queue.has_value()
                            : busy.why == Why::kSuperseded ? request_.supersede
                                                           : was_removed;
    if (!is_allowed) {
      throw Violation(fmt::format("{}: busy {}", run_.name, static_cast<int>(busy.why)));
    }
    RequireAllLeft();
    return fmt::format("busy {}", static_cast<int>(busy.why));
  }

  [[nodiscard]] bool WasRemoved() const {
    return life_.checks.WasRobbed(run_.sessions) ||
           std::any_of(observer_.paths.begin(), observer_.paths.end(),
                       [&](const auto& path) { return life_.checks.IsExcused(path); });
  }
  /// Returns whether one of the run's reservations was released, perhaps before the run knew of it.
  [[nodiscard]] bool WasReleased() const {
    const auto was_released = [&](const std::string& path) {
      return life_.checks.WasReleased(path) || IsForged(path);
    };
    // This includes the reservations with its ID that it has found on other LOCKs.
    return std::any_of(observer_.paths.begin(), observer_.paths.end(), was_released) ||
           std::any_of(reserved_.begin(), reserved_.end(),
                       [&](const auto& one) { return was_released(one.path); });
  }
  [[nodiscard]] bool WasAsked() const {
    return std::any_of(observer_.paths.begin(), observer_.paths.end(),
                       [&](const auto& path) { return life_.checks.WasAsked(path); });
  }

  /// Puts the credentials that a close needs into the page that zklock shares with the guard.
  void LetGuardKnow() {
    if (session_.credentials()) run_.page = session_.credentials();
  }

  /// Checks that the run has all LOCKs of a set, one LOCK of a pool, and all its permits.
  void RequireAllTaken(std::size_t locks) const {
    if (locks != (options_.any ? 1 : options_.locks.size())) {
      throw Violation(fmt::format("{} takes {} LOCKs", run_.name, locks));
    }
    for (const lock::Ticket& ticket : tickets_) {
      if (ticket.paths().size() == request_.take) continue;
      throw Violation(fmt::format("{} takes {} permits", run_.name, ticket.paths().size()));
    }
  }

  std::string RunCommand() {
    RequireAllTaken(tickets_.size());
    observer_.proofs = 0;
    lock::Hold hold(
        session_, clock_, tickets_, options_.kill_after,
        [this](const lock::HoldEvent& event) { observer_.OnHold(event); }, passed_);
    observer_.lease_end = TimeOf(hold.lease_end());
    ServeFirst(hold);
    LetGuardKnow();
    recorder_.emplace(session_, tickets_,
                      lock::HistoryRequest{.most_runs = options_.history,
                                           .is_shared = request_.permits.has_value()});
    const std::string refusal = CheckIntervals(hold);
    if (!refusal.empty()) {
      Close(0);
      return refusal;
    }
    const TimePoint began = clock_.Now();
    if (!BeginCommand(hold)) {
      Close(0);
      return OnlyAfterFaults("lost before the run");
    }
    Supervise(hold, began);
    const std::string outcome =
        hold.loss() ? OnlyAfterFaults(fmt::format("lost {}", static_cast<int>(*hold.loss())))
                    : "done";
    Close(hold.loss() ? 0 : Release(hold, began));
    return outcome;
  }

  std::size_t Release(lock::Hold& hold, TimePoint began) {
    const lock::FinishedRun run{.duration = clock_.Now() - began, .status = 0, .host = "host"};
    if (options_.min_interval) {
      // The servers' time at which it began is an estimate: it may be late by the round trip of the
      // create.
      life_.checks.MayRefuse(options_.locks.front(), TimeOf(began) + CreateTime());
      recorder_->RecordSuccess(began, run);
      Serve(*recorder_, hold, [&] { return recorder_->IsDone(); });
      recorder_->GiveUpRest();
      // After a removal by force, the next run may have read last-run before this success was
      // recorded.
      const bool is_first = !life_.checks.IsExcused(tickets_.front().path);
      if (recorder_->HasRecordedSuccess() && !hold.loss() && is_first) {
        life_.checks.Record(options_.locks.front(), TimeOf(began));
      }
    } else {
      const TimePoint deadline = std::min(clock_.Now() + kLongestHistoryWait, hold.lease_end());
      if (!request_.permits) {
        Serve(
            *recorder_, hold, [&] { return recorder_->IsSettled(); }, deadline);
      }
      recorder_->Release(hold, run);
      Serve(
          *recorder_, hold, [&] { return recorder_->IsDone(); }, deadline);
    }
    return hold.Release(run);
  }

  /// Serves `source` before the session, so that the lease is checked before any data from the
  /// servers is read.
  void ServeFirst(EventSource& source) {
    process_.Remove(session_);
    process_.Add(source);
    process_.Add(session_);
  }

  template <typename IsDone>
  void Serve(EventSource& source, const lock::Hold& hold, IsDone is_done,
             TimePoint deadline = kNever) {
    ServeFirst(source);
    while (!is_done() && !hold.loss() && clock_.Now() < deadline) process_.RunOnce(deadline);
    process_.Remove(source);
  }

  /// Like commands/run/recorded_runs. Returns an empty string if the command may run.
  std::string CheckIntervals(lock::Hold& hold) {
    const std::string refusal = options_.min_interval ? CheckLastRun(hold) : "";
    return refusal.empty() && options_.once_per ? CommitStart(hold) : refusal;
  }

  std::string CommitStart(lock::Hold& hold) {
    lock::StartCommit start(session_, clock_, tickets_, "host", kOncePer);
    Serve(start, hold,
          [&] { return start.refusal() || (start.IsCommitted() && hold.SufficesToStart()); });
    if (hold.loss()) return OnlyAfterFaults("lost before the run");
    if (!start.refusal()) return "";
    if (std::holds_alternative<lock::StartCommit::TooRecent>(*start.refusal())) {
      return TooRecent(protocol::ChildPath(options_.locks.front(), protocol::kLastStartChild),
                       kOncePer);
    }
    throw Violation(run_.name + " cannot record its start");
  }

  std::string CheckLastRun(const lock::Hold& hold) {
    recorder_->FindLastSuccess();
    Serve(*recorder_, hold, [&] { return recorder_->unknown() || recorder_->IsDone(); });
    if (hold.loss()) return OnlyAfterFaults("lost before the run");
    if (recorder_->unknown()) throw Violation(run_.name + " does not know the last run");
    if (!recorder_->newest()) return "";
    const Duration ago =
        tickets_.front().EarliestServerTimeAt(clock_.Now()) - recorder_->newest()->success.began;
    return ago >= *options_.min_interval
               ? ""
               : TooRecent(options_.locks.front(), *options_.min_interval);
  }

  std::string TooRecent(const std::string& path, Duration interval) const {
    life_.checks.RequireRecent(run_.name, path, interval.count() + CreateTime());
    return "too recent";
  }

  /// Returns the round trip of the create: the run's estimate of the servers' time may be off by
  /// this much.
  [[nodiscard]] Time CreateTime() const {
    const lock::Ticket& ticket = tickets_.front();
    return (ticket.created_before - ticket.created_after).count();
  }

  /// Like commands/run/reserve with --resume.
  std::string Resume() {
    lock::Calls calls(session_, clock_, request_.connect_timeout, Serving(process_));
    const auto before = life_.checks.reservations();
    std::string outcome = "resumed";
    try {
      const lock::LockName lock{.path = options_.locks.front(), .chroot = ""};
      const auto found = lock::FindHeldReservation(calls, lock, request_.reserve->id);
      if (found) RequireFirstIfForged(*found);
      if (!found) {
        outcome = "not reserved";
        for (const auto& [path, one] : before) {
          if (one.lock != lock.path || one.id != request_.reserve->id) continue;
          if (life_.checks.MayHaveEnded(path)) continue;
          throw Violation(run_.name + " does not find " + path + ", which stands");
        }
      }
    } catch (const lock::OperationFailed& failed) {
      outcome = FailureOf("not resumed", failed);
    }
    Close(0);
    return outcome;
  }

  /// Like commands/run/reserve. Returns false if one of the reservations no longer exists.
  bool Renew() {
    if (!request_.reserve->lasts || reserved_.empty()) return true;
    lock::Calls calls(session_, clock_, request_.connect_timeout, Serving(process_));
    try {
      if (lock::RenewReservations(calls, reserved_, {.lasts = *request_.reserve->lasts}))
        return true;
    } catch (const lock::OperationFailed& failed) {
      (void)FailureOf("not renewed", failed);
      return false;
    }
    const auto may_be_gone = [&](const auto& one) {
      return IsForged(one.path) || life_.checks.MayHaveEnded(one.path);
    };
    if (std::none_of(reserved_.begin(), reserved_.end(), may_be_gone)) {
      throw Violation(run_.name + " takes a reservation that counts as ended");
    }
    return false;
  }

  /// Like commands/run/reserve.
  std::string Reserve() {
    std::string outcome = "found a reservation";
    std::vector<lock::ReservationRun> runs;
    for (const lock::ReservedLock& one : reserved_) RequireFirstIfForged(one);
    if (!Renew()) {
      Close(0);
      return "not renewed";
    }
    for (const lock::ReservedLock& one : reserved_) runs.push_back(RunOf(one));
    RequireAllTaken(reserved_.size() + tickets_.size());
    if (!tickets_.empty()) {
      std::vector<lock::HeldContender> held;
      for (const lock::Ticket& ticket : tickets_) {
        held.push_back({ticket, Data(ticket.lock.path)});
      }
      const Duration patience = std::max(request_.connect_timeout, session_.lease().timeout());
      lock::Calls calls(session_, clock_, patience, Serving(process_));
      std::vector<lock::ReservedLock> made;
      try {
        if (may_be_reserved_ && IsAfterAnother(calls)) {
          Close(0);
          return "after another with its ID";
        }
        if (may_be_reserved_ && IsReservedElsewhere(calls)) {
          Close(0);
          return "found a reservation elsewhere";
        }
        const auto passed = options_.any ? passed_ : std::vector<std::string>();
        auto result = lock::MakeReservations(calls, held, reserved_, passed, *request_.reserve);
        outcome = OutcomeOf(result);
        if (auto* all = std::get_if<std::vector<lock::ReservedLock>>(&result)) made = *all;
      } catch (const lock::OperationFailed& failed) {
        outcome = FailureOf("not reserved", failed);
      }
      if (!made.empty()) RequireAllTaken(reserved_.size() + made.size());
      for (const lock::ReservedLock& one : made) runs.push_back(RunOf(one));
      for (const lock::ReservedLock& one : made) {
        if (request_.reserve->lasts && life_.world.random.Chance(0.7)) continue;
        life_.ReleaseLater(one.lock.path, one.path, request_.reserve->id,
                           life_.world.random.Around(3 * kSecond));
      }
    }
    if (options_.history != 0 && !runs.empty()) {
      lock::RunRecorder recorder(session_, runs, options_.history);
      const TimePoint deadline = clock_.Now() + kLongestHistoryWait;
      process_.Add(recorder);
      while (!recorder.IsDone() && clock_.Now() < deadline) process_.RunOnce(deadline);
      process_.Remove(recorder);
      recorder.GiveUpRest();
    }
    Close(0);
    return outcome;
  }

  /// Like commands/run/reserve with --any.
  bool IsAfterAnother(lock::Calls& calls) const {
    return std::any_of(options_.locks.begin(), options_.locks.end(), [&](const std::string& path) {
      return lock::CountWaitingAtEarlierPool(calls, {.path = path, .chroot = ""},
                                             request_.reserve->id, tickets_.front())
          .has_value();
    });
  }
  bool IsReservedElsewhere(lock::Calls& calls) const {
    return std::any_of(options_.locks.begin(), options_.locks.end(), [&](const std::string& path) {
      return lock::FindHeldReservation(calls, {.path = path, .chroot = ""}, request_.reserve->id);
    });
  }

  /// Checks that a forged reservation counts as a reservation only once it is first in the queue.
  void RequireFirstIfForged(const lock::ReservedLock& one) const {
    if (!IsForged(one.path)) return;
    const Znode* const lock = life_.ensemble.truth().Find(one.lock.path);
    if (lock == nullptr || !life_.ensemble.truth().Find(one.path)) return;
    const protocol::Contenders contenders(lock->children);
    if (contenders.First()->full != protocol::BaseOf(one.path)) {
      throw Violation(run_.name + " takes " + one.path + ", which does not hold, for its own");
    }
  }

  static lock::ReservationRun RunOf(const lock::ReservedLock& one) {
    return {one.lock, one.path, lock::RunOf(protocol::BaseOf(one.path), one.reserved)};
  }

  std::string OutcomeOf(
      const std::variant<std::vector<lock::ReservedLock>, lock::NotReserved>& result) const {
    if (const auto* made = std::get_if<std::vector<lock::ReservedLock>>(&result)) {
      for (const lock::ReservedLock& one : *made) {
        const bool was_deleted = life_.checks.WasReleased(one.path);
        if (!was_deleted && !life_.checks.reservations().contains(one.path)) {
          throw Violation(run_.name + " claims a reservation that is not there");
        }
      }
      return "reserved";
    }
    using Why = lock::NotReserved::Why;
    switch (std::get<lock::NotReserved>(result).why) {
      case Why::kAskedToLeave:
        if (!WasAsked()) throw Violation(run_.name + " leaves, though nobody asked it to");
        return "asked to leave";
      case Why::kRemoved:
        if (!WasRemoved() && !WasReleased()) {
          throw Violation(run_.name + " takes its contender for removed");
        }
        for (const lock::Ticket& ticket : tickets_) {
          if (life_.checks.reservations().contains(ticket.path)) {
            throw Violation(run_.name + " leaves " + ticket.path + " reserved, not all of the set");
          }
        }
        return "removed before it was reserved";
      case Why::kExpired:
        return OnlyAfterFaults("expired before it was reserved");
    }
    return "";
  }

  /// Returns the duration of the command. It is short after the faults, so that all contenders in
  /// the queue get their turn.
  [[nodiscard]] Time CommandTime() const {
    return life_.is_draining() ? std::min(options_.command, kSecond) : options_.command;
  }

  /// Starts the command. Returns false if it is too late: like zklock's guard, this checks the time
  /// once more before the start.
  bool BeginCommand(const lock::Hold& hold) {
    process_.Sleep(life_.world.random.Around(500'000));
    const TimePoint stop = protocol::StopTime(hold.lease_end(), hold.grace());
    if (clock_.Now() >= stop || hold.loss()) return false;
    world->Trace("{}: the command starts under {}", run_.name, tickets_.front().path);
    world->Count("commands");
    run_.command = life_.checks.Begin({.name = run_.name,
                                       .tickets = tickets_,
                                       .permits = request_.permits,
                                       .own_end = world->now() + CommandTime(),
                                       .lease_end = TimeOf(hold.lease_end()),
                                       .process = &process_,
                                       .min_interval = options_.min_interval,
                                       .once_per = options_.once_per});
    observer_.command = run_.command;
    for (int i = 0; i < options_.nests; ++i) {
      world->After(world->random.Around(kSecond), [this_life = &life_, place = process_.place(),
                                                   outer = run_.command] {
        this_life->Spawn("nested in " + outer->name, place, [this_life, outer](Process& process) {
          RunNested(process, *this_life, outer);
        });
      });
    }
    return true;
  }

  void Supervise(lock::Hold& hold, TimePoint began) {
    bool is_ending = false;
    ServeFirst(*recorder_);
    while (!run_.command->IsOverWithNested()) {
      process_.RunOnce();
      recorder_->Begin(began);
      if (options_.any && observer_.proofs >= kProofsToWithdraw && !hold.loss()) {
        RequireOneContender();
      }
      const bool ends = hold.loss() || observer_.is_asked_to_leave || run_.is_told_to_end;
      if (!ends || std::exchange(is_ending, true)) continue;
      CheckLoss(hold);
      // A command that the guard ends may use up the whole grace period.
      Command::EndBy(run_.command, world->now() + world->random.Between(0, hold.grace().count()));
    }
    process_.Remove(*recorder_);
    observer_.command.reset();
  }

  void CheckLoss(const lock::Hold& hold) const {
    if (hold.loss() == EndCause::kUnproven && clock_.Now() < hold.lease_end()) {
      throw Violation(run_.name + " gives up its lock before the end of its lease");
    }
    if (observer_.is_asked_to_leave && !WasAsked()) {
      throw Violation(run_.name + " ends its command, though nobody asked it to");
    }
    if (hold.loss() == EndCause::kRemoved && !WasRemoved()) {
      const Znode* const node = life_.ensemble.truth().Find(tickets_.front().path);
      if (node != nullptr) throw Violation(run_.name + " takes its contender for removed");
    }
  }

  void Close(std::size_t releases) {
    session_.BeginClose(releases);
    // The Hold, if there is one, outlives the session, but is no longer served.
    AwaitClose(process_, session_, kCloseTimeout);
  }

  Process& process_;
  Life& life_;
  Run& run_;
  const RunOptions& options_;
  const lock::AcquireRequest& request_;
  const VirtualClock clock_;
  Observer observer_;
  zookeeper::Session session_;
  std::vector<lock::Ticket> tickets_;
  std::vector<std::string> passed_;
  bool may_be_reserved_ = false;  ///< Acquisition::MayBeReserved()
  std::vector<lock::ReservedLock> reserved_;
  std::optional<lock::RunRecorder> recorder_;
};

/// Follows Curator's and kazoo's recipes: the first contender in the queue holds, and each other
/// one watches its predecessor. No lease is proven. Returns the ticket of the held lock, or none if
/// the program gives up.
std::optional<lock::Ticket> QueueAsOther(lock::Calls& calls, const RunOptions& options) {
  const std::string& lock = options.locks.front();
  const bool is_kazoo = options.request.dialect == protocol::Dialect::kKazoo;
  const std::string prefix = is_kazoo ? lock + "/" + MakeUuid().substr(0, 8) + "__lock__"
                                      : lock + "/_c_" + MakeUuid() + "-lock-";
  const auto create = [&calls](const std::string& path, const std::string& data,
                               zookeeper::NodeKind kind) {
    const auto answer = std::make_shared<std::optional<zookeeper::CreateReply>>();
    calls.store().Create(path, data, kind, [answer](const zookeeper::CreateReply& reply) {
      if (!zookeeper::IsLost(reply.error)) *answer = reply;
    });
    calls.Await([&] { return answer->has_value(); });
    return **answer;
  };
  lock::Ticket own{.lock = {.path = lock, .chroot = ""}};
  for (int tries = 0; tries < 5 && own.path.empty(); ++tries) {
    const auto created = create(prefix, "", zookeeper::NodeKind::kEphemeralSequential);
    if (created.error == zookeeper::Error::kNone) {
      own.path = created.path;
      own.token = created.stat.created_zxid;
    } else {
      (void)create(lock, is_kazoo ? "" : "10.0.0.1", zookeeper::NodeKind::kContainer);
    }
  }
  for (;;) {
    const auto list = calls.List(lock);
    const auto name = protocol::ParseContenderName(protocol::BaseOf(own.path));
    std::optional<protocol::ContenderName> before;
    bool is_there = false;
    for (const std::string_view child : list.children) {
      const auto other = protocol::ParseContenderName(child);
      is_there = is_there || (name && child == name->full);
      if (!other || !name || other->number >= name->number) continue;
      if (!before || other->number > before->number) before = other;
    }
    if (!is_there) return std::nullopt;
    if (!before) return own;
    const auto watched = calls.Get(lock + "/" + before->full, zookeeper::Watch::kYes);
    if (watched.error == zookeeper::Error::kNone) calls.AwaitChange();
  }
}

}  // namespace

void RunZklock(Process& process, Life& life, Run& run) {
  run.outcome = ZklockRun(process, life, run).Execute();
  run.page.reset();
  world->Trace("{}: {}", run.name, run.outcome);
}

void RunOtherProgram(Process& process, Life& life, Run& run) {
  ShortSession session(process, life, run.options.timeout, 60s);
  run.session = &session.session;
  std::optional<lock::Ticket> ticket;
  try {
    bool has_begun = false;
    ticket = session.calls.Repeat([&] {
      // The program gives up when it loses its connection.
      return std::exchange(has_begun, true) ? std::nullopt
                                            : QueueAsOther(session.calls, run.options);
    });
  } catch (const lock::OperationFailed&) {
  }
  const Znode* const node = ticket ? life.ensemble.truth().Find(ticket->path) : nullptr;
  const bool holds = node != nullptr && node->czxid == ticket->token;
  if (holds) {
    world->Trace("{}: another program holds {}", run.name, ticket->path);
    run.command = life.checks.Begin({.name = run.name,
                                     .tickets = {*ticket},
                                     .own_end = world->now() + run.options.command,
                                     .lease_end = kForever,
                                     .process = &process,
                                     .is_foreign = true});
    while (!run.command->is_over) process.RunOnce();
  }
  session.Close(10s);
  run.outcome = holds ? "other program: done" : "other program: gave up";
}

void RunRelease(Process& process, Life& life, const std::string& lock, const std::string& path,
                const std::string& id) {
  for (int tries = 0; tries < 20; ++tries) {
    ShortSession session(process, life);
    bool is_done = true;
    try {
      (void)lock::ReleaseReservation(session.calls, {.path = lock, .chroot = ""}, path, id);
    } catch (const lock::OperationFailed& failed) {
      is_done = false;
      if (!std::holds_alternative<lock::Unreachable>(failed.failure())) {
        throw Violation("the release of " + path + " fails");
      }
    }
    session.Close();
    if (is_done) return;
  }
}

// The nested run's zklock and guard are as reliable as the outer ones: the run lasts, at most,
// until the outer lease ends. Its ticket may be outdated, because its process may have outlived the
// lock.
void RunNested(Process& process, Life& life, const std::shared_ptr<Command>& outer) {
  const lock::Ticket ticket = life.world.random.Pick(outer->tickets);
  const auto is_there = [&] {
    const Znode* const node = life.ensemble.truth().Find(ticket.path);
    return node != nullptr && node->czxid == ticket.token;
  };
  ShortSession session(process, life);
  const bool was_there = is_there();
  bool is_held = false;
  try {
    is_held = lock::AreHeld(session.calls, ticket.lock, {ticket.id()});
    if (is_held ? !was_there : is_there()) {
      throw Violation(fmt::format("{} is told that {} {}", process.name(), ticket.path,
                                  is_held ? "is held" : "is not held"));
    }
  } catch (const lock::OperationFailed&) {
    world->Count("nested: not checked");
  }
  session.Close();
  // The outer zklock answers over a local socket.
  const bool is_accepted = is_held && !outer->is_over && !outer->is_ending &&
                           !outer->process->IsStopped() && world->now() < outer->lease_end;
  world->Count(is_accepted ? "nested: runs" : "nested: queues");
  if (!is_accepted) return;
  const Time length = world->random.Around(world->random.Pick(life.profile.commands));
  world->Trace("{} runs under {}", process.name(), ticket.path);
  const auto command = life.checks.Begin({.name = process.name(),
                                          .tickets = {ticket},
                                          .own_end = world->now() + std::min(length, 20 * kSecond),
                                          .lease_end = outer->lease_end,
                                          .process = &process,
                                          .is_nested = true});
  outer->nested.push_back(command);
  while (!command->is_over) process.RunOnce();
  outer->process->Wake();
}

void CloseForRun(Process& process, Life& life, const zookeeper::Credentials& credentials) {
  const VirtualClock clock;
  const auto session = zookeeper::BeginCloseOf(credentials, life.Endpoints(), clock);
  process.Add(*session);
  AwaitClose(process, *session, 10s);
}

RunOptions DrawOptions(Life& life) {
  Random& random = life.world.random;
  const Profile& profile = life.profile;
  RunOptions options;
  lock::AcquireRequest& request = options.request;
  const std::string ability = random.Pick(profile.abilities);
  const auto lock = [&] { return fmt::format("/l{}", random.Below(profile.locks)); };
  options.locks = {lock()};
  options.timeout = std::chrono::milliseconds(random.Pick(profile.timeouts_ms));
  options.command = random.Around(random.Pick(profile.commands));
  options.kill_after = Duration(random.Between(0, 10 * kSecond));
  if (ability == "read" || ability == "write") request.mode = protocol::Mode::kRead;
  if (ability == "write" && random.Chance(0.5)) request.mode = protocol::Mode::kWrite;
  if (ability == "try") request.try_only = true;
  if (ability == "wait") request.wait = Duration(random.Around(10 * kSecond));
  if (ability == "max-queue") request.max_queue = static_cast<std::size_t>(random.Between(1, 4));
  if (ability == "supersede") request.supersede = true;
  if (ability == "set" || ability == "reserve-set") {
    options.locks.clear();
    for (int i = 0; i < profile.locks; ++i) {
      if (i == 0 || random.Chance(0.6)) options.locks.push_back(fmt::format("/l{}", i));
    }
  }
  if (ability == "any" || ability == "reserve-any") {
    options.any = true;
    options.locks.clear();
    const std::int64_t all = std::max(profile.locks, 2);
    const std::int64_t first = random.Below(all);
    const std::int64_t count = random.Between(2, all);
    for (std::int64_t i = 0; i < count; ++i) {
      options.locks.push_back(fmt::format("/l{}", (first + i) % all));
    }
    if (ability == "reserve-any") {
      // All these pools use the same LOCKs.
      request.reserve = {.id = fmt::format("{}{}", kPoolId, random.Below(2)),
                         .lasts = std::chrono::milliseconds(random.Between(500, 8'000))};
      for (std::int64_t i = count; i < all; ++i) {
        options.locks.push_back(fmt::format("/l{}", (first + i) % all));
      }
    }
    const std::int64_t how = random.Below(8);
    if (how == 0) request.try_only = !request.reserve;
    if (how == 1) request.wait = Duration(random.Around(10 * kSecond));
    if (how == 2) request.max_queue = static_cast<std::size_t>(random.Between(1, 4));
    if (how == 3) request.mode = protocol::Mode::kRead;
  }
  if (ability != "simple" && random.Chance(profile.preempting)) {
    const bool all = random.Chance(0.3);
    request.preempt = {.holders = all, .request = {.by = kPreemptor, .only_waiting = !all}};
  }
  if (ability == "below") {
    // A LOCK below another LOCK, or below znodes that are created for it.
    options.locks = {random.Pick(std::vector<std::string>{"/l0/b", "/l0/b/c", kLockBelowParent})};
  }
  if (ability == "nested") {
    options.nests = static_cast<int>(random.Between(1, 2));
    if (random.Chance(0.3)) request.mode = protocol::Mode::kRead;
    if (random.Chance(0.3)) options.locks = {"/l0", "/l0/b"};
    if (random.Chance(0.3)) {
      options.locks = {"/x"};
      request.mode = protocol::Mode::kExclusive;
      request.dialect = protocol::Dialect::kSimple;
    }
  }
  if (ability == "permits") {
    options.locks = {"/s"};
    request.permits = kPermits;
    if (random.Chance(0.5)) request.take = static_cast<std::size_t>(random.Between(2, kPermits));
    request.try_only = random.Chance(0.3);
  }
  if (ability == "history" || random.Chance(0.1)) options.history = 3;
  if (ability == "min-interval") {
    options.locks = {"/m"};
    options.min_interval = Duration(4s);
  }
  if (ability == "once-per") {
    options.locks = {"/o"};
    options.once_per = true;
  }
  if (ability == "kazoo") {
    options.locks = {"/k"};
    request.dialect = protocol::Dialect::kKazoo;
    options.is_foreign = random.Chance(0.4);
  }
  if (ability == "curator") {
    options.locks = {"/c"};
    options.is_foreign = random.Chance(0.4);
  }
  if (ability == "simple") {
    options.locks = {"/x"};
    request.dialect = protocol::Dialect::kSimple;
  }
  if (ability == "reserve" || ability == "reserve-set") {
    request.reserve = {.id = fmt::format("job{}", random.Below(3))};
    if (random.Chance(0.5)) {
      request.reserve->lasts = std::chrono::milliseconds(random.Between(500, 8'000));
    }
    if (random.Chance(0.3)) request.mode = protocol::Mode::kRead;
    if (ability == "reserve" && random.Chance(0.2)) options.locks = {"/c"};
    if (ability == "reserve" && random.Chance(0.2)) request.permits = kPermits;
    if (request.permits) options.locks = {"/s"};
    if (request.permits) request.mode = protocol::Mode::kExclusive;
    request.try_only = random.Chance(0.2);
    options.resumes = ability == "reserve" && random.Chance(0.2);
  }
  return options;
}

}  // namespace zklock::simulation
