#pragma once

#include "cli/parsed_command_line.h"

namespace zklock::cli {

/// Reads the arguments, the environment (ZKLOCK_...) and the files that these name. The variables
/// that hold credentials are removed from the environment. Throws UsageError, ConfigError
/// (cli/config.h) and UnsafeFile (cli/credentials.h).
[[nodiscard]] ParsedCommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace zklock::cli
