#pragma once

/// Messages about a run, besides those of its events and its end; see messages.h.
namespace zklock::cli::message {

// The command.
inline constexpr char kNotFound[] =
    "{}: command not found; check PATH and, for a script, its #! line";
inline constexpr char kQuotedLine[] =
    "{}: command not found; leave out the quotes around a command and its arguments, or give it to "
    "-c";
inline constexpr char kNoSuchFile[] = "{}: {}; for a script, check its #! line";
inline constexpr char kNotExecutable[] =
    "{}: cannot execute: {}; is it a program with its x bit set (chmod +x)?";
inline constexpr char kNotExecuted[] = "{}: cannot execute: {}";
inline constexpr char kVariableTooLong[] =
    "{}: cannot execute: ${} would be longer than Linux allows; lock fewer LOCKs at once";

// Parts of other messages: the contender ahead, and the sender of a release request.
inline constexpr char kManyWait[] = "already has {} or more waiters";
inline constexpr char kNoneMayWait[] = "is held, and a limit of 0 allows no waiters";
inline constexpr char kIsHeld[] = "held{}";
inline constexpr char kIsHeldBy[] = "held by {}";
inline constexpr char kIsReserved[] = "reserved for {}";
inline constexpr char kBlocker[] = ": {} is ahead";
inline constexpr char kBlockerHolds[] = ": it is held by {}";
inline constexpr char kBlockerReserved[] = ": it is reserved for {}";
inline constexpr char kButReserved[] = ", but for {}";
inline constexpr char kMissingChroot[] = ": the chroot {} does not exist";
inline constexpr char kProcess[] = "{} (pid {} on {})";
inline constexpr char kLabelledProcess[] = "{} (pid {} on {}, '{}')";
inline constexpr char kSomeCommand[] = "a command";
inline constexpr char kAsker[] = "{} ('{}')";
inline constexpr char kSomeone[] = "someone";
inline constexpr char kCuratorProgram[] = "a Curator program";

// Progress.
inline constexpr char kProgress[] = "waiting for {}: {}{}{}{}";
inline constexpr char kNextInLine[] = "next in line, ";
inline constexpr char kWaitingAhead[] = "{} waiting ahead, ";
inline constexpr char kRunsTake[] = "runs take {}";
inline constexpr char kRunsTakeBetween[] = "runs take {} to {}";
inline constexpr char kLooking[] = "zklock: looking for a server, {}";
inline constexpr char kNoAnswer[] = "; no server answers";
inline constexpr char kConfirming[] = "; confirming the session";
inline constexpr char kHeldBy[] = "; held by {}";
inline constexpr char kHeldFor[] = " for {}";
inline constexpr char kReservedFor[] = "; reserved for {}";
inline constexpr char kAcquiredAfter[] = "acquired {} after {}";
inline constexpr char kMoreHold[] = ", and {} more";

inline constexpr char kEventsUnwritten[] = "not all events were written: {}; see --events";
inline constexpr char kEventsUnread[] = "their reader does not read them in time";

// While the command runs, and at its end.
inline constexpr char kSuspending[] =
    "suspended; {} stays held for at most {}, and the command will be terminated before then";
inline constexpr char kSuspendingLimited[] =
    "suspended; {} stays held for at most {}, and the command will be terminated in {} (--max-run)";
inline constexpr char kSuspendingUnguarded[] =
    "suspended; {} stays held for at most {}, and others may run after that (--on-lost warn)";
inline constexpr char kSuspendingNested[] =
    "suspended; {} stays held for at most {}, and nested runs will be terminated before then";
inline constexpr char kSuspendingReserved[] =
    "suspended; the command will still be terminated in {} (--max-run)";
inline constexpr char kSurvivor[] =
    "process {} ({}) could not be signalled and may still be running: end it yourself";
inline constexpr char kLeftBehind[] =
    "process {} ({}) outlived the command; the lock is released anyway; see --descendants";
inline constexpr char kAwaited[] =
    "the command has ended; waiting for process {} ({}){}, which it left behind (--descendants "
    "wait)";
inline constexpr char kAwaitedSurvivor[] =
    "{} stays held: process {} ({}){} had to end, but could not be signalled; end it yourself";
inline constexpr char kMoreAwaited[] = " and {} more";
inline constexpr char kNotRecorded[] =
    "cannot record that {} ran: --min-interval may not count this run; see its ACL and quotas";
inline constexpr char kStartMayCount[] =
    "--once-per may count this run of {}: run the command by hand, or delete the child last-start";

// --any: the LOCKs; or the LOCK with the shortest queue, and how many LOCKs there are.
inline constexpr char kAnyOf[] = "any of {}";
inline constexpr char kOneOfSeveral[] = "{} (any of {})";
inline constexpr char kNoneFree[] = "none of {} is free; the command was not run";
inline constexpr char kNoneBecameFree[] =
    "none of {} became free within {}; the command was not run";
inline constexpr char kAllQueuesFull[] =
    "the queue of each of {} is full (--max-queue); the command was not run";
inline constexpr char kNoneReserved[] =
    "none of {} is (or still is) reserved for {}{}; the command was not run";
inline constexpr char kRemovedFromAll[] =
    "removed from the queues of {}: our contenders were deleted; the command was not run";

// --reserve.
inline constexpr char kRenewed[] = "{} stays reserved for {} until {}";
inline constexpr char kStaysEndless[] =
    "{0} stays reserved for {1} until it is released: --for adds no end to a reservation that was "
    "made without one; see zklock release --reserve {1}";
inline constexpr char kReasonKept[] =
    "{} stays reserved for {} with its reason unchanged: only a renewal (--for) changes it";
inline constexpr char kMayBeReserved[] =
    "{} may be reserved for {} all the same: the answer was lost; see zklock inspect {}";
inline constexpr char kExpiredWhileReserving[] =
    "{} was not reserved: the session expired before the servers processed the request; try again";
inline constexpr char kOutlived[] =
    "{} is no longer reserved for {}: {} outlived the reservation, and the next holder may have "
    "run at the same time";
inline constexpr char kRanPastEnd[] =
    "the reservation of {} for {} ended at {}, before {} did: no one has taken the lock yet; use "
    "a longer --for";
inline constexpr char kOutlivedUnknown[] =
    "cannot tell whether {} stayed reserved for {} until {} ended: {}";
inline constexpr char kStaysReservedAfterSignal[] =
    "{} while {} was being reserved: it stays reserved for {} until zklock release --reserve; the "
    "command was not run";

// --history.
inline constexpr char kForeignLastRun[] =
    "the history of {} is not kept: its last-run is ephemeral, or contains data from another "
    "program or from a later version of zklock";
inline constexpr char kLastRunRefused[] =
    "the history of {} is not kept: not authorised to write {}/last-run; see its ACL";
inline constexpr char kLastRunQuota[] = "the history of {} is not kept: a quota is used up";
inline constexpr char kLastRunFailed[] =
    "the history of {} is not kept: {}/last-run could not be written";

// --hold: written to the system log.
inline constexpr char kOwnerSignalled[] = "{}; process {} ({}) was sent {}";

// The command's cgroup.
inline constexpr char kContained[] = "the command runs in the cgroup {}";
inline constexpr char kNotContained[] = "the command runs without a cgroup of its own: {}";
inline constexpr char kUndelegated[] =
    "{} is not delegated by systemd; a cgroup is created in it because of --contain require";
inline constexpr char kContainRequired[] = "--contain require: {}";
inline constexpr char kOrphansEnded[] =
    "killed processes in {}, left by a zklock that was killed together with its guard";
inline constexpr char kOrphansAlive[] =
    "processes in {}, left by a zklock that was killed together with its guard, are still alive: "
    "end them yourself";
inline constexpr char kNoHierarchy[] = "no cgroup v2 hierarchy is mounted";
inline constexpr char kNotDelegated[] = "{} is not delegated by systemd";
inline constexpr char kNoCgroupKill[] = "the kernel cannot kill a cgroup; that needs Linux 5.14";
inline constexpr char kThreadedCgroup[] = "{} is a threaded cgroup";
inline constexpr char kCgroupNotCreated[] = "cannot create a cgroup in {}: {}";
inline constexpr char kCgroupNotEntered[] = "cannot start a process in a cgroup in {}: {}";

// The system.
inline constexpr char kNoMemory[] = "out of memory; see ulimit -v";
inline constexpr char kNoProcesses[] = "{}; too many processes? see ulimit -u";
inline constexpr char kNoDescriptors[] = "{}; see ulimit -n";
inline constexpr char kNoProc[] =
    "{}; zklock finds the command's processes in /proc: mount it readable";
inline constexpr char kDropped[] = "messages were dropped: standard error was not read";

}  // namespace zklock::cli::message
