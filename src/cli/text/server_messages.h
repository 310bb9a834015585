#pragma once

/// Messages about the servers, and about a LOCK that cannot be used; see messages.h.
namespace zklock::cli::message {

// No session: what was tried, and each server's answer.
inline constexpr char kNoSuchServer[] = "no ZooKeeper server of that name: {}; see --servers";
/// After a session ended: what the run waited for, and the message about the servers.
inline constexpr char kLostWaiting[] = "waiting for {}: {}; the command was not run";
inline constexpr char kNoServer[] =
    "no ZooKeeper server granted a session within {}: {}; is one running? see --servers";
inline constexpr char kNoServerThroughProxy[] =
    "no ZooKeeper server granted a session within {}: {}; try the --proxy-command by itself: {}";
inline constexpr char kProxyFailed[] =
    "no ZooKeeper server granted a session within {}: {}; the --proxy-command ended with status "
    "{}; try it by itself: {}";
inline constexpr char kNoServerNamed[] =
    "no ZooKeeper server granted a session within {}: {}; this is the default server: name yours "
    "with --servers, in $ZKLOCK_SERVERS or in a configuration file";
/// A session was granted, but is unusable.
inline constexpr char kNoUsableServer[] = "no usable ZooKeeper server: {}";
inline constexpr char kTooSlow[] =
    "{} is free, but a session of {} is not confirmed quickly enough to run anything safely: an "
    "answer took {}, and the servers ping each other every {}; give a longer --session-timeout";
inline constexpr char kPingsTooRare[] =
    "{} is free, but a session of {} is not confirmed quickly enough to run anything safely: the "
    "servers ping each other every {}; do their limits for session timeouts differ?";
inline constexpr char kTriedServer[] = "{} ({})";
inline constexpr char kTriedServers[] = "{} (each: {})";
inline constexpr char kConnectUnanswered[] = "does not answer connection attempts: a firewall?";
inline constexpr char kGrantsNoSession[] =
    "accepts the connection, but grants no session: is it hung?";
inline constexpr char kClosesAtOnce[] =
    "closes the connection at once: no quorum, a TLS port, or maxClientCnxns reached?";
inline constexpr char kNotZooKeeper[] = "answers, but not as a ZooKeeper server: wrong port?";
inline constexpr char kClosedLater[] = "closed the connection";
inline constexpr char kFellSilent[] = "stopped answering: is it hung?";
inline constexpr char kClosesOnRequest[] =
    "closes the connection when it receives a request: is it larger than its jute.maxbuffer?";
inline constexpr char kThrottles[] = "throttles requests: is it overloaded?";
inline constexpr char kNotUnderstood[] = "sent an answer that violates the ZooKeeper protocol";
inline constexpr char kAnswersNothing[] =
    "grants a session, but does not answer requests: is it hung?";
inline constexpr char kHelperClosed[] =
    "the server or the proxy command closed the connection at once: no quorum, maxClientCnxns "
    "reached, or not running?";
inline constexpr char kHelperSilent[] =
    "no answer through the proxy command or TLS: is the server hung?";
inline constexpr char kLoopback[] =
    "not tried: zklock cannot connect to itself over the loopback interface ({}): is it up?";
inline constexpr char kLookupRuns[] = "its name is still being looked up: does DNS answer?";
inline constexpr char kLookupEnded[] = "the lookup of its name ended early";

// The servers refuse.
inline constexpr char kCredentialsRefused[] =
    "the servers rejected the credentials{}; see --auth-file";
inline constexpr char kMaybeUnknownScheme[] = " ({}: they might not know its scheme)";
inline constexpr char kSaslRefused[] = "SASL failed at {}; see --sasl";
inline constexpr char kCredentialsRequired[] = "the servers require credentials; see --auth-file";
inline constexpr char kOtherSchemeRequired[] =
    "the servers require credentials of another scheme, such as SASL; see --sasl";
inline constexpr char kAclRefused[] = "cannot {} {}: the servers rejected the ACL; see --acl";
inline constexpr char kNotAuthorised[] =
    "cannot {} {}: not authorised: {} on {} is missing for {}; see its ACL{}";
/// With the digest scheme, the servers accept any password.
inline constexpr char kOrWrongPassword[] = ", or check the password";
inline constexpr char kNoIdentity[] = "a caller without credentials";
inline constexpr char kByKerberos[] = "the Kerberos principal";
inline constexpr char kByLine[] = "the credentials in {}";
inline constexpr char kByCertificate[] = "the client certificate";

// The LOCK cannot be used as asked.
inline constexpr char kShortSessions[] =
    "{} cannot be used: the servers grant a session timeout of less than 4 seconds; ask for more "
    "with --session-timeout, or raise the servers' maxSessionTimeout";
inline constexpr char kNumbersUsedUp[] =
    "{} cannot be used: its sequence numbers are used up; delete the LOCK while nobody uses it, "
    "or use another";
inline constexpr char kNotContender[] =
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
inline constexpr char kRecordUnknown[] =
    "{} cannot be used with {}: the record in its child '{}' is ephemeral or invalid; delete it";
inline constexpr char kQuotaExceeded[] =
    "{} cannot be used: the hard quota on {} is exceeded; raise it (zkCli.sh: setquota), or delete "
    "znodes below it";
inline constexpr char kQuotaAbove[] =
    "{} cannot be used: the hard quota on it, or on a znode above it, is exceeded; raise it "
    "(zkCli.sh: setquota), or delete znodes";
inline constexpr char kHasPermits[] =
    "{} cannot be used: it is in use as a semaphore, whose holders would ignore this run; use "
    "--permits, or another LOCK";
inline constexpr char kHasNoPermits[] =
    "{} cannot be used: it is in use without permits, by contenders that would ignore this run; "
    "omit --permits, or use another LOCK";
inline constexpr char kOtherPermits[] =
    "{} cannot be used: it is in use with --permits {}; use the same number";
inline constexpr char kUnknownPermits[] =
    "{} cannot be used: another zklock holds a permit, but the data of {}/leases does not say how "
    "many permits there are; wait until that zklock has ended, or write the number there";
inline constexpr char kReservedWithOtherTake[] =
    "{} is reserved for this ID with --take {}; use the same number, or another ID";
inline constexpr char kReservedInOtherMode[] =
    "{} is reserved for this ID as {}, by its child '{}'; use that mode, or another ID";
inline constexpr char kIncompatibleThere[] = "{} cannot be used: its child '{}' is {}";
inline constexpr char kMayOverlap[] = "commands may run at the same time: the child '{}' is {}";

// An incompatible contender, and how to make zklock compatible with it.
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
inline constexpr char kZklockKazoo[] =
    "a zklock contender of --dialect kazoo; use one dialect on all hosts";
inline constexpr char kZklockCurator[] =
    "a zklock contender of --dialect curator; use one dialect on all hosts";
inline constexpr char kCuratorNames[] =
    "a contender with a Curator name, which ignores kazoo's; omit --dialect kazoo, or use another "
    "LOCK";
inline constexpr char kQueues[] =
    "a contender in a queue, which ignores a single-znode lock; omit --dialect simple, or use "
    "another LOCK";

// The servers gave an answer that a correct server never gives, or zklock has a defect.
inline constexpr char kDefect[] = "internal error: {}; please report it";
inline constexpr char kCannot[] = "cannot {} '{}': {}";
inline constexpr char kNotListed[] = "our contender in '{}' exists but is not listed";
inline constexpr char kVanishes[] = "'{}' is deleted every time it is created";
inline constexpr char kNoZnode[] = "no such znode";
inline constexpr char kZnodeExists[] = "the znode already exists";
inline constexpr char kChildOfEphemeral[] = "an ephemeral znode cannot have children";
inline constexpr char kHasChildren[] = "the znode has children";
inline constexpr char kZnodeChanged[] = "the znode was changed in the meantime";
inline constexpr char kUnknownRequest[] = "the server does not support this request";
inline constexpr char kUnexpectedAnswer[] = "unexpected answer";

}  // namespace zklock::cli::message
