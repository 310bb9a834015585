// The lease's arithmetic as a model for spin: src/protocol/lease.cc against what the servers do
// (protocol, section 4). `scripts/model` checks it. lock.pml rests on what is shown here: the
// lease ends, by the client's reckoning, before the servers end the session.
//
// WHAT IS WHAT
//
//   Client    one session's client: a request at a time, a read or a heartbeat, at any moment; it
//             may leave its server and connect anew at any moment.
//   Follower  its server. It tells the leader in its answer to a ping whether it has heard of the
//             session since the last one; that, and a connect, is all that touches the session at
//             the leader. A heartbeat it passes on. What it sends arrives in order, any time later,
//             until it is cut off; then it still answers reads.
//   Leader    ends the session at any moment from T after the last touch on.
//   Time      counts in units; T is four quarters of QUARTER units. Moments are kept as how long
//             ago they were, up to T, so that no run need be cut short. Requests and replies travel
//             for as long as they like. The follower answers a ping at least every PING units, less
//             than a quarter: the leader pings each half tick, and T is two ticks or more.
//
// Left out: the margin D is earlier by, which is for clocks and for KILL; a new leader, who gives
// every session a whole T from its own beginning; a client of the leader's own, whose every request
// touches the session.
//
// PROPERTY: the session's end is never before the lease's.
//
// THE RULE: a committed heartbeat, sent at s, makes a proof of those requests that had been answered
// a quarter before s, from their sending on: between answer and s the follower has answered a ping.
//
// MUTATE_... as in lock.pml. Two are near at hand: to take what was only sent a quarter before s
// (it may have been heard late, and the follower cut off before the next ping), and pings that come
// no more often than each quarter (PING).
//
// What is bounded is how finely time is told, QUARTER: one request, one ping, one cut and one end
// fall into any order at two units to the quarter; `scripts/model --long` has three.

#ifndef QUARTER
#define QUARTER 2
#endif
#ifndef PING
#define PING (QUARTER - 1)
#endif
#define T (4 * QUARTER)

#include "reached.pml"

hidden byte SESSION_OUTLIVES_LEASE_HOLDS;

// The leader.
bool alive = true;
unsigned touched : 5;  // how long ago

// The follower.
bool cut;
bool heard;
unsigned since_ping : 5;
mtype:message = { kPingNothing, kPingHeard, kHeartbeat };
chan to_leader = [2] of { mtype:message };

// The client, and where its request is.
mtype:request = { kNone, kRead, kBeat, kConnect };
mtype:place = { kHere, kSent, kPassedOn, kAnswered };
mtype:request request = kNone;
mtype:place place = kHere;
unsigned sent : 5;  // how long ago
bool committed;
bool has_answered;  // a request that was answered, the one that will prove;
unsigned answered_sent : 5;
unsigned answered : 5;
bool has_connect;  // and a connect that was accepted
unsigned connect_sent : 5;
unsigned lease : 5;  // what is left of it

inline Age(moment) {
  if
  :: moment < T -> moment++
  :: else
  fi
}

inline Prove(ago) {
  if
  :: ago < T && T - ago > lease -> lease = T - ago; REACHED_IF(alive, proven)
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

// Lease::Answered(). What another request would prove is another run's choice.
inline Remember() {
  if
  :: sent < T ->
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
#if defined(MUTATE_ONE_TIME)  // that the session lived at s is taken for T from s
    Prove(sent);
#elif defined(MUTATE_FROM_THE_ANSWER)
    if
    :: has_answered && answered >= sent + QUARTER -> Prove(answered)
    :: else
    fi;
#elif defined(MUTATE_BY_SENDING)
    if
    :: has_answered && answered_sent >= sent + QUARTER -> Prove(answered_sent)
    :: else
    fi;
#else
    if
    :: has_answered && answered >= sent + QUARTER ->
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
      if
      :: request = kRead
      :: request = kBeat
      fi
    }
  :: atomic { place == kAnswered && request == kRead ->
#ifdef MUTATE_READS_PROVE  // as who believes what it can still read
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
  // The server is left for another follower.
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
  :: d_step { place == kSent && request == kConnect && alive -> touched = 0; place = kAnswered }
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
        :: alive -> touched = 0
        :: else
        fi
      :: to_leader ? kPingNothing
      :: to_leader ? kHeartbeat -> committed = alive; place = kAnswered
      fi
    }
  :: d_step { alive && touched == T ->
      alive = false;
      touched = 0;
      REACHED(the_session_ends);
      MUST_OUTLIVE
    }
  :: d_step { cut || since_ping < PING ->  // a unit of time goes by
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
      :: answered_sent == T -> ForgetAnswered()
      :: else
      fi;
      if
      :: has_connect -> Age(connect_sent)
      :: else
      fi;
      if
      :: connect_sent == T -> ForgetConnect()
      :: else
      fi;
      if
      :: lease > 0 -> lease--
      :: else
      fi
    }
  od
}
