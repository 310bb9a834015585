#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lock/data/reserved.h"
#include "lock/data/ticket.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

// How an attempt to acquire a LOCK can end.

namespace zklock::lock {

/// The lock is held: every contender ahead of us is gone, and ours exists, as shown by a later
/// commit or by a lease in hand. The lease suffices to start a command.
struct Acquired {
  Ticket ticket;
};

/// Not acquired because of another contender.
struct Busy {
  enum class Why {
    kTaken,       ///< `try`: not free
    kWaitOver,    ///< the wait is over
    kRemoved,     ///< our contender was deleted: we must leave
    kQueueFull,   ///< the maximum number of contenders already wait
    kSuperseded,  ///< a newer contender supersedes ours
  };
  Why why = Why::kTaken;
  std::string blocker;       ///< the contender in the way; may be empty
  std::string blocker_data;  ///< its data, which anyone may have written: for display only
  std::optional<Reserved> reserved{};  ///< the blocker is this reservation
  bool holds = false;                  ///< the blocker is known to hold the lock
  std::size_t more_hold = 0;           ///< for a semaphore: how many others hold it, if known
};

/// Returns whether a holder with this mode and data holds the lock on our behalf. Anyone may have
/// written the data, so it is only a claim.
using HoldsForUs = std::function<bool(protocol::Mode mode, const std::string& data)>;

/// A contender that already holds the LOCK on our behalf: HoldsForUs accepts it, and the servers
/// confirm that it still exists. Waiting for it would never end.
struct HeldForUs {
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::string path;  ///< its znode, chroot included
  std::int64_t token = 0;
  std::string data{};  ///< a claim: the caller asks the process named in it for proof
};

/// A LOCK that is reserved for our ID (AcquireRequest::reserve).
struct ReservedLock {
  LockName lock;
  std::string path;  ///< of the reservation's znode, chroot included
  Reserved reserved;
  std::vector<std::string> more{};  ///< the paths of its other permits
};

/// No server granted us a session in time.
struct Unreachable {};

/// The LOCK is free, but the servers do not confirm the session quickly enough to start a command
/// (protocol::Lease::AnswerBudget).
struct TooSlow {
  Duration timeout{};                ///< the session's
  Duration answer{};                 ///< how long answers took; 0 if none could be quick enough
  Duration ping_span{};              ///< how often the servers ping each other
  std::optional<Duration> longer{};  ///< a session timeout that would suffice
};

/// The servers refuse a request.
struct Refused {
  std::string operation;  ///< "create a contender in", "list"
  std::string path;       ///< as the user knows it
  zookeeper::Error error = zookeeper::Error::kNoAuth;
  std::string right;       ///< the permission that it needs: "CREATE", "READ", "DELETE"
  std::string right_path;  ///< on this znode, as the user knows it
};

/// The LOCK cannot be used in this way.
struct Unusable {
  enum class Why {
    kShortSessions,     ///< the granted session timeout is below the minimum
    kNumbersUsedUp,     ///< its sequence numbers are used up
    kNobodysContender,  ///< its `child` belongs to no session
    kEphemeral,         ///< it is an ephemeral znode
    kBelowEphemeral,    ///< a znode above it is ephemeral
    kLocalSessions,     ///< the servers grant sessions that cannot own contenders
    kOldServers,        ///< the servers do not know a request that we need
    kRecordUnknown,     ///< `child`, a record of runs, cannot be parsed or is ephemeral
    kHasPermits,        ///< it is a semaphore, and we asked for no permit
    kHasNoPermits,      ///< it is in use without permits, and we asked for one
    kOtherPermits,      ///< it is a semaphore of `permits`, and we asked for another number
    kUnknownPermits,    ///< a zklock holds a permit, but the number of permits is not recorded
    kIncompatible,      ///< `incompatible` cannot see our contender
    /// --reserve: the reservation with our ID has `permits` permits, but we asked to take another
    /// number
    kReservedWithOtherTake,
    /// --reserve: `child` is the reservation with our ID, but it is for `reserved_mode`
    kReservedInOtherMode,
  };
  Why why = Why::kEphemeral;
  std::string child{};
  std::string lock{};  ///< as the user knows it; empty: the caller knows which LOCK
  std::size_t permits = 0;
  std::optional<protocol::IncompatibleContender> incompatible{};
  protocol::Mode reserved_mode = protocol::Mode::kExclusive;
};

/// A hard quota keeps us from creating or writing a znode.
struct QuotaExceeded {
  std::string path;   ///< what could not be created or written, as the user knows it
  std::string limit;  ///< the znode with the quota; empty: unknown, `path` or one above it
};

/// The servers gave an answer that correct servers never give.
struct Defect {
  enum class What {
    kAnswer,     ///< `operation` on `path` was answered with `error`
    kNotListed,  ///< our contender in `path` exists, but is not in the list
    kVanishes,   ///< `path` is deleted every time it is created
  };
  What what = What::kAnswer;
  std::string path;       ///< as the user knows it
  std::string operation;  ///< as in Refused
  zookeeper::Error error = zookeeper::Error::kOther;
};

using AcquireOutcome = std::variant<Acquired, ReservedLock, Busy, HeldForUs, Unreachable, TooSlow,
                                    Refused, Unusable, QuotaExceeded, Defect>;

/// Why an operation failed.
using OperationFailure = std::variant<Unreachable, Refused, QuotaExceeded, Unusable, Defect>;
/// Why a record of runs is unknown or cannot be written. Unusable: it is invalid.
using RecordFailure = std::variant<Unusable, OperationFailure>;

/// Returns the failure of `operation` on `lock` because of an error that the caller does not
/// handle: Refused if we lack the permission `right` on `path`, or on LOCK if `path` is empty;
/// QuotaExceeded for that error; Unusable if the session may not own znodes; otherwise a Defect.
[[nodiscard]] OperationFailure FailureOf(zookeeper::Error error, const std::string& operation,
                                         const LockName& lock, const char* right,
                                         const std::string& path = "");

}  // namespace zklock::lock
