#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "process/command_spec.h"
#include "process/transport_spec.h"
#include "protocol/contender_name.h"
#include "zookeeper/access.h"
#include "zookeeper/server_list.h"

// The options of all subcommands: a table with one row for each, from which the parser, the help,
// the completion, the configuration file and --print-config are made, and the fields that the rows
// store their values in.

namespace zklock::cli {

/// The servers and how to reach them: options of every subcommand.
struct ServerOptions {
  zookeeper::ServerList servers;
  zookeeper::Access access;
  process::TransportSpec transport;
  std::string servers_text;      ///< `servers`, as the user wrote them
  std::string servers_origin;    ///< see OptionValue::OriginText
  bool names_no_server = false;  ///< `servers` is the default
  std::string root;              ///< the znode that relative LOCKs are below
  bool has_own_root = false;     ///< `root` is not the default
  Duration connect_timeout{};
  Duration session_timeout{};
  std::string unused_config;  ///< see Config::unused_file
};

/// How much is reported on standard error.
enum class Verbosity { kQuiet, kNormal, kVerbose };

/// Whom a run asks to leave that is before it in the queue.
enum class Preempt { kNobody, kWaiters, kAll };

/// What happens to the command when the lock is lost.
enum class OnLost {
  kStop,  ///< it is ended before the lease ends
  kWarn,  ///< the loss is reported; the command runs on without mutual exclusion
};

/// Whether the command gets a cgroup of its own.
enum class Contain {
  kAuto,     ///< where zklock may make one
  kRequire,  ///< it is not run without one
  kOff,
};

/// One of the LOCKs that a run acquires.
struct WantedLock {
  std::string path;  ///< absolute, checked, below the chroot
  protocol::Mode mode = protocol::Mode::kExclusive;
  friend bool operator==(const WantedLock&, const WantedLock&) = default;
};

/// How the wait in the queue is shown.
enum class ProgressStyle {
  kAuto,   ///< kBar on a terminal, else kPlain
  kBar,    ///< one line, redrawn each second
  kPlain,  ///< a line now and then
  kNone,
};

/// exclusive, read, write, try.
struct RunOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  std::vector<WantedLock> locks;  ///< by path, each once: the order in which all callers queue
  protocol::Dialect dialect = protocol::Dialect::kCurator;
  bool try_only = false;         ///< `try`, --nonblock, --wait 0
  std::optional<Duration> wait;  ///< none: no limit
  int conflict_exit_code = 0;
  Duration kill_after{};
  int stop_signal = 0;
  std::optional<Duration> min_interval;  ///< since the start of the last successful run
  std::optional<Duration> once_per;      ///< since the start of the last run with --once-per
  std::size_t history = 0;               ///< how many runs to keep in last-run; 0: none
  std::optional<std::size_t> permits;    ///< the permits of a semaphore; then there is one LOCK
  std::string reserve;                   ///< the ID of a reservation to make or find; empty: none
  bool resumes = false;                  ///< it is only to be found
  Preempt preempt = Preempt::kNobody;
  std::optional<Duration> reserve_for;   ///< when a new reservation ends; none: when released
  std::string reserve_reason;            ///< of a new reservation
  std::optional<std::size_t> max_queue;  ///< leave if this many already wait
  bool supersede = false;                ///< leave when a newer contender with --supersede arrives
  OnLost on_lost = OnLost::kStop;
  bool no_nest = false;  ///< queue although a zklock above holds the LOCK for us
  process::Descendants descendants = process::Descendants::kLeave;
  Contain contain = Contain::kAuto;
  ProgressStyle progress = ProgressStyle::kAuto;
  std::string events;        ///< a descriptor's number or a file; empty: none
  std::string events_place;  ///< file and line, if a configuration file sets it
  std::string label;
  bool publish_command = false;
  bool dry_run = false;                   ///< only show what would happen
  bool hold = false;                      ///< no command: hold for the owner
  std::optional<std::int64_t> owner_pid;  ///< none: the parent
  int on_lost_signal = 0;                 ///< sent to the owner when the lock is lost
  std::vector<std::string> command;       ///< word for word; with -c: /bin/sh -c LINE

