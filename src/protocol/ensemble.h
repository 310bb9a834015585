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

// Whether the servers are fit for locks: what was measured of them, and what follows from it.
// Pure, like the rest of this folder.

namespace zklock::protocol {

/// Several measurements of one time.
struct Spread {
  Duration median{};
  Duration worst{};
  std::size_t count = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};
/// None without a measurement.
[[nodiscard]] std::optional<Spread> SpreadOf(std::vector<Duration> times);

/// A clock compared with this host's.
struct ClockOffset {
  Duration offset{};       ///< negative: it is behind
  Duration uncertainty{};  ///< the true value is at most this far from `offset`
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};
/// The offset of a clock that showed `stamp` (since 1970, cut to whole milliseconds) at some moment
/// between a request and its answer, which arrived at `received` by this host's clock.
[[nodiscard]] ClockOffset OffsetOf(std::chrono::milliseconds stamp, Duration received,
                                   Duration round_trip);

/// What a server says about itself.
enum class ServerRole {
  kUnknown,
  kLeader,
  kFollower,
  kObserver,
  kStandalone,
  kReadOnly,    ///< it has no quorum, and serves reads only
  kNotServing,  ///< it has no quorum
};

/// What became of a four-letter word.
enum class WordEnd {
  kNotAsked,  ///< or there was no time for the answer
  kAnswered,
  kClosed,    ///< the server's whitelist does not have it
  kUnusable,  ///< no answer, or one that is not ZooKeeper's
};

/// One address of a server.
struct ServerFacts {
  std::string name;      ///< as the user wrote it
  bool reached = false;  ///< it gave a session
  ServerRole role = ServerRole::kUnknown;
  bool is_old = false;      ///< see IsOldVersion()
  std::optional<int> id{};  ///< its number in the ensemble, by the session that it created
  std::optional<Spread> connect{};
  std::optional<Spread> commit{};
  std::optional<Duration> granted{};   ///< the session timeout
  std::optional<ClockOffset> clock{};  ///< of the server that stamps its transactions: the leader
  std::optional<std::uint64_t> connections{};       ///< of this host
  std::optional<std::uint64_t> connection_limit{};  ///< for one host; 0: no limit
  WordEnd srvr = WordEnd::kNotAsked;
  WordEnd conf = WordEnd::kNotAsked;
  WordEnd cons = WordEnd::kNotAsked;
  /// Whether it knows a session that the first reached server created; none: not tried.
  std::optional<bool> same_ensemble{};
};

/// The servers that the ensemble consists of, as its configuration says.
struct Members {
  std::set<int> voters;
  std::set<int> observers;
  bool weighted = false;      ///< by groups or weights: a majority is not of servers
  std::uint64_t version = 0;  ///< grows with each change of the configuration
  friend bool operator==(const Members&, const Members&) = default;
};

struct EnsembleFacts {
  std::vector<ServerFacts> servers;
  std::optional<Members> members{};  ///< none: not known, or a standalone server
  Duration asked{};                  ///< the session timeout
  bool lacks_chroot = false;
};

/// One conclusion.
struct Finding {
  enum class Kind {
    // What should be fixed: see ShouldBeFixed().
    kUnreached,
    kOldVersion,
    kOtherEnsemble,    ///< the session is unknown to it
    kNotMember,        ///< it serves the ensemble, but the configuration does not have it
    kSameServer,       ///< several names of the list lead to one server
    kNoQuorum,         ///< read-only, or not serving
    kDifferentGrants,  ///< session timeouts from `least` to `most`
    kUselessGrant,     ///< a timeout, `least`, with which zklock refuses to lock
    kTooSlow,          ///< a commit took `most`, and heartbeats are due each `least`
    kEvenMembers,      ///< `count` servers vote
    kClockOff,         ///< the leader's, by `most` at least
    kFewConnectionsLeft,
    kNoChroot,  ///< the znode that all LOCKs would be below does not exist
    // What is worth knowing.
    kSlow,             ///< as kTooSlow, but more than half of the heartbeats' period
    kShortGrant,       ///< a change of leader may last longer than `least`
    kGrantBelowAsked,  ///< `least` was granted where `most` was asked for
    kEvenList,         ///< `count` servers, and it is not known which vote
    kSingleServer,
    kPartialList,       ///< the list has `least_count` of `count` members
    kUnreachedAddress,  ///< another address of that name is reached
    kClockUnknown,
    kWordsClosed,
    kWordsUnusable,
    kNotCompared,  ///< it was not found out whether they are of one ensemble
  };
  Kind kind = Kind::kUnreached;
  std::vector<std::size_t> servers{};  ///< which ones, by their place in the facts
  Duration least{};
  Duration most{};
  std::size_t count = 0;
  std::size_t least_count = 0;
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Whether the ensemble is not fit for locks, or less fit than it should be, until it is fixed.
[[nodiscard]] bool ShouldBeFixed(Finding::Kind kind);

/// Whether a ZooKeeper of this version, "3.4.14", lacks requests that zklock needs: containers and
/// create2 came with 3.5.
[[nodiscard]] bool IsOldVersion(std::string_view version);

/// What follows from the facts, the most important first.
[[nodiscard]] std::vector<Finding> Judge(const EnsembleFacts& facts);

/// Whether a server belongs to the ensemble of a session that it was asked to continue: if it knew
/// the session, yes; if not, no, unless the session may have ended meanwhile. `since_alive`: the
/// time since the session was last known to exist; none: it never was. `timeout`: of the session.
[[nodiscard]] std::optional<bool> IsSameEnsemble(bool known, std::optional<Duration> since_alive,
                                                 Duration timeout);

/// The shortest timeout that a server has granted: the one that a lock has to live with.
[[nodiscard]] std::optional<Duration> ShortestGrant(const EnsembleFacts& facts);

/// How long a command runs on when no server answers any more, from the moment of the failure.
struct TimeWithoutServers {
  /// Until the stop signal, once heartbeats have been sent for a while: between these two,
  /// depending on when the last one was sent.
  Duration least_to_stop{};
  Duration usual_to_stop{};
  /// The most at any time: a new session proves more than heartbeats do.
  Duration most_to_stop{};
  Duration most_to_end{};  ///< until the lease ends: by then the command is dead
};
/// By the rules of Lease, for a session timeout `timeout` and heartbeats that are answered after
/// `round_trip`.
[[nodiscard]] TimeWithoutServers HowLongWithoutServers(Duration timeout, Duration kill_after,
                                                       Duration round_trip);

}  // namespace zklock::protocol
