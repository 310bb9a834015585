// A model of the queue and the lock for spin, checked by `scripts/model`. It follows the parts of
// lock::Acquire (src/lock/acquire/acquire.h), and what others can observe of src/lock/hold/hold.cc
// and src/commands/run/run.cc (protocol, sections 3, 4 and 6). How long a lease is valid is the
// subject of lease.pml; here it is assumed.
//
// ELEMENTS
//
//   Contender   One run of zklock: Acquire, Hold, the release. Its steps are named after functions
//               of Acquire's parts; Run() begins the hold and the command, Release() belongs to the
//               command file.
//   init        The servers: a leader, which commits, and one follower, which applies the commits
//               in order, up to LAG of them late, and answers reads from its own state.
//   FAULT       Everything that goes wrong, at any moment: a connection is lost, before the create
//               is done or with its reply; the servers expire a session; a lease ends before the
//               reply that would have renewed it is read; a contender is killed or gives up its
//               wait; an operator deletes a contender by force.
//
// ABSTRACTIONS
//
//   Time        There is none. `lease` is what the client knows: by its own clock its lease has not
//               ended. `alive` is what the servers know. The lease promises that the first ends
//               before the second (D before the servers' expiry), and Expire() keeps to it: it ends
//               the lease, and with it the command, in the same step. A holder's heartbeats only
//               keep `lease`, so they are not modelled. Whether a waiter has a lease in hand at its
//               turn depends on its heartbeats and on the time: any waiter may have one, as long as
//               the servers keep its session.
//   Steps       A step handles one reply, together with the requests that the client sends because
//               of it and their effect on the servers: a request that travels for a while is the
//               same as the previous reply being read later. Two requests are two steps if an
//               event between them matters: create and list, list and get with watch, heartbeat
//               and start. Events that no other process can see are not steps: the command's end
//               before the release, a crash before the end of the session.
//   A lost      A request in transit when its connection is lost is done before the sync of the
//   request     session's next connection, or never: the servers refuse requests that a session
//               left behind at another server (ZSESSIONMOVED), and one server keeps the order.
//   Servers     One follower: two that lag differently do not affect each other, and a client that
//               moves between them might as well move between leader and follower.
//   Modes       A contender reads or excludes; exclusive and write are the same. `try` and `--wait`
//               are contenders that may give up at any moment.
//   Record      `record` is what LOCK's data says about the last release: written with the delete
//               of the holder's contender, or not written (foreign data in LOCK, ACLs, a killed
//               holder). A waiter may read it at any moment. With ANOTHER_LIFE, LOCK was created
//               with a record of another life (OF_ANOTHER_LIFE), with a higher number than all.
//   Watches     A server reports the changes in the order in which it applies them. So a waiter
//               whose own contender was deleted by force before its predecessor learns of that
//               first: OWN_FIRST.
//   Left out    The creation of LOCK, incompatible names, unreadable predecessors, used up numbers,
//               refusals; a change of leader, except for its effects on clients: lost connections
//               and stale reads. The guard (section 5): that the command ends with zklock and with
//               the lease is assumed (and `--on-lost warn` is MUTATE_NO_LEASE).
//
// BOUNDS, and why they suffice
//
//   CONTENDERS  Each runs once. A contender watches one other, its predecessor; it can start too
//               early only because of a third one before that: hence three. Two suffice for sessions
//               and servers. Only the mutation that trusts anybody's record needs a fourth.
//   FAULTS      Two contenders: any number. Three: any two; `scripts/model --long` allows three.
//               Every mutation is refuted within these bounds.
//   SESSIONS    Consecutive sessions of a contender: the second can meet what the first has left.
//   LAG         How many commits the follower may be late: enough for the end of a contender, its
//               new one and the end of another.
//
// PROPERTIES
//
//   EXCLUSION   Two commands run at once only if both read, or if one's contender was deleted by
//               force. A contender deleted while it waited never starts its command.
//   WAKING      No run stops before every contender is gone: each has held or given up, or was
//               killed or deleted. With a bounded number of faults there is no cycle either
//               (pan -l), so no fairness need be assumed.
//   GHOST       A contender that waits or starts has no other znode of its session, which would
//               never be deleted; when all are gone, nothing is left.
//   PLACE       A contender leaves as deleted only if it was deleted by force.
//
// MUTATE_... introduces one mistake that other locks have made; spin must find that the property
// named with it in scripts/model is violated. REACHED(...) names states that the sound model must
// reach, so that it does not hold just because nothing happens. Conditions that the code guards
// against and the model shows to be unreachable are plain assert()s: a list that lacks an existing
// contender (kMostMissing), another session's znode with our UUID.

