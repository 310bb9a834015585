// A semaphore whose runs take several permits each (zklock-protocol(7), --take).
//
// A run queues in the turnstile. The first one there creates all of its permits in one transaction,
// waits until there are no more permits than PERMITS, and leaves the turnstile. It may be killed at
// any step, or lose a permit because someone deletes it; deleting one deletes all.
//
//   EXCLUSION  the commands that run need no more permits than there are
//   KEPT       each run has all of its permits or none
//   WAKING     no run waits forever: spin's own check for invalid end states
//
// Left out: the lease and lost replies (lock.pml), reservations, and Curator, which creates its
// permits one by one: MUTATE_ONE_BY_ONE shows what that can lead to.
//
// MUTATE_... introduces one mistake; spin must find that the property named with it in
// scripts/model is violated. REACHED(...) names states that the sound model must reach.

#ifndef PERMITS
#define PERMITS 4
#endif
#define RUNS 3
#define NEEDS(c) (c == 2 -> 1 : 3)  // how many permits each run takes

#define EXCLUSION 1
#define WAKING 2
#define KEPT 3
#ifndef ONLY
#define ONLY 0
#endif
hidden byte EXCLUSION_HOLDS, KEPT_HOLDS;
#define MUST(property, truth) \
  property##_HOLDS = (ONLY != 0 && ONLY != property) || (truth); \
  assert(property##_HOLDS)

#include "reached.pml"

mtype:state = { kStart, kInTurnstile, kAwaiting, kRunning, kGone };
mtype:state state[RUNS];
byte place[RUNS];  // in the turnstile, from 1; 0: not there
byte last_place;
byte has[RUNS];    // permits on the servers
byte kills = 2;    // and deletions by force, that may still happen

#define TAKEN (has[0] + has[1] + has[2])
#define RUNS_WITH(c) (state[c] == kRunning -> NEEDS(c) : 0)
#define IS_BEFORE(z, c) (place[z] != 0 && place[z] < place[c])
#ifdef MUTATE_NO_TURNSTILE
#define IS_FIRST(c) true
#else
#define IS_FIRST(c) (!IS_BEFORE(0, c) && !IS_BEFORE(1, c) && !IS_BEFORE(2, c))
#endif

inline Check() {
  MUST(EXCLUSION, RUNS_WITH(0) + RUNS_WITH(1) + RUNS_WITH(2) <= PERMITS);
#ifndef MUTATE_ONE_BY_ONE
  MUST(KEPT, (has[0] == 0 || has[0] == NEEDS(0)) && (has[1] == 0 || has[1] == NEEDS(1)) &&
             (has[2] == 0 || has[2] == NEEDS(2)));
#endif
}

inline Join(c) {
  last_place++;
  place[c] = last_place
}

// The session ends: all that belongs to it is deleted at once.
inline End(c) {
  has[c] = 0;
  place[c] = 0;
  state[c] = kGone
}

proctype Run(byte c) {
  do
  :: atomic { state[c] == kStart -> Join(c); state[c] = kInTurnstile }
#ifdef MUTATE_ONE_BY_ONE  // as Curator: through the turnstile once for each permit
  :: atomic { state[c] == kInTurnstile && IS_FIRST(c) ->
       has[c]++; state[c] = kAwaiting; Check() }
  :: atomic { state[c] == kAwaiting && TAKEN <= PERMITS ->
       place[c] = 0;
       if
       :: has[c] < NEEDS(c) -> Join(c); state[c] = kInTurnstile
       :: else -> state[c] = kRunning
       fi;
       Check() }
#else
  :: atomic { state[c] == kInTurnstile && IS_FIRST(c) ->
       has[c] = NEEDS(c); state[c] = kAwaiting;
       REACHED_IF(TAKEN > PERMITS, a_run_awaits_permits);
       Check() }
#ifdef MUTATE_RUNS_COUNTED  // not their permits
  :: atomic { state[c] == kAwaiting && (has[0] > 0) + (has[1] > 0) + (has[2] > 0) <= PERMITS ->
#else
  :: atomic { state[c] == kAwaiting && TAKEN <= PERMITS ->
#endif
       place[c] = 0; state[c] = kRunning;
       REACHED_IF(TAKEN == PERMITS, all_permits_are_used);
       Check() }
#endif
  :: atomic { state[c] == kRunning -> End(c); Check() }
  :: atomic { state[c] != kGone && kills > 0 -> kills--; End(c); Check() }
  // Someone deletes one permit by force. The run notices, and ends.
  :: atomic { has[c] > 0 && state[c] == kAwaiting && kills > 0 ->
       kills--;
       REACHED(permits_are_deleted_by_force);
#ifdef MUTATE_ONE_DELETED
       has[c]--;
#else
       has[c] = 0;
#endif
       Check();
       End(c) }
  :: atomic { state[c] == kGone -> break }
  od
}

// Faults need not occur: without this, a fault would end each wait.
active proctype NoMoreFaults() { kills = 0 }

init {
  atomic {
    state[0] = kStart; state[1] = kStart; state[2] = kStart;
    run Run(0); run Run(1); run Run(2)
  }
}
