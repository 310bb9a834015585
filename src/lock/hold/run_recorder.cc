#include "lock/hold/run_recorder.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>
#include <utility>

#include "protocol/lock_path.h"
#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Watch;

// If the connection breaks this often, the write may be the cause: a LOCK must not be lost because
// of its history.
constexpr int kMostLosses = 5;

/// Returns whether there is a run without an end other than the one with the token `own`.
bool HasOtherOpenRun(const RunHistory& history, std::int64_t own) {
  return std::any_of(history.entries().begin(), history.entries().end(),
                     [own](const RunHistory::Entry& one) {
                       return one.run.end == RunRecord::End::kNone && one.run.token != own;
                     });
}

std::chrono::milliseconds Milliseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span);
}

}  // namespace

RunRecorder::RunRecorder(zookeeper::Store& store, std::vector<Ticket> tickets,
                         HistoryRequest request)
    : store_(store), request_(std::move(request)) {
  for (Ticket& ticket : tickets) {
    const bool is_kept = request_.most_runs != 0 && ticket.mode != protocol::Mode::kRead;
    places_.push_back({.ticket = std::move(ticket), .is_kept = is_kept});
  }
}

RunRecorder::RunRecorder(zookeeper::Store& store, const std::vector<ReservationRun>& reservations,
                         std::size_t most_runs)
    : store_(store), request_{.most_runs = most_runs} {
  for (const ReservationRun& one : reservations) {
    places_.push_back({.ticket = {.lock = one.lock,
                                  .mode = one.record.mode,
                                  .path = one.path,
                                  .token = one.record.token},
                       .is_kept = one.record.mode != protocol::Mode::kRead,
                       .reservation = one.record});
  }
  step_ = Step::kBeginning;
}

std::string RunRecorder::PathOf(const Place& place) {
  return protocol::ChildPath(place.ticket.lock.path, protocol::kLastRunChild);
}

bool RunRecorder::IsDone(const Place& place) const {
  const bool is_wanted = place.is_kept || step_ == Step::kLastSuccess || step_ == Step::kSuccess;
  return !place.is_asking && (place.done == step_ || !is_wanted);
}

bool RunRecorder::IsDone() const {
  return std::all_of(places_.begin(), places_.end(),
                     [&](const Place& place) { return IsDone(place); });
}

bool RunRecorder::IsSettled() const {
  return std::all_of(places_.begin(), places_.end(), [&](const Place& place) {
    return IsDone(place) || (!place.is_asking && !store_.IsConnected());
  });
}

EventSource::Interest RunRecorder::GetInterest() {
  // The session wakes the loop when it is connected.
  const bool has_work =
      store_.IsConnected() && std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
        return !place.is_asking && !IsDone(place);
      });
  if (!has_work) return {};
  return {.wake = TimePoint{}};
}

void RunRecorder::OnReady(short /*revents*/) {
  if (!store_.IsConnected()) return;
  for (Place& place : places_) {
    if (!place.is_asking) Proceed(place);
  }
}

// A pending request may still be answered; the new step then follows.
void RunRecorder::Start(Step step) {
  step_ = step;
  for (Place& place : places_) place.attempts = 0;
  OnReady(0);
}

void RunRecorder::FindLastSuccess() { Start(Step::kLastSuccess); }

void RunRecorder::Begin(TimePoint began) {
  if (began_) return;
  began_ = began;
  Start(Step::kBeginning);
}

void RunRecorder::RecordSuccess(TimePoint began, const FinishedRun& run) {
  began_ = began_.value_or(began);
  run_ = run;
  has_recorded_success_ = true;
  Start(Step::kSuccess);
}

