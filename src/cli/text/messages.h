#pragma once

/// Messages about the command line, the configuration and credentials.
///
/// zklock's messages are format strings for fmt, in a `namespace message` of cli/: here, in the
/// other *messages.h, and with the events (event.cc) and the reasons for the end of a run
/// (end_reason.cc). Each says what happened, on which path, and what to do: one line, lower case,
/// no full stop. Some are parts of other messages. For each message, a test provokes it and reads
/// its text from the source, so keep to the form of these definitions.
namespace zklock::cli::message {

// The subcommand, the LOCKs and the command.
inline constexpr char kNoSubcommand[] =
    "no subcommand given; expected exclusive, read, write, try, inspect or release";
inline constexpr char kUnknownSubcommand[] = "unknown subcommand '{}'{}";
inline constexpr char kUnknownOption[] = "unknown option '{}'{}";
inline constexpr char kOthersOption[] = "'{}' is not an option of {}, but of {}";
inline constexpr char kBelongsAfter[] = "'{0}' belongs after the subcommand: zklock {1} {0} ...";
inline constexpr char kInPlaceOfSubcommand[] =
    "'{0}' takes the place of the subcommand: zklock {0}";
inline constexpr char kNoLock[] = "no LOCK given: name a path such as /jobs/backup";
inline constexpr char kTypographicDash[] =
    "'{}' begins with a typographic dash: begin an option with '-', and a LOCK with '/'";
inline constexpr char kLockTaken[] = "no LOCK given: '{}' was read as the value of {}";
inline constexpr char kSeveralLocks[] =
    "more than one LOCK ('{}' and '{}'): {} takes one at a time";
inline constexpr char kTwoModes[] = "LOCK '{}' is named twice, in different modes: name it once";
inline constexpr char kBadLock[] = "LOCK '{}' {}: name a path such as /jobs/backup";
inline constexpr char kAmbiguousLock[] =
    "LOCK '{}' is ambiguous ({} or {}): write the one that you mean, or set --root";
inline constexpr char kNoCommand[] =
    "no command given: write it after '--', or use -c 'SHELL LINE'";
inline constexpr char kNoSeparator[] = "no '--' before the command '{}': write '-- {} ...'";
inline constexpr char kTwoCommands[] = "-c and a command after '--' cannot be used together";
inline constexpr char kRunsNoCommand[] = "{} runs no command: leave out '--' and what follows it";

// Endings of messages about an unknown word.
inline constexpr char kDidYouMean[] = "; did you mean '{}'?";
inline constexpr char kDoneAlready[] = "; {} does that by default";
inline constexpr char kKnownSubcommands[] =
    "; expected exclusive, read, write, try, inspect or release";
inline constexpr char kCommandsOptions[] = "; options of the command follow '--' and its name";
inline constexpr char kKnownSettings[] =
    "; 'zklock --print-config' lists the options that a file can contain";

inline constexpr char kTry[] = "try 'zklock {}--help'";  // the second line of each of these

// Options of any subcommand.
inline constexpr char kFromVariable[] = "{} (from ${})";
inline constexpr char kNeedsValue[] = "option {} requires a value";
inline constexpr char kTakesNoValue[] = "{} takes no value, but was given '{}'";
inline constexpr char kExclude[] = "{} and {} cannot be used together";
inline constexpr char kRequires[] = "{} requires {}";
inline constexpr char kNoDuration[] = "{}: invalid duration '{}' (examples: 90, 1.5, 500ms, 1h30m)";
inline constexpr char kZero[] = "{} must be more than 0, such as 500ms or 30s";
inline constexpr char kTooLong[] = "{}: '{}' is too long; the maximum is {}";
inline constexpr char kNoChoice[] = "{}: invalid value '{}'; expected one of: {}";
inline constexpr char kNoNumber[] = "{}: invalid number '{}'; expected {} to {}";
inline constexpr char kNoSignal[] = "{}: invalid signal '{}' (examples: TERM, USR1, 15)";
inline constexpr char kBadServers[] = "--servers '{}': {}; expected HOST:PORT[,...][/CHROOT]";
inline constexpr char kBadPath[] = "{} '{}' {}; expected a path such as /locks";
inline constexpr char kNoProxyCommand[] =
    "{} is empty; expected a command such as 'ssh -W %h:%p bastion', or none";
inline constexpr char kBadProxyCommand[] =
    "{} '{}': a % must be followed by h (host), p (port) or another %";
inline constexpr char kNoTransport[] =
    "{} needs zklock-transport, which is not installed: apt-get install zklock-transport";
inline constexpr char kTwoSecrets[] = "the credentials contain more than one 'sasl' line";
inline constexpr char kSaslNeedsSecret[] =
    "--sasl digest-md5 needs credentials: a line sasl:USER:PASSWORD in --auth-file";
inline constexpr char kSecretNeedsSasl[] = "credentials of the scheme sasl need --sasl digest-md5";
inline constexpr char kLongSecret[] =
    "USER:PASSWORD for --sasl digest-md5 is too long; the maximum is {} bytes";
inline constexpr char kNoService[] =
    "{}: invalid service name '{}'; expected one such as zookeeper";
inline constexpr char kNoKey[] =
    "contains no private key; name the file that contains it with --tls-key";
inline constexpr char kKeyNeedsCert[] = "--tls-key needs --tls-cert";
inline constexpr char kOnlyOptions[] = "--print-config takes only options, not '{}'";

// What is wrong with a path, with a list of servers, and with one server in it.
inline constexpr char kIsEmpty[] = "is empty";
inline constexpr char kNotAbsolute[] = "does not begin with a slash";
inline constexpr char kIsRoot[] = "is the root of all znodes";
inline constexpr char kZooKeepers[] = "is reserved for ZooKeeper";
inline constexpr char kEndsInSlash[] = "ends in a slash";
inline constexpr char kEmptyComponent[] = "contains an empty component";
inline constexpr char kDot[] = "contains '.' as a component";
inline constexpr char kDotDot[] = "contains '..' as a component";
inline constexpr char kNoUtf8[] = "is not valid UTF-8";
inline constexpr char kControlCharacter[] = "contains a control character";
inline constexpr char kRefusedCharacter[] = "contains a character that ZooKeeper refuses in paths";
inline constexpr char kBlankAtEnd[] = "begins or ends with a blank";
inline constexpr char kIsRecord[] = "is or is below '{}', which is a record in the LOCK {}";
inline constexpr char kIsContender[] = "is or is below '{}', which is a contender in the LOCK {}";
inline constexpr char kNamesNone[] = "it names no server";
inline constexpr char kHasScheme[] = "it must not begin with a scheme such as zk://";
inline constexpr char kItsChroot[] = "its chroot {}";
inline constexpr char kServersBehind[] =
    "its chroot contains a comma or a colon (the chroot belongs at the end of the list, once)";
inline constexpr char kHasSemicolon[] = "it contains a ';' (separate servers with commas)";
inline constexpr char kNoBracket[] = "server {} has a [ without a ]";
inline constexpr char kNoIpv6[] = "server {} has no IPv6 address between [ and ]";
inline constexpr char kBehindBracket[] = "server {} has text after ]";
inline constexpr char kSeveralColons[] =
    "server {} has several colons (write an IPv6 address between [ and ])";
inline constexpr char kNoHost[] = "server {} has no host";
inline constexpr char kHasBlank[] = "server {} contains a blank (separate servers with commas)";
inline constexpr char kBadHost[] =
    "server {} contains a character that is not allowed in a host name";
inline constexpr char kBadPort[] = "server {} has no port from 1 to 65535 after the colon";

// Options of exclusive, read, write and try.
inline constexpr char kSimpleShared[] =
    "--dialect simple has neither readers nor writers: use exclusive or try";
inline constexpr char kSimpleQueue[] =
    "--dialect simple has no queue: no --max-queue, no --supersede";
inline constexpr char kManyAlternatives[] = "--any takes at most {} LOCKs, not {}";
inline constexpr char kAlternativeTwice[] = "--any takes each LOCK once: {} is named twice";
inline constexpr char kPermitsOneLock[] =
    "--permits takes one LOCK; use another run for the others";
inline constexpr char kPermitsShared[] =
    "--permits has neither readers nor writers: use exclusive or try";
inline constexpr char kTakesTooMany[] = "cannot take {} of --permits {}";
inline constexpr char kPermitsDialect[] = "--permits works only with --dialect curator";
inline constexpr char kNotForReaders[] = "{} does not work with read: use exclusive, write or try";
inline constexpr char kHistorySimple[] = "--history does not work with --dialect simple";
inline constexpr char kNoReservationId[] =
    "{}: invalid ID '{}'; expected 1 to 64 of A-Z a-z 0-9 . _ : @ -";
inline constexpr char kOfNoCommand[] = "{} applies to a command, but none is given";
inline constexpr char kReserveDialect[] = "{} does not work with --dialect simple";
inline constexpr char kReserveAnyWaits[] =
    "--any with --reserve has to queue: use --wait with a DURATION above 0";
inline constexpr char kAclNeedsCredentials[] = "--acl creator needs credentials: see --auth-file";
inline constexpr char kConflictUnseen[] =
    "--conflict-exit-code 0 needs a command: without one, only the status shows whether the lock "
    "is held or reserved";
inline constexpr char kMaxRunUnused[] =
    "--max-run ({}) has no effect with --on-lost warn: the run has no limit";
inline constexpr char kNoEvents[] = "--events is empty: name a file or a descriptor number";
inline constexpr char kNoDescriptor[] =
    "--events {0}: descriptor {0} is not open for writing (for a file of that name, write ./{0})";
inline constexpr char kCannotAppend[] = "cannot append to --events {}";
inline constexpr char kNoEventsReader[] =
    "cannot append to --events {}, a FIFO that no process has opened for reading";

// --hold.
inline constexpr char kHoldsOnly[] =
    "--hold takes no command: the lock is held for the calling shell";
inline constexpr char kNoProcessNumber[] = "--owner-pid: invalid process ID '{}' (in a shell: $$)";
inline constexpr char kNoSuchProcess[] =
    "--hold: there is no process {}; name one with --owner-pid (in a shell: --owner-pid $$)";
inline constexpr char kUnclearOwner[] =
    "--hold: the parent process is {} (pid {}), which may not be the intended owner; name the "
    "owner with --owner-pid (in a shell: --owner-pid $$)";
inline constexpr char kForeignOwner[] =
    "--hold: process {} belongs to another user and could not be signalled after a loss; run "
    "zklock as that user";

// A zklock that runs under another zklock.
inline constexpr char kNotCovered[] =
    "{} is already held ({}) by an outer zklock, and {} cannot run under it; use that mode in "
    "the outer zklock";

inline constexpr char kWaitsByNoNest[] =
    "{} is already held ({}) by an outer zklock: {} --no-nest would wait for itself forever; omit "
    "--no-nest to run under that zklock, or give --wait";

inline constexpr char kWaitsByReserve[] =
    "{} is already held ({}) by an outer zklock: {} --reserve would wait for itself forever; "
    "reserve it outside that zklock, or give --wait";

inline constexpr char kReservedAbove[] =
    "{} is reserved for {} by an outer zklock: {} would wait for itself; give --reserve {} to run "
    "under the reservation, or --wait";

inline constexpr char kIntervalHeldAbove[] =
    "{} is already held by an outer zklock or for the shell: {} cannot be checked here; give it to "
    "that zklock, or omit it";

inline constexpr char kWaitsBehindWriter[] =
    "{} is already held (read) by an outer zklock, and a writer waits for it: read --no-nest "
    "would wait for the writer forever; omit --no-nest, or give --wait";

inline constexpr char kHolderSilent[] =
    "{} seems to be held for this process by process {}, which does not confirm it: {} might wait "
    "for itself forever; see zklock inspect, or give --wait";
inline constexpr char kHeldByAncestor[] =
    "the lock is held by process {}, below which this one runs, so they wait for each other: "
    "ZKLOCK_HELD is missing; see sudo --preserve-env=ZKLOCK_HELD";

inline constexpr char kHolderCrowded[] =
    "{} seems to be held for this process by process {}, which cannot be asked: too many "
    "connections to its socket; see ss -xp";

inline constexpr char kHeldElsewhere[] =
    "{} is held ({}) by an outer zklock in another PID or time namespace, process {} there, which "
    "cannot be verified: {} cannot run under it; run it in that namespace, or give --no-nest{}";
inline constexpr char kAndWait[] = " and --wait";

inline constexpr char kTooFewLeftAbove[] =
    "{}: outer zklocks hold {} of --permits {}: exclusive --take {} would wait for itself forever; "
    "take fewer, or give --wait";
inline constexpr char kPermitsHeldAbove[] =
    "{}: outer zklocks hold all permits that --permits {} allows: exclusive would wait for itself "
    "forever; allow more, or give --wait";

inline constexpr char kWaitsForOwner[] =
    "{} is held ({}) by an outer zklock, but process {} does not run under it: {} would wait "
    "for itself forever; name a process that does";

// Options of inspect and release.
inline constexpr char kReportTakesNoLock[] =
    "--servers-report takes no LOCK: it is about the servers";
inline constexpr char kNoOutput[] = "--output is empty; name a file";
inline constexpr char kNoDurationLimit[] =
    "{}: invalid duration '{}'; expected [WARN:]CRIT (examples: 2h, 30m:2h)";
inline constexpr char kLimitOrder[] = "{} '{}': WARN is more than CRIT";
inline constexpr char kNoName[] =
    "--contender '{}' is not the name of a znode; 'zklock inspect -v' shows the names";

// Configuration files. The file and the line precede the message.
inline constexpr char kFileUnread[] = "{}: cannot be read: {}; see --config";
inline constexpr char kFileUnused[] = "{}: not used: {}; name it with --config to use it";
inline constexpr char kOtherUsersFile[] = "{} belongs to another user";
inline constexpr char kFileOpenToOthers[] =
    "{}: not safe to use: others may write to {}; see chmod(1), or name it with --config";
inline constexpr char kFileNotRegular[] = "{}: not a regular file; see --config";
inline constexpr char kFileTooLarge[] = "{}: larger than 64 KiB; see --config";
inline constexpr char kLineControl[] = "the line contains a control character";
inline constexpr char kNoSetting[] = "is not of the form 'name = value'";
inline constexpr char kUnknownSetting[] = "unknown option '{}'{}";
inline constexpr char kSetTwice[] = "'{}' is already set in line {}; remove one of the two";
inline constexpr char kOpenQuotes[] =
    "the quotes do not enclose the whole value: put one at each end, or none";

// Credentials. The file and the line number precede the message; the text of the line is not shown.
inline constexpr char kSecretControl[] =
    "the line contains a control character, such as a tab or a carriage return";
inline constexpr char kNoCredential[] = "expected scheme:credential, such as digest:user:password";
inline constexpr char kNoDigest[] = "expected digest:user:password";
inline constexpr char kNoCredentials[] =
    "no credentials found; expected one scheme:credential per line";
inline constexpr char kSecretsUnread[] = "cannot be read: {}; see {}";
inline constexpr char kSecretIsNoFile[] =
    "{}:... is not a file: put that line in a file that only you can read, and name that file with "
    "--auth-file";
inline constexpr char kNoRegularFile[] = "not a regular file; credentials must be in one";
inline constexpr char kNoTlsFile[] = "not a regular file; {} is read for each connection";
inline constexpr char kTooLarge[] = "too large for a file of credentials; see --auth-file";
inline constexpr char kForeignFile[] =
    "belongs to another user, so its credentials are not used; chown it";
inline constexpr char kOpenFile[] =
    "other users can access it, so its credentials are not used; chmod go= it";

}  // namespace zklock::cli::message