  /// Those of --min-interval and --once-per that were given.
  [[nodiscard]] std::vector<std::string_view> Intervals() const {
    std::vector<std::string_view> given;
    if (min_interval) given.emplace_back("--min-interval");
    if (once_per) given.emplace_back("--once-per");
    return given;
  }
};

/// A limit of `inspect --check`. Durations are in milliseconds.
struct CheckLimit {
  std::optional<std::int64_t> warning;
  std::int64_t critical = 0;
  friend bool operator==(const CheckLimit&, const CheckLimit&) = default;
};

struct CheckLimits {
  std::optional<CheckLimit> held;     ///< since the oldest holder got the lock
  std::optional<CheckLimit> wait;     ///< since the oldest waiter joined the queue
  std::optional<CheckLimit> waiting;  ///< how many wait
  std::optional<CheckLimit> age;      ///< since the last successful run began
  bool last_run = false;              ///< whether the last run may not have failed or been lost
};

struct InspectOptions {
  enum class Form { kText, kJson, kDot, kCheck, kMetrics };
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  Form form = Form::kText;
  bool watch = false;
  bool mine = false;            ///< only check what is held for the caller
  bool servers_report = false;  ///< judge the servers; there is no path
  bool history = false;         ///< the last runs under `path`, a LOCK
  std::size_t most_runs = std::numeric_limits<std::size_t>::max();
  bool by_status = false;   ///< print nothing
  bool with_names = false;  ///< --verbose
  CheckLimits limits;       ///< of kCheck
  std::string output;       ///< the file for kMetrics; empty: standard output
  /// A LOCK or a tree of them; absolute; "/" for everything. With `mine` a LOCK, or empty for all.
  std::string path;
  std::vector<std::string> paths;  ///< of kCheck, which takes several, in place of `path`
};

struct ReleaseOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  std::string lock;
  /// The contenders to release.
  enum class Target {
    kOwn,        ///< the one that the calling shell holds with --hold
    kContender,  ///< `contender`
    kPosition,   ///< that at `position`
    kHost,       ///< those of `host`
    kHolders,
    kAll,          ///< holders and waiters
    kReservation,  ///< the reservation for `reserve`, in each of `locks`
  };
  Target target = Target::kOwn;
  std::vector<std::string> locks;  ///< with kReservation, in place of `lock`
  std::string reserve;
  std::string contender;                ///< the name of a child of `lock`
  std::optional<std::size_t> position;  ///< in the queue, from 1, as inspect shows it
  std::string host;                     ///< as inspect shows it
  bool force = false;                   ///< delete the contender instead of asking its program
  std::string reason;                   ///< shown to the loser
  bool wait = false;                    ///< until the contenders that were asked are gone
  bool yes = false;                     ///< do not ask for confirmation
  bool dry_run = false;                 ///< only show what would be released
};

/// What the rows of the table store into; each subcommand uses its part.
struct OptionFields {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  bool dry_run = false;
  RunOptions run;
  InspectOptions inspect;
  ReleaseOptions release;
};

/// A set of subcommands, as bits.
using Subcommands = unsigned;
inline constexpr Subcommands kExclusive = 1;
inline constexpr Subcommands kRead = 2;
inline constexpr Subcommands kWrite = 4;
inline constexpr Subcommands kTry = 8;
inline constexpr Subcommands kInspect = 16;
inline constexpr Subcommands kRelease = 32;

struct SubcommandSpec {
  std::string_view name;
  Subcommands bit;
  std::string_view arguments;  ///< of the usage line
  std::string_view summary;    ///< for completion
  [[nodiscard]] bool RunsCommand() const;
};

/// Where an option's value comes from, the stronger ones later.
enum class Origin { kDefault, kConfig, kEnvironment, kArgument };

struct OptionValue;

/// Under which heading --help shows an option.
enum class Section {
  kView,     ///< of inspect
  kTargets,  ///< of release
  kWaiting,
  kSharing,
  kReservations,
  kCommand,
  kServers,
  kOutput,
};