void RunRecorder::Release(Hold& hold, const FinishedRun& run) {
  if (!began_) return;
  scope_ = CallbackScope();  // late answers no longer matter
  hold_ = &hold;
  run_ = run;
  for (Place& place : places_) {
    place.attempts = 0;
    if (request_.is_shared) {
      place.data.reset();
      place.is_asking = false;
    } else if (!IsDone(place)) {
      GiveUp(place, Error::kConnectionLoss);
    }
  }
  step_ = Step::kRelease;
  // Do this even without a server: the requests then count as lost, and we wait for nothing.
  for (Place& place : places_) Proceed(place);
}

void RunRecorder::GiveUpRest() {
  scope_ = CallbackScope();
  for (Place& place : places_) {
    place.is_asking = false;
    if (!IsDone(place)) GiveUp(place, Error::kConnectionLoss);
  }
}

// ---- one LOCK ---------------------------------------------------------------------------------

/// Sends the next request for this step, if it needs one. Called when no request is pending.
void RunRecorder::Proceed(Place& place) {
  place.is_asking = false;
  if (IsDone(place)) return;
  if (!place.data) return Read(place);
  Data& data = *place.data;
  const std::int64_t token = place.ticket.token;
  const bool is_entered = place.is_kept && data.history->Find(token) != nullptr;
  // There is only one holder, so the list is not needed if every other entry has an end. If one has
  // none, its contender may exist: it may be the next holder, if ours has just been deleted by
  // force.
  const bool needs_list = place.is_kept && !is_entered && !data.is_listed &&
                          step_ != Step::kRelease && HasOtherOpenRun(*data.history, token);
  if (needs_list) return List(place);
  switch (step_) {
    case Step::kNone:
    case Step::kLastSuccess:
      return;
    case Step::kBeginning:
      // The reply to the write was lost, or another run with the same --reserve has written the
      // entry.
      if (is_entered) {
        place.done = step_;
        return;
      }
      data.history->Enter(RecordOf(place));
      return Write(place, data.history->Format(request_.most_runs), step_);
    case Step::kSuccess:
      return Write(place, TextOfEnd(place), step_);
    case Step::kRelease:
      // The transaction can write, but not create. A run with a permit can be so short that its
      // start was never recorded.
      if (!data.version) return Write(place, "", Step::kNone);
      if (place.writes_alone) return Write(place, TextOfEnd(place), step_);
      return WriteWithRelease(place);
  }
}

void RunRecorder::Read(Place& place) {
  place.is_asking = true;
  const bool asks_lock = step_ == Step::kLastSuccess;
  // List after reading the data: if an entry has no end, its permit is either in the list or has
  // been released or lost. The same is true of a reservation, which can be released at any time.
  const bool lists = step_ == Step::kBeginning && (request_.is_shared || place.reservation);
  const bool is_all = !asks_lock && !lists;
  store_.Get(PathOf(place), Watch::kNo, scope_.Wrap([this, &place, is_all](const GetReply& reply) {
    TakeData(place, reply);
    if (place.data && is_all) Proceed(place);
  }));
  // Replies arrive in order: the data arrives first.
  if (asks_lock) {
    store_.Get(place.ticket.lock.path, Watch::kNo,
               scope_.Wrap([this, &place](const GetReply& lock) { OnLockRead(place, lock); }));
  }
  if (lists) List(place);
}

void RunRecorder::TakeData(Place& place, const GetReply& reply) {
  const bool exists = reply.error == Error::kNone;
  if (IsLost(reply.error)) return TryAgain(place, reply.error);
  if (!exists && reply.error != Error::kNoNode) {
    return FailToRead(place, PathOf(place), reply.error);
  }
  // An administrator may have created it empty, to set its ACL. An ephemeral znode would vanish
  // with its creator's session.
  if (reply.stat.ephemeral_owner != 0 || !protocol::ParseLastRunData(reply.data)) {
    unknown_ = Unusable{.why = Unusable::Why::kRecordUnknown,
                        .child = std::string(protocol::kLastRunChild)};
    return GiveUp(place, std::nullopt);
  }
  Data data{.text = reply.data};
  if (exists) data.version = reply.stat.version;
  if (place.is_kept) data.history = RunHistory::Parse(reply.data);
  if (!data.history) Unkeep(place, std::nullopt);
  place.data = std::move(data);
}

