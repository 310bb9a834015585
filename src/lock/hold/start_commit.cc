#include "lock/hold/start_commit.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/lock_path.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;

std::string LastStartOf(const Ticket& ticket) {
  return protocol::ChildPath(ticket.lock.path, protocol::kLastStartChild);
}

}  // namespace

StartCommit::StartCommit(zookeeper::Store& store, const Clock& clock,
                         const std::vector<Ticket>& tickets, std::string host, Duration once_per)
    : store_(store), clock_(clock), host_(std::move(host)), once_per_(once_per) {
  for (const Ticket& ticket : tickets) places_.push_back({ticket});
}

bool StartCommit::IsCommitted() const {
  return std::all_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.state == State::kCommitted; });
}

bool StartCommit::MayBeCommitted() const {
  return std::any_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.unrefused > 0; });
}

bool StartCommit::IsIdle() const {
  return refusal_ || IsCommitted() || pending_ > 0 || !store_.IsConnected();
}

EventSource::Interest StartCommit::GetInterest() {
  // The session wakes the loop when it is connected.
  if (IsIdle()) return {};
  return {.wake = TimePoint{}};
}

void StartCommit::OnReady(short /*revents*/) {
  if (IsIdle()) return;
  // Read all LOCKs before writing to any: if one refuses the run, no start is recorded in another.
  const bool reads = std::any_of(places_.begin(), places_.end(),
                                 [](const Place& place) { return place.state == State::kUnread; });
  for (Place& place : places_) {
    if (place.state == (reads ? State::kUnread : State::kAllowed)) {
      reads ? Read(place) : Write(place);
    }
  }
}

std::string StartCommit::DataOf(const Place& place) const {
  return protocol::FormatStartRecord({place.ticket.token, host_});
}

void StartCommit::Read(Place& place) {
  ++pending_;
  store_.Get(LastStartOf(place.ticket), zookeeper::Watch::kNo,
             scope_.Wrap([this, &place](const zookeeper::GetReply& reply) {
               --pending_;
               OnRead(place, reply);
             }));
}

void StartCommit::OnRead(Place& place, const zookeeper::GetReply& reply) {
  if (IsLost(reply.error)) return;
  if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
    return GiveUp(place, reply.error, "read the last start under", "READ",
                  LastStartOf(place.ticket));
  }
  place.state = State::kAllowed;
  const auto written_at = std::exchange(place.version, std::nullopt);
  if (reply.error == Error::kNoNode) return;
  place.version = reply.stat.version;
  // Our start must stay recorded: an ephemeral znode would vanish with its creator's session.
  const bool stays = reply.stat.ephemeral_owner == 0;
  // An administrator may have created it empty, to set its ACL.
  if (stays && reply.data.empty()) return;
  const auto last = protocol::ParseStartRecord(reply.data);
  if (!stays || !last) {
    refusal_ = Unusable{.why = Unusable::Why::kRecordUnknown,
                        .child = std::string(protocol::kLastStartChild)};
    return;
  }
  // We wrote this, and the reply was lost. If we have written nothing, this record is left over
  // from an earlier LOCK at the same path, and happens to have our token.
  if (has_written_ && last->token == place.ticket.token) {
    place.state = State::kCommitted;
    return;
  }
  // Another run has written since: the servers have refused our writes, or will. (A server that
  // lags behind may show an older version.)
  if (!written_at || *place.version > *written_at) place.unrefused = 0;
  // Our estimate of the time may be early, and the write happens even later, so a run never starts
  // too soon.
  const Duration ago = place.ticket.EarliestServerTimeAt(clock_.Now()) -
                       std::chrono::milliseconds(reply.stat.modified_ms);
  if (ago < once_per_) refusal_ = TooRecent{place.ticket.lock.display_path(), last->host, ago};
}

void StartCommit::Write(Place& place) {
  ++pending_;
  has_written_ = true;
  ++place.unrefused;
  place.state = State::kUnread;  // after any answer but success
  const std::string path = LastStartOf(place.ticket);
  const auto done =
      scope_.Wrap([this, &place](const zookeeper::Reply& reply) { OnWritten(place, reply.error); });
  if (place.version) {
    store_.Set(path, DataOf(place), *place.version, done);
  } else {
    store_.Create(path, DataOf(place), zookeeper::NodeKind::kPersistent, done);
  }
}

void StartCommit::OnWritten(Place& place, Error error) {
  const bool creates = !place.version;
  if (error != Error::kNone && !IsLost(error)) --place.unrefused;
  // LOCK is gone, and our contender with it: the Hold will notice, and nothing is left to do here.
  if (creates && error == Error::kNoNode) return;
  --pending_;
  if (error == Error::kNone) {
    place.state = State::kCommitted;
    return;
  }
  // Created, written to or deleted since it was read, perhaps by us: read again.
  if (IsLost(error) || error == Error::kBadVersion || error == Error::kNodeExists ||
      error == Error::kNoNode) {
    return;
  }
  GiveUp(place, error, "record a start under", creates ? "CREATE" : "WRITE",
         creates ? place.ticket.lock.path : LastStartOf(place.ticket));
}

void StartCommit::GiveUp(const Place& place, Error error, const std::string& operation,
                         const char* right, const std::string& right_path) {
  refusal_ = FailureOf(error, operation, place.ticket.lock, right, right_path);
}

}  // namespace zklock::lock
