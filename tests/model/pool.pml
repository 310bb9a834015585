// A model of pools (`--any`) for spin, checked by `scripts/model`. A pool queues in several LOCKs
// with one contender in each, runs under the first LOCK that it is granted, and withdraws its other
// contenders.
//
// ELEMENTS
//
//   Contender   One run of zklock, from its first create to its end: a pool, a set, or a run of a
//               single LOCK, which reads or excludes.
//   FAULT       What goes wrong, at any moment: a connection is lost, before the create is done or
//               with its reply; the servers expire a session; a run is killed; an operator deletes
//               a contender by force.
//
// ABSTRACTIONS
//
//   Queue       How one contender waits for its turn in one queue is the subject of lock.pml. Here
//               all runs see the same state; a waiter lists the queue and sets its watch in one
//               step; and it lists again after each event. A pool lists its queues at different
//               times.
//   Lease       A command ends before the servers expire its session (lease.pml). A contender that
//               a list shows to be first may hold at once, with a lease in hand, or after a
//               heartbeat.
//   Arguments   A pool takes any LOCK that it may hold, not the earliest of its arguments.
//   Withdrawal  The servers do the transaction that deletes a pool's other contenders at any later
//               moment. If the request is lost, the run sends it again over the next connection,
//               which is the same. The transaction fails as a whole if one of the contenders is
//               gone; then they are deleted one by one.
//   Crash       A killed run's command ends with it (the guard); its session ends later. What the
//               run has sent may still be done before that.
//   Expiry      The servers delete all contenders of a session in one transaction. A waiter begins
//               again with a new session.
//   Left out    The conversion to a reservation, semaphores, `try --any`, which never waits in a
//               queue, and requests to leave one queue, which are like a deletion by force.
//
// BOUNDS
//
//   POOLS       How many pools. Each queues in all LOCKS, two or three, and reads or excludes.
//   SETS        How many sets. Each takes LOCK 0, then LOCK 1, and excludes.
//   SINGLES     How many other runs. Each takes LOCK 0 or 1, and reads or excludes.
//   FAULTS      How many faults; by default any number.
//
// PROPERTIES
//
//   EXCLUSION   Two commands run at once under one LOCK only if both read, or if one's contender
//               was deleted by force. A pool runs one command.
//   WAKING      No run stops before its end: no event is missed, and there is no deadlock.
//   FREED       When no request is in transit, no LOCK is free while a run waits for it: a pool for
//               any of its LOCKs, except those where its contender was deleted by force.
//   GHOST       A run whose requests are answered has no contender in a queue other than those of
//               the LOCKs that it holds or waits for. When all have ended, no contender is left.
//   PLACE       A run loses its place only if its session expires or its contenders are deleted by
//               force: of a pool all, of others one.
//
// With SAME_ID all pools have the same ID, as with `--reserve`: a pool takes a LOCK only if no
// other pool is before it in any queue.
//
// With ONE_BY_ONE a pool creates its contenders in separate requests, in any order; after a lost
// reply it looks for each of them, and creates those that are missing. All properties still hold,
// because a pool holds no LOCK while it waits for another. The transaction is needed for two other
// reasons: after a lost reply a run may rely on finding all its contenders or none (without the
// transaction, MUTATE_ALL_OR_NONE leaves a ghost), and all pools are in the same order in each
// queue (without it, two pools with SAME_ID wait for each other).
//
// MUTATE_... introduces one mistake; spin must find that the property named with it in
// scripts/model is violated. REACHED(...) names states that the sound model must reach.

#ifndef LOCKS
#define LOCKS 2
#endif
#ifndef POOLS
#define POOLS 0
#endif
#ifndef SETS
#define SETS 0
#endif
#ifndef SINGLES
#define SINGLES 0
#endif
#define RUNS (POOLS + SETS + SINGLES)
#define IS_POOL(c) ((c) < POOLS)
#define IS_SET(c) ((c) >= POOLS && (c) < POOLS + SETS)
#define IS_SINGLE(c) ((c) >= POOLS + SETS)
#define FIRST_OF_KIND(c) ((c) == 0 || (c) == POOLS || (c) == POOLS + SETS)
#define ALL_LOCKS ((1 << LOCKS) - 1)

#ifdef FAULTS
byte faults = FAULTS;
#define FAULT (faults > 0)
#define SPEND faults--
#else  // any number
#define FAULT true
#define SPEND skip
#endif

