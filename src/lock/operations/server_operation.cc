#include "lock/operations/server_operation.h"

#include <algorithm>

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;

// If the connection breaks this often during the same work, the work is probably the cause: a list
// of children that is too large for the servers' or the client's buffer, for example.
constexpr int kMostBegins = 8;

/// Returns how long a server may take to answer.
Duration AnswerTime(const zookeeper::Store& store, Duration connect_timeout) {
  return std::min(connect_timeout, std::max<Duration>(2s, store.lease().timeout() / 3));
}

}  // namespace

ServerOperation::ServerOperation(zookeeper::Store& store, const Clock& clock,
                                 Duration connect_timeout)
    : store_(store),
      clock_(clock),
      connect_timeout_(connect_timeout),
      disconnected_since_(clock.Now()) {
  store_.SetListener(this);
}

ServerOperation::~ServerOperation() { store_.SetListener(nullptr); }

void ServerOperation::Start() {
  if (store_.IsConnected()) OnConnected(true);
}

void ServerOperation::Restart() {
  ++attempt_;
  over_ = false;
  failure_.reset();
  begins_ = 0;
  disconnected_since_ = clock_.Now();
  answer_deadline_ = kNever;
  Start();
}

EventSource::Interest ServerOperation::GetInterest() {
  if (over_) return {};
  return {.wake = std::min(ConnectDeadline(), answer_deadline_)};
}

void ServerOperation::OnReady(short /*revents*/) {
  if (over_) return;
  const TimePoint now = clock_.Now();
  if (now >= ConnectDeadline()) {
    Fail(Unreachable{});
  } else if (now >= answer_deadline_) {
    // Servers that answer only the first requests do not get much more time than the others.
    if (!keeps_trying_ && begins_ * AnswerTime(store_, connect_timeout_) >= connect_timeout_) {
      return Fail(Unreachable{});
    }
    answer_deadline_ = kNever;
    store_.GiveUpServer();
  }
}

void ServerOperation::OnConnected(bool /*fresh*/) {
  if (over_) return;
  if (++begins_ > kMostBegins && !keeps_trying_) return Fail(Unreachable{});
  ++attempt_;
  answer_deadline_ = AnswerDeadline();
  Begin();
}

void ServerOperation::OnDisconnected() {
  ++attempt_;
  answer_deadline_ = kNever;
  if (!disconnected_since_) disconnected_since_ = clock_.Now();
}

void ServerOperation::OnExpired() {
  if (over_) return;
  OnDisconnected();
  store_.Renew();
}

void ServerOperation::OnRefused(Error why) {
  if (!over_) Fail(Refused{"look", "", why, "", ""});
}

void ServerOperation::DisarmAnswerDeadline() {
  answer_deadline_ = kNever;
  begins_ = 0;
}

void ServerOperation::ArmAnswerDeadline() {
  if (answer_deadline_ == kNever) answer_deadline_ = AnswerDeadline();
}

void ServerOperation::Succeed() { over_ = true; }

void ServerOperation::Fail(OperationFailure failure) {
  failure_ = std::move(failure);
  over_ = true;
}

void ServerOperation::Heard() {
  disconnected_since_.reset();
  answer_deadline_ = AnswerDeadline();
}

TimePoint ServerOperation::AnswerDeadline() const {
  return After(clock_.Now(), AnswerTime(store_, connect_timeout_));
}

TimePoint ServerOperation::ConnectDeadline() const {
  const bool gives_up = disconnected_since_ && !keeps_trying_;
  return gives_up ? After(*disconnected_since_, connect_timeout_) : kNever;
}

}  // namespace zklock::lock
