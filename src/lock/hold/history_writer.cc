#include "lock/hold/history_writer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "protocol/lock_path.h"
#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::NodeKind;
using zookeeper::Watch;

// If the connection breaks this often, the write may be the cause: a LOCK must not be lost because
// of its history.
constexpr int kMostLosses = 5;
// Above the holders of a busy semaphore, of which one succeeds each time.
constexpr int kMostConflicts = 100;

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether the data has a run without an end, beside the one with the token `own`.
bool HasOtherOpenRun(const GetReply& read, std::int64_t own) {
  const auto history =
      read.error == Error::kNone ? RunHistory::Parse(read.data) : std::optional<RunHistory>();
  return history && std::any_of(history->entries().begin(), history->entries().end(),
                                [own](const RunHistory::Entry& one) {
                                  return one.run.end == RunRecord::End::kNone &&
                                         one.run.token != own;
                                });
}

std::chrono::milliseconds Milliseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span);
}

}  // namespace

HistoryWriter::HistoryWriter(zookeeper::Store& store, std::vector<Ticket> tickets,
                             HistoryRequest request)
    : store_(store), request_(std::move(request)) {
  for (Ticket& ticket : tickets) {
    const bool reads = ticket.mode == protocol::Mode::kRead;
    places_.push_back({std::move(ticket), reads ? State::kOff : State::kUnread});
  }
}

HistoryWriter::HistoryWriter(zookeeper::Store& store,
                             const std::vector<ReservationRun>& reservations, std::size_t most_runs)
    : store_(store), request_{.most_runs = most_runs}, began_(TimePoint{}) {
  for (const ReservationRun& one : reservations) {
    const bool reads = one.record.mode == protocol::Mode::kRead;
    places_.push_back({.ticket = {.lock = one.lock,
                                  .mode = one.record.mode,
                                  .path = one.path,
                                  .token = one.record.token},
                       .state = reads ? State::kOff : State::kUnread,
                       .reservation = one.record});
  }
}

std::string HistoryWriter::PathOf(const Place& place) const {
  return protocol::ChildPath(place.ticket.lock.path, protocol::kLastRunChild);
}

bool HistoryWriter::IsSettled() const {
  return std::all_of(places_.begin(), places_.end(), [&](const Place& place) {
    const bool is_asked = place.state == State::kUnread && began_ && store_.IsConnected();
    return !is_asked && place.state != State::kReading && place.state != State::kMarking;
  });
}

bool HistoryWriter::IsEntered() const {
  return std::all_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.state == State::kMarked || place.state == State::kOff;
  });
}

void HistoryWriter::GiveUpRest() {
  ended_ = true;
  for (Place& place : places_) {
    const bool is_entered = place.state == State::kMarked || place.state == State::kOff;
    if (!is_entered) GiveUp(place, Error::kConnectionLoss);
  }
}

EventSource::Interest HistoryWriter::GetInterest() {
  const bool has_work = began_ && !ended_ && store_.IsConnected() &&
                        std::any_of(places_.begin(), places_.end(), [](const Place& place) {
                          return place.state == State::kUnread;
                        });
  if (!has_work) return {};
  return {.wake = TimePoint{}};
}

void HistoryWriter::OnReady(short /*revents*/) {
  if (!began_ || ended_ || !store_.IsConnected()) return;
  for (Place& place : places_) {
    if (place.state == State::kUnread) Read(place);
  }
}

void HistoryWriter::Begin(TimePoint began) {
  if (began_) return;
  began_ = began;
  OnReady(0);
}

void HistoryWriter::Read(Place& place) {
  place.state = State::kReading;
  if (!request_.is_shared && !place.reservation) {
    // This one holds alone, so that the list is not needed if no other entry is without an end. If
    // there is one, its contender may be present: that of the next holder, if ours was deleted by
    // force a moment ago.
    return store_.Get(PathOf(place), Watch::kNo, scope_.Wrap([this, &place](const GetReply& reply) {
      if (!HasOtherOpenRun(reply, place.ticket.token)) return OnRead(place, reply, nullptr);
      ListChildren(place, std::make_shared<const GetReply>(reply));
    }));
  }
  // Replies arrive in order. A permit that is listed after the data was read may be the one of an
  // entry without an end; one that is not listed has been released or lost. The same is true of a
  // reservation, which anyone may release at any time.
  const auto read = std::make_shared<GetReply>();
  store_.Get(PathOf(place), Watch::kNo,
             scope_.Wrap([read](const GetReply& reply) { *read = reply; }));
  ListChildren(place, read);
}

