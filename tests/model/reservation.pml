// A model of reservations for spin, checked by `scripts/model`. It follows MakeReservations and
// ReservationExpiry in src/lock/, and those parts of Acquire that meet them: how a waiter
// interprets the deletion of its predecessor, or a predecessor that is persistent.
//
// ELEMENTS
//
//   Run         One run of zklock, with --reserve or without, from its create to its end.
//   Owner       Runs `zklock release --reserve`, on any host, at any time.
//   Clock       The servers' clock, which determines when a reservation has ended.
//   init        The servers: they end the sessions of runs that have crashed.
//
// ABSTRACTIONS
//
//   Queue       Sessions, leases, and servers that lag are the subject of lock.pml. Here all runs
//               see the same state. All of them exclude: readers add nothing to a conversion.
//   Requests    The conversion and the deletion at the end of a reservation travel: they are done
//               later than sent, or never, and their replies may be lost. A conversion whose
//               connection was lost is done before the sync of the next connection, or never.
//   Time        The clock ticks at any moment. A reservation with an end lasts for one tick.
//   Patience    With PATIENT no run gives up, no session is cut off, and nobody releases: an overdue
//               reservation is then removed only if a waiter deletes it.
//   Rights      With PATIENT some runs lack permission to delete a reservation, or belong to
//               another program. A refused delete is not repeated, and the delays between the
//               deletes of several waiters are left out.
//   Forgery     A client with permission only to create children puts one after the others that
//               looks like a reservation with an end. It has never held the lock.
//   Record      `record` names the reservation that a waiter has ended. It settles nothing.
//   Left out    Reservations that an ID finds instead of making them, which change nothing.
//
// PROPERTIES
//
//   EXCLUSION   The lock is granted only when nobody runs under it, and no reservation of it
//               is in force.
//   KEPT        A reservation is in force until its end by the servers' clock, or until its release.
//               What a run says of its reservation is true: made or not made.
//   TOKEN       Tokens grow from each grant to the next.
//   GHOST       When all have ended, nothing is left in the queue.
//   FREED       When nothing more can happen, no run that can delete an overdue reservation waits
//               after one.
//   WAKING      No run stops while it waits for a znode that is gone.

#ifndef RUNS
#define RUNS 3
#endif
#define NONE 15

