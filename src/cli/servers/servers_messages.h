#pragma once

/// Messages of inspect --servers-report; see messages.h. FindingText() fills in the named fields.
namespace zklock::cli::message {

// Findings that should be fixed.
inline constexpr char kServerUnreached[] = "{servers} cannot be reached: {reason}";
inline constexpr char kServerNoQuorum[] =
    "{servers} has no quorum and grants no sessions: find out why it cannot reach the others";
inline constexpr char kOldServer[] =
    "{servers} runs ZooKeeper {version}: upgrade it; zklock needs 3.5 or later";
inline constexpr char kNotMember[] =
    "{servers} is not a member of the ensemble: remove it from --servers, or add it to the "
    "ensemble";
inline constexpr char kOtherEnsemble[] =
    "{servers} belongs to a different ensemble than {first}: two commands could hold the same "
    "lock; "
    "correct --servers";
inline constexpr char kSameServer[] =
    "{servers} are the same server: the list has fewer servers than it seems";
inline constexpr char kGrantsDiffer[] =
    "session timeouts differ: {servers} grants {least}, others up to {most}: a reconnect to it "
    "shortens the lease; set the same minSessionTimeout and maxSessionTimeout";
inline constexpr char kServerLocalSessions[] =
    "local sessions, which cannot queue, are granted by {servers}: set "
    "localSessionsUpgradingEnabled=true there";
inline constexpr char kUselessGrant[] =
    "{servers} grants a session timeout of {least}, but zklock needs at least {floor}: raise "
    "--session-timeout or maxSessionTimeout";
inline constexpr char kCommitsTooSlow[] =
    "{servers} took {most} for a commit, but heartbeats are due every {least}: raise "
    "--session-timeout, or find out what slows the server down";
inline constexpr char kEvenMembers[] =
    "the ensemble has {count} voting servers, an even number: it survives no more failures than "
    "{fewer} would";
inline constexpr char kClockAhead[] =
    "the servers' clock is {most} ahead of this host's (±{uncertainty}): intervals and ages are "
    "off by that much";
inline constexpr char kClockBehind[] =
    "the servers' clock is {most} behind this host's (±{uncertainty}): intervals and ages are "
    "off by that much";
inline constexpr char kFewConnectionsLeft[] =
    "{servers} allows this host {count} connections, and {least_count} are open: raise "
    "maxClientCnxns, or use fewer";
inline constexpr char kChrootMissing[] =
    "the chroot {chroot} does not exist: correct --servers, or create it";

// Findings that are worth knowing.
inline constexpr char kCommitsSlow[] =
    "{servers} took {most} for a commit, more than half of the time between heartbeats ({least})";
inline constexpr char kBriefGrant[] =
    "{servers} grants a session timeout of {least}: a change of leader may last longer, and end "
    "the command";
inline constexpr char kGrantBelowAsked[] =
    "no server grants the requested session timeout of {most}; the longest granted is {least}";
inline constexpr char kEvenList[] =
    "the list has {count} servers; if these are the ensemble, it survives no more failures than "
    "{fewer} would";
inline constexpr char kSingleServer[] =
    "a single server: while it is down, no lock can be acquired, and held locks are soon lost";
inline constexpr char kPartialList[] =
    "the list has {least_count} of the ensemble's {count} servers: the others are not used";
inline constexpr char kAddressUnreached[] =
    "{name} cannot be reached at {address} ({reason}), only at another address of that name";
inline constexpr char kClockUnknown[] =
    "the servers' clock is not known: reading it requires CREATE and DELETE permission on / or on "
    "{root}";
inline constexpr char kWordsClosed[] =
    "cannot determine the {missing} of {servers}: add {words} to 4lw.commands.whitelist";
inline constexpr char kWordsUnusable[] =
    "cannot determine the {missing} of {servers}: the answer to {words} is missing, or is not "
    "ZooKeeper's";
inline constexpr char kNotCompared[] =
    "it is not known whether {servers} and the first server belong to the same ensemble";

// The end of the report.
inline constexpr char kWithoutServers[] =
    "without a server, a command gets its stop signal after {} to {}, or up to {} if its lock is "
    "new, and KILL {} later (session timeout {}, --kill-after {})";
inline constexpr char kNothingToFix[] = "nothing to fix";
inline constexpr char kNoServerReached[] = "no server was reached";

}  // namespace zklock::cli::message