void RunRecorder::OnLockRead(Place& place, const GetReply& lock) {
  if (!place.data) return;  // last-run could not be read
  if (IsLost(lock.error)) return TryAgain(place, lock.error);
  if (lock.error == Error::kNoNode) return;  // our contender is also gone: the Hold will notice
  if (lock.error != Error::kNone) return FailToRead(place, place.ticket.lock.path, lock.error);
  std::optional<protocol::ReleaseRecord> record;
  if (const auto data = protocol::ParseLockData(lock.data)) record = data->last_release;
  const auto success =
      protocol::NewestSuccess(protocol::ParseLastRunData(place.data->text)->success, record,
                              protocol::ServerTime(lock.stat.modified_ms));
  if (success && (!newest_ || newest_->success.began < success->began)) {
    newest_ = Success{place.ticket.lock.display_path(), *success};
  }
  place.done = Step::kLastSuccess;
  Proceed(place);
}

void RunRecorder::List(Place& place) {
  place.is_asking = true;
  store_.List(protocol::ParentOf(place.ticket.path), Watch::kNo,
              scope_.Wrap([this, &place](const zookeeper::ListReply& r) { OnListed(place, r); }));
}

/// Takes the list of the contenders, which follows the read of the data.
void RunRecorder::OnListed(Place& place, const zookeeper::ListReply& reply) {
  if (!place.data) return;  // the data could not be read
  if (IsLost(reply.error)) return TryAgain(place, reply.error);
  if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
    if (step_ != Step::kSuccess) return GiveUp(place, reply.error);
    Unkeep(place, reply.error);  // does not prevent recording the success
  }
  if (place.is_kept) {
    std::vector<std::string> present;
    for (const std::string_view child : reply.children) present.emplace_back(child);
    const std::string own(protocol::BaseOf(place.ticket.path));
    RunHistory& history = *place.data->history;
    history.EnterLost(present, place.ticket.token);
    place.data->is_listed = true;
    // If neither is true, our contender has been released, or is lost.
    place.is_kept = history.Find(place.ticket.token) != nullptr ||
                    std::find(present.begin(), present.end(), own) != present.end();
  }
  Proceed(place);
}

/// Writes `text`; `step` is then done.
void RunRecorder::Write(Place& place, const std::string& text, Step step) {
  place.is_asking = true;
  const auto done = scope_.Wrap([this, &place, text, step](const zookeeper::Reply& reply) {
    OnWritten(place, text, step, reply.error);
  });
  if (place.data->version) {
    store_.Set(PathOf(place), text, *place.data->version, done);
  } else {
    store_.Create(PathOf(place), text, zookeeper::NodeKind::kPersistent, done);
  }
}

void RunRecorder::OnWritten(Place& place, const std::string& text, Step step, Error error) {
  const bool creates = !place.data->version;
  if (IsLost(error) || error == Error::kBadVersion || error == Error::kNodeExists ||
      (error == Error::kNoNode && !creates)) {
    return TryAgain(place, error);
  }
  if (error == Error::kNone) {
    place.data->text = text;
    place.data->version = creates ? 0 : *place.data->version + 1;
    place.done = step;
  } else if (step == step_) {
    return GiveUp(place, error);
  } else {
    Unkeep(place, error);
  }
  Proceed(place);
}

void RunRecorder::WriteWithRelease(Place& place) {
  place.is_asking = true;
  // If the reply is lost, closing the session releases the lock, unless the request already has.
  // Usually the request has done so, and has recorded the end as well.
  place.done = step_;
  hold_->ReleaseWith(
      {PathOf(place), TextOfEnd(place), *place.data->version}, place.ticket.path, run_,
      scope_.Wrap([this, &place](const zookeeper::Reply& r) { OnReleased(place, r.error); }));
}

