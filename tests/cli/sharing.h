#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/lock_peer.h"
#include "cli/zklock.h"

// What every recipe of another library has to show beside zklock, run for real.

namespace zklock::test {

Words operator+(Words words, const Words& more);

/// A recipe of a peer's, and the zklock that shares a LOCK with it.
struct Pairing {
  std::string recipe;
  Words zklock;
  std::size_t permits = 0;  ///< 0: no semaphore
  bool is_set = false;      ///< of two LOCKs
  bool has_limit = true;    ///< the peer's lock can give up after a time
  bool contends = true;  ///< false: handed over only, since the peer may sleep for ever in a crowd
  bool has_queue = true;
};

/// A Pairing's LOCKs, new.
struct Place {
  explicit Place(const Pairing& pairing);
  /// With all LOCKs but the first, which comes last where a Child is started.
  [[nodiscard]] Words With(Words words) const;

  std::vector<std::string> locks;
  std::string queue;
};

/// The peer's lock `name` holds and zklock waits for it, then the other way round.
void CheckHandOver(LockPeer& peer, const std::string& name, const Pairing& pairing);

/// Who contends, by a peer's recipe or zklock's words, and how many may visit beside it.
struct Side {
  std::string recipe;
  Words zklock;
  std::string limit;
};
/// Two of each, again and again, never together. The peer's locks get names that begin with
/// `prefix`.
void CheckContention(LockPeer& peer, const std::string& prefix, const std::vector<Side>& sides,
                     const Place& place);

/// Hand-over and contention, one pairing after the other.
void CheckPairings(LockPeer& peer, const std::vector<Pairing>& pairings);

/// One of a program's.
struct Recipe {
  LockPeer* peer;
  std::string name;
};
/// Contenders come one after the other, "KIND-N", zklock's and others', and get the lock so.
void CheckQueue(const Words& zklock, const std::map<std::string, Recipe>& recipes,
                const Words& order);

/// A recipe that a zklock cannot share, and the words of the message that mend it.
struct Refusal {
  std::string recipe;
  Words zklock;
  std::string remedy;
};
/// 78 with the remedy, before the command runs, while the peer holds; and nothing is left behind.
void CheckRefusals(LockPeer& peer, const std::vector<Refusal>& refusals);

}  // namespace zklock::test
