// A model of the lease's arithmetic for spin, checked by `scripts/model`: src/protocol/lease.cc
// against the behaviour of the servers (protocol, section 4). lock.pml relies on the result: the
// lease ends, by the client's clock, before the servers end the session.
//
// ELEMENTS
//
//   Client    One session's client. It sends one request at a time, a read or a heartbeat, at any
//             moment; it may leave its server and reconnect at any moment.
//   Follower  Its server. It answers the leader's pings with whether it has heard from the session
//             since the last ping; only that and a connect touch the session at the leader. It
//             forwards heartbeats. Its messages arrive in order, any time later, until it is cut
//             off; then it still answers reads.
//   Leader    Ends the session at any moment from T after its last touch.
//   Time      Counts in units; T is four quarters of QUARTER units. Moments are stored as their
//             age, up to T, so runs need not be cut short. Requests and replies travel for any
//             time. The follower answers a ping at least every PING units, less than a quarter: the
//             leader pings each half tick, and T is two ticks or more.
//
// With RENEGOTIATE, servers grant different session timeouts: each connect is granted LONG_T or T.
// The leader uses the timeout of the latest touch, and a server that the client has left may still
// touch the session with the timeout it granted. The client uses the shortest timeout granted,
// for earlier proofs too.
//
// RENEGOTIATE assumes that the client learns at once of a timeout shorter than all before. A
// connect that shortens the timeout unnoticed, because its answer is lost, violates the property;
// the manual says so. There are no reads then, so that all states can be searched: a heartbeat's
// answer counts like a read's.
//
// Left out: the margin by which D is earlier, which allows for clocks and for KILL; a new leader,
// which gives every session a full T from its own start; a client connected to the leader, whose
// every request touches the session.
//
// PROPERTY: the session never ends before the lease.
//
// THE RULE: a committed heartbeat, sent at s, turns requests answered a quarter before s into
// proofs from the time they were sent: between the answer and s the follower has answered a ping.
//
// MUTATE_... as in lock.pml. Four are plausible mistakes: to keep the first timeout; to use the
// newest, although a server that was left may still touch the session with a shorter one; to
// accept a request that was only sent a quarter before s (it may have been heard late, and the
// follower cut off before the next ping); and to ping only once in a quarter (PING).
//
// Only the resolution of time, QUARTER, is bounded: with two units in a quarter, one request, one
// ping, one cut and one end can occur in any order; `scripts/model --long` uses three.

#ifndef QUARTER
#define QUARTER 2
#endif
#ifndef PING
#define PING (QUARTER - 1)
#endif
#define T (4 * QUARTER)
#ifdef RENEGOTIATE
#define LONG_QUARTER (QUARTER + 1)  // rounded up
#define LONG_T (T + 2)
#else
#define LONG_QUARTER QUARTER
#define LONG_T T
#endif

#include "reached.pml"

hidden byte SESSION_OUTLIVES_LEASE_HOLDS;

// The leader:
bool alive = true;
unsigned touched : 5;  // its age
bool short_at_leader;  // it uses T

// The follower:
bool cut;
bool heard;
bool short_at_follower;  // it granted T
unsigned since_ping : 5;
mtype:message = { kPingNothing, kPingHeard, kHeartbeat };
chan to_leader = [2] of { mtype:message };

// The client, and the state of its request:
mtype:request = { kNone, kRead, kBeat, kConnect };
mtype:place = { kHere, kSent, kPassedOn, kAnswered };
mtype:request request = kNone;
mtype:place place = kHere;
unsigned sent : 5;  // its age
bool committed;
bool has_answered;  // the answered request that will be the proof
unsigned answered_sent : 5;
unsigned answered : 5;
bool has_connect;  // an accepted connect
unsigned connect_sent : 5;
unsigned lease : 5;  // what remains of it
bool short_granted;  // at least once in this session

#ifdef RENEGOTIATE
#define LEADERS_T (short_at_leader -> T : LONG_T)
#if defined(MUTATE_FIRST_TIMEOUT)
#define COUNTED_T LONG_T
#define COUNTED_QUARTER LONG_QUARTER
#elif defined(MUTATE_NEWEST_TIMEOUT)
#define COUNTED_T (short_at_follower -> T : LONG_T)
#define COUNTED_QUARTER (short_at_follower -> QUARTER : LONG_QUARTER)
#else
#define COUNTED_T (short_granted -> T : LONG_T)
#define COUNTED_QUARTER (short_granted -> QUARTER : LONG_QUARTER)
#endif
#else
#define LEADERS_T T
#define COUNTED_T T
#define COUNTED_QUARTER QUARTER
#endif

inline Age(moment) {
  if
  :: moment < LONG_T -> moment++
  :: else
  fi
}

inline Prove(ago) {
  if
  :: ago < COUNTED_T && COUNTED_T - ago > lease ->
    lease = COUNTED_T - ago;
    REACHED_IF(alive, proven)
  :: else
  fi
}

#define MUST_OUTLIVE \
  SESSION_OUTLIVES_LEASE_HOLDS = (alive || lease == 0); \
  assert(SESSION_OUTLIVES_LEASE_HOLDS)

inline ForgetRequest() {
  request = kNone;
  place = kHere;
  sent = 0;
  committed = false
}

inline ForgetAnswered() {
  has_answered = false;
  answered_sent = 0;
  answered = 0
}

inline ForgetConnect() {
  has_connect = false;
  connect_sent = 0
}