void RunRecorder::OnReleased(Place& place, Error error) {
  place.is_asking = false;
  if (error == Error::kNone || IsLost(error)) return;
  place.done = Step::kNone;
  if (error == Error::kBadVersion && request_.is_shared) return TryAgain(place, error);
  if (!IsRefusal(error) && error != Error::kBadVersion) return GiveUp(place, error);
  // The run has permission to write to last-run, as its recorded start shows, but perhaps not to
  // write to LOCK or to delete from it; or someone has written to LOCK in the meantime. Then
  // closing the session releases the lock.
  place.writes_alone = true;
  Proceed(place);
}

/// Starts the step again with a read, because the reply was lost or another run has written.
void RunRecorder::TryAgain(Place& place, Error error) {
  place.is_asking = false;
  place.data.reset();
  int most = kMostHistoryConflicts;
  if (IsLost(error)) {
    // Writing a success is retried until the lease ends; the history written with it may be the
    // cause of the losses.
    if (step_ == Step::kSuccess && place.attempts >= kMostLosses) Unkeep(place, error);
    most = step_ == Step::kBeginning ? kMostLosses : std::numeric_limits<int>::max();
  }
  if (step_ == Step::kRelease && (IsLost(error) || !request_.is_shared)) most = 0;
  if (++place.attempts >= most) GiveUp(place, error);
}

void RunRecorder::FailToRead(Place& place, const std::string& path, Error error) {
  const LockName& lock = place.ticket.lock;
  unknown_ = FailureOf(error, "read the last run under", lock, "READ", path);
  GiveUp(place, error);
}

void RunRecorder::GiveUp(Place& place, std::optional<Error> error) {
  place.is_asking = false;
  place.done = step_;
  if (step_ == Step::kSuccess) has_recorded_success_ = false;
  Unkeep(place, error);
}

void RunRecorder::Unkeep(Place& place, std::optional<Error> error) {
  if (!std::exchange(place.is_kept, false)) return;
  unkept_.push_back({place.ticket.lock.display_path(), error});
}

// ---- what is written --------------------------------------------------------------------------

RunRecord RunRecorder::RecordOf(const Place& place) const {
  if (place.reservation) return *place.reservation;
  const Ticket& ticket = place.ticket;
  const TimePoint queued_at = request_.queued_at.value_or(ticket.created_after);
  return {.began = ticket.LatestServerTimeAt(*began_),
          .waited = Milliseconds(*began_ - queued_at),
          .host = request_.host,
          .user = request_.user,
          .label = request_.label,
          .token = ticket.token,
          .mode = ticket.mode,
          .contender = std::string(protocol::BaseOf(ticket.path))};
}

std::string RunRecorder::TextOfEnd(Place& place) const {
  protocol::LastSuccess success{place.ticket.LatestServerTimeAt(*began_), run_.host};
  if (!place.is_kept) {
    const auto last = protocol::ParseLastRunData(place.data->text);
    if (last->success && last->success->began > success.began) success = *last->success;
    std::string text = protocol::FormatLastSuccess(success) + std::string(last->below);
    // A longer first line displaces the oldest runs, as in RunHistory::Format().
    if (text.size() > kMostHistoryData) text.resize(text.rfind('\n', kMostHistoryData));
    return text;
  }
  RunRecord record = RecordOf(place);
  record.end = RunRecord::End::kEnded;
  record.duration = Milliseconds(run_.duration);
  if (run_.has_status) record.status = run_.status;
  record.cause = run_.cause;
  record.taken_by = run_.asked_by;
  record.taken_reason = run_.asked_reason;
  RunHistory& history = *place.data->history;
  history.Enter(record);
  if (record.status == 0) history.AddSuccess(success);
  return history.Format(request_.most_runs);
}

}  // namespace zklock::lock