void HistoryWriter::ListChildren(Place& place, const std::shared_ptr<const GetReply>& read) {
  store_.List(protocol::ParentOf(place.ticket.path), Watch::kNo,
              scope_.Wrap([this, &place, read](const zookeeper::ListReply& reply) {
                if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                  return OnRead(place, {{reply.error, reply.sent}, {}, {}}, nullptr);
                }
                std::vector<std::string> present;
                for (const std::string_view child : reply.children) present.emplace_back(child);
                OnRead(place, *read, &present);
              }));
}

/// `present`: the contenders, as listed after the data was read; null if there is no need to know.
void HistoryWriter::OnRead(Place& place, const GetReply& reply,
                           const std::vector<std::string>* present) {
  if (ended_) return;
  if (IsLost(reply.error)) return TryAgain(place, reply.error);
  const bool exists = reply.error == Error::kNone;
  if (!exists && reply.error != Error::kNoNode) return GiveUp(place, reply.error);
  auto history = RunHistory::Parse(reply.data);
  if (!history) return GiveUp(place, std::nullopt);
  place.history = *std::move(history);
  // The reply to the write was lost, or another run with the same --reserve has written.
  if (place.history.Find(place.ticket.token) != nullptr) {
    place.state = State::kMarked;
    place.version = reply.stat.version;
    return;
  }
  if (present != nullptr && !Contains(*present, protocol::BaseOf(place.ticket.path))) {
    place.state = State::kOff;  // it has been released, or is lost
    return;
  }
  if (present != nullptr) place.history.EnterLost(*present, place.ticket.token);
  place.history.Enter(RecordOf(place));
  place.version = exists ? reply.stat.version : 0;
  Mark(place, exists);
}

void HistoryWriter::Mark(Place& place, bool exists) {
  place.state = State::kMarking;
  const std::string data = place.history.Format(request_.most_runs);
  if (!exists) {
    return store_.Create(PathOf(place), data, NodeKind::kPersistent,
                         scope_.Wrap([this, &place](const zookeeper::CreateReply& reply) {
                           OnMarked(place, reply.error);
                         }));
  }
  store_.Set(PathOf(place), data, place.version++,
             scope_.Wrap([this, &place](const zookeeper::SetReply& reply) {
               OnMarked(place, reply.error);
             }));
}

void HistoryWriter::OnMarked(Place& place, Error error) {
  if (ended_) return;
  if (error == Error::kNone) {
    place.state = State::kMarked;
    return;
  }
  const bool was_changed = error == Error::kBadVersion || error == Error::kNodeExists;
  if (IsLost(error) || was_changed) return TryAgain(place, error);
  GiveUp(place, error);
}

void HistoryWriter::TryAgain(Place& place, Error error) {
  const int most = IsLost(error) ? kMostLosses : kMostConflicts;
  if (++place.attempts >= most) return GiveUp(place, error);
  place.state = State::kUnread;
}

void HistoryWriter::GiveUp(Place& place, std::optional<Error> error) {
  place.state = State::kOff;
  unkept_.push_back({place.ticket.lock.display_path(), error});
}

RunRecord HistoryWriter::RecordOf(const Place& place) const {
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

void HistoryWriter::EnterEnd(Place& place, const FinishedRun& run) {
  RunRecord record = RecordOf(place);
  record.end = RunRecord::End::kEnded;
  record.duration = Milliseconds(run.duration);
  if (run.has_status) record.status = run.status;
  place.history.Enter(record);
  if (record.status == 0) place.history.AddSuccess({record.began, run.host});
}

std::vector<std::optional<zookeeper::DataWrite>> HistoryWriter::End(const FinishedRun& run) {
  ended_ = true;
  std::vector<std::optional<zookeeper::DataWrite>> writes(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.state != State::kMarked) {
      if (began_ && place.state != State::kOff) GiveUp(place, Error::kConnectionLoss);
      continue;
    }
    EnterEnd(place, run);
    writes[i] = {PathOf(place), place.history.Format(request_.most_runs), place.version};
  }
  return writes;
}

