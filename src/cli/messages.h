#pragma once

/// All that zklock says on standard error, each with what to do where there is something: formats
/// of fmt's. First the words, files and owners that are wrong, then what runs, and those who look
/// and release, can meet. Those that begin small and without a LOCK are parts of others. What the
/// system or a library says (errno, resolver, CLI11) is put into them as it is. Each is provoked by
/// a test, which reads this file: a constant a message, its text at once behind it.
namespace zklock::cli::message {

// The subcommand, the LOCKs and the command.
inline constexpr char kNoSubcommand[] =
    "no subcommand was named: exclusive, read, write, try, inspect or release";
inline constexpr char kUnknownSubcommand[] =
    "there is no subcommand '{}': it is exclusive, read, write, try, inspect or release";
inline constexpr char kUnknownOption[] =
    "there is no option '{}' here; options of the command stand behind '--' and its name";
inline constexpr char kNoLock[] = "no LOCK was named: a path such as /jobs/backup";
inline constexpr char kLockTaken[] = "no LOCK was named: '{}' was read as the value of {}";
inline constexpr char kSeveralLocks[] =
    "more than one LOCK ('{}' and '{}'): {} takes one at a time";
inline constexpr char kTwoModes[] = "LOCK '{}' is named twice, in different modes: name it once";
inline constexpr char kBadLock[] = "LOCK '{}' {}: name a path such as /jobs/backup";
inline constexpr char kNoCommand[] =
    "there is no command: write it after '--', or use -c 'SHELL LINE'";
inline constexpr char kTwoCommands[] =
    "-c and a command after '--' exclude each other: leave one out";
inline constexpr char kRunsNoCommand[] = "{} runs no command: leave out '--' and what is behind it";

inline constexpr char kTry[] = "try 'zklock {}--help'";  // the second line of all these

// Options of any subcommand.
inline constexpr char kFromVariable[] = "{} (from ${})";
inline constexpr char kNeedsValue[] = "option {} needs a value behind it";
inline constexpr char kUnreadable[] = "{}: not read as an option and its value";
inline constexpr char kExclude[] = "{} and {} exclude each other: leave one out";
inline constexpr char kNoDuration[] = "{} '{}' is no DURATION (such as 90, 1.5, 500ms, 1h30m)";
inline constexpr char kZero[] = "{} must be more than 0, such as 500ms or 30s";
inline constexpr char kTooLong[] = "{} '{}' is too long: at most {}";
inline constexpr char kNoChoice[] = "{} '{}' is none of {}";
inline constexpr char kNoNumber[] = "{} '{}' is no number from {} to {}";
inline constexpr char kNoStatus[] = "{} '{}' is no status from 0 to 255";
inline constexpr char kNoSignal[] = "{} '{}' is no signal, such as TERM, USR1 or 15";
inline constexpr char kBadServers[] = "--servers '{}': {}; it is HOST:PORT[,...][/CHROOT]";
inline constexpr char kBadPath[] = "{} '{}' {}: give a path such as /locks";
inline constexpr char kNoTls[] =
    "{}: this zklock speaks no TLS itself; put stunnel between it and the servers "
    "(README, Access; zklock-protocol(7))";
inline constexpr char kOnlyOptions[] = "--print-config takes options, not '{}': leave it out";

// What is wrong with a path; with a list of servers, and its Nth.
inline constexpr char kIsEmpty[] = "is empty";
inline constexpr char kNotAbsolute[] = "does not begin with a slash";
inline constexpr char kIsRoot[] = "is the root of all znodes";
inline constexpr char kZooKeepers[] = "is kept for ZooKeeper itself";
inline constexpr char kEndsInSlash[] = "ends in a slash";
inline constexpr char kEmptyComponent[] = "has an empty component";
inline constexpr char kDot[] = "has '.' as a component";
inline constexpr char kDotDot[] = "has '..' as a component";
inline constexpr char kNoUtf8[] = "is not valid UTF-8";
inline constexpr char kControlCharacter[] = "has a control character";
inline constexpr char kRefusedCharacter[] = "has a character that ZooKeeper refuses in paths";
inline constexpr char kNamesNone[] = "it names no server";
inline constexpr char kItsChroot[] = "its chroot {}";
inline constexpr char kNoBracket[] = "server {} has no ] for its [";
inline constexpr char kNoIpv6[] = "server {} has no IPv6 address between [ and ]";
inline constexpr char kBehindBracket[] = "server {} has text behind ]";
inline constexpr char kSeveralColons[] =
    "server {} has several colons (an IPv6 address needs [ and ] around it)";
inline constexpr char kNoHost[] = "server {} has no host";
inline constexpr char kBadHost[] = "server {} has a character that no host name has";
inline constexpr char kBadPort[] = "server {} has no port from 1 to 65535 behind its colon";

// Options of exclusive, read, write and try.
inline constexpr char kSimpleShared[] =
    "--dialect simple has neither readers nor writers: use exclusive or try";
inline constexpr char kSimpleQueue[] =
    "--dialect simple has no queue: no --max-queue, no --supersede";
inline constexpr char kPermitsOneLock[] =
    "--permits takes one LOCK: take the others by another run";
inline constexpr char kPermitsShared[] =
    "--permits has neither readers nor writers: use exclusive or try";
inline constexpr char kPermitsDialect[] =
    "--permits is of --dialect curator only: leave out the one or the other";
inline constexpr char kIntervalShared[] =
    "--min-interval is not for readers: use exclusive, write or try";
inline constexpr char kAclNeedsCredentials[] = "--acl creator needs credentials: see --auth-file";
inline constexpr char kNoEvents[] = "--events names no file: name one, or a descriptor's number";
inline constexpr char kNoDescriptor[] =
    "--events {0}: descriptor {0} is not open for writing (a file of that name: ./{0})";
inline constexpr char kCannotAppend[] = "cannot append to --events {}";

// --hold.
inline constexpr char kHoldsOnly[] =
    "--hold runs no command: the lock is held for the shell that asks; leave out the command";
inline constexpr char kForCommand[] = "{} is for a command, and --hold runs none: leave it out";
inline constexpr char kForHold[] = "{} is for --hold: give that too, or leave it out";
inline constexpr char kNoProcessNumber[] =
    "--owner-pid '{}' is no process number: in a shell its own is $$";
inline constexpr char kNoSuchProcess[] =
    "--hold: there is no process {}; name one by --owner-pid (in a shell: --owner-pid $$)";
inline constexpr char kUnclearOwner[] =
    "--hold: the parent is {} (pid {}), perhaps not the one to hold for: name that by "
    "--owner-pid (in a shell: --owner-pid $$)";
inline constexpr char kForeignOwner[] =
    "--hold: process {} is another user's: it could not be told of a loss; run zklock as that user";

// A zklock below a zklock.
inline constexpr char kWaitsForItself[] =
    "{} is already held ({}) by an outer zklock: {} would wait for itself forever; take that mode "
    "in the outer zklock";

inline constexpr char kIntervalHeldAbove[] =
    "{} is already held by an outer zklock or for the shell: --min-interval cannot be checked "
    "here; give it to that zklock, or omit it";

inline constexpr char kWaitsBehindWriter[] =
    "{} is already held (read) by an outer zklock, and a writer waits for it: read --no-nest "
    "would wait for the writer forever; omit --no-nest, or give --wait";

inline constexpr char kHolderSilent[] =
    "{} seems to be held for this process by process {}, which does not answer: {} might wait for "
    "itself forever; see zklock inspect, or give --wait";

inline constexpr char kPermitsHeldAbove[] =
    "{}: outer zklocks hold all permits that --permits {} allows: exclusive would wait for itself "
    "forever; allow more, or give --wait";

inline constexpr char kWaitsForOwner[] =
    "{} is held ({}) by an outer zklock, but process {} does not run under that: {} would wait "
    "for itself forever; name a process that does";

// Options of inspect and release.
inline constexpr char kPrintsNothing[] = "{} prints nothing: without --json, --dot and --watch";
inline constexpr char kOneTarget[] =
    "--contender, --holders and --all exclude each other: give one";
inline constexpr char kNoName[] =
    "--contender '{}' is no znode's name: see zklock inspect -v for those there are";
inline constexpr char kForceDoesNotWait[] =
    "--wait waits for those who are asked: not with --force, which asks nobody";
inline constexpr char kWhose[] = "--contender NAME, --holders or --all says whose; see inspect";

// Configuration: behind the file and the line.
inline constexpr char kFileUnread[] = "{}: cannot be read: {}; see --config";
inline constexpr char kFileUnused[] = "{}: not used: {}; name it with --config to use it";
inline constexpr char kOtherUsersFile[] = "it belongs to another user";
inline constexpr char kLineControl[] = "there is a control character in it: take it out";
inline constexpr char kNoSetting[] = "is not of the form 'name = value'";
inline constexpr char kUnknownSetting[] =
    "there is no option '{}' to be set: zklock --print-config shows those that are";
inline constexpr char kOpenQuotes[] =
    "the quotes do not enclose the whole value: put one at each end, or none";
inline constexpr char kNeitherYesNorNo[] = "{} '{}' is neither yes nor no";

// Credentials: behind the file and the line; none shows what stands there.
inline constexpr char kSecretControl[] =
    "holds a control character, such as a tab or a carriage return: take it out";
inline constexpr char kNoCredential[] = "is no scheme:credential, such as digest:user:password";
inline constexpr char kNoDigest[] = "is no digest:user:password";
inline constexpr char kNoCredentials[] =
    "there are no credentials in it: write one scheme:credential a line";
inline constexpr char kSecretsUnread[] = "cannot be read: {}; see --auth-file";
inline constexpr char kNoRegularFile[] = "is no regular file: put the credentials into one";
inline constexpr char kTooLarge[] = "is too large to be a file of credentials; see --auth-file";
inline constexpr char kForeignFile[] =
    "is somebody else's: credentials in it are not used; chown it";
inline constexpr char kOpenFile[] =
    "others can read it: credentials in it are not used; chmod go= it";

// What follows is said while zklock queues, runs a command, looks and releases.

// The command.
inline constexpr char kNotFound[] =
    "{}: command not found; check PATH and, for a script, its #! line";
inline constexpr char kNoSuchFile[] = "{}: {}; for a script, check its #! line";
inline constexpr char kNotExecutable[] =
    "{}: cannot execute: {}; is it a program with its x bit set (chmod +x)?";
inline constexpr char kNotExecuted[] = "{}: cannot execute: {}";

// Servers: what was tried, and what each of them said.
inline constexpr char kNoSuchServer[] = "no ZooKeeper server of that name: {}; see --servers";
inline constexpr char kNoServer[] =
    "no ZooKeeper server granted a session within {}: {}; is one running? see --servers";
inline constexpr char kTriedServer[] = "{} ({})";
inline constexpr char kConnectUnanswered[] = "does not answer connection attempts: a firewall?";
inline constexpr char kGivesNoSession[] =
    "accepts the connection, but grants no session: is it hung?";
inline constexpr char kClosesAtOnce[] =
    "closes the connection at once: no quorum, or maxClientCnxns reached?";
inline constexpr char kNoZooKeeper[] = "answers, but not as a ZooKeeper server: wrong port?";
inline constexpr char kClosedLater[] = "closed the connection";
inline constexpr char kFellSilent[] = "stopped answering: is it hung?";
inline constexpr char kClosesOnRequest[] =
    "closes the connection when it gets a request: larger than its jute.maxbuffer?";
inline constexpr char kThrottles[] = "throttles requests: is it overloaded?";
inline constexpr char kNotUnderstood[] = "sent an answer that is not ZooKeeper's";
inline constexpr char kAnswersNothing[] =
    "grants a session, but does not answer requests: is it hung?";
inline constexpr char kLookupRuns[] = "its name is still being looked up: does DNS answer?";
inline constexpr char kLookupEnded[] = "the lookup of its name ended early";

// Servers that refuse.
inline constexpr char kCredentialsRefused[] =
    "the servers rejected the credentials; see --auth-file";
inline constexpr char kCredentialsWanted[] = "the servers require credentials; see --auth-file";
inline constexpr char kOtherSchemeWanted[] =
    "the servers require credentials that zklock cannot provide, such as SASL; --auth-file does "
    "not help";
inline constexpr char kAclRefused[] = "cannot {} {}: the servers rejected the ACL; see --acl";
inline constexpr char kNotAuthorised[] =
    "cannot {} {}: not authorised: {} on {} is missing; see its ACL";

// Parts of the messages of end_reason.cc: the contender in the way, the one who asked.
inline constexpr char kBlocker[] = ": {} is ahead";
inline constexpr char kProcess[] = "{} (pid {} on {})";
inline constexpr char kSomeCommand[] = "a command";
inline constexpr char kAsker[] = "{} ('{}')";
inline constexpr char kSomebody[] = "someone";
inline constexpr char kCuratorProgram[] = "a Curator program";

// A LOCK that cannot be used like this.
inline constexpr char kShortSessions[] =
    "{} cannot be used: the servers grant a session time-out of less than 4 seconds; ask for more "
    "with --session-timeout, or raise the servers' maxSessionTimeout";
inline constexpr char kNumbersUsedUp[] =
    "{} cannot be used: its sequence numbers are used up; delete the LOCK while nobody uses it, "
    "or use another";
inline constexpr char kNobodysContender[] =
    "{} cannot be used: its child '{}' is not a contender (not ephemeral); use another LOCK, or "
    "delete that znode";
inline constexpr char kEphemeralLock[] =
    "{} cannot be used: it is an ephemeral znode; use another LOCK";
inline constexpr char kEphemeralAbove[] =
    "{} cannot be used: a znode above it is ephemeral; use another LOCK";
inline constexpr char kLocalSessions[] =
    "{} cannot be used: the servers grant local sessions, which cannot queue; set "
    "localSessionsUpgradingEnabled=true there";
inline constexpr char kOldServers[] =
    "{} cannot be used: the servers do not support all requests that zklock needs; use ZooKeeper "
    "3.5 or newer";
inline constexpr char kLastRunUnknown[] =
    "{} cannot be used with --min-interval: the record of the last run in its child '{}' cannot "
    "be parsed; delete that znode";
inline constexpr char kQuotaExceeded[] =
    "{} cannot be used: the hard quota on {} is exceeded; raise it (zkCli.sh: setquota), or delete "
    "znodes below it";
inline constexpr char kHasPermits[] =
    "{} cannot be used: it is in use as a semaphore, whose holders would ignore this run; use "
    "--permits, or another LOCK";
inline constexpr char kHasNoPermits[] =
    "{} cannot be used: it is in use without permits, by contenders that would ignore this run; "
    "omit --permits, or use another LOCK";
inline constexpr char kOtherPermits[] =
    "{} cannot be used: it is in use with {} permits; use --permits {}";
inline constexpr char kUnknownPermits[] =
    "{} cannot be used: another zklock holds a permit, but the data of {}/leases does not say how "
    "many permits there are; wait until that zklock has ended, or write the number there";
inline constexpr char kIncompatibleThere[] = "{} cannot be used: its child '{}' is {}";

// Who such an incompatible contender is, and what makes the two meet.
inline constexpr char kKazooProgram[] =
    "a kazoo contender, which ignores zklock's; use --dialect kazoo, or another LOCK";
inline constexpr char kKazooPermit[] =
    "a permit of a kazoo Semaphore, which ignores zklock's; use another LOCK (--permits works "
    "with Curator's semaphores)";
inline constexpr char kOneZnode[] =
    "the lock of a program that uses a single znode and ignores zklock's; use --dialect simple, "
    "or another LOCK";
inline constexpr char kCuratorMutex[] =
    "a contender of a Curator mutex, which ignores readers and writers; use `zklock exclusive`, "
    "or another LOCK";
inline constexpr char kCuratorReadWrite[] =
    "a contender of a Curator read/write lock, which ignores exclusive contenders; use `zklock "
    "read` or `zklock write`, or another LOCK";
inline constexpr char kCRecipe[] =
    "a contender of the C recipe, which ignores readers and writers; use `zklock exclusive`, or "
    "another LOCK";
inline constexpr char kOurKazoo[] =
    "a zklock contender of --dialect kazoo; use one dialect on all hosts";
inline constexpr char kOurCurator[] =
    "a zklock contender of --dialect curator; use one dialect on all hosts";
inline constexpr char kCuratorNames[] =
    "a contender with a Curator name, which ignores kazoo's; omit --dialect kazoo, or use another "
    "LOCK";
inline constexpr char kQueues[] =
    "a contender in a queue, which ignores a single-znode lock; omit --dialect simple, or use "
    "another LOCK";

// Defects.
inline constexpr char kDefect[] = "internal error: {}; please report it";
inline constexpr char kCannot[] = "cannot {} '{}': {}";
inline constexpr char kNotListed[] = "our contender in '{}' exists but is not listed";
inline constexpr char kVanishes[] = "'{}' is deleted as often as it is created";
inline constexpr char kNoZnode[] = "no such znode";
inline constexpr char kZnodeThere[] = "the znode already exists";
inline constexpr char kChildOfEphemeral[] = "an ephemeral znode cannot have children";
inline constexpr char kHasChildren[] = "the znode has children";
inline constexpr char kWrittenTo[] = "the znode was changed meanwhile";
inline constexpr char kUnknownRequest[] = "the server does not support this request";
inline constexpr char kNotExpected[] = "unexpected answer";

// The system.
inline constexpr char kNoMemory[] = "out of memory; see ulimit -v";
inline constexpr char kNoProcesses[] = "{}; too many processes? see ulimit -u";
inline constexpr char kNoDescriptors[] = "{}; see ulimit -n";
inline constexpr char kNoProc[] =
    "{}; zklock finds the command's processes in /proc: mount it readable";
inline constexpr char kDropped[] = "messages were dropped: standard error was not read";

// The line of progress.
inline constexpr char kProgress[] = "waiting for {}: {} in line, {}{}";
inline constexpr char kNoAnswer[] = "; no server answers";
inline constexpr char kHeldBy[] = "; held by {}";
inline constexpr char kHeldFor[] = " for {}";
inline constexpr char kMoreHold[] = ", and {} more";

// While the command runs, and at its end.
inline constexpr char kRevoked[] = "asked to release {} by {}: ending the command";
inline constexpr char kStopping[] =
    "stopped; {} stays held for {} at most, then the command is ended";
inline constexpr char kSurvivor[] =
    "process {} ({}) could not be signalled and may still be running: end it yourself";
inline constexpr char kLeftBehind[] =
    "process {} ({}) outlived the command; the lock is released anyway; see --descendants";
inline constexpr char kGuardFailed[] =
    "the command's guard process was killed or hung: the command was ended";
inline constexpr char kNotRecorded[] =
    "cannot record that {} ran: --min-interval will not count this run; see its ACL";

// inspect.
inline constexpr char kUnlistable[] =
    "not authorised to list {}{}: locks there are not shown; see --auth-file";
inline constexpr char kMorePaths[] = " and {} more";
inline constexpr char kCannotPrint[] = "cannot write to standard output: {}";
inline constexpr char kSignal[] = "SIG{}";
inline constexpr char kSignalNumber[] = "signal {}";
inline constexpr char kStoppedBy[] = "stopped by {}";
inline constexpr char kNothingMine[] =
    "no outer zklock holds a lock for this process; if a shell holds one with --hold, name the "
    "LOCK";
inline constexpr char kNotMine[] = "{} is not held for this process; see zklock inspect {}";
inline constexpr char kNoLongerMine[] =
    "{} is no longer held for this process: stop what relies on it";

// release.
inline constexpr char kMeansHolder[] = "{} holds {} ({}): {}";
inline constexpr char kMeansWaiter[] = "{} waits for {} ({}): {}";
inline constexpr char kPermit[] = "a permit";
inline constexpr char kUserOn[] = "user {} on {}";
inline constexpr char kOn[] = "on {}";
inline constexpr char kPid[] = "pid {}";
inline constexpr char kLabel[] = "label '{}'";
inline constexpr char kDataUnread[] = "its data is not readable";
inline constexpr char kUnknownProgram[] = "of an unknown program";
inline constexpr char kSaysNotWhose[] = "of {}, which does not record the owner";
inline constexpr char kReleaseQuestion[] = "release it? [y/N] ";
inline constexpr char kWantsYes[] = "nothing was released: no terminal to ask on; use --yes";
inline constexpr char kNotThere[] =
    "{} is not (or no longer) in {}: nothing was released; see zklock inspect -v";
inline constexpr char kChildNoContender[] =
    "{} in {} is not a contender (not ephemeral): nothing was released";
inline constexpr char kNothingReleased[] = "{}: nothing was released";
inline constexpr char kNobodyThere[] = "{} has no such contender: nothing was released";
inline constexpr char kNothingHeld[] =
    "this shell does not hold {} (with --hold): nothing was released";
inline constexpr char kReleaseWaits[] =
    "{} is released when its nested runs have ended: {} zklock, the first with pid {}";
inline constexpr char kReleaseBelow[] =
    "{} cannot be released from here: the release would wait for the nested zklock that this runs "
    "under; release it from the shell that holds it";
inline constexpr char kKeeperSilent[] =
    "{} seems to be held for this shell by process {}, which does not answer: nothing was released";
inline constexpr char kCannotBeAsked[] =
    "{} cannot be asked to release: its program does not support that; see --force";
inline constexpr char kAsked[] = "asked {} to release {}";
inline constexpr char kAskedCurator[] =
    "asked {} to release {} (it does if its program made the lock revocable)";
inline constexpr char kForcedOut[] =
    "deleted {} from {}: until its command has ended, two may run together";

}  // namespace zklock::cli::message
