#pragma once

/// Messages of inspect and release; see messages.h.
namespace zklock::cli::message {

// inspect.
inline constexpr char kUnlistable[] =
    "not authorised to list {}{}: locks there are not shown; see --auth-file";
inline constexpr char kNoChroot[] =
    "the chroot {} does not exist, so no lock in it is held; check --servers";
inline constexpr char kNothingBelow[] = "{} does not exist, so no lock below it is held";
inline constexpr char kOutage[] = "no server answers: this is the state as of {}";
inline constexpr char kMorePaths[] = " and {} more";
inline constexpr char kCannotPrint[] = "cannot write to standard output: {}";
inline constexpr char kCannotReplace[] = "cannot write to {}: {}";
inline constexpr char kNoPlainFile[] = "it is not a regular file";
inline constexpr char kSignal[] = "SIG{}";
inline constexpr char kSignalNumber[] = "signal {}";
inline constexpr char kInterruptedBy[] = "interrupted by {}";
inline constexpr char kNothingMine[] =
    "no outer zklock holds a lock for this process; if a shell holds one with --hold, name the "
    "LOCK";
inline constexpr char kNotMine[] = "{} is not held for this process; see zklock inspect {}";
inline constexpr char kMineUnconfirmed[] =
    "process {1}, which seems to hold {0} for this process, does not answer";
inline constexpr char kNoLongerMine[] =
    "{} is no longer held for this process: stop what relies on it";
inline constexpr char kHistoryForeign[] =
    "cannot read the history of {}: its child last-run contains data from another program or from "
    "a later version of zklock";
inline constexpr char kHistoryUnread[] =
    "cannot read the history of {}: not authorised to read its child last-run; see --auth-file";

// release.
inline constexpr char kHolder[] = "{} holds {} ({}): {}";
inline constexpr char kWaiter[] = "{} waits for {} ({}): {}";
inline constexpr char kReserver[] = "{} reserves {} for {} ({}): {}";
inline constexpr char kPermit[] = "a permit";
inline constexpr char kUserOn[] = "user {} on {}";
inline constexpr char kOn[] = "on {}";
inline constexpr char kPid[] = "pid {}";
inline constexpr char kLabel[] = "label '{}'";
inline constexpr char kDataUnread[] = "its data is not readable";
inline constexpr char kUnknownProgram[] = "created by an unknown program";
inline constexpr char kUnknownOwner[] = "created by {}, which does not record the owner";
inline constexpr char kLeaveQuestion[] = "ask {} to leave the queue of {}? [y/N] ";
inline constexpr char kEndQuestion[] = "end {} and release {}? [y/N] ";
inline constexpr char kRemoveQuestion[] = "remove {} from the queue of {}? [y/N] ";
inline constexpr char kForceQuestion[] =
    "take {} from {}, after which two may run together? [y/N] ";
inline constexpr char kThese[] = "these {}";
inline constexpr char kListed[] = "{}. {}: {}";
inline constexpr char kNamedReservation[] = "the reservation {}";
inline constexpr char kNamed[] = "contender {}";
inline constexpr char kFor[] = "for {}";
inline constexpr char kWaitingFor[] = "waiting for {}";
inline constexpr char kNoTerminal[] = "nothing was released: no terminal to ask on; use --yes{}";
inline constexpr char kInPlaceOfPosition[] = ", with --contender in place of --position";
inline constexpr char kNotThere[] =
    "{} is not (or no longer) in {}: nothing was released; see zklock inspect -v";
inline constexpr char kChildNotContender[] =
    "{} in {} is not a contender (not ephemeral): nothing was released";
inline constexpr char kChildUnnumbered[] =
    "{} in {} is not a contender (its name has no queue number): nothing was released";
inline constexpr char kNothingReleased[] = "{}: nothing was released";
inline constexpr char kHasAcquired[] = "{} has acquired {} in the meantime: left alone";
inline constexpr char kNoSuchLock[] = "{} is free (it does not exist): nothing was released";
inline constexpr char kNoSuchContender[] = "{} has no such contender: nothing was released";
inline constexpr char kStaysReserved[] =
    "{} stays reserved for {}; use --reserve {}, or --force with --contender";
inline constexpr char kNotReserved[] = "{} is not reserved for {}";
inline constexpr char kNoneReservedFor[] = "none of {} is reserved for {}";
inline constexpr char kReservedForOthers[] =
    "{} is not reserved for {}, but for {}: it was not released";
inline constexpr char kReservationReleased[] = "released {}, which was reserved for {}";
inline constexpr char kNothingHeld[] =
    "this shell does not hold {0} (with --hold): nothing was released; see zklock inspect {0}";
inline constexpr char kReleaseWaits[] =
    "{} will be released when its nested runs have ended: {} left, the first with pid {}";
inline constexpr char kNotReleased[] =
    "nothing was released: if this shell holds {}, it still does; repeat the release";
inline constexpr char kReleaseUnseen[] =
    "{} will be released by process {} as soon as possible, but this zklock cannot wait for it";
inline constexpr char kReleasesAll[] =
    "{} is one of {} LOCKs of the same --hold, which are released together";
inline constexpr char kReleaseBelow[] =
    "{} cannot be released from here: the release would wait for the nested run that this "
    "process belongs to; release it from the shell that holds it";
inline constexpr char kKeeperSilent[] =
    "{} seems to be held for this shell by process {}, which does not answer: nothing was released";
inline constexpr char kCannotBeAsked[] =
    "{} cannot be asked to release the lock: its program does not support that; see --force";
inline constexpr char kAsked[] = "asked {} to release {}";
inline constexpr char kAskedWaiter[] = "asked {} to leave the queue of {}";
inline constexpr char kAskedCurator[] =
    "asked {} to release {} (it will, if its program made the lock revocable)";
inline constexpr char kForcedReservation[] =
    "deleted {}, the reservation of {} for {}: nothing ends a command that runs under the "
    "reservation";
inline constexpr char kHasReleased[] = "{} has released {}";
inline constexpr char kHasLeft[] = "{} has left the queue of {}";
inline constexpr char kOwnReleased[] = "released {}";
inline constexpr char kForcedOut[] =
    "deleted {} from {}: until its command has ended, two may run together";
inline constexpr char kForcedWaiter[] = "deleted {} from the queue of {}";

}  // namespace zklock::cli::message
