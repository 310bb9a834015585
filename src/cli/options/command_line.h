#pragma once

#include "cli/options/options.h"

namespace zklock::cli {

/// Reads the arguments, the environment (ZKLOCK_...), the configuration files and the files that
/// options name. Removes the variables that hold credentials from the environment. Throws
/// UsageError, ConfigError (cli/options/config.h) and UnsafeFile (cli/options/credentials.h).
[[nodiscard]] ParsedCommandLine ParseCommandLine(int argc, const char* const* argv);

/// Returns whether the arguments, even if they are invalid, ask for `inspect --check`. If so, a
/// monitoring system expects every error as a line on standard output, with status 3.
[[nodiscard]] bool IsCheck(int argc, const char* const* argv);

}  // namespace zklock::cli