#define EXCLUSION 1
#define KEPT 2
#define TOKEN 3
#define GHOST 4
#define WAKING 5
#define FREED 6
#ifndef ONLY
#define ONLY 0
#endif
hidden byte EXCLUSION_HOLDS, KEPT_HOLDS, TOKEN_HOLDS, GHOST_HOLDS, FREED_HOLDS;
#define MUST(property, truth) \
  property##_HOLDS = (ONLY != 0 && ONLY != property) || (truth); \
  assert(property##_HOLDS)

#include "reached.pml"

mtype:kind = { kNothing, kEphemeral, kPersistent };

// The znode of each run, in queue order: the runs arrive in the order of their numbers.
typedef Znode {
  mtype:kind kind;
  byte czxid;
  byte token;   // of a reservation: in its data
  bool forged;  // it has never held the lock
  bool ends;    // of a reservation: it has an end,
  byte until;   // at this time
  byte events;  // deletions that its watcher has not seen: a conversion is one
}
Znode znode[RUNS];

mtype:state = { kStart, kListing, kWatching, kWaiting, kSent, kLost, kRunning, kExpiring, kMade,
                kCrashed, kGone };

typedef Client {
  mtype:state state;
  bool reserves;
  bool alive;        // the session
  bool sent;         // the conversion is in transit
  bool done;         // it was done, and the reply is in transit
  byte predecessor;  // the index of its znode
  bool may_delete;   // a reservation
  byte seen;         // reservations that its list showed, as bits
  byte refused;      // those that it lacks permission to delete, likewise
  byte expires;      // the reservation whose deletion is in transit, or NONE
}
Client run_[RUNS];

byte zxid = 1;
byte clock;
byte joined;      // how many have joined
byte last_token;  // of the last grant
byte record = NONE;
#define LAST_TICK 2

// Used within one step only.
hidden byte z;

#define STANDS(n) (znode[n].kind == kPersistent)
#define USED(n) ((STANDS(n) && !znode[n].forged) || run_[n].state == kRunning)
#define OVER(n) (znode[n].ends && clock >= znode[n].until)
#define BIT(n) (1 << (n))
// The reservation z is before n, and n knows that z ends. With PATIENT, n knows this of all that
// its list showed; otherwise only of its predecessor, which keeps the search short.
#if defined(PATIENT) && !defined(MUTATE_PREDECESSORS_END_ONLY)
#define EXPECTS_END(n, z) \
  ((z) < (n) && STANDS(z) && znode[z].ends && (run_[n].seen & BIT(z)) && \
   (run_[n].predecessor != z || znode[z].events == 0))
#else
#define EXPECTS_END(n, z) \
  (STANDS(z) && znode[z].ends && run_[n].predecessor == z && znode[z].events == 0)
#endif
#define WAITS_FREELY(n) \
  (run_[n].state == kWaiting && run_[n].alive && run_[n].expires == NONE)

// The lock is granted to n, by its token.
inline Grant(n, token_) {
  z = 0;
  do
  :: z < RUNS -> MUST(EXCLUSION, z == n || !USED(z)); z++
  :: else -> break
  od;
  z = 0;
  MUST(TOKEN, token_ > last_token);
  last_token = token_
}

inline Delete(n) {
  zxid++;
  znode[n].kind = kNothing;
  znode[n].ends = false;
  znode[n].forged = false;
  znode[n].until = 0;
  znode[n].events = 1
}

inline Forge(n) {
  joined++;
  zxid++;
  znode[n].kind = kPersistent;
  znode[n].czxid = zxid;
  znode[n].forged = true;
  znode[n].ends = true;
  znode[n].until = clock + 1;
  run_[n].state = kGone
}

// The create, which determines the place in the queue.
inline Join(n) {
  joined++;
  zxid++;
  znode[n].kind = kEphemeral;
  znode[n].czxid = zxid;
  znode[n].token = zxid;
  run_[n].alive = true;
  run_[n].state = kListing;
  if
  :: run_[n].reserves = true
  :: run_[n].reserves = false
  fi;
  run_[n].may_delete = true;
#ifdef PATIENT
  if
  :: run_[n].may_delete = false
  :: true
  fi
#endif
}

// Decide(): the nearest znode before our own.
inline List(n) {
  run_[n].predecessor = NONE;
  run_[n].seen = 0;
  z = 0;
  do
  :: z < n ->
    if
    :: znode[z].kind != kNothing -> run_[n].predecessor = z
    :: else
    fi;
#ifdef PATIENT
    if
    :: STANDS(z) -> run_[n].seen = run_[n].seen | BIT(z)
    :: else
    fi;
#endif
    z++
  :: else -> break
  od;
  z = 0;
  if
  :: run_[n].predecessor != NONE -> run_[n].state = kWatching
  :: run_[n].predecessor == NONE -> Hold(n)
  fi
}

// The waiter forgets what it knew.
inline Forget(n) {
  run_[n].predecessor = NONE;
  run_[n].seen = 0;
  run_[n].expires = NONE
}

inline ListAgain(n) {
  run_[n].state = kListing;
  Forget(n)
}

// It is our turn.
inline Hold(n) {
  if
  :: run_[n].reserves -> run_[n].sent = true; run_[n].state = kSent
  :: !run_[n].reserves -> Grant(n, znode[n].czxid); run_[n].state = kRunning
  fi;
  Forget(n);
  run_[n].refused = 0
}

// The read of the predecessor, with a watch.
inline Watch(n) {
  if
  :: znode[run_[n].predecessor].kind == kNothing -> run_[n].state = kListing
  :: else ->
    REACHED_IF(STANDS(run_[n].predecessor), a_wait_for_a_reservation);
    znode[run_[n].predecessor].events = 0;
    run_[n].state = kWaiting
  fi
}

// OnPredecessorGone(): the znode has been deleted, for good or by a conversion.
inline OnDeleted(n) {
  REACHED_IF(STANDS(run_[n].predecessor), a_conversion_looks_like_a_deletion);
#ifdef MUTATE_CONVERSION_IS_DELETION
  if
  :: run_[n].predecessor == 0 -> Hold(n)
  :: else -> run_[n].state = kListing
  fi
#else
  run_[n].state = kListing;
#ifdef MUTATE_RESERVATIONS_RECORD_SETTLES
  if
  :: record == run_[n].predecessor -> Hold(n)
  :: else
  fi
#endif
#endif
}

// The servers do the transaction, if the contender still exists.
inline Convert(n) {
  run_[n].sent = false;
  if
  :: znode[n].kind == kEphemeral ->
#ifdef MUTATE_TOKEN_OF_NEW_ZNODE
    Grant(n, zxid + 1);
#else
    Grant(n, znode[n].token);
#endif
    zxid++;
    znode[n].kind = kPersistent;
    znode[n].czxid = zxid;
    znode[n].events = 1;
    run_[n].done = true;
    if
    :: znode[n].ends = true; znode[n].until = clock + 1
    :: znode[n].ends = false
    fi
  :: else
  fi
}

#ifdef MUTATE_TWO_STEPS
// The delete, and later the create.
inline ConvertFirst(n) {
  run_[n].sent = false;
  if
  :: znode[n].kind == kEphemeral ->
    znode[n].kind = kNothing;
    znode[n].events = 1;
    run_[n].done = true;
    zxid++
  :: else
  fi
}
inline ConvertSecond(n) {
  run_[n].done = false;
  Grant(n, znode[n].token);
  zxid++;
  znode[n].kind = kPersistent;
  znode[n].czxid = zxid;
  znode[n].events = 1;
  run_[n].state = kMade
}
#endif

// After a lost reply: read our znode, after a sync.
inline ReadOwn(n) {
  run_[n].sent = false;
  run_[n].done = false;
#ifdef MUTATE_CONVERTED_AGAIN  // without the read
  if
  :: znode[n].kind == kEphemeral && run_[n].alive -> run_[n].sent = true; run_[n].state = kSent
  :: else -> NotMade(n)
  fi
#else
  if
  :: STANDS(n) -> REACHED(a_lost_reply_was_a_success); run_[n].state = kMade
  :: znode[n].kind == kEphemeral && run_[n].alive ->
    REACHED(the_conversion_is_sent_again);
    run_[n].sent = true;
    run_[n].state = kSent
  :: znode[n].kind == kEphemeral && !run_[n].alive -> NotMade(n)
  :: znode[n].kind == kNothing -> REACHED(the_contender_was_lost); NotMade(n)
  fi
#endif
}

inline NotMade(n) {
  MUST(KEPT, !STANDS(n));
  run_[n].state = kCrashed  // its session is closed
}

// ReservationExpiry: asks for the servers' time by a write of our own.
inline AskForTime(n, which) {
#ifdef MUTATE_CLIENTS_CLOCK  // it may show any time
  run_[n].expires = which
#else
  if
  :: OVER(which) -> run_[n].expires = which
  :: else -> REACHED(asked_too_early)
  fi
#endif
}

// The deletion arrives. Each name is used only once, and the deletion names the version: it can hit
// nothing else.
inline Expire(n) {
  if
  :: STANDS(run_[n].expires) && !run_[n].may_delete ->
    REACHED(a_deletion_is_refused);
    run_[n].refused = run_[n].refused | BIT(run_[n].expires)
  :: STANDS(run_[n].expires) && run_[n].may_delete ->
    MUST(KEPT, OVER(run_[n].expires));
    REACHED_IF(znode[run_[n].expires].forged, a_waiter_ends_a_forgery);
    REACHED_IF(run_[n].predecessor != run_[n].expires, a_waiter_further_behind_ends_a_reservation);
    REACHED(a_waiter_ends_a_reservation);
    record = run_[n].expires;
    Delete(run_[n].expires)
  :: !STANDS(run_[n].expires) -> REACHED(released_before_the_waiter_ends_it)
  fi;
  // The watch tells of the predecessor's deletion.
  if
  :: !STANDS(run_[n].expires) && run_[n].predecessor != run_[n].expires -> ListAgain(n)
  :: else -> run_[n].expires = NONE
  fi
}

inline Crash(n) {
  REACHED_IF(run_[n].sent, a_crash_while_the_conversion_travels);
  REACHED_IF(run_[n].done, a_crash_before_the_reply);
  run_[n].state = kCrashed;
  Forget(n)
}

proctype Run(byte n) {
#ifdef PATIENT
end_waiting:
#endif
  do
  :: atomic { run_[n].state == kStart && joined == n -> Join(n) }
  :: d_step { run_[n].state == kStart && joined == n && n > 0 -> Forge(n) }
  :: d_step { run_[n].state == kListing && run_[n].alive -> List(n) }
  :: d_step { run_[n].state == kWatching && run_[n].alive -> Watch(n) }
  :: d_step { WAITS_FREELY(n) && znode[run_[n].predecessor].events > 0 -> OnDeleted(n) }
  :: d_step { WAITS_FREELY(n) && EXPECTS_END(n, 0) && !(run_[n].refused & BIT(0)) ->
      AskForTime(n, 0) }
  :: d_step { WAITS_FREELY(n) && EXPECTS_END(n, 1) && !(run_[n].refused & BIT(1)) ->
      AskForTime(n, 1) }
#if defined(PATIENT) && !defined(MUTATE_NO_LIST_FOR_CONVERSIONS)
  // From time to time: a contender before ours may have been converted.
  :: d_step { WAITS_FREELY(n) && n > 0 && STANDS(0) && !(run_[n].seen & BIT(0)) ->
      ListAgain(n) }
  :: d_step { WAITS_FREELY(n) && n > 1 && STANDS(1) && !(run_[n].seen & BIT(1)) ->
      ListAgain(n) }
#endif
  :: d_step { run_[n].state == kWaiting && run_[n].expires != NONE -> Expire(n) }
  :: atomic { run_[n].state == kRunning ->  // the command ends
      d_step { Delete(n); run_[n].state = kCrashed } }
#ifdef MUTATE_TWO_STEPS
  :: d_step { run_[n].state == kSent && run_[n].sent -> ConvertFirst(n) }
  :: d_step { run_[n].state == kSent && run_[n].done -> ConvertSecond(n) }
#else
  :: atomic { run_[n].state == kSent && run_[n].sent -> Convert(n) }
  :: d_step { run_[n].state == kSent && !run_[n].sent && run_[n].done ->
      run_[n].done = false; run_[n].state = kMade }
  :: d_step { run_[n].state == kSent && !run_[n].sent && !run_[n].done -> ReadOwn(n) }
  // The connection is lost; the conversion may still arrive before the next connection's sync.
  :: run_[n].state == kSent -> run_[n].state = kLost
  :: atomic { run_[n].state == kLost && run_[n].sent && run_[n].alive -> Convert(n) }
  :: d_step { run_[n].state == kLost -> ReadOwn(n) }
#endif
  :: d_step { run_[n].state == kMade ->
      REACHED(a_reservation_is_made);
      run_[n].state = kCrashed }  // the session is closed
#ifndef PATIENT
  // A crash at any moment, also of a command's host.
  :: d_step { run_[n].state != kStart && run_[n].state != kGone && run_[n].state != kCrashed ->
      Crash(n) }
#endif
  // What a crashed run has sent may still arrive, as long as its session lives.
  :: atomic { run_[n].state == kCrashed && run_[n].alive && run_[n].sent -> Convert(n) }
  // The session ends, with its contender: of a run that crashed, or is cut off.
#ifdef PATIENT
  :: d_step { run_[n].alive && run_[n].state == kCrashed ->
#else
  :: d_step { run_[n].alive && run_[n].state != kRunning ->
#endif
      REACHED_IF(run_[n].state == kLost && run_[n].sent, expired_with_a_conversion_in_transit);
      run_[n].alive = false;
      if
      :: znode[n].kind == kEphemeral -> Delete(n)
      :: else
      fi;
      run_[n].sent = false;
      Forget(n);
      run_[n].refused = 0;
      if
      :: run_[n].state == kLost || run_[n].state == kSent || run_[n].state == kMade
      :: else -> run_[n].state = kGone
      fi }
  :: d_step { run_[n].state == kCrashed && !run_[n].alive -> run_[n].state = kGone }
  :: run_[n].state == kGone -> break
  od
}

// Releases any reservation, at any time.
proctype Owner() {
end:
  do
  :: d_step { STANDS(0) -> REACHED(a_release); Delete(0) }
  :: d_step { STANDS(1) -> Delete(1) }
  :: d_step { STANDS(RUNS - 1) -> Delete(RUNS - 1) }
  od
}

proctype Clock() {
end:
  do
  :: clock < LAST_TICK -> clock++
  :: clock == LAST_TICK -> break
  od
}

// When nothing else can happen.
#define STUCK(n, z) (run_[n].state == kWaiting && run_[n].may_delete && STANDS(z) && OVER(z))
proctype Observer() {
  timeout ->
  MUST(FREED, !STUCK(1, 0) && !STUCK(RUNS - 1, 0) && !STUCK(RUNS - 1, 1))
}

#define ENDED(n) (run_[n].state == kGone && !STANDS(n))

init {
  byte n;
  atomic {
    for (n : 0 .. RUNS - 1) {
      znode[n].kind = kNothing;
      run_[n].state = kStart;
      run_[n].predecessor = NONE;
      run_[n].expires = NONE
    }
    for (n : 0 .. RUNS - 1) { run Run(n) }
#ifdef PATIENT
    run Observer();
#else
    run Owner();
#endif
    run Clock();
    n = 0
  }
end:
  d_step {
    ENDED(0) && ENDED(RUNS - 1) && ENDED(1) ->
    MUST(GHOST, znode[0].kind == kNothing && znode[RUNS - 1].kind == kNothing &&
                znode[1].kind == kNothing)
  }
end_of_all:
  false
}
