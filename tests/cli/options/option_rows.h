#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/zklock.h"

namespace zklock::test {

/// The state in which a subcommand finds its LOCK.
enum class Situation {
  kFree,
  kBusy,         ///< another program holds it, and zklock does not wait
  kFreed,        ///< another program holds it, and releases it while zklock waits
  kNested,       ///< a zklock above this one holds it
  kHeldByShell,  ///< the shell above zklock holds it with --hold
  kNoServer,     ///< nothing listens on the server's port
};
[[nodiscard]] std::string Name(Situation situation);

struct Outcome {
  int status = 0;
  std::string out = {};  ///< standard output contains this text; empty: it is empty
};
using Outcomes = std::map<Situation, Outcome>;

/// An option with a value, and the outcome of a subcommand with that option in each situation.
///
/// In `words`, OTHER is a free LOCK, FILE a new file, CONFIG a configuration file, CREDENTIALS a
/// file of credentials, SERVERS the servers, PATIENCE a timeout, SHELL the pid of the shell that
/// runs zklock, and NAME the contender that holds LOCK.
struct Row {
  std::string option;  ///< as in --help: "--wait", "-c"
  Words words;
  Outcomes outcomes;
  Words holder = {};                ///< options of the zklock that holds LOCK
  bool decides_to_wait = true;      ///< determines whether to wait: gets no --nonblock in kBusy
  bool has_command = true;          ///< `-- echo ran` follows LOCK
  bool talks = false;               ///< prints messages even on success
  bool is_default_in_file = false;  ///< only the argument is refused: no outcome for a file
};
using Rows = std::vector<Row>;

/// Returns the options of exclusive, read, write or try.
[[nodiscard]] Rows RunRows(const std::string& subcommand);
/// Returns the same options with --hold.
[[nodiscard]] Rows HoldRows(const std::string& subcommand);
[[nodiscard]] Rows ReleaseRows();
[[nodiscard]] Rows InspectRows();

}  // namespace zklock::test
