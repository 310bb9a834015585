#pragma once

#include <deque>
#include <optional>

#include "base/clock.h"

namespace zklock::protocol {

/// How long the lock is proven (protocol, section 4): pure arithmetic over the moments at which
/// requests were sent that were answered. It holds no clock.
///
/// Two times count, for one session of granted time-out T. s: just before sending the newest
/// committed request (create or heartbeat) that was answered with success: the session lived then.
/// p: just before sending the newest request that had been answered at least T/4 before s, so that
/// a ping of leader and follower lay between its hearing and s (that it was sent before does not
/// do: it may have been heard late, and the follower cut off before the next ping); or, if newer,
/// the newest accepted connect request that was sent no later than s (it touches the session at the
/// leader; asking for a committed request after it also rules out a leader that had lost its
/// quorum). The servers keep the session at least until p + T. tests/model/lease.pml checks this.
///
/// T is the shortest session time-out that any server has granted to this session. Each connect
/// grants anew, and the leader counts with what it heard last, which may come late, from a server
/// that was left long ago. A shorter grant moves the lease's end back, for earlier proofs as well.
class Lease {
 public:
  Lease() = default;
  /// `timeout`: what the session's first connect has granted, or will be asked for.
  explicit Lease(Duration timeout) : timeout_(timeout) {}

  /// A connect request sent at `sent`, which asked for timeout(), was accepted with `granted`.
  void ConnectAccepted(TimePoint sent, Duration granted);
  /// A request that was sent at `sent` has been answered by `answered`, whatever the answer.
  void Answered(TimePoint sent, TimePoint answered);
  /// As Answered, and it was committed by a quorum with success.
  void Committed(TimePoint sent, TimePoint answered);

  /// p + T - max(T/24, 500 ms); none without a proof.
  [[nodiscard]] std::optional<TimePoint> End() const;
  /// s, for "was this answer newer than that event".
  [[nodiscard]] std::optional<TimePoint> last_commit() const { return last_commit_; }
  /// T.
  [[nodiscard]] Duration timeout() const { return timeout_; }

 private:
  /// A commit that was sent at `once` or later makes `from` a p.
  struct Proof {
    TimePoint once;
    TimePoint from;
  };
  /// How long before s a request must have been answered for a ping to lie between.
  [[nodiscard]] Duration PingSpan() const;
  void Keep(Proof proof);
  void Prove();

  Duration timeout_{};
  Duration slow_pings_{};  // servers with longer ticks than T tells ping each other so often
  std::optional<TimePoint> last_commit_;  // s
  std::optional<TimePoint> proven_;       // p
  std::optional<TimePoint> newest_sent_;  // of what was answered or accepted
  std::deque<Proof> proofs_;              // that want a commit yet, ascending in both
};

/// The least time between KILL and the lease's end: in it the kernel ends what was killed.
inline constexpr Duration kKillMargin = std::chrono::milliseconds(250);

/// The grace between stop signal and KILL that a lease of T allows: min(kill_after, T/6).
[[nodiscard]] Duration GraceFor(Duration kill_after, Duration timeout);
/// When the command gets its stop signal: `grace` before the lease's end, and no later than
/// kKillMargin before it. kNever for a lease that does not end.
[[nodiscard]] TimePoint StopTime(TimePoint lease_end, Duration grace);
/// When it gets KILL, having got the stop signal at `stopped_at`: after the grace, and no later
/// than kKillMargin before the lease's end.
[[nodiscard]] TimePoint KillTime(TimePoint stopped_at, TimePoint lease_end, Duration grace);
/// How long a tree that is killed from `killed_since` on spares the guards of nested runs, so that
/// they can end their own trees and close their sessions, and nobody waits for those to time out:
/// two seconds, and no longer than until kKillMargin before the lease's end.
[[nodiscard]] TimePoint NestedGuardsUntil(TimePoint killed_since, TimePoint lease_end);

/// The heartbeat's period while holding: T/8.
[[nodiscard]] Duration HeartbeatPeriod(Duration timeout);
/// A waiter's own small reads: every T/4.
[[nodiscard]] Duration WaiterReadPeriod(Duration timeout);
/// After how long without an answer a server is given up: max(P, 2 s), but no more than half of
/// what is left until the stop signal.
[[nodiscard]] Duration AnswerTimeout(Duration timeout, Duration until_stop);

/// Under this the lease arithmetic leaves nothing to live on: refused (78).
inline constexpr Duration kLeastSessionTimeout = std::chrono::seconds(4);
/// Under this an ordinary change of leader may end the command: warned of.
inline constexpr Duration kComfortableSessionTimeout = std::chrono::seconds(10);

}  // namespace zklock::protocol
