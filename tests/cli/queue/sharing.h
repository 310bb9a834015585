#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/queue/lock_peer.h"
#include "cli/zklock.h"

// Checks for another library's recipe that shares LOCKs with zklock, both run for real.

namespace zklock::test {

/// A peer's recipe, and the zklock that shares a LOCK with it.
struct Pairing {
  std::string recipe;
  Words zklock;
  std::size_t permits = 0;  ///< 0: not a semaphore
  bool is_set = false;      ///< of two LOCKs
  bool has_limit = true;    ///< the peer's lock supports a time limit
  bool contends = true;  ///< false: only hand-over, as the peer may sleep forever under contention
  bool has_queue = true;
};

/// New LOCKs for a Pairing.
struct SharedLocks {
  explicit SharedLocks(const Pairing& pairing);
  /// Appends all LOCKs except the first: the functions that start a Child append that one.
  [[nodiscard]] Words With(Words words) const;

  std::vector<std::string> locks;
  std::string queue;
};

/// Checks that zklock waits while the peer holds its lock `name`, and vice versa.
void CheckHandOver(LockPeer& peer, const std::string& name, const Pairing& pairing);

/// One kind of contender, as a peer's recipe and as zklock's arguments, and how many contenders may
/// hold the lock at the same time.
struct Side {
  std::string recipe;
  Words zklock;
  std::string limit;
};
/// Runs two contenders of each side repeatedly, and checks that none meet. The names of the peer's
/// locks begin with `prefix`.
void CheckContention(LockPeer& peer, const std::string& prefix, const std::vector<Side>& sides,
                     const SharedLocks& shared);

/// Checks hand-over and contention for each pairing in turn.
void CheckPairings(LockPeer& peer, const std::vector<Pairing>& pairings);

/// A recipe in one program.
struct Recipe {
  LockPeer* peer;
  std::string name;
};
/// Queues contenders of zklock and of others, each named "KIND-N", in this order, and checks that
/// they acquire the lock in the same order.
void CheckQueue(const Words& zklock, const std::map<std::string, Recipe>& recipes,
                const Words& order);

/// A recipe that a zklock cannot share, and the part of the message that names the remedy.
struct Refusal {
  std::string recipe;
  Words zklock;
  std::string remedy;
};
/// Checks that, while the peer holds the lock, zklock names the remedy and exits with 78 instead of
/// running the command, and that it leaves nothing behind.
void CheckRefusals(LockPeer& peer, const std::vector<Refusal>& refusals);

}  // namespace zklock::test