#ifndef CONTENDERS
#define CONTENDERS 3
#endif
#ifndef SESSIONS
#define SESSIONS 2
#endif
#ifndef LAG
#define LAG 3
#endif
#define CREATES 8  // znodes in all, one bit each in a byte; an assertion checks that it is enough

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
#define GHOST 3
#define PLACE 4
#ifndef ONLY
#define ONLY 0
#endif
hidden byte EXCLUSION_HOLDS, GHOST_HOLDS, PLACE_HOLDS;
#define MUST(property, truth) \
  property##_HOLDS = (ONLY != 0 && ONLY != property) || (truth); \
  assert(property##_HOLDS)

#include "reached.pml"

// ---- state ----------------------------------------------------------------------------------

mtype:server = { kNone, kLeader, kFollower };

// Like the states of Acquire, without those that need no waiting; kHolding belongs to Hold,
// kReleased to a mutation.
mtype:state = { kStart, kDisconnected, kJoining, kDeciding, kWaiting, kConfirming, kHolding,
                kReleased, kGone };

// The rest of a step; see Proceed().
mtype:todo = { kNothing, kCreate, kCheck, kDecide, kConfirm, kStartConfirming, kRun,
               kDisconnect, kFinishRemoved, kEndSession };

// A contender's znode is identified by its number, its index in znode[]. Two values name no znode:
#define NONE 15
#define HOLD 14
#define OF_ANOTHER_LIFE 13  // the record of a contender that was never in this queue
#define IS_NUMBER(n) (n < CREATES)

typedef Znode {
  unsigned contender : 2;
  unsigned session : 2;  // ephemeralOwner, together with the contender
  unsigned uuid : 2;
  bool reads;
}
Znode znode[CREATES];
unsigned created : 4;  // how many

// Sets of znodes:
byte leader;    // committed
byte follower;  // applied by the follower
byte dying;     // of sessions already refused, while closeSession is in progress
// Commits that the follower has yet to apply: the number of a created znode, or DELETED + number.
chan lag = [LAG + 4] of { byte };
#define DELETED 16
unsigned victim : 4 = NONE;  // deleted by force
byte before_victim;          // what was in the queue then

unsigned record : 4 = NONE;  // the last holder that released
bool record_excludes;        // that holder was not a reader

typedef Client {
  mtype:state state;
  mtype:server server;  // connected to
  bool reads;           // its mode
  unsigned session : 2;
  unsigned uuid : 2;
  unsigned ticket : 4;  // its contender, if it knows it
  unsigned answer : 4;  // in the reply in transit: the new contender, the predecessor, or HOLD
  bool by_create;       // Proof::kCreate
  bool settled;         // all before us are gone, once the heartbeat is answered
  bool watches;         // the predecessor, on this connection
  bool after_reader;    // the predecessor reads
  unsigned ahead : 4;   // the nearest contender before the predecessor, NONE if it is the first
  bool lease;
  bool runs;            // the command
  // Known only to the servers:
  bool alive;           // the session
  unsigned place : 4;   // its newest contender
  bool barred;          // deleted by force while another was before it
}
Client zk[CONTENDERS];

// Used within one step only.
hidden byte z, entry, view, found;
hidden byte todo = kNothing, next = kNothing;
hidden byte catch_up;

#define HAS(set, z) (((set) >> (z)) & 1)
#define VIEW(c) (zk[c].server == kLeader -> leader : follower)
#define OF_SESSION(z, c) (znode[z].contender == c && znode[z].session == zk[c].session)
#define OF_UUID(z, c) (znode[z].contender == c && znode[z].uuid == zk[c].uuid)
#define IS_VICTIM(c) (zk[c].place != NONE && zk[c].place == victim)
#define BLOCKS(z, c) (!znode[z].reads || !zk[c].reads)
// The session has ended: the leader no longer answers, nor does the follower once it has applied
// the end.
#define REFUSED(c) (!zk[c].alive && (zk[c].server == kLeader || !HAS(follower, zk[c].place)))

#define GONE(c) (zk[c].state == kGone)
#define ELSEWHERE(c) (zk[c].server != kFollower)
#if CONTENDERS == 2
#define EACH(is) (is(0) && is(1))
#elif CONTENDERS == 3
#define EACH(is) (is(0) && is(1) && is(2))
#else
#define EACH(is) (is(0) && is(1) && is(2) && is(3))
#endif
#define AT_FOLLOWER (!EACH(ELSEWHERE))
// How far the follower may lag. A new connection begins with a sync or a commit, so it does not
// matter how far its server lagged before: without a client it does not lag. STALE shows that, but
// it does matter if a mutation drops the sync.
#if defined(STALE) || defined(MUTATE_NO_SYNC) || defined(MUTATE_NO_HEARTBEAT_ON_RECONNECT)
#define MOST_LAG LAG
#else
#define MOST_LAG (AT_FOLLOWER -> LAG : 0)
#endif

// ---- the servers ----------------------------------------------------------------------------

inline Apply() {
  lag ? entry;
  if
  :: entry >= DELETED ->
    entry = entry - DELETED;
    follower = follower & ~(1 << entry);
    if
    :: !HAS(leader, entry) ->  // gone everywhere: drop it from the state
      znode[entry].contender = 0;
      znode[entry].session = 0;
      znode[entry].uuid = 0;
      znode[entry].reads = false
    :: else
    fi
  :: else -> follower = follower | (1 << entry)
  fi;
  entry = 0
}

inline Delete(n) {
  leader = leader & ~(1 << n);
  dying = dying & ~(1 << n);
  lag ! DELETED + n
}

inline DeleteOfSession(c) {
  z = 0;
  do
  :: z < created ->
    if
    :: HAS(leader, z) && OF_SESSION(z, c) -> Delete(z)
    :: else
    fi;
    z++
  :: else -> break
  od;
  z = 0
}

inline MarkDying(c) {
  z = 0;
  do
  :: z < created ->
    if
    :: HAS(leader, z) && OF_SESSION(z, c) -> dying = dying | (1 << z)
    :: else
    fi;
    z++
  :: else -> break
  od;
  z = 0
}

// ---- parts of a step ------------------------------------------------------------------------

// Join(): the create is done and its reply is in transit.
inline Create(c) {
  assert(created < CREATES);
  znode[created].contender = c;
  znode[created].session = zk[c].session;
  znode[created].uuid = zk[c].uuid;
  znode[created].reads = zk[c].reads;
  leader = leader | (1 << created);
  lag ! created;
  catch_up = (zk[c].server == kFollower);
  zk[c].place = created;
  zk[c].barred = false;
  zk[c].state = kJoining;
  zk[c].answer = created;
  zk[c].lease = true;
  created++
}

// The committed heartbeat, followed by an action if it succeeds: a list, or the start of the
// command.
inline Check(c, behind) {
  if
  :: !zk[c].alive -> todo = kDisconnect
  :: zk[c].alive && !HAS(leader, zk[c].ticket) -> todo = kFinishRemoved
  :: zk[c].alive && HAS(leader, zk[c].ticket) ->
    catch_up = (zk[c].server == kFollower);
    todo = behind
  fi
}

// Confirm(), after its heartbeat has succeeded.
inline StartConfirming(c) {
  zk[c].state = kConfirming;
  zk[c].answer = NONE;
  zk[c].by_create = false;
  zk[c].lease = true;
  if
  :: zk[c].settled -> zk[c].server = kLeader  // the sender of the reply no longer matters
  :: else
  fi
}

// protocol::Decide(): the nearest lower contender that blocks.
inline FindPredecessor(c) {
  zk[c].answer = HOLD;
  zk[c].ahead = NONE;
  z = 0;
  do
  :: z < created ->
    if
#ifdef MUTATE_LATER_COUNTS  // kazoo 2.8: a reader waits for a later writer
    :: z != zk[c].ticket && (z < zk[c].ticket || zk[c].reads) && HAS(view, z) && BLOCKS(z, c) ->
#else
    :: z < zk[c].ticket && HAS(view, z) && BLOCKS(z, c) ->
#endif
      zk[c].answer = z
    :: else
    fi;
    z++
  :: else -> break
  od;
  z = 0;
  do
  :: IS_NUMBER(zk[c].answer) && z < zk[c].answer ->
    if
    :: HAS(view, z) -> zk[c].ahead = z
    :: else
    fi;
    z++
  :: else -> break
  od;
  z = 0
}

// ListAgain() and Decide(): the content of the list. If all before us are gone, or our own name is
// missing, that stays so, and the client sends its next request at once.
inline Decide(c) {
  view = VIEW(c);
  zk[c].state = kDeciding;
  REACHED_IF(zk[c].server == kFollower && len(lag) > 0, listed_at_a_lagging_server);
  if
  :: REFUSED(c) -> todo = kDisconnect
  :: !REFUSED(c) && !HAS(view, zk[c].ticket) ->
#ifdef MUTATE_MISSING_IS_FIRST
    zk[c].answer = HOLD
#else
    REACHED(own_name_missing);
    Check(c, kNothing);
    assert(todo != kNothing)
#endif
  :: !REFUSED(c) && HAS(view, zk[c].ticket) ->
    FindPredecessor(c);
#ifndef MUTATE_NO_HEARTBEAT
    if
    :: zk[c].answer == HOLD && !zk[c].by_create && !zk[c].lease ->
      zk[c].settled = true;
      todo = kConfirm
    :: else
    fi
#endif
  fi;
  view = 0
}

inline LookForGhosts(c) {
  z = 0;
  do
  :: z < created ->
    MUST(GHOST, !HAS(leader, z) || !OF_SESSION(z, c) || z == zk[c].ticket);
    z++
  :: else -> break
  od;
  z = 0
}

// Acquired: the command starts.
inline Run(c) {
  MUST(EXCLUSION, !zk[c].barred);
  z = 0;
  do
  :: z < CONTENDERS ->
    MUST(EXCLUSION, z == c || !zk[z].runs || (zk[z].reads && zk[c].reads) ||
                    IS_VICTIM(z) || IS_VICTIM(c));
    REACHED_IF(z != c && zk[z].runs && zk[z].reads && zk[c].reads, two_readers_at_once);
    REACHED_IF(z != c && zk[z].runs && IS_VICTIM(z), start_beside_a_removed_holder);
    z++
  :: else -> break
  od;
  LookForGhosts(c);
  REACHED_IF(!zk[c].reads, a_writer_runs);
  REACHED_IF(zk[c].by_create, start_proven_by_the_create);
  REACHED_IF(!zk[c].by_create && zk[c].state == kConfirming, start_proven_by_a_heartbeat);
  REACHED_IF(zk[c].session > 0, start_with_a_second_session);
  zk[c].state = kHolding;
  zk[c].server = kNone;
  zk[c].runs = true;
  zk[c].lease = true;
  zk[c].answer = NONE;
  zk[c].by_create = false;
  zk[c].settled = false
}

// OnDisconnected().
inline Disconnect(c) {
  zk[c].state = kDisconnected;
  zk[c].server = kNone;
#ifndef MUTATE_NO_WATCH_ON_RECONNECT
  zk[c].answer = NONE;
#endif
  zk[c].by_create = false;
  zk[c].settled = false;
  zk[c].watches = false;
  zk[c].after_reader = false;
  zk[c].ahead = NONE;
  zk[c].lease = false
}

// The release, the close of a contender that acquired nothing, or the expiry of one that was
// killed: others only see that the session's znodes are deleted.
inline EndSession(c) {
  if
  :: zk[c].alive -> DeleteOfSession(c)
  :: else
  fi;
  zk[c].state = kGone;
  zk[c].server = kNone;
  zk[c].reads = false;
  zk[c].session = 0;
  zk[c].uuid = 0;
  zk[c].ticket = NONE;
  zk[c].answer = NONE;
  zk[c].by_create = false;
  zk[c].settled = false;
  zk[c].watches = false;
  zk[c].after_reader = false;
  zk[c].ahead = NONE;
  zk[c].lease = false;
  zk[c].runs = false;
  zk[c].alive = false;
  zk[c].place = NONE;
  zk[c].barred = false
}

// Does the rest of a step. The follower answers a commit or sync once it has applied it.
inline Proceed(c) {
  do
  :: len(lag) > (catch_up -> 0 : (todo == kNothing -> MOST_LAG : LAG + 4)) -> Apply()
  :: else ->
    catch_up = false;
    next = todo;
    todo = kNothing;
    if
    :: next == kNothing -> break
    :: next == kCreate -> Create(c)
    :: next == kCheck -> Check(c, kDecide)
    :: next == kDecide -> Decide(c)
    :: next == kConfirm -> Check(c, kStartConfirming)
    :: next == kStartConfirming -> StartConfirming(c)
    :: next == kRun -> Run(c)
    :: next == kDisconnect -> Disconnect(c)
    :: next == kFinishRemoved -> MUST(PLACE, zk[c].ticket == victim); todo = kEndSession
    :: next == kEndSession -> EndSession(c)
    fi
  od;
  next = kNothing
}

// ---- steps ----------------------------------------------------------------------------------

// Opens a new session and runs Join() over it.
inline Start(c) {
  if
  :: zk[c].session == 0 -> zk[c].reads = true
  :: true
  fi;
  zk[c].alive = true;
  if
  :: zk[c].server = kLeader; todo = kCreate
  :: zk[c].server = kFollower; todo = kCreate
  :: FAULT -> SPEND; todo = kDisconnect  // before the create is done
  fi
}

// The create's reply arrives; the list sent with it is done now.
inline OnCreated(c) {
  zk[c].ticket = zk[c].answer;
  zk[c].by_create = true;
  todo = kDecide
}

// OnConfirmed() by the create with which the list was sent.
inline OnListedFirst(c) {
#ifdef MUTATE_NO_HEARTBEAT
  todo = kRun
#else
  if
  :: zk[c].lease ->
    REACHED_IF(!zk[c].by_create, start_by_a_list_and_the_lease_in_hand);
    todo = kRun
  :: else ->
    REACHED_IF(zk[c].by_create, the_create_proves_too_little);
    zk[c].settled = true;
    todo = kConfirm
  fi
#endif
}

// KeepProving(): a waiter reads LOCK's data. If it names the nearest contender before the
// predecessor, the predecessor is the first. The answer arrives in order: the record is in the
// server's state, and the predecessor's deletion is not.
#define READS_RECORD(c) \
  (record != NONE && record_excludes && !HAS(VIEW(c), record) && HAS(VIEW(c), zk[c].answer))
#ifdef MUTATE_STALE_RECORD_COUNTS
#define SHOWS_THE_HOLDER(c) (READS_RECORD(c) && record != OF_ANOTHER_LIFE)
#elif defined(MUTATE_LATER_RECORD_COUNTS)
#define SHOWS_THE_HOLDER(c) (READS_RECORD(c) && record >= zk[c].ahead)
#else
#define SHOWS_THE_HOLDER(c) (READS_RECORD(c) && record == zk[c].ahead)
#endif

#ifdef MUTATE_OLD_LIST_SETTLES  // the list that was read before the predecessor was deleted
#define KNOWS_THE_HOLDER(c) true
#else
#define KNOWS_THE_HOLDER(c) (zk[c].ahead == NONE)
#endif

// Its own contender was deleted by force before its predecessor was deleted.
#define OWN_FIRST(c) (IS_VICTIM(c) && HAS(before_victim, zk[c].answer))

// Whether a lease may be in hand when the predecessor is gone.
#ifdef MUTATE_LEASE_HAS_ENDED
#define LEASE_IN_HAND(c) (!OWN_FIRST(c))
#elif defined(MUTATE_OWN_WATCH_IGNORED)
#define LEASE_IN_HAND(c) (zk[c].alive)
#else
#define LEASE_IN_HAND(c) (zk[c].alive && !OWN_FIRST(c))
#endif

// WatchPredecessor() and OnPredecessor().
inline OnListedBehind(c) {
  zk[c].lease = false;
  zk[c].by_create = false;
  if
  :: REFUSED(c) -> todo = kDisconnect
  :: !REFUSED(c) && HAS(VIEW(c), zk[c].answer) ->
    LookForGhosts(c);
    REACHED_IF(znode[zk[c].answer].contender == c, wait_for_our_own_last_session);
    REACHED_IF(zk[c].reads, a_reader_waits);
    REACHED_IF(znode[zk[c].answer].reads, a_wait_for_a_reader);
    REACHED_IF(record == OF_ANOTHER_LIFE && zk[c].ahead != NONE, a_record_of_another_life_is_read);
    zk[c].state = kWaiting;
    zk[c].watches = true;
#ifndef MUTATE_READER_SETTLES
    zk[c].after_reader = znode[zk[c].answer].reads
#endif
  :: !REFUSED(c) && !HAS(VIEW(c), zk[c].answer) ->
    REACHED(predecessor_gone_before_the_watch);
#ifdef MUTATE_WATCH_BLIND  // exists, or a get whose ZNONODE is ignored
    zk[c].state = kWaiting
#else
    if
    :: LEASE_IN_HAND(c) && HAS(VIEW(c), zk[c].ticket) ->
      zk[c].lease = true;
      todo = (KNOWS_THE_HOLDER(c) -> kRun : kDecide)
    :: true -> todo = kDecide
    fi
#endif
  fi
}

// OnWatch(), OnPredecessorGone(). With a lease in hand, the known holder's deletion is enough by
// itself; otherwise the record or a list is. Neither needs a heartbeat.
inline OnPredecessorGone(c) {
  zk[c].watches = false;
  if
  :: LEASE_IN_HAND(c) ->
    zk[c].lease = true;
    if
    :: KNOWS_THE_HOLDER(c) ->
      REACHED(start_by_the_known_holders_deletion);
      todo = kRun
    :: !KNOWS_THE_HOLDER(c) && !zk[c].after_reader && record == zk[c].answer ->
      REACHED(start_by_the_record_and_the_lease_in_hand);
      zk[c].state = kConfirming;
      zk[c].settled = true;
      zk[c].answer = NONE
    :: !KNOWS_THE_HOLDER(c) && (zk[c].after_reader || record != zk[c].answer) -> todo = kDecide
    fi
  :: true -> ConfirmPredecessorGone(c)
  fi;
  zk[c].after_reader = false;
  zk[c].ahead = NONE
}

// The same without a lease in hand. The known holder's deletion, or the record of an excluding
// holder, which is read together with the heartbeat, is enough without a list: all before it were
// gone when it held the lock.
inline ConfirmPredecessorGone(c) {
#if defined(MUTATE_NO_LIST_AGAIN)
  zk[c].settled = true;
  todo = kConfirm
#else
#if defined(MUTATE_ANY_RECORD_SETTLES)
  zk[c].settled = (!zk[c].after_reader && IS_NUMBER(record));
#else
  zk[c].settled = (zk[c].ahead == NONE || (!zk[c].after_reader && record == zk[c].answer));
#endif
  if
#ifdef MUTATE_RECORD_IS_PROOF
  :: zk[c].settled -> todo = kRun
#else
  :: zk[c].settled -> REACHED(the_record_settles); todo = kConfirm
#endif
  :: !zk[c].settled && !zk[c].after_reader -> REACHED(the_record_settles_nothing); todo = kConfirm
  :: !zk[c].settled && zk[c].after_reader -> todo = kDecide
  fi
#endif
}

inline OnConfirmed(c) {
  if
  :: !zk[c].settled -> zk[c].lease = false; todo = kDecide
#ifdef MUTATE_NO_LEASE_AT_START
  :: zk[c].settled -> todo = kRun
#else
  :: zk[c].settled && zk[c].lease -> todo = kRun
  :: zk[c].settled && !zk[c].lease -> REACHED(the_heartbeat_proves_too_little); todo = kConfirm
#endif
  fi
}

inline PutRecord(c, n) {
  record = n;
  record_excludes = !zk[c].reads
}

// Stop, reap, release, close.
inline Release(c) {
#ifdef MUTATE_RELEASE_EARLY
  d_step { DeleteOfSession(c) };
  zk[c].state = kReleased  // the command is still running
#else
  if
  :: zk[c].alive && HAS(leader, zk[c].ticket) -> PutRecord(c, zk[c].ticket)
  :: true
  fi;
  todo = kEndSession
#endif
}

// The wait ends because of its limit, a signal or a KILL.
inline GiveUp(c) {
  REACHED(gave_up_or_killed);
#ifdef MUTATE_WAITER_RECORDS
  if
  :: zk[c].alive && HAS(leader, zk[c].place) -> PutRecord(c, zk[c].place)
  :: true
  fi;
#endif
  todo = kEndSession
}

// FindLostCreate() in a list answered from `set`. found: our contender, or NONE.
inline FindByUuid(c, set) {
  found = NONE;
  z = 0;
  do
  :: z < CREATES && HAS(set, z) && OF_UUID(z, c) -> found = z; break
  :: z < CREATES && !(HAS(set, z) && OF_UUID(z, c)) -> z++
  :: else -> break
  od;
  z = 0
}

// OnConnected(false).
inline Rejoin(c) {
  if
  :: zk[c].server = kLeader
  :: zk[c].server = kFollower;
    do
    :: len(lag) > 0 -> d_step { Apply() }
    :: break
    od
  fi;
  if
#if defined(MUTATE_NO_WATCH_ON_RECONNECT)
  :: zk[c].ticket != NONE && IS_NUMBER(zk[c].answer) -> zk[c].state = kWaiting
  :: zk[c].ticket != NONE && !IS_NUMBER(zk[c].answer) -> todo = kCheck
#elif defined(MUTATE_NO_HEARTBEAT_ON_RECONNECT)
  :: zk[c].ticket != NONE && HAS(VIEW(c), zk[c].ticket) -> todo = kDecide
  :: zk[c].ticket != NONE && !HAS(VIEW(c), zk[c].ticket) -> todo = kFinishRemoved
#else
  :: zk[c].ticket != NONE -> todo = kCheck
#endif
  :: zk[c].ticket == NONE ->
#if defined(MUTATE_BLIND_CREATE)
    found = NONE;
#elif defined(MUTATE_NO_SYNC)
    view = VIEW(c);
    d_step { FindByUuid(c, view) };
    view = 0;
#else
    d_step { FindByUuid(c, leader) };  // synced: the server has everything
#endif
    if
    :: found == NONE -> found = 0; REACHED(created_again); todo = kCreate
    :: found == NONE && FAULT -> SPEND; found = 0; todo = kDisconnect  // before the create is done
    :: found != NONE -> Adopt(c)
    fi
  fi
}

// AdoptOrJoin(), CheckOwn().
inline Adopt(c) {
#ifndef MUTATE_OLD_ADOPTED
  assert(OF_SESSION(found, c));
#endif
  REACHED(adopted);
  zk[c].ticket = found;
  found = 0;
  todo = kCheck
}

#ifdef STALE
// A deposed leader that does not know it yet accepts the connection and answers sync and list from
// its own state, but never a create or a check. The only possible effect is an adoption.
inline MeetDeposedLeader(c) {
  FindByUuid(c, follower);
  if
  :: found != NONE -> REACHED(adopted_from_a_deposed_leader); zk[c].ticket = found
  :: else
  fi;
  found = 0
}
#endif

// OnExpired(). The session may be refused before its znodes are deleted.
inline OnExpired(c) {
  REACHED(place_lost);
  REACHED_IF(zk[c].alive && zk[c].place != NONE, place_lost_before_the_znode_has_gone);
  if
  :: zk[c].alive -> SPEND; d_step { MarkDying(c); zk[c].alive = false }
  :: else
  fi;
  if
  :: zk[c].session == SESSIONS - 1 -> todo = kEndSession
  :: else ->
    zk[c].session++;
#ifndef MUTATE_OLD_ADOPTED
    zk[c].uuid++;
#endif
    zk[c].state = kStart;
    zk[c].ticket = NONE;
    zk[c].answer = NONE;
    zk[c].place = NONE;
      zk[c].barred = false
  fi
}

// The servers have not heard from the session for so long that they end it. By then the lease has
// ended by the client's clock, and with it the command.
inline Expire(c) {
#ifndef MUTATE_NO_LEASE
  if
  :: zk[c].state == kHolding -> REACHED(the_lease_ends_while_running); zk[c].runs = false
  :: else
  fi;
#endif
  zk[c].lease = false;
  if
  :: zk[c].state == kHolding && !zk[c].runs -> todo = kEndSession
  :: else -> DeleteOfSession(c); zk[c].alive = false
  fi
}

inline RemoveByForce(c) {
  victim = zk[c].place;
  before_victim = leader;
  z = 0;
  do
  :: z < zk[c].place ->
    if
    :: HAS(leader, z) && BLOCKS(z, c) -> zk[c].barred = true
    :: else
    fi;
    z++
  :: else -> break
  od;
  z = 0;
  Delete(zk[c].place)
}

// Contenders are interchangeable, so letting them arrive in the order of their numbers loses
// nothing.
#define HAS_ARRIVED(c) (zk[c].state != kStart || zk[c].session > 0)
#define MAY_ARRIVE(c) (c == 0 || HAS_ARRIVED(c) || HAS_ARRIVED(c - 1))
#define WAITS(c) \
  (zk[c].state != kStart && zk[c].state != kHolding && zk[c].state != kReleased && \
   zk[c].state != kGone)
#define CONTENDS(c) (zk[c].alive && zk[c].place != NONE && HAS(leader, zk[c].place))

proctype Contender(byte c) {
  do
  :: atomic {
      if
      :: zk[c].state == kStart && MAY_ARRIVE(c) -> Start(c)
      :: zk[c].state == kJoining -> OnCreated(c)
      :: zk[c].state == kDeciding && zk[c].answer == HOLD -> OnListedFirst(c)
      :: zk[c].state == kDeciding && IS_NUMBER(zk[c].answer) -> OnListedBehind(c)
      :: zk[c].state == kWaiting && zk[c].watches && !HAS(VIEW(c), zk[c].answer) ->
        OnPredecessorGone(c)
      :: zk[c].state == kWaiting && zk[c].ahead != NONE && SHOWS_THE_HOLDER(c) ->
        REACHED(a_waiter_learns_who_holds);
        zk[c].ahead = NONE
#ifdef MUTATE_ANY_EVENT_IS_DELETION  // a watch also fires when the data is written to
      :: FAULT && zk[c].state == kWaiting && zk[c].watches -> SPEND; OnPredecessorGone(c)
#endif
      :: zk[c].state == kWaiting && zk[c].alive && !HAS(VIEW(c), zk[c].ticket) ->
        REACHED(a_waiter_is_removed);
        todo = kFinishRemoved  // WatchOwn(), ReadOwn()
      :: zk[c].state == kWaiting && !zk[c].alive ->
        REACHED(expired_in_the_queue);
        todo = kDisconnect
      :: zk[c].state == kConfirming -> OnConfirmed(c)
      :: zk[c].state == kHolding -> Release(c)
      :: zk[c].state == kReleased -> todo = kEndSession
      :: zk[c].state == kDisconnected && zk[c].alive -> Rejoin(c)
#ifdef STALE
      :: zk[c].state == kDisconnected && zk[c].alive && zk[c].ticket == NONE ->
        d_step { MeetDeposedLeader(c) }
#endif
      :: zk[c].state == kDisconnected && (!zk[c].alive || FAULT) -> OnExpired(c)

      :: FAULT && zk[c].server != kNone -> SPEND; todo = kDisconnect
      :: FAULT && zk[c].lease && zk[c].state != kHolding -> SPEND; zk[c].lease = false
      :: FAULT && zk[c].alive -> SPEND; d_step { Expire(c) }
      :: FAULT && WAITS(c) -> SPEND; GiveUp(c)
      :: FAULT && victim == NONE && CONTENDS(c) -> SPEND; d_step { RemoveByForce(c) }
      fi;
      d_step { Proceed(c) }
    }
  :: zk[c].state == kGone -> break
  od;
end:
  false
}

init {
  byte n;
  atomic {
    for (n : 0 .. CONTENDERS - 1) {
      zk[n].state = kStart;
      zk[n].server = kNone;
      zk[n].ticket = NONE;
      zk[n].answer = NONE;
      zk[n].ahead = NONE;
      zk[n].place = NONE
    }
#ifdef ANOTHER_LIFE
    record = OF_ANOTHER_LIFE;
    record_excludes = true;
#endif
    for (n : 0 .. CONTENDERS - 1) { run Contender(n) }
    n = 0
  }
end:
  do
  :: d_step { len(lag) > 0 && AT_FOLLOWER -> Apply() }
  :: d_step { dying != 0 ->
      do
      :: HAS(dying, z) -> break
      :: else -> z++
      od;
      Delete(z);
      z = 0;
      do
      :: len(lag) > MOST_LAG -> Apply()
      :: else -> break
      od;
      entry = 0
    }
  :: d_step { EACH(GONE) && dying == 0 -> MUST(GHOST, leader == 0) }; break
  od;
end_of_all:
  false
}
