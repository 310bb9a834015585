#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/option_table.h"

namespace zklock::cli {

// The rules of each family of subcommands: which options go together, and what they mean together.
// `arguments` are the words between the subcommand and the first `--`, `command` those after it.
// They throw what ParseCommandLine throws.

/// Reads the options of exclusive, read, write and try.
[[nodiscard]] ParsedCommandLine ReadRun(const SubcommandSpec& subcommand,
                                        const std::vector<std::string>& arguments,
                                        const std::optional<std::vector<std::string>>& command);
/// Handles --print-config: shows each option's value and where it comes from.
[[nodiscard]] ParsedCommandLine ReadPrintConfig(const std::vector<std::string>& arguments);
[[nodiscard]] ParsedCommandLine ReadInspect(const std::vector<std::string>& arguments,
                                            bool has_command);
[[nodiscard]] ParsedCommandLine ReadRelease(const std::vector<std::string>& arguments,
                                            bool has_command);

}  // namespace zklock::cli
