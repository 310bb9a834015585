#include "lock/hold/hold.h"

#include <algorithm>
#include <utility>

#include "lock/data/contender_check.h"
#include "protocol/lease.h"
#include "protocol/lock_path.h"
#include "protocol/release_record.h"

namespace zklock::lock {

using zookeeper::Error;

namespace {

constexpr Duration kLongPause = std::chrono::seconds(1);

}  // namespace

Hold::Hold(zookeeper::Store& store, const Clock& clock, std::vector<Ticket> tickets,
           Duration kill_after, HoldEventSink publish, std::vector<std::string> passed)
    : store_(store),
      clock_(clock),
      tickets_(std::move(tickets)),
      passed_(std::move(passed)),
      kill_after_(kill_after),
      publish_(std::move(publish)) {
  store_.SetListener(this);
  TakeLease();
  const protocol::Lease& lease = store_.lease();
  const TimePoint now = clock_.Now();
  next_heartbeat_ =
      std::max(now, lease.last_commit().value_or(now) + protocol::HeartbeatPeriod(lease.timeout()));
  DeletePassed();
}

Hold::~Hold() { store_.SetListener(nullptr); }

EventSource::Interest Hold::GetInterest() {
  if (state_ == State::kLost) return {};
  due_ = watched_ ? std::min({lease_end_, next_heartbeat_, answer_deadline_}) : clock_.Now();
  return {.wake = due_};
}

void Hold::OnReady(short /*revents*/) {
  if (state_ == State::kLost) return;
  const TimePoint now = clock_.Now();
  if (now - due_ >= kLongPause) paused_ = now - due_;
  // Check the lease first, whatever else is due: the process may have just resumed after a pause.
  if (now >= lease_end_) {
    Lose(EndCause::kUnproven);
  } else if (now >= answer_deadline_) {
    answer_deadline_ = kNever;
    Suspect();
    store_.GiveUpServer();
  } else if (!watched_) {
    WatchTickets();  // before a heartbeat: a later read would wait for the heartbeat's commit
  } else if (now >= next_heartbeat_) {
    SendHeartbeat();
  }
}

void Hold::SendHeartbeat() {
  const TimePoint now = clock_.Now();
  const protocol::Lease& lease = store_.lease();
  next_heartbeat_ = kNever;
  state_ = State::kAsking;
  answer_deadline_ =
      now + protocol::AnswerTimeout(lease.timeout(), stop_time_ - now, lease.commits_take());
  std::vector<ContenderId> contenders;
  for (const Ticket& ticket : tickets_) {
    for (ContenderId& one : ticket.ids()) contenders.push_back(std::move(one));
  }
  CheckContenders(store_, contenders,
                  scope_.Wrap([this](const zookeeper::Reply& reply) { OnHeartbeat(reply); }));
}

void Hold::OnHeartbeat(const zookeeper::Reply& reply) {
  if (state_ == State::kLost) return;
  switch (reply.error) {
    case Error::kNone:
      state_ = State::kProven;
      answer_deadline_ = kNever;
      // The period starts when the heartbeat is sent, so that a slow answer does not stretch it.
      next_heartbeat_ = reply.sent + protocol::HeartbeatPeriod(store_.lease().timeout());
      paused_.reset();
      TakeLease();
      if (suspect_) {
        suspect_ = false;
        publish_(ProvenAgainEvent{});
      }
      return;
    case Error::kNoNode:
      return Lose(EndCause::kRemoved);
    case Error::kConnectionLoss:
      return;  // the store's next event shows whether the session is also lost
    default:
      // A refusal or a nonsensical answer: this server proves nothing. Try another one before the
      // lease ends.
      answer_deadline_ = kNever;
      Suspect();
      store_.GiveUpServer(reply.error);
  }
}

std::vector<zookeeper::DataWrite> Hold::WritesFor(const Ticket& ticket,
                                                  const FinishedRun& run) const {
  if (!ticket.lock_version || !run.has_status) return {};
  const protocol::ReleaseRecord record{
      .contender = std::string(protocol::BaseOf(ticket.path)),
      .mode = ticket.mode,
      .token = ticket.token,
      .duration = std::chrono::duration_cast<std::chrono::milliseconds>(run.duration),
      .status = run.status,
      .host = run.host};
  return {{ticket.lock.path, protocol::FormatLockData({record}), *ticket.lock_version}};
}

std::size_t Hold::Release(const FinishedRun& run) {
  if (state_ == State::kLost || clock_.Now() >= lease_end_) return 0;
  bool all = passed_.empty();
  for (const Ticket& ticket : tickets_) {
    const std::vector<zookeeper::DataWrite> writes = WritesFor(ticket, run);
    // The requests below are refused if the LOCK has been written to since, possibly by another
    // reader: when several readers hold the lock together, not all of them leave a record.
    const auto ignore_reply = scope_.Wrap([](const zookeeper::Reply&) {});
    if (writes.empty()) {
      all = false;
    } else if (ticket.id().has_reused_name()) {
      // A delete by this name could hit a later contender. Closing the session deletes only our
      // own.
      const zookeeper::DataWrite& record = writes.front();
      store_.Set(record.path, record.data, record.version, ignore_reply);
      all = false;
    } else {
      store_.WriteAndDelete(writes, ticket.paths(), zookeeper::kAnyVersion, ignore_reply);
    }
  }
  return all ? tickets_.size() : 0;
}

void Hold::ReleaseWith(const zookeeper::DataWrite& history, const std::string& path,
                       const FinishedRun& run, zookeeper::Done<zookeeper::Reply> done) {
  store_.SetListener(nullptr);  // otherwise the watch on our contender would report our own delete
  const auto ticket = std::find_if(tickets_.begin(), tickets_.end(),
                                   [&](const Ticket& one) { return one.path == path; });
  if (ticket->id().has_reused_name()) {
    return store_.Set(
        history.path, history.data, history.version,
        scope_.Wrap([done = std::move(done)](const zookeeper::SetReply& reply) { done(reply); }));
  }
  std::vector<zookeeper::DataWrite> writes = WritesFor(*ticket, run);
  writes.push_back(history);
  store_.WriteAndDelete(
      writes, ticket->paths(), zookeeper::kAnyVersion,
      scope_.Wrap([this, path, done = std::move(done)](const zookeeper::Reply& reply) {
        if (reply.error == Error::kNone) {
          std::erase_if(tickets_, [&](const Ticket& one) { return one.path == path; });
        }
        done(reply);
      }));
}

/// Deletes all `passed_` in one transaction, so that others wait for a single commit, or one by one
/// if one of them is already gone.
void Hold::DeletePassed() {
  if (passed_.size() < 2) return DeletePassedSingly();
  store_.WriteAndDelete({}, passed_, zookeeper::kAnyVersion,
                        scope_.Wrap([this](const zookeeper::Reply& reply) {
                          if (reply.error == Error::kNone) return passed_.clear();
                          if (!IsLost(reply.error)) DeletePassedSingly();
                        }));
}

void Hold::DeletePassedSingly() {
  for (const std::string& path : passed_) {
    store_.Delete(path, zookeeper::kAnyVersion,
                  scope_.Wrap([this, path](const zookeeper::Reply& reply) {
                    // After a lost reply, delete again over the next connection. After a refusal,
                    // the close deletes it.
                    if (reply.error == Error::kNone || reply.error == Error::kNoNode)
                      std::erase(passed_, path);
                  }));
  }
}

void Hold::WatchTickets() {
  watched_ = true;
  for (Ticket& ticket : tickets_) {
    for (const ContenderId& one : ticket.ids()) WatchContender(one);
    if (ticket.lock_version_is_guess) ReadLockVersion(ticket);
  }
}

void Hold::ReadLockVersion(Ticket& ticket) {
  store_.Get(ticket.lock.path, zookeeper::Watch::kNo,
             scope_.Wrap([&ticket](const zookeeper::GetReply& reply) {
               if (IsLost(reply.error)) return;  // read again over the next connection
               const bool is_ours =
                   reply.error == Error::kNone && protocol::ParseLockData(reply.data);
               ticket.lock_version = is_ours ? std::optional(reply.stat.version) : std::nullopt;
               ticket.lock_version_is_guess = false;
             }));
}

void Hold::WatchContender(const ContenderId& contender) {
  // The watch shows at once if the contender is written to, or deleted by force; a heartbeat then
  // confirms the deletion.
  store_.Get(contender.path, zookeeper::Watch::kYes,
             scope_.Wrap([this, id = contender](const zookeeper::GetReply& reply) {
               if (state_ == State::kLost) return;
               if (IsGone(id, reply)) {  // deleted before the watch was set
                 if (state_ == State::kProven) SendHeartbeat();
               } else if (reply.error == Error::kNone) {
                 publish_(OwnDataEvent{id.path, reply.data});
               }
             }));
}

void Hold::TakeLease() {
  const auto end = store_.lease().End();
  if (!end || *end == lease_end_) return;
  lease_end_ = *end;
  stop_time_ = protocol::StopTime(lease_end_, grace());
  store_.SetHolding(stop_time_, lease_end_);
  publish_(LeaseEvent{lease_end_, grace()});
}

bool Hold::SufficesToStart() {
  if (state_ != State::kProven) return false;
  TakeLease();
  return store_.lease().SufficesToStart(clock_.Now());
}

Duration Hold::Unconfirmed() const {
  const TimePoint now = clock_.Now();
  return now - store_.lease().last_commit().value_or(now);
}

Duration Hold::grace() const { return protocol::GraceFor(kill_after_, store_.lease().timeout()); }

void Hold::Suspect() {
  if (std::exchange(suspect_, true)) return;
  publish_(AnswerOverdueEvent{});
}

void Hold::Lose(EndCause loss) {
  state_ = State::kLost;
  loss_ = loss;
}

void Hold::OnConnected(bool fresh) {
  if (state_ != State::kLost) Resume(fresh);
  // Also if the lock is lost: with --on-lost warn, the command keeps running and the session stays
  // open.
  if (!fresh) DeletePassed();
}

void Hold::Resume(bool fresh) {
  // The store must not begin a new session by itself. If it did, our znodes would be gone.
  if (fresh) return Lose(EndCause::kExpired);
  // Do this first: the server may have granted a shorter session timeout, which makes the lease end
  // earlier. Only an answered heartbeat makes it end later.
  if (const auto end = store_.lease().End(); end && *end < lease_end_) TakeLease();
  publish_(SessionAcceptedEvent{});
  if (store_.lease().timeout() < protocol::kLeastSessionTimeout)
    return Lose(EndCause::kShortSession);
  store_.Sync(tickets_.front().lock.path, scope_.Wrap([](const zookeeper::Reply&) {}));
  SendHeartbeat();
  WatchTickets();
}

void Hold::OnDisconnected() {
  if (state_ == State::kLost) return;
  state_ = State::kDisconnected;
  answer_deadline_ = kNever;
  next_heartbeat_ = kNever;
  Suspect();
}

void Hold::OnExpired() {
  if (state_ != State::kLost) Lose(EndCause::kExpired);
}

void Hold::OnRefused(Error /*why*/) {
  // This does not happen while a lock is held. If it did, nothing more could be proven.
  if (state_ != State::kLost) Lose(EndCause::kUnproven);
}

void Hold::OnWatch(const std::string& path, zookeeper::Change change) {
  // Watches that were set while waiting may still fire.
  const auto own = std::find_if(tickets_.begin(), tickets_.end(), [&](const Ticket& ticket) {
    const std::vector<std::string> paths = ticket.paths();
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  });
  if (own == tickets_.end() || state_ == State::kLost) return;
  // After a change of the data, read it before anything else: a release request may arrive just
  // before the deletion.
  if (state_ == State::kProven && change != zookeeper::Change::kData) SendHeartbeat();
  WatchContender({path, own->token});
}

}  // namespace zklock::lock