// ---- the release ------------------------------------------------------------------------------

bool HistoryWriter::IsReleaseOver() const {
  return std::none_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.state == State::kReleasing || place.state == State::kEntering;
  });
}

void HistoryWriter::Release(Hold& hold, const FinishedRun& run) {
  ended_ = true;
  hold_ = &hold;
  run_ = run;
  for (Place& place : places_) {
    if (!began_ || place.state == State::kOff) continue;
    const bool is_marked = place.state == State::kMarked;
    place.state = State::kReleasing;
    place.attempts = 0;
    if (request_.is_shared) {
      ReadForRelease(place);
    } else if (is_marked) {
      WriteEnd(place);
    } else {
      GiveUp(place, Error::kConnectionLoss);
    }
  }
}

void HistoryWriter::ReadForRelease(Place& place) {
  store_.Get(PathOf(place), Watch::kNo, scope_.Wrap([this, &place](const GetReply& reply) {
    OnReadForRelease(place, reply);
  }));
}

void HistoryWriter::OnReadForRelease(Place& place, const GetReply& reply) {
  if (reply.error == Error::kNoNode) {  // so short a run that its beginning was not entered
    return store_.Create(PathOf(place), "", NodeKind::kPersistent,
                         scope_.Wrap([this, &place](const zookeeper::CreateReply& created) {
                           const bool exists =
                               created.error == Error::kNone || created.error == Error::kNodeExists;
                           if (exists) return OnEndWritten(place, Error::kNodeExists);
                           EndEntering(place, created.error);
                         }));
  }
  if (reply.error != Error::kNone) return EndEntering(place, reply.error);
  auto history = RunHistory::Parse(reply.data);
  if (!history) return GiveUp(place, std::nullopt);
  place.history = *std::move(history);
  place.version = reply.stat.version;
  WriteEnd(place);
}

void HistoryWriter::WriteEnd(Place& place) {
  EnterEnd(place, run_);
  const zookeeper::DataWrite write{PathOf(place), place.history.Format(request_.most_runs),
                                   place.version};
  const auto done = scope_.Wrap(
      [this, &place](const zookeeper::Reply& reply) { OnEndWritten(place, reply.error); });
  if (place.state == State::kReleasing) {
    hold_->ReleaseWith(write, place.ticket.path, run_, done);
  } else {
    store_.Set(write.path, write.data, write.version, done);
  }
}

void HistoryWriter::OnEndWritten(Place& place, Error error) {
  const bool was_changed = error == Error::kBadVersion || error == Error::kNodeExists;
  if (was_changed && request_.is_shared && ++place.attempts < kMostConflicts) {
    return ReadForRelease(place);
  }
  if (place.state == State::kReleasing && (IsRefusal(error) || error == Error::kBadVersion)) {
    // The run may write to last-run, as its beginning shows, but perhaps it may not write to LOCK
    // or delete from it; or somebody has written to LOCK meanwhile. Then the close releases.
    place.state = State::kEntering;
    return WriteEnd(place);
  }
  EndEntering(place, error);
}

// After a lost reply the close of the session releases, if that request did not; most often it did,
// and has entered the end as well. A write of its own is not known to have been done.
void HistoryWriter::EndEntering(Place& place, Error error) {
  const bool is_by_itself = place.state == State::kEntering;
  place.state = State::kOff;
  if (error != Error::kNone && (is_by_itself || !IsLost(error))) GiveUp(place, error);
}

void HistoryWriter::EndRelease() {
  for (Place& place : places_) {
    if (place.state == State::kEntering) EndEntering(place, Error::kConnectionLoss);
  }
}

}  // namespace zklock::lock
