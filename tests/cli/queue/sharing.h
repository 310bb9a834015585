#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/queue/lock_peer.h"
#include "cli/zklock.h"

// Checks that a recipe of another library passes when it shares LOCKs with zklock, run for real.

namespace zklock::test {

/// A peer's recipe, and the zklock that shares a LOCK with it.
struct Pairing {
  std::string recipe;
  Words zklock;
  std::size_t permits = 0;  ///< 0: no semaphore
  bool is_set = false;      ///< of two LOCKs
  bool has_limit = true;    ///< the peer's lock supports a time limit
  bool contends = true;  ///< false: hand-over only, because the peer may sleep for ever in a crowd
  bool has_queue = true;
};

/// New LOCKs for a Pairing.
struct SharedLocks {
  explicit SharedLocks(const Pairing& pairing);
  /// Adds all LOCKs but the first, which goes last when a Child is started.
  [[nodiscard]] Words With(Words words) const;

  std::vector<std::string> locks;
  std::string queue;
};

/// The peer's lock `name` holds while zklock waits, then the other way round.
void CheckHandOver(LockPeer& peer, const std::string& name, const Pairing& pairing);

/// One kind of contender, by a peer's recipe or zklock's arguments, and how many may hold with it.
struct Side {
  std::string recipe;
  Words zklock;
  std::string limit;
};
/// Runs two contenders of each side, again and again, and checks that none meet. The peer's locks
/// get names that begin with `prefix`.
void CheckContention(LockPeer& peer, const std::string& prefix, const std::vector<Side>& sides,
                     const SharedLocks& shared);

/// Hand-over and contention for one pairing after the other.
void CheckPairings(LockPeer& peer, const std::vector<Pairing>& pairings);

/// A recipe of one program.
struct Recipe {
  LockPeer* peer;
  std::string name;
};
/// Queues contenders of zklock and of others, "KIND-N", one after the other, and checks that they
/// get the lock in that order.
void CheckQueue(const Words& zklock, const std::map<std::string, Recipe>& recipes,
                const Words& order);

/// A recipe that a zklock cannot share, and the part of the message that names the remedy.
struct Refusal {
  std::string recipe;
  Words zklock;
  std::string remedy;
};
/// Checks for 78 and the remedy before the command runs, while the peer holds, and that nothing is
/// left behind.
void CheckRefusals(LockPeer& peer, const std::vector<Refusal>& refusals);

}  // namespace zklock::test
