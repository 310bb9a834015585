#pragma once

/// Messages of inspect --servers-report; see messages.h.
namespace zklock::cli::message {

// What should be fixed.
inline constexpr char kServerUnreached[] = "{} is not reached: {}";
inline constexpr char kServerNoQuorum[] =
    "{} has no quorum, and gives no sessions: see why it does not find the others";
inline constexpr char kOldServer[] = "{} runs ZooKeeper {}: upgrade it; zklock needs 3.5 or later";
inline constexpr char kNotMember[] =
    "{} is no member of the ensemble: remove it from --servers, or add it to the ensemble";
inline constexpr char kOtherEnsemble[] =
    "{} belongs to another ensemble than {}: two commands could hold one lock; correct --servers";
inline constexpr char kSameServer[] = "{} are one server: the list has fewer than it seems";
inline constexpr char kGrantsDiffer[] =
    "session timeouts differ: {} grants {}, others up to {}: a lock becomes shorter by a "
    "reconnect to it; set the same minSessionTimeout and maxSessionTimeout";
inline constexpr char kUselessGrant[] =
    "{} grants a session timeout of {}, and zklock locks with no less than {}: raise "
    "--session-timeout or maxSessionTimeout";
inline constexpr char kCommitsTooSlow[] =
    "{} took {} for a commit, and heartbeats are due every {}: raise --session-timeout, or find "
    "out what slows the server down";
inline constexpr char kEvenMembers[] =
    "the ensemble has {} voting servers, an even number: it survives no more failures than {} "
    "would";
inline constexpr char kClockAhead[] =
    "the servers' clock is {} ahead of this host's (±{}): intervals and ages are wrong by that";
inline constexpr char kClockBehind[] =
    "the servers' clock is {} behind this host's (±{}): intervals and ages are wrong by that";
inline constexpr char kFewConnectionsLeft[] =
    "{} allows this host {} connections, and {} are open: raise maxClientCnxns, or use fewer";

// What is worth knowing.
inline constexpr char kCommitsSlow[] =
    "{} took {} for a commit, more than half of the time between heartbeats ({})";
inline constexpr char kBriefGrant[] =
    "{} grants a session timeout of {}: a change of leader may last longer, and end the command";
inline constexpr char kGrantBelowAsked[] =
    "no server grants the session timeout of {} that was asked for; the longest is {}";
inline constexpr char kEvenList[] =
    "the list has {} servers; if these are the ensemble, it survives no more failures than {} "
    "would";
inline constexpr char kSingleServer[] =
    "a single server: while it is down, no lock is acquired, and those held are soon lost";
inline constexpr char kPartialList[] =
    "the list has {} of the ensemble's {} servers: the others are not used";
inline constexpr char kAddressUnreached[] =
    "{} is not reached at {} ({}), but at another address of that name";
inline constexpr char kClockUnknown[] =
    "the servers' clock is not known: that takes the rights CREATE and DELETE on / or on {}";
inline constexpr char kWordsClosed[] = "cannot tell the {} of {}: add {} to 4lw.commands.whitelist";
inline constexpr char kWordsUnusable[] =
    "cannot tell the {} of {}: the answer to {} is missing, or is not ZooKeeper's";
inline constexpr char kNotCompared[] =
    "it is not known whether {} and the first server are of one ensemble";

// The end of the report.
inline constexpr char kWithoutServers[] =
    "without servers a command gets its stop signal after {} to {}, or after up to {} if its lock "
    "is new, and is dead {} later (session timeout {}, --kill-after {})";
inline constexpr char kNothingToFix[] = "nothing to fix";
inline constexpr char kNoServerReached[] = "no server was reached";

}  // namespace zklock::cli::message
