#include "protocol/lease.h"

#include <algorithm>
#include <iterator>

namespace zklock::protocol {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kNestedGuardsTime = seconds(5);
constexpr Duration kLeastEndMargin = milliseconds(500);
constexpr Duration kLongestQuickAnswer = seconds(2);
constexpr Duration kLeastAnswerTimeout = milliseconds(50);

TimePoint Before(TimePoint moment, Duration span) {
  return moment == kNever ? kNever : moment - span;
}

}  // namespace

void Lease::ConnectAccepted(TimePoint sent, Duration granted) {
  // A granted timeout above the requested one is the server's minimum, two ticks. The server pings
  // every half tick.
  if (granted > timeout_) slow_pings_ = std::max(slow_pings_, granted / 4);
  timeout_ = std::min(timeout_, granted);
  newest_sent_ = std::max(newest_sent_.value_or(sent), sent);
  Keep({.once = sent, .from = sent});
  Prove();
}

void Lease::Answered(TimePoint sent, TimePoint answered) {
  newest_sent_ = std::max(newest_sent_.value_or(sent), sent);
  Keep({.once = answered + PingSpan(), .from = sent});
  Prove();
}

void Lease::Committed(TimePoint sent, TimePoint answered) {
  last_commit_ = std::max(last_commit_.value_or(sent), sent);
  commits_take_ = std::max(std::min(answered - sent, timeout_ / 4), commits_take_ / 2);
  Answered(sent, answered);
}

Duration Lease::PingSpan() const { return std::max(timeout_ / 4, slow_pings_); }

void Lease::Keep(Proof proof) {
  // A proof that takes effect no earlier than another one and proves no more is useless.
  const auto after =
      std::upper_bound(proofs_.begin(), proofs_.end(), proof.once,
                       [](TimePoint once, const Proof& other) { return once < other.once; });
  if (after != proofs_.begin() && std::prev(after)->from >= proof.from) return;
  auto last = after;
  while (last != proofs_.end() && last->from <= proof.from) ++last;
  proofs_.insert(proofs_.erase(after, last), proof);
}

void Lease::Prove() {
  while (last_commit_ && !proofs_.empty() && proofs_.front().once <= *last_commit_) {
    proven_ = std::max(proven_.value_or(proofs_.front().from), proofs_.front().from);
    proofs_.pop_front();
  }
  // A waiter may keep reading for days without a commit. Replies arrive in the order of the
  // requests, so a commit that is still unanswered was sent no earlier than any request that has
  // been answered. Of the proofs that this commit will confirm, only the last matters. PingSpan()
  // allows for replies that arrive out of order; if they were off by more than that, the lease
  // would be shorter, never longer.
  while (proofs_.size() >= 2 && proofs_[1].once <= *newest_sent_ - PingSpan()) {
    proofs_.pop_front();
  }
}

std::optional<TimePoint> Lease::End() const {
  if (!proven_) return std::nullopt;
  return *proven_ + timeout_ - EndMargin();
}

Duration Lease::EndMargin() const { return std::max<Duration>(timeout_ / 24, kLeastEndMargin); }

bool Lease::Lasts(Duration span, TimePoint now) const {
  const auto end = End();
  return end && *end - now > span;
}

bool Lease::SufficesToStart(TimePoint now) const { return Lasts(timeout_ / 3, now); }

Duration Lease::AnswerBudget() const { return timeout_ - timeout_ / 3 - EndMargin() - PingSpan(); }

std::optional<Duration> Lease::SufficientTimeout(Duration answers) const {
  const Lease longer(4 * slow_pings_);
  if (slow_pings_ <= timeout_ / 4 || answers >= longer.AnswerBudget()) return std::nullopt;
  return longer.timeout();
}

bool Lease::CanBeExtended() const {
  return PingSpan() + HeartbeatPeriod(timeout_) < timeout_ - EndMargin() - timeout_ / 6;
}

bool Lease::IsInHand(TimePoint now) const {
  return SufficesToStart(now) && Lasts(timeout_ / 2 - 2 * EndMargin(), now);
}

Duration GraceFor(Duration kill_after, Duration timeout) {
  return std::min(kill_after, timeout / 6);
}

TimePoint StopTime(TimePoint lease_end, Duration grace) {
  return Before(lease_end, std::max(grace, kKillMargin));
}

TimePoint KillTime(TimePoint signalled_at, TimePoint lease_end, Duration grace) {
  return std::min(After(signalled_at, grace), Before(lease_end, kKillMargin));
}

TimePoint NestedGuardsUntil(TimePoint killed_since, TimePoint lease_end) {
  return std::min(After(killed_since, kNestedGuardsTime), Before(lease_end, kKillMargin));
}

Duration HeartbeatPeriod(Duration timeout) { return timeout / 8; }

Duration AnswerTimeout(Duration timeout, Duration until_stop, Duration taken) {
  const Duration longest = std::max(HeartbeatPeriod(timeout), kLongestQuickAnswer);
  const Duration early = std::max(std::min(longest, until_stop / 2), 2 * taken);
  return std::max(std::min(early, until_stop), kLeastAnswerTimeout);
}

}  // namespace zklock::protocol
