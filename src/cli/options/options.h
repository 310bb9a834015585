#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "process/transport/transport_spec.h"
#include "process/tree/command_spec.h"
#include "protocol/contender_name.h"
#include "zookeeper/access.h"
#include "zookeeper/server_list.h"

// The options of each subcommand, checked and converted.

namespace zklock::cli {

/// The servers and how to reach them: options of every subcommand.
struct ServerOptions {
  zookeeper::ServerList servers;
  zookeeper::Access access;
  process::TransportSpec transport;
  std::string servers_text;      ///< `servers`, as the user wrote them
  std::string servers_origin;    ///< see OptionValue::OriginText
  bool names_no_server = false;  ///< `servers` is the default
  std::string root;              ///< relative LOCKs are below this znode
  bool has_own_root = false;     ///< `root` is not the default
  Duration connect_timeout{};
  Duration session_timeout{};
  bool asks_session_timeout = false;  ///< `session_timeout` is not the default
  std::string unused_config;          ///< see Config::unused_file
};

/// How much is reported on standard error.
enum class Verbosity { kQuiet, kNormal, kVerbose };

/// Which contenders ahead of it a run asks to leave.
enum class Preempt { kNobody, kWaiters, kAll };

/// What happens to the command when the lock is lost.
enum class OnLost {
  kStop,  ///< it is terminated before the lease ends
  kWarn,  ///< the loss is reported; the command runs on without mutual exclusion
};

/// Whether the command gets a cgroup of its own.
enum class Contain {
  kAuto,     ///< if zklock may create one
  kRequire,  ///< the command is not run without one
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
  kAuto,   ///< kBar on a terminal, otherwise kPlain
  kBar,    ///< one line, redrawn each second
  kPlain,  ///< a line now and then
  kNone,
};

/// Options of exclusive, read, write and try.
struct RunOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  /// Each LOCK once: sorted by path, so that all runs queue in the same order; with `any`, in the
  /// given order of preference.
  std::vector<WantedLock> locks;
  bool any = false;  ///< one of `locks` is enough; there are at least two
  protocol::Dialect dialect = protocol::Dialect::kCurator;
  std::string subcommand;        ///< its name, for the hint after an error
  bool try_only = false;         ///< `try`, --nonblock, --wait 0
  std::optional<Duration> wait;  ///< none: no limit
  int conflict_exit_code = 0;
  Duration kill_after{};
  std::optional<Duration> max_run;
  int stop_signal = 0;
  std::optional<Duration> min_interval;  ///< since the start of the last successful run
  std::optional<Duration> once_per;      ///< since the start of the last run with --once-per
  std::size_t history = 0;               ///< how many runs to keep in last-run; 0: none
  std::optional<std::size_t> permits;    ///< how many a semaphore has; only with a single LOCK
  std::size_t take = 1;                  ///< how many of `permits` to take
  std::string reserve;                   ///< the ID of a reservation to make or find; empty: none
  bool resumes = false;                  ///< the reservation must already exist
  Preempt preempt = Preempt::kNobody;
  std::optional<Duration> reserve_for;   ///< how long the reservation lasts; none: until released
  std::string reserve_reason;            ///< for the reservation, or for --preempt
  std::optional<std::size_t> max_queue;  ///< leave if this many already wait
  bool supersede = false;                ///< leave when a newer contender with --supersede arrives
  OnLost on_lost = OnLost::kStop;
  bool no_nest = false;  ///< queue even if an outer zklock holds the LOCK for us
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

  /// Returns which of --min-interval and --once-per were given.
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
  bool last_run = false;              ///< whether a failed or lost last run is critical
};

struct InspectOptions {
  enum class Form { kText, kJson, kDot, kCheck, kMetrics };
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  Form form = Form::kText;
  bool watch = false;
  bool mine = false;            ///< only check what is held for the caller
  bool servers_report = false;  ///< report on the servers; there is no path
  bool history = false;         ///< show the last runs under `path`, a LOCK
  std::size_t most_runs = std::numeric_limits<std::size_t>::max();
  bool by_status = false;   ///< --quiet: print nothing
  bool with_names = false;  ///< --verbose
  CheckLimits limits;       ///< for kCheck
  std::string output;       ///< the file for kMetrics; empty: standard output
  /// The absolute path of a LOCK or a tree of LOCKs; "/" for everything. With `mine`, the path of a
  /// LOCK; empty for all.
  std::string path;
  bool is_root = false;            ///< `path` is --root, because no path was named
  std::vector<std::string> paths;  ///< for kCheck, which takes several; replaces `path`
};

struct ReleaseOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  std::string lock;
  /// The contenders to release.
  enum class Target {
    kOwn,        ///< the one that the calling shell holds with --hold
    kContender,  ///< `contender`
    kPosition,   ///< the one at `position`
    kHost,       ///< all contenders that run on `host`
    kHolders,
    kAll,          ///< holders and waiters
    kReservation,  ///< the reservation for `reserve`, in each of `locks`
  };
  Target target = Target::kOwn;
  std::vector<std::string> locks;  ///< with kReservation; replaces `lock`
  std::string reserve;
  bool any = false;                     ///< with kReservation: one of `locks` is enough
  std::string contender;                ///< the name of a child of `lock`
  std::optional<std::size_t> position;  ///< in the queue, from 1, as inspect shows it
  std::string host;                     ///< as inspect shows it
  bool force = false;                   ///< delete the contender instead of asking its program
  std::string reason;                   ///< shown to those who lose the lock
  bool wait = false;                    ///< wait until the contenders that were asked are gone
  bool yes = false;                     ///< do not ask for confirmation
  bool dry_run = false;                 ///< only show what would be released
};

/// A usage error. `what()` is the message. `subcommand` is the one whose help the user should see;
/// empty for zklock's own help.
class UsageError : public std::runtime_error {
 public:
  UsageError(const std::string& what, std::string subcommand_name)
      : std::runtime_error(what), subcommand(std::move(subcommand_name)) {}
  std::string subcommand;
};

/// The output of --help, --version or --print-config, which do nothing but print it.
struct Text {
  std::string text;
};

/// What one invocation of zklock should do.
using ParsedCommandLine = std::variant<RunOptions, InspectOptions, ReleaseOptions, Text>;

}  // namespace zklock::cli
