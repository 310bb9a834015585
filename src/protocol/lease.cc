#include "protocol/lease.h"

#include <algorithm>

namespace zklock::protocol {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Between KILL and the lease's end: for the kernel to end what it killed.
constexpr Duration kKillMargin = milliseconds(250);
constexpr Duration kLeastEndMargin = milliseconds(500);
constexpr Duration kLongestQuickAnswer = seconds(2);
constexpr Duration kLeastAnswerTimeout = milliseconds(50);

/// How long before s a request must have been sent for a ping to lie between.
Duration PingSpan(Duration timeout) { return timeout / 4; }

void Insert(std::deque<TimePoint>& moments, TimePoint moment) {
  moments.insert(std::upper_bound(moments.begin(), moments.end(), moment), moment);
}

/// Takes what is at or before `limit` from the front; the newest of it proves.
void Take(std::deque<TimePoint>& moments, TimePoint limit, std::optional<TimePoint>& proven) {
  while (!moments.empty() && moments.front() <= limit) {
    proven = std::max(proven.value_or(moments.front()), moments.front());
    moments.pop_front();
  }
}

/// Drops what a newer moment stands for. A waiter may read for days without a commit; one that is
/// still to come was sent after the newest of `moments`, since replies keep the order of requests,
/// so of those T/4 older only the last can matter. Another T/4 is kept for replies that come out of
/// order; by more than that they would make the lease shorter, never longer.
void Thin(std::deque<TimePoint>& moments, Duration timeout) {
  while (moments.size() >= 2 && moments[1] <= moments.back() - 2 * PingSpan(timeout)) {
    moments.pop_front();
  }
}

}  // namespace

void Lease::ConnectAccepted(TimePoint sent) {
  Insert(connects_, sent);
  Prove();
}

void Lease::Answered(TimePoint sent) {
  Insert(answered_, sent);
  Prove();
}

void Lease::Committed(TimePoint sent) {
  Insert(answered_, sent);
  last_commit_ = std::max(last_commit_.value_or(sent), sent);
  Prove();
}

void Lease::Prove() {
  if (last_commit_) {
    Take(answered_, *last_commit_ - PingSpan(timeout_), proven_);
    Take(connects_, *last_commit_, proven_);
    // A connect may have proven more than answers that are older than it.
    if (proven_) Take(answered_, *proven_, proven_);
  }
  Thin(answered_, timeout_);
  Thin(connects_, timeout_);
}

std::optional<TimePoint> Lease::End() const {
  if (!proven_) return std::nullopt;
  return *proven_ + timeout_ - std::max<Duration>(timeout_ / 24, kLeastEndMargin);
}

StopTimes StopTimesFor(TimePoint lease_end, Duration kill_after, Duration timeout) {
  const TimePoint kill = lease_end - kKillMargin;
  return {.stop = std::min(lease_end - GraceFor(kill_after, timeout), kill), .kill = kill};
}

Duration GraceFor(Duration kill_after, Duration timeout) {
  return std::min(kill_after, timeout / 6);
}

Duration HeartbeatPeriod(Duration timeout) { return timeout / 8; }

Duration WaiterReadPeriod(Duration timeout) { return timeout / 4; }

Duration AnswerTimeout(Duration timeout, Duration until_stop) {
  const Duration longest = std::max(HeartbeatPeriod(timeout), kLongestQuickAnswer);
  return std::max(std::min(longest, until_stop / 2), kLeastAnswerTimeout);
}

}  // namespace zklock::protocol
