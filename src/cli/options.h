#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "process/supervisor.h"
#include "protocol/contender_name.h"
#include "zookeeper/access.h"
#include "zookeeper/server_list.h"

namespace zklock::cli {

/// Wrong words on the command line. `what()` is the line; `subcommand` whose help would tell, empty
/// for zklock's own.
class UsageError : public std::runtime_error {
 public:
  UsageError(const std::string& what, std::string subcommand_name)
      : std::runtime_error(what), subcommand(std::move(subcommand_name)) {}
  std::string subcommand;
};

/// Where and who: what every subcommand takes.
struct ServerOptions {
  zookeeper::ServerList servers;
  zookeeper::Access access;
  Duration connect_timeout = std::chrono::seconds(15);
  Duration session_timeout = std::chrono::seconds(30);
  std::string unused_config;  ///< see Config::unused_file
};

/// How much is said on standard error.
enum class Verbosity { kQuiet, kNormal, kVerbose };

/// What becomes of the command when the lock is lost.
enum class OnLost {
  kStop,  ///< it is ended before the lease is
  kWarn,  ///< said; it runs on, and mutual exclusion is off
};

/// One of the LOCKs that a run wants.
struct WantedLock {
  std::string path;  ///< absolute, checked, below the chroot
  protocol::Mode mode = protocol::Mode::kExclusive;
  friend bool operator==(const WantedLock&, const WantedLock&) = default;
};

/// How a waiter is told where it stands.
enum class ProgressStyle {
  kAuto,   ///< kBar on a terminal, else kPlain
  kBar,    ///< a live line
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
  std::optional<Duration> wait;  ///< none: for ever
  int conflict_exit_code = 75;
  Duration kill_after = std::chrono::seconds(5);
  int stop_signal = 15;
  std::optional<Duration> min_interval;  ///< from the begin of the last success
  std::optional<std::size_t> permits;    ///< a semaphore of so many; then one LOCK
  std::optional<std::size_t> max_queue;  ///< leave when so many wait already
  bool supersede = false;                ///< leave when a newer one comes that has it too
  OnLost on_lost = OnLost::kStop;
  bool no_nest = false;  ///< queue although a zklock above holds the LOCK for us
  process::Descendants descendants = process::Descendants::kLeave;
  ProgressStyle progress = ProgressStyle::kAuto;
  std::string events;        ///< a descriptor's number or a file; empty: none
  std::string events_place;  ///< where a configuration names it: file and line
  std::string label;
  bool publish_command = false;
  bool hold = false;                      ///< no command: hold for the owner
  std::optional<std::int64_t> owner_pid;  ///< none: the parent
  int on_lost_signal = 15;                ///< what the owner gets when the lock is lost
  std::vector<std::string> command;       ///< word for word; with -c: /bin/sh -c LINE
};

struct InspectOptions {
  enum class Form { kText, kJson, kDot };
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  Form form = Form::kText;
  bool watch = false;
  bool mine = false;        ///< only whether what is held for us still is
  bool by_status = false;   ///< nothing is printed
  bool with_names = false;  ///< of the contenders
  /// A LOCK or a tree of them; absolute; "/" when that is the root asked for. With `mine` a LOCK,
  /// or empty: all of them.
  std::string path;
};

struct ReleaseOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  std::string lock;
  /// Who is meant.
  enum class Target {
    kOwn,        ///< what the calling shell holds by --hold
    kContender,  ///< `contender`
    kHolders,    ///< whoever holds
    kAll,        ///< and whoever waits
  };
  Target target = Target::kOwn;
  std::string contender;  ///< a child of `lock`, exactly
  bool force = false;     ///< delete, do not ask
  std::string reason;     ///< shown to who loses it
  bool wait = false;      ///< until those who were asked have gone
  bool yes = false;       ///< do not ask for confirmation
};

/// --help, --version: text for standard output, nothing else to do.
struct Text {
  std::string text;
};

using CommandLine = std::variant<RunOptions, InspectOptions, ReleaseOptions, Text>;

/// Reads argv, the environment (ZKLOCK_…) and the files that these name; what says who we are
/// leaves the environment. Throws UsageError, ConfigError (cli/config.h) and UnsafeFile
/// (cli/credentials.h); touches nothing else.
[[nodiscard]] CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace zklock::cli
