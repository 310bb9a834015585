#pragma once

#include "cli/options/options.h"

namespace zklock::cli {

/// Reads the arguments, the environment (ZKLOCK_...) and the files that these name. The variables
/// that hold credentials are removed from the environment. Throws UsageError, ConfigError
/// (cli/options/config.h) and UnsafeFile (cli/options/credentials.h).
[[nodiscard]] ParsedCommandLine ParseCommandLine(int argc, const char* const* argv);

/// Whether the arguments, which may be wrong, ask for `inspect --check`. A monitoring system then
/// expects each error as a line on standard output and status 3.
[[nodiscard]] bool IsCheck(int argc, const char* const* argv);

}  // namespace zklock::cli
