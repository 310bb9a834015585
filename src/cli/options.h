#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "process/supervisor.h"
#include "protocol/contender_name.h"
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
  Duration connect_timeout = std::chrono::seconds(15);
  Duration session_timeout = std::chrono::seconds(30);
};

/// How much is said on standard error.
enum class Verbosity { kQuiet, kNormal, kVerbose };

/// What becomes of the command when the lock is lost.
enum class OnLost {
  kStop,  ///< it is ended before the lease is
  kWarn,  ///< said; it runs on, and mutual exclusion is off
};

/// exclusive, read, write, try.
struct RunOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  std::string lock;  ///< an absolute, checked path, below the chroot
  protocol::Mode mode = protocol::Mode::kExclusive;
  bool try_only = false;         ///< `try`, --nonblock, --wait 0
  std::optional<Duration> wait;  ///< none: for ever
  int conflict_exit_code = 75;
  Duration kill_after = std::chrono::seconds(5);
  int stop_signal = 15;
  OnLost on_lost = OnLost::kStop;
  process::Descendants descendants = process::Descendants::kLeave;
  std::string label;
  bool publish_command = false;
  std::vector<std::string> command;  ///< word for word; with -c: /bin/sh -c LINE
};

struct InspectOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  std::string path;  ///< a LOCK or a tree of them; absolute; "/" when that is the root asked for
};

struct ReleaseOptions {
  ServerOptions server;
  Verbosity verbosity = Verbosity::kNormal;
  std::string lock;
  std::string contender;  ///< a child of `lock`, exactly
  bool yes = false;       ///< do not ask
};

/// --help, --version: text for standard output, nothing else to do.
struct Text {
  std::string text;
};

using CommandLine = std::variant<RunOptions, InspectOptions, ReleaseOptions, Text>;

/// Reads argv and the environment (ZKLOCK_…). Throws UsageError; touches nothing else.
[[nodiscard]] CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace zklock::cli
