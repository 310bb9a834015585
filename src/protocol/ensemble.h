#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

// Decides whether the servers are suitable for locks, from measured facts; returns the findings
// that follow from them. Pure, like the rest of this folder.

namespace zklock::protocol {

/// A summary of several measurements of one duration.
struct Spread {
  Duration median{};
  Duration worst{};
  std::size_t count = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};
/// Returns none if there are no measurements.
[[nodiscard]] std::optional<Spread> SpreadOf(std::vector<Duration> times);

/// The offset of a clock from this host's clock.
struct ClockOffset {
  Duration offset{};       ///< negative: the clock is behind
  Duration uncertainty{};  ///< the true offset differs from `offset` by at most this
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};
/// Returns the offset of a clock that showed `stamp` (since 1970, truncated to whole milliseconds)
/// at some moment between a request and its answer, which arrived at `received` by this host's
/// clock.
[[nodiscard]] ClockOffset OffsetOf(std::chrono::milliseconds stamp, Duration received,
                                   Duration round_trip);

/// The role that a server reports.
enum class ServerRole {
  kUnknown,
  kLeader,
  kFollower,
  kObserver,
  kStandalone,
  kReadOnly,    ///< it has no quorum and serves only reads
  kNotServing,  ///< it has no quorum
};

/// The outcome of sending a four-letter word.
enum class WordEnd {
  kNotAsked,  ///< or there was no time for the answer
  kAnswered,
  kClosed,    ///< it is not in the server's whitelist
  kUnusable,  ///< no answer, or one that is not ZooKeeper's
};

/// The facts about one address of a server.
struct ServerFacts {
  std::string name;      ///< as the user wrote it
  bool reached = false;  ///< it accepted a session
  ServerRole role = ServerRole::kUnknown;
  bool is_old = false;      ///< see IsOldVersion()
  bool is_local = false;    ///< its sessions are local and may own no znodes
  std::optional<int> id{};  ///< its number in the ensemble, from the ID of the session it created
  std::optional<Spread> connect{};
  std::optional<Spread> commit{};
  std::optional<Duration> granted{};                ///< the session timeout
  std::optional<ClockOffset> clock{};               ///< the leader's, which stamps the transactions
  std::optional<std::uint64_t> connections{};       ///< from this host
  std::optional<std::uint64_t> connection_limit{};  ///< for each host; 0: no limit
  WordEnd srvr = WordEnd::kNotAsked;
  WordEnd conf = WordEnd::kNotAsked;
  WordEnd cons = WordEnd::kNotAsked;
  /// Whether it knows a session created by the first server that was reached; none: not tried.
  std::optional<bool> same_ensemble{};
};

/// The members of the ensemble, according to its configuration.
struct Members {
  std::set<int> voters;
  std::set<int> observers;
  bool weighted = false;      ///< with groups or weights: a majority of servers may not suffice
  std::uint64_t version = 0;  ///< grows with each change of the configuration
  friend bool operator==(const Members&, const Members&) = default;
};

struct EnsembleFacts {
  std::vector<ServerFacts> servers;
  std::optional<Members> members{};  ///< none: not known, or a standalone server
  Duration asked{};                  ///< the requested session timeout
  bool lacks_chroot = false;
};

/// One conclusion from the facts.
struct Finding {
  enum class Kind {
    // These should be fixed: see ShouldBeFixed().
    kUnreached,
    kOldVersion,
    kOtherEnsemble,    ///< it does not know the session
    kNotMember,        ///< it serves the ensemble, but is not in its configuration
    kSameServer,       ///< several names in the list refer to the same server
    kNoQuorum,         ///< read-only, or not serving
    kDifferentGrants,  ///< session timeouts from `least` to `most`
    kLocalSessions,    ///< zklock cannot queue with the sessions that it grants
    kUselessGrant,     ///< zklock refuses to lock with the timeout `least`
    kTooSlow,          ///< a commit took `most`, but a heartbeat is due every `least`
    kEvenMembers,      ///< `count` servers vote
    kClockOff,         ///< the leader's clock is off by `most`; negative: it is behind
    kFewConnectionsLeft,
    kNoChroot,  ///< the znode that would contain all LOCKs does not exist
    // These are worth knowing.
    kSlow,             ///< a commit took `most`, more than half of the heartbeat period
    kShortGrant,       ///< a change of leader may last longer than `least`
    kGrantBelowAsked,  ///< `least` was granted, although `most` was requested
    kEvenList,         ///< `count` servers, and it is unknown which ones vote
    kSingleServer,
    kPartialList,       ///< the list has `least_count` of `count` members
    kUnreachedAddress,  ///< another address of that name was reached
    kClockUnknown,
    kWordsClosed,
    kWordsUnusable,
    kNotCompared,  ///< it is unknown whether these servers belong to the ensemble
  };
  Kind kind = Kind::kUnreached;
  std::vector<std::size_t> servers{};  ///< indices into EnsembleFacts::servers
  Duration least{};
  Duration most{};
  std::size_t count = 0;
  std::size_t least_count = 0;
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Returns whether such a finding makes the ensemble unfit for locks, or less fit than it should
/// be, until the cause is fixed.
[[nodiscard]] bool ShouldBeFixed(Finding::Kind kind);

/// Returns whether a ZooKeeper of this version, such as "3.4.14", lacks requests that zklock needs:
/// containers and create2 were added in 3.5.
[[nodiscard]] bool IsOldVersion(std::string_view version);

/// Returns the findings that follow from the facts, most important first.
[[nodiscard]] std::vector<Finding> Judge(const EnsembleFacts& facts);

/// Returns whether a server that was asked to continue a session belongs to that session's
/// ensemble: true if it knew the session; otherwise false, or none if the session may have expired
/// since. `since_alive`: the time since the session was last known to exist; none if it never was.
/// `timeout`: the session's.
[[nodiscard]] std::optional<bool> IsSameEnsemble(bool known, std::optional<Duration> since_alive,
                                                 Duration timeout);

/// Returns the shortest timeout that a server has granted: the one that bounds a lock's lease.
[[nodiscard]] std::optional<Duration> ShortestGrant(const EnsembleFacts& facts);

/// How long a command continues to run after all servers stop answering, counted from the moment of
/// the failure.
struct TimeWithoutServers {
  /// The time until the stop signal, once heartbeats have been sent for a while. It is between
  /// these two values, depending on when the last heartbeat was sent.
  Duration least_to_stop{};
  Duration usual_to_stop{};
  /// The longest possible time until the stop signal: a new session proves more than heartbeats do.
  Duration most_to_stop{};
  Duration most_to_end{};  ///< until the lease ends: the command is dead by then
};
/// Computes these times by the rules of Lease, for the session timeout `timeout` and heartbeats
/// that are answered after `round_trip`.
[[nodiscard]] TimeWithoutServers HowLongWithoutServers(Duration timeout, Duration kill_after,
                                                       Duration round_trip);

}  // namespace zklock::protocol