// Lease::Answered(). In other runs, another request becomes the proof.
inline Remember() {
  if
  :: sent < COUNTED_T ->
    has_answered = true;
    answered_sent = sent;
    answered = 0
  :: true
  fi
}

// Lease::Committed().
inline OnHeartbeat() {
  REACHED_IF(!alive && committed, answered_after_the_end);
  if
  :: committed ->
#if defined(MUTATE_ONE_TIME)  // the session was alive at s, so it lives until s + T
    Prove(sent);
#elif defined(MUTATE_FROM_THE_ANSWER)
    if
    :: has_answered && answered >= sent + COUNTED_QUARTER -> Prove(answered)
    :: else
    fi;
#elif defined(MUTATE_BY_SENDING)
    if
    :: has_answered && answered_sent >= sent + COUNTED_QUARTER -> Prove(answered_sent)
    :: else
    fi;
#else
    if
    :: has_answered && answered >= sent + COUNTED_QUARTER ->
      REACHED(proven_by_an_answer);
      Prove(answered_sent)
    :: else
    fi;
#endif
    if
    :: has_connect -> REACHED(proven_by_a_connect); Prove(connect_sent)
    :: else
    fi
  :: else
  fi;
  MUST_OUTLIVE
}

// From now on the leader uses the accepting server's timeout. Lease::ConnectAccepted().
inline GrantT() {
  short_at_leader = true;
  short_at_follower = true;
#ifndef MUTATE_FIRST_TIMEOUT
  if
  :: !short_granted && lease > 0 ->
    REACHED(a_lease_is_shortened);
    lease = (lease > LONG_T - T -> lease - (LONG_T - T) : 0)
  :: else
  fi;
#endif
  short_granted = true
}

inline GrantLongT() {
  REACHED_IF(short_granted, a_longer_time_out_is_granted_again);
  short_at_leader = false;
  short_at_follower = false
}

inline StartFollower() {
  do
  :: len(to_leader) > 0 -> to_leader ? _
  :: else -> break
  od;
  heard = false;
  since_ping = 0
}

active proctype Client() {
end:
  do
  :: atomic { request == kNone && alive ->
      place = kSent;
#ifdef RENEGOTIATE
      request = kBeat
#else
      if
      :: request = kRead
      :: request = kBeat
      fi
#endif
    }
  :: atomic { place == kAnswered && request == kRead ->
#ifdef MUTATE_READS_PROVE  // believes everything it can still read
      Prove(sent);
      MUST_OUTLIVE;
#endif
      Remember();
      ForgetRequest()
    }
  :: atomic { place == kAnswered && request == kBeat ->
      OnHeartbeat();
      Remember();
      ForgetRequest()
    }
  :: d_step { place == kAnswered && request == kConnect ->
      has_connect = true;
      connect_sent = sent;
      ForgetRequest()
    }
  // The client leaves the server for another follower.
  :: d_step { request != kConnect && alive ->
      REACHED_IF(lease > 0, reconnects_with_a_lease);
      StartFollower();
      cut = false;
      ForgetRequest();
      ForgetConnect();
      request = kConnect;
      place = kSent
    }
  od
}

active proctype Servers() {
end:
  do
  :: d_step { place == kSent && request == kRead ->
      REACHED_IF(cut, read_at_a_follower_that_is_cut_off);
      heard = !cut;
      place = kAnswered
    }
  :: d_step { place == kSent && request == kBeat && !cut && len(to_leader) < 2 ->
      heard = true;
      place = kPassedOn;
      to_leader ! kHeartbeat
    }
  :: d_step { place == kSent && request == kConnect && alive ->
      touched = 0;
#ifdef RENEGOTIATE
      GrantLongT();
#endif
      place = kAnswered
    }
#ifdef RENEGOTIATE
  :: d_step { place == kSent && request == kConnect && alive ->
      touched = 0;
      GrantT();
      place = kAnswered
    }
  // A server that the client has left, or may have left, touches the session late. (With LONG_T
  // that could only lengthen the timeout at the leader.)
  :: d_step { alive && short_granted -> touched = 0; short_at_leader = true }
#endif
  :: d_step { !cut && len(to_leader) < 2 ->
      if
      :: heard -> to_leader ! kPingHeard
      :: else -> to_leader ! kPingNothing
      fi;
      heard = false;
      since_ping = 0
    }
  :: d_step { !cut -> StartFollower(); cut = true }
  :: d_step { len(to_leader) > 0 ->
      if
      :: to_leader ? kPingHeard ->
        if
        :: alive -> touched = 0; short_at_leader = short_at_follower
        :: else
        fi
      :: to_leader ? kPingNothing
      :: to_leader ? kHeartbeat -> committed = alive; place = kAnswered
      fi
    }
  :: d_step { alive && touched == LEADERS_T ->
      alive = false;
      touched = 0;
      REACHED(the_session_ends);
      MUST_OUTLIVE
    }
  :: d_step { cut || since_ping < PING ->  // a unit of time passes
      if
      :: !cut -> since_ping++
      :: else
      fi;
      if
      :: alive -> Age(touched)
      :: else
      fi;
      if
      :: request != kNone -> Age(sent)
      :: else
      fi;
      if
      :: has_answered -> Age(answered_sent); Age(answered)
      :: else
      fi;
      if
      :: answered_sent == LONG_T -> ForgetAnswered()
      :: else
      fi;
      if
      :: has_connect -> Age(connect_sent)
      :: else
      fi;
      if
      :: connect_sent == LONG_T -> ForgetConnect()
      :: else
      fi;
      if
      :: lease > 0 -> lease--
      :: else
      fi
    }
  od
}