#define EXCLUSION 1
#define WAKING 2
#define FREED 3
#define GHOST 4
#define PLACE 5
#ifndef ONLY
#define ONLY 0
#endif
hidden byte EXCLUSION_HOLDS, FREED_HOLDS, GHOST_HOLDS, PLACE_HOLDS;
#define MUST(property, truth) \
  property##_HOLDS = (ONLY != 0 && ONLY != property) || (truth); \
  assert(property##_HOLDS)

#include "reached.pml"

// ---- state ----------------------------------------------------------------------------------

mtype:state = { kStart, kJoining, kUnsure, kWaiting, kRunning, kReleased, kKilled, kGone };

mtype:withdrawal = { kNone, kSent, kDone, kOneByOne };

// What a waiter knows of a queue: the number of the run that it watches, or
#define LIST 7  // that it must list the queue
#define HOLD 6  // that it is first, and sends a heartbeat

typedef Queue {
  byte members;       // the runs that have a contender, as bits
  byte before[RUNS];  // those before each contender
}
Queue queue[LOCKS];

typedef Client {
  mtype:state state;
  mtype:withdrawal withdrawal;
  bool arrived;
  bool reads;
  bool alive;           // the session
  byte watched[LOCKS];  // what it knows of each queue
  // Sets of LOCKs, as bits:
  unsigned wants : 3;   // a pool needs any of them, others all
  unsigned mine : 3;    // it holds or waits for them
  unsigned held : 3;    // they were granted
  unsigned rest : 3;    // its contender there is being withdrawn
  unsigned forced : 3;  // its contender there was deleted by force
}
Client zk[RUNS];

// Used within one step only. Backtracking does not restore what is hidden and was written in a
// d_step, so `l` and `found`, which are read after one, belong to the state.
hidden byte z;
byte l, found;

#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)
#define EXISTS(c, l) HAS(queue[l].members, c)
#if LOCKS == 2
#define CONTENDERS_OF(c) (EXISTS(c, 0) | EXISTS(c, 1) << 1)
#define BEFORE(c) (queue[0].before[c] | queue[1].before[c])
#define ANY_LOCK(is, c) (is(c, 0) || is(c, 1))
#define CHOOSE_LOCK(is, c) if :: is(c, 0) -> l = 0 :: is(c, 1) -> l = 1 fi
#else
#define CONTENDERS_OF(c) (EXISTS(c, 0) | EXISTS(c, 1) << 1 | EXISTS(c, 2) << 2)
#define BEFORE(c) (queue[0].before[c] | queue[1].before[c] | queue[2].before[c])
#define ANY_LOCK(is, c) (is(c, 0) || is(c, 1) || is(c, 2))
#define CHOOSE_LOCK(is, c) if :: is(c, 0) -> l = 0 :: is(c, 1) -> l = 1 :: is(c, 2) -> l = 2 fi
#endif
#if RUNS == 2
#define EACH(is) (is(0) && is(1))
#elif RUNS == 3
#define EACH(is) (is(0) && is(1) && is(2))
#else
#define EACH(is) (is(0) && is(1) && is(2) && is(3))
#endif
#ifdef SAME_ID
#define MAY_TAKE(c, l) (!IS_POOL(c) || (BEFORE(c) & (BIT(POOLS) - 1)) == 0)
#define MAY_READ(c) IS_SINGLE(c)
#else
#ifdef MUTATE_PREFERS_THE_FIRST  // waits for LOCK 0, though another is granted
#define MAY_TAKE(c, l) (!IS_POOL(c) || l == 0 || !HAS(zk[c].mine, 0))
#else
#define MAY_TAKE(c, l) true
#endif
#define MAY_READ(c) (!IS_SET(c))
#endif
#define BLOCKS(z, c) (!zk[z].reads || !zk[c].reads)

// Sends the transaction that deletes c's contenders in the LOCKs of `set`.
inline Withdraw(c, set) {
  zk[c].rest = zk[c].rest | (set);
  zk[c].mine = zk[c].mine & ~zk[c].rest;
  if
  :: zk[c].rest != 0 -> zk[c].withdrawal = kSent
  :: else
  fi
}

// ---- the servers ----------------------------------------------------------------------------

inline Create(c, l) {
  MUST(GHOST, !EXISTS(c, l));
  zk[c].mine = zk[c].mine | BIT(l);
  zk[c].forced = zk[c].forced & ~BIT(l);
  queue[l].before[c] = queue[l].members;
  queue[l].members = queue[l].members | BIT(c)
}

// Deletes c's contender in LOCK l, which fires the watches on it.
inline Delete(c, l) {
  queue[l].members = queue[l].members & ~BIT(c);
  queue[l].before[c] = 0;
  z = 0;
  do
  :: z < RUNS ->
    queue[l].before[z] = queue[l].before[z] & ~BIT(c);
    if
#ifdef MUTATE_NO_LIST_AGAIN
    :: zk[z].watched[l] == c -> zk[z].watched[l] = (IS_POOL(z) -> HOLD : LIST)
#else
    :: zk[z].watched[l] == c ->
#ifdef MUTATE_WITHDRAWN_AT_THE_EVENT
      if
      :: IS_POOL(z) -> Withdraw(z, zk[z].mine & ~BIT(l))
      :: else
      fi;
#endif
      zk[z].watched[l] = LIST
#endif
    :: else
    fi;
    z++
  :: else -> break
  od;
  z = 0
}

// Deletes c's contenders in the LOCKs of `set`.
inline DeleteAll(c, set) {
  l = 0;
  do
  :: l < LOCKS ->
    if
    :: HAS(set, l) && EXISTS(c, l) -> Delete(c, l)
    :: else
    fi;
    l++
  :: else -> break
  od;
  l = 0
}

// ---- parts of a step ------------------------------------------------------------------------

inline ListAll(c) {
  l = 0;
  do
  :: l < LOCKS -> zk[c].watched[l] = LIST; l++
  :: else -> break
  od;
  l = 0
}

inline Forget(c) {
  zk[c].mine = 0;
  zk[c].held = 0;
  zk[c].rest = 0;
  zk[c].withdrawal = kNone;
  zk[c].forced = 0;
  ListAll(c)
}

inline EndSession(c) {
  DeleteAll(c, ALL_LOCKS);
  Forget(c);
  zk[c].alive = false;
  zk[c].wants = 0;
  zk[c].reads = false;
  zk[c].state = kGone
}

#define CONFLICT(z, c) \
  (z != c && zk[z].state == kRunning && BLOCKS(z, c) && \
   (zk[z].held & zk[c].held & ~zk[z].forced & ~zk[c].forced) != 0)

inline Run(c) {
  MUST(EXCLUSION, zk[c].state != kRunning);
  z = 0;
  do
  :: z < RUNS ->
    MUST(EXCLUSION, !CONFLICT(z, c));
    REACHED_IF(z != c && IS_POOL(z) && IS_POOL(c) && zk[z].state == kRunning, two_pools_run);
    REACHED_IF(z != c && zk[z].state == kRunning && (zk[z].held & zk[c].held), two_readers_run);
    z++
  :: else -> break
  od;
  z = 0;
  REACHED_IF(IS_POOL(c) && zk[c].forced != 0, a_pool_runs_that_lost_a_contender);
  REACHED_IF(IS_SET(c), a_set_runs);
  zk[c].state = kRunning;
  Withdraw(c, zk[c].mine & ~zk[c].held);
#ifndef MUTATE_USES_THE_SECOND
  ListAll(c)
#endif
}

// LOCK l is granted.
inline Hold(c) {
  zk[c].held = zk[c].held | BIT(l);
  if
  :: IS_POOL(c) || zk[c].held == zk[c].wants -> Run(c)
  :: else -> zk[c].state = kStart  // a set joins the next queue
  fi
}

// Our contender in LOCK l is gone: a pool gives up this queue, others end.
inline LoseContender(c) {
  zk[c].mine = zk[c].mine & ~BIT(l);
  zk[c].watched[l] = LIST;
  if
  :: IS_POOL(c) && zk[c].mine != 0 -> REACHED(a_pool_gives_up_one_queue)
  :: else ->
    MUST(PLACE, (IS_POOL(c) -> zk[c].forced == zk[c].wants : HAS(zk[c].forced, l)));
    REACHED_IF(IS_POOL(c), a_pool_loses_all_contenders);
    EndSession(c)
  fi
}

// Sets `found` to the nearest contender before ours that blocks it, or to RUNS.
inline FindPredecessor(c) {
  found = RUNS;
  z = 0;
  do
  :: z < RUNS ->
    if
    :: HAS(queue[l].before[c], z) && BLOCKS(z, c) &&
       (found == RUNS || HAS(queue[l].before[z], found)) -> found = z
    :: else
    fi;
    z++
  :: else -> break
  od;
  z = 0
}

// ---- steps ----------------------------------------------------------------------------------

// A pool creates all its contenders, others create the next one. The reply is in transit.
#define MISSING(c, l) HAS(zk[c].wants & ~zk[c].mine, l)
inline Join(c) {
  zk[c].state = kJoining;
  if
#ifndef ONE_BY_ONE
  :: IS_POOL(c) ->
    d_step {
      l = 0;
      do
      :: l < LOCKS -> Create(c, l); l++
      :: else -> break
      od;
      l = 0
    }
#else
  :: IS_POOL(c) -> CHOOSE_LOCK(MISSING, c); d_step { Create(c, l); l = 0 }
#endif
  :: !IS_POOL(c) ->
    d_step {
      do
      :: MISSING(c, l) -> break
      :: else -> l++
      od;
      Create(c, l);
      l = 0
    }
  fi
}

// Opens a session, unless there is one.
inline Start(c) {
  if
  :: !zk[c].arrived ->
    zk[c].arrived = true;
    if
    :: IS_POOL(c) -> zk[c].wants = ALL_LOCKS
    :: IS_SET(c) -> zk[c].wants = 3
    :: IS_SINGLE(c) -> zk[c].wants = 1
    :: IS_SINGLE(c) -> zk[c].wants = 2
    fi;
    if
    :: MAY_READ(c) -> zk[c].reads = true
    :: true
    fi
  :: zk[c].arrived && !zk[c].alive -> d_step { Forget(c) }
  :: zk[c].arrived && zk[c].alive
  fi;
  zk[c].alive = true;
  if
  :: Join(c)
  :: FAULT -> SPEND; zk[c].state = kUnsure  // before the create is done
  fi
}

// The reply to the create arrives.
inline OnCreated(c) {
  if
  :: IS_POOL(c) && (zk[c].wants & ~zk[c].mine) != 0 -> zk[c].state = kStart
  :: else -> zk[c].state = kWaiting
  fi
}

// After a lost reply, over a new connection and after a sync: looks for our contenders.
inline Rejoin(c) {
  found = CONTENDERS_OF(c) & ~zk[c].held;
  if
  :: found == 0 -> REACHED(created_again); zk[c].state = kStart
  :: found != 0 ->
    REACHED(adopted);
    zk[c].mine = zk[c].held | found;
    zk[c].state = kWaiting;
#ifdef ONE_BY_ONE
    if
    :: IS_POOL(c) && zk[c].mine != zk[c].wants ->
      zk[c].state = kStart;
#ifdef MUTATE_ALL_OR_NONE
      zk[c].mine = 0
#endif
    :: else
    fi
#else
    // If only some are found, an operator has deleted the others.
    REACHED_IF(IS_POOL(c) && zk[c].mine != zk[c].wants, adopted_in_part);
    assert(!IS_POOL(c) || (zk[c].mine | zk[c].forced) == zk[c].wants)
#endif
  fi;
  found = 0
}

// Lists the queue of LOCK l, and watches the predecessor.
inline List(c) {
  if
  :: !EXISTS(c, l) -> d_step { LoseContender(c) }
  :: EXISTS(c, l) ->
    d_step { FindPredecessor(c) };
    if
    :: found < RUNS ->
      REACHED_IF(IS_SET(c) && zk[c].held != 0 && IS_POOL(found), a_set_waits_for_a_pool);
      REACHED_IF(IS_POOL(c) && IS_SET(found), a_pool_waits_for_a_set);
      REACHED_IF(HAS(zk[found].rest, l), a_wait_for_a_withdrawal);
      zk[c].watched[l] = found
    :: found == RUNS -> d_step { found = 0; Hold(c) }  // with a lease in hand
    :: found == RUNS ->
      zk[c].watched[l] = HOLD;
#ifdef MUTATE_WITHDRAWN_EARLY
      d_step { Withdraw(c, zk[c].mine & ~BIT(l)) }
#endif
    fi
  fi;
  found = 0;
  l = 0
}

// The heartbeat, which checks our contenders, also those of the LOCKs that a set holds.
inline Prove(c) {
  if
  :: zk[c].held != 0 && (zk[c].held & ~CONTENDERS_OF(c)) != 0 ->
    MUST(PLACE, (zk[c].held & zk[c].forced) != 0);
    REACHED(a_set_loses_what_it_holds);
    EndSession(c)
  :: else ->
    if
    :: EXISTS(c, l) -> Hold(c)
    :: else -> REACHED(removed_before_the_heartbeat); LoseContender(c)
    fi
  fi;
  l = 0
}

// The servers do the transaction, or one of the deletions.
inline OnWithdrawal(c) {
  l = 0;
  do
  :: l < LOCKS && HAS(zk[c].rest, l) && EXISTS(c, l) ->
    FindPredecessor(c);
    REACHED_IF(found == RUNS, granted_before_the_withdrawal);
    found = 0;
    l++
  :: l < LOCKS && !(HAS(zk[c].rest, l) && EXISTS(c, l)) -> l++
  :: else -> break
  od;
  l = 0;
  if
  :: zk[c].withdrawal == kSent && (zk[c].rest & ~CONTENDERS_OF(c)) == 0 ->
    DeleteAll(c, zk[c].rest);
    REACHED_IF(zk[c].state == kKilled, withdrawn_after_a_crash);
    zk[c].withdrawal = kDone
  :: zk[c].withdrawal == kSent && (zk[c].rest & ~CONTENDERS_OF(c)) != 0 ->
    REACHED(the_transaction_fails);
#ifdef MUTATE_FAILURE_IS_THE_END
    zk[c].rest = 0
#else
    zk[c].withdrawal = kOneByOne
#endif
  :: zk[c].withdrawal == kOneByOne ->
    do
    :: HAS(zk[c].rest, l) -> break
    :: else -> l++
    od;
    zk[c].rest = zk[c].rest & ~BIT(l);
    if
    :: EXISTS(c, l) -> REACHED(withdrawn_one_by_one); Delete(c, l)
    :: else
    fi;
    l = 0
  fi;
  if
  :: zk[c].withdrawal == kDone && zk[c].state == kKilled -> zk[c].rest = 0
  :: else
  fi;
  if
  :: zk[c].rest == 0 -> zk[c].withdrawal = kNone
  :: else
  fi
}

inline Disconnect(c) {
  if
  :: zk[c].state == kJoining -> zk[c].state = kUnsure; zk[c].mine = zk[c].held
  :: zk[c].state == kWaiting -> ListAll(c)
  :: else
  fi;
  if
#ifdef MUTATE_NOT_REPEATED
  :: zk[c].withdrawal != kNone -> zk[c].withdrawal = kNone; zk[c].rest = 0
#else
  :: zk[c].withdrawal != kNone ->
    REACHED_IF(zk[c].withdrawal == kDone, the_withdrawals_reply_is_lost);
    zk[c].withdrawal = kSent
#endif
  :: else
  fi
}

// The command ends: its contenders are deleted, then the session is closed.
inline Release(c) {
  if
  :: zk[c].rest != 0 ->
    REACHED(released_before_the_withdrawal);
    DeleteAll(c, zk[c].held);
    zk[c].mine = 0;
    zk[c].held = 0;
    zk[c].state = kReleased
  :: else -> EndSession(c)
  fi
}

inline Expire(c) {
  REACHED_IF(IS_POOL(c) && zk[c].state == kWaiting, a_waiting_pool_expires);
  if
  :: zk[c].state == kRunning || zk[c].state == kReleased -> EndSession(c)
  :: else -> DeleteAll(c, ALL_LOCKS); zk[c].alive = false
  fi
}

inline Kill(c) {
  REACHED_IF(zk[c].withdrawal == kSent, killed_before_the_withdrawal);
  zk[c].state = kKilled;
  zk[c].mine = 0;
  zk[c].held = 0;
  ListAll(c);
  if
  :: zk[c].withdrawal == kDone -> zk[c].rest = 0; zk[c].withdrawal = kNone
  :: else
  fi
}

inline RemoveByForce(c) {
  zk[c].forced = zk[c].forced | BIT(l);
  Delete(c, l);
  if
  :: zk[c].watched[l] < HOLD -> zk[c].watched[l] = LIST  // it also watches its own contender
  :: else
  fi;
  l = 0
}

// ---- what holds after each step -------------------------------------------------------------

// No request of c is in transit, and no event is about to reach it.
#define AT_REST(c) \
  (zk[c].state == kGone || (zk[c].state == kStart && !zk[c].arrived) || \
   (zk[c].state == kRunning && zk[c].withdrawal == kNone) || \
   (zk[c].state == kWaiting && zk[c].alive && !ANY_LOCK(EXPECTS_REPLY, c)))
#define EXPECTS_REPLY(c, l) (HAS(zk[c].mine, l) && !HAS(zk[c].held, l) && zk[c].watched[l] >= HOLD)
#define WAITS_FOR(c) \
  (zk[c].state != kWaiting -> 0 : \
   ((IS_POOL(c) -> zk[c].wants : zk[c].mine & ~zk[c].held) & ~zk[c].forced))
#define IS_GONE(c) (zk[c].state == kGone)

inline CheckState() {
  z = 0;
  do
  :: z < RUNS ->
    MUST(GHOST, (zk[z].state != kRunning && zk[z].state != kWaiting && zk[z].state != kGone) ||
                (CONTENDERS_OF(z) & ~zk[z].mine & ~zk[z].rest) == 0);
    found = found | zk[z].held;
    z++
  :: else -> break
  od;
  z = 0;
  if
  :: EACH(AT_REST) ->
    do
    :: z < RUNS -> MUST(FREED, (WAITS_FOR(z) & ~found) == 0); z++
    :: else -> break
    od;
    z = 0
  :: else
  fi;
  found = 0
}

#define LISTS(c, l) \
  (HAS(zk[c].mine & ~zk[c].held, l) && zk[c].watched[l] == LIST && MAY_TAKE(c, l))
#define PROVES(c, l) (HAS(zk[c].mine & ~zk[c].held, l) && zk[c].watched[l] == HOLD)
#define MAY_BE_GRANTED_MORE(c, l) (HAS(zk[c].rest, l) && zk[c].watched[l] == LIST && EXISTS(c, l))
// Runs of one kind are interchangeable, so they arrive in the order of their numbers.
#define MAY_ARRIVE(c) (FIRST_OF_KIND(c) || zk[c - 1].arrived || zk[c].arrived)

proctype Contender(byte c) {
  do
  :: atomic {
      if
      :: zk[c].state == kStart && MAY_ARRIVE(c) -> Start(c)
      :: zk[c].state == kJoining && zk[c].alive -> OnCreated(c)
      :: zk[c].state == kUnsure && zk[c].alive -> Rejoin(c)
      :: zk[c].state == kWaiting && zk[c].alive && ANY_LOCK(LISTS, c) ->
        CHOOSE_LOCK(LISTS, c);
        List(c)
      :: zk[c].state == kWaiting && zk[c].alive && ANY_LOCK(PROVES, c) ->
        CHOOSE_LOCK(PROVES, c);
        d_step { Prove(c) }
#ifdef MUTATE_USES_THE_SECOND
      :: zk[c].state == kRunning && ANY_LOCK(MAY_BE_GRANTED_MORE, c) ->
        CHOOSE_LOCK(MAY_BE_GRANTED_MORE, c);
        List(c)
#endif
      :: zk[c].withdrawal == kSent || zk[c].withdrawal == kOneByOne -> d_step { OnWithdrawal(c) }
      :: zk[c].withdrawal == kDone -> zk[c].rest = 0; zk[c].withdrawal = kNone
      :: zk[c].state == kRunning -> d_step { Release(c) }
      :: zk[c].state == kReleased || zk[c].state == kKilled -> d_step { EndSession(c) }
      :: zk[c].arrived && !zk[c].alive && zk[c].state != kStart && zk[c].state != kGone ->
        zk[c].state = kStart

      :: FAULT && (zk[c].state == kJoining || zk[c].state == kWaiting ||
                   zk[c].withdrawal != kNone) && zk[c].state != kKilled ->
        SPEND;
        d_step { Disconnect(c) }
      :: FAULT && zk[c].alive && zk[c].state != kKilled -> SPEND; d_step { Expire(c) }
      :: FAULT && zk[c].alive && zk[c].state != kKilled -> SPEND; d_step { Kill(c) }
      :: FAULT && ANY_LOCK(EXISTS, c) ->
        SPEND;
        CHOOSE_LOCK(EXISTS, c);
        d_step { RemoveByForce(c) }
      fi;
      d_step { CheckState() }
    }
  :: zk[c].state == kGone -> break
  od;
end:
  false
}

init {
  byte n;
  atomic {
    for (n : 0 .. RUNS - 1) {
      zk[n].state = kStart;
      zk[n].withdrawal = kNone;
      d_step { ListAll(n) }
    }
    for (n : 0 .. RUNS - 1) { run Contender(n) }
    n = 0
  }
end:
  d_step {
    EACH(IS_GONE) ->
    do
    :: l < LOCKS -> MUST(GHOST, queue[l].members == 0); l++
    :: else -> break
    od;
    l = 0
  }
end_of_all:
  false
}
