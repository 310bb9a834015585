#pragma once

#include <deque>
#include <optional>

#include "base/clock.h"

namespace zklock::protocol {

/// How long the lock is proven to be held (zklock-protocol(7), The lease): pure arithmetic on the
/// times at which answered requests were sent. It reads no clock.
///
/// Two times matter for a session with timeout T:
///
///   s  just before sending the newest committed request (create or heartbeat) that succeeded. The
///      session was alive then.
///   p  just before sending the newest request that was answered at least T/4 before s. After the
///      follower had received it, and before s, the leader and the follower exchanged a ping. (A
///      request that was merely sent that early would not be enough: it may have arrived late, and
///      the follower may have been cut off before the next ping.) Or, if newer: just before sending
///      the newest accepted connect request that was sent no later than s. That request touches the
///      session at the leader, and the committed request after it rules out a leader that had lost
///      its quorum.
///
/// The servers keep the session at least until p + T. tests/model/lease.pml checks this.
///
/// T is the shortest timeout that any server has granted to this session. Each connect is granted a
/// new timeout, and the leader uses the last one that it received, even if it arrived late from a
/// server that we left long ago. So a shorter grant makes the lease end earlier, for earlier proofs
/// as well.
class Lease {
 public:
  Lease() = default;
  /// `timeout`: the one granted to the session's first connect request or, before that, the one to
  /// be requested.
  explicit Lease(Duration timeout) : timeout_(timeout) {}

  /// Records that a connect request for timeout(), sent at `sent`, was accepted with the timeout
  /// `granted`.
  void ConnectAccepted(TimePoint sent, Duration granted);
  /// Records that a request sent at `sent` was answered at `answered`; any answer counts.
  void Answered(TimePoint sent, TimePoint answered);
  /// Like Answered(), for a request that a quorum committed.
  void Committed(TimePoint sent, TimePoint answered);

  /// Returns p + T - max(T/24, 500 ms); none without a proof.
  [[nodiscard]] std::optional<TimePoint> End() const;
  /// Returns whether a command may start: T/3 is left.
  [[nodiscard]] bool SufficesToStart(TimePoint now) const;
  /// Returns whether a command may start without a commit of its own: at least T/2 is left, minus
  /// twice the margin in End(), and SufficesToStart() is true. A contender that sends each
  /// heartbeat PingSpan() after the answer to the previous one always has T/2 left, minus the
  /// margin and three round trips.
  [[nodiscard]] bool IsInHand(TimePoint now) const;
  /// Returns how long the answers before and after a pause of PingSpan() may take in total if a
  /// contender that sends a heartbeat after the pause is to start a command. Zero or negative if no
  /// answer could be quick enough.
  [[nodiscard]] Duration AnswerBudget() const;
  /// Returns a timeout that suffices for a session with the same servers if answers take up to
  /// `answers`; none if unknown. It is known only if a server has granted a longer timeout than
  /// requested: that server pings too rarely for this session.
  [[nodiscard]] std::optional<Duration> SufficientTimeout(Duration answers) const;
  /// Returns whether heartbeats can keep extending the lease of a holder. They cannot if a server
  /// pings so rarely that a command must end before its next proof.
  [[nodiscard]] bool CanBeExtended() const;
  /// Returns when the newest answered request or accepted connect request was sent.
  [[nodiscard]] std::optional<TimePoint> newest_sent() const { return newest_sent_; }
  /// Returns s, which tells whether an answer is newer than an event.
  [[nodiscard]] std::optional<TimePoint> last_commit() const { return last_commit_; }
  /// Returns how long commits have taken lately: the longest time, with earlier times halved at
  /// each later commit. It is at most T/4: a lock cannot be held with slower commits, and after a
  /// pause of this process, answers only seem to be slow.
  [[nodiscard]] Duration commits_take() const { return commits_take_; }
  /// Returns T.
  [[nodiscard]] Duration timeout() const { return timeout_; }
  /// Returns how long before s a request must have been answered for a ping to fall in between:
  /// T/4, or longer if a server pings less often. A waiter pauses that long after each answer, so
  /// that its next request can turn the previous one into a p.
  [[nodiscard]] Duration PingSpan() const;

 private:
  /// A commit sent at `once` or later turns `from` into a p.
  struct Proof {
    TimePoint once;
    TimePoint from;
  };
  /// Returns how much earlier than p + T the lease ends.
  [[nodiscard]] Duration EndMargin() const;
  [[nodiscard]] bool Lasts(Duration span, TimePoint now) const;
  void Keep(Proof proof);
  void Prove();

  Duration timeout_{};
  Duration slow_pings_{};  // the ping interval of servers with longer ticks than T implies
  Duration commits_take_{};
  std::optional<TimePoint> last_commit_;  // s
  std::optional<TimePoint> proven_;       // p
  std::optional<TimePoint> newest_sent_;  // of the answered or accepted requests
  std::deque<Proof> proofs_;              // not yet confirmed by a commit; both times are ascending
};

/// The minimum time that the kernel gets before the lease's end to terminate killed processes.
inline constexpr Duration kKillMargin = std::chrono::milliseconds(250);

/// Returns the grace between the stop signal and KILL that a lease of T allows: min(kill_after,
/// T/6).
[[nodiscard]] Duration GraceFor(Duration kill_after, Duration timeout);
/// Returns when the command gets its stop signal: `grace` before the lease's end, and no later than
/// kKillMargin before it. kNever for a lease that does not end.
[[nodiscard]] TimePoint StopTime(TimePoint lease_end, Duration grace);
/// Returns when the command gets KILL after a stop signal at `signalled_at`: after `grace`, and no
/// later than kKillMargin before the lease's end.
[[nodiscard]] TimePoint KillTime(TimePoint signalled_at, TimePoint lease_end, Duration grace);
/// Returns when to stop sparing the guards of nested runs in a process tree that is being killed:
/// five seconds after `killed_since`, or kKillMargin before the lease's end if that is earlier.
/// Until then they terminate their own trees and close their sessions, so that no waiter has to
/// wait for these sessions to time out.
[[nodiscard]] TimePoint NestedGuardsUntil(TimePoint killed_since, TimePoint lease_end);

/// Returns the heartbeat period while a lock is held: T/8.
[[nodiscard]] Duration HeartbeatPeriod(Duration timeout);
/// Returns how long to wait for an answer before giving up on a server: max(HeartbeatPeriod(), 2
/// s), but at most half of the time until the stop signal. Even then, a server gets twice the time
/// that answers have `taken` lately: any other server must answer twice, the connect request and a
/// heartbeat, before the lease is extended.
[[nodiscard]] Duration AnswerTimeout(Duration timeout, Duration until_stop, Duration taken);

/// The minimum timeout: a shorter one leaves no usable lease and is refused (exit status 78).
inline constexpr Duration kLeastSessionTimeout = std::chrono::seconds(4);
/// With a shorter timeout, an ordinary change of leader may end the command; zklock warns about it.
inline constexpr Duration kComfortableSessionTimeout = std::chrono::seconds(10);

}  // namespace zklock::protocol