/// One option: a row of the table. Its texts are literals.
struct OptionSpec {
  char letter = '\0';         ///< 'w' for -w; none: 0
  std::string_view name;      ///< "wait" for --wait; empty: a letter only
  std::string_view alias;     ///< another long name, neither in help nor in completion
  std::string_view metavar;   ///< "DURATION", "stop|warn"; empty: a flag
  std::string_view fallback;  ///< the default, as text; empty: none
  std::string_view help;      ///< the default is appended
  Section section = Section::kOutput;
  bool is_common = false;  ///< -h shows it, too
  Subcommands subcommands = 0;
  std::string_view environment;  ///< the variable that stands in for it
  bool in_file = false;          ///< whether a configuration file may set it
  /// Which lock it is depends on the value: an empty variable is an error, not the default.
  bool decides_lock = false;
  bool repeatable = false;  ///< takes a list; otherwise the last one given counts
  /// Checks and stores the value; null: the subcommand reads it from the Grammar. Returns what is
  /// wrong with the value, or "". May throw ConfigError and UnsafeFile for a file that it names.
  std::string (*store)(const OptionValue&, OptionFields&) = nullptr;

  [[nodiscard]] bool IsFlag() const { return metavar.empty(); }
  /// "--wait", or "-c": its name in messages.
  [[nodiscard]] std::string Name() const;
  /// Whether it is the option of `word`: "-w", "--wait", "--wait=5s", or the alias.
  [[nodiscard]] bool HasName(std::string_view word) const;
  /// `help` with the default.
  [[nodiscard]] std::string Help() const;
  /// The words of a `metavar` such as "stop|warn"; none if it is not a choice of words.
  [[nodiscard]] std::vector<std::string> Choices() const;
};

/// What each of some options excludes or requires among the others of its subcommand, whatever
/// their values are. Names are as in OptionSpec::Name, separated by blanks.
struct OptionRule {
  enum class Kind {
    kExcludes,  ///< each of `others`, but not itself
    kRequires,  ///< one of `others`
  };
  Subcommands subcommands = 0;
  std::string_view options;
  Kind kind = Kind::kExcludes;
  std::string_view others;
  std::string_view why;  ///< the end of the message; may be empty
  /// The options count only as arguments: in a file they are defaults of all runs.
  bool only_arguments = false;
};

/// An option's value in one run.
struct OptionValue {
  const OptionSpec* spec = nullptr;
  bool flag = false;
  std::string text;  ///< of an option that is no flag: the default, if it was not given
  std::vector<std::string> list;
  Origin origin = Origin::kDefault;
  std::string place;  ///< file and line in a configuration file

  [[nodiscard]] bool WasGiven() const { return origin != Origin::kDefault; }
  /// "default", "$ZKLOCK_SERVERS", "/etc/zklock.conf:3", "argument".
  [[nodiscard]] std::string OriginText() const;
  /// Whether it was given or has a default.
  [[nodiscard]] bool IsSet() const { return WasGiven() || !text.empty(); }
};

/// The table, in the order of the help.
[[nodiscard]] std::span<const OptionSpec> OptionTable();
/// In the order in which they are checked.
[[nodiscard]] std::span<const OptionRule> OptionRules();
/// The names in a list of OptionRule.
[[nodiscard]] std::vector<std::string_view> NamesIn(std::string_view list);
/// The rows of a subcommand.
[[nodiscard]] std::vector<const OptionSpec*> OptionsOf(Subcommands subcommand);
/// The names that a configuration file can set, in the order of the table.
[[nodiscard]] const std::vector<std::string_view>& ConfigurableNames();

[[nodiscard]] std::span<const SubcommandSpec> SubcommandTable();
/// Null if there is none of that name.
[[nodiscard]] const SubcommandSpec* FindSubcommand(std::string_view name);
/// `zklock --print-config`, which takes the options of `exclusive`.
[[nodiscard]] const SubcommandSpec& PrintConfigSpec();

}  // namespace zklock::cli
