#include "lock/errand.h"

#include <algorithm>

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;

// A connection that breaks again and again over the same work is broken by it: a list of children
// that is too large for the servers' or the client's buffer, say.
constexpr int kMostBegins = 8;

}  // namespace

Errand::Errand(zookeeper::Store& store, const Clock& clock, Duration connect_timeout)
    : store_(store), clock_(clock), connect_timeout_(connect_timeout), apart_since_(clock.Now()) {
  store_.SetListener(this);
}

Errand::~Errand() { store_.SetListener(nullptr); }

void Errand::Start() {
  if (store_.IsConnected()) OnConnected(true);
}

EventSource::Interest Errand::GetInterest() {
  if (over_) return {};
  return {.wake = std::min(ApartDeadline(), answer_deadline_)};
}

void Errand::OnReady(short /*revents*/) {
  if (over_) return;
  const TimePoint now = clock_.Now();
  if (now >= ApartDeadline()) {
    Fail(Unreachable{});
  } else if (now >= answer_deadline_) {
    answer_deadline_ = kNever;
    store_.GiveUpServer();
  }
}

void Errand::OnConnected(bool /*fresh*/) {
  if (over_) return;
  if (++begins_ > kMostBegins) return Fail(Unreachable{});
  ++attempt_;
  answer_deadline_ = AnswerDeadline();
  Begin();
}

void Errand::OnDisconnected() {
  ++attempt_;
  answer_deadline_ = kNever;
  if (!apart_since_) apart_since_ = clock_.Now();
}

void Errand::OnExpired() {
  if (over_) return;
  OnDisconnected();
  store_.Renew();
}

void Errand::OnRefused(Error why) {
  if (!over_) Fail(Refused{"look", "", why, "", ""});
}

void Errand::Rest() {
  answer_deadline_ = kNever;
  begins_ = 0;
}

void Errand::Rouse() {
  if (answer_deadline_ == kNever) answer_deadline_ = AnswerDeadline();
}

void Errand::Succeed() { over_ = true; }

void Errand::Fail(ErrandFailure failure) {
  failure_ = std::move(failure);
  over_ = true;
}

void Errand::FailBecause(Error why, const std::string& operation, const std::string& path,
                         const std::string& right, const std::string& right_path) {
  if (IsRefusal(why)) return Fail(Refused{operation, path, why, right, right_path});
  if (why == Error::kQuotaExceeded) return Fail(QuotaExceeded{path, path});
  Fail(Defect{Defect::What::kAnswer, path, operation, why});
}

void Errand::Heard() {
  apart_since_.reset();
  answer_deadline_ = AnswerDeadline();
}

TimePoint Errand::AnswerDeadline() const {
  return After(clock_.Now(), std::max<Duration>(2s, store_.lease().timeout() / 3));
}

TimePoint Errand::ApartDeadline() const {
  return apart_since_ ? After(*apart_since_, connect_timeout_) : kNever;
}

}  // namespace zklock::lock
