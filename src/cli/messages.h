#pragma once

/// Messages about the command line, the configuration and credentials.
///
/// zklock's messages are format strings for fmt, in a `namespace message` in this folder: here, in
/// run_messages.h, server_messages.h and queue_messages.h, and with the events (event.cc) and the
/// reasons for the end of a run (end_reason.cc). Each says what happened, on which path, and what
/// to do: one line, lower case, no full stop. Some are parts of others. A test provokes each and
/// reads its text from the source: keep to `constexpr char kNAME[] = "TEXT";`.
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

}  // namespace zklock::cli::message
