#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace zklock::cli {

/// The options of each family of subcommands. `arguments` are the words between the subcommand and
/// the first `--`, `command` those behind it. They throw UsageError and ConfigError.

/// exclusive, read, write and try, whichever `name` is.
[[nodiscard]] CommandLine ReadRun(const std::string& name,
                                  const std::vector<std::string>& arguments,
                                  const std::optional<std::vector<std::string>>& command);
/// What --print-config prints: each option's value and where it comes from.
[[nodiscard]] Text ReadPrintConfig(const std::vector<std::string>& arguments);
[[nodiscard]] CommandLine ReadInspect(const std::vector<std::string>& arguments, bool has_command);
[[nodiscard]] CommandLine ReadRelease(const std::vector<std::string>& arguments, bool has_command);

}  // namespace zklock::cli
