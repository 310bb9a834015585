#pragma once

#include <string>
#include <vector>

#include "cli/options/option_table.h"

namespace zklock::cli {

/// Returns the output of `zklock --help`.
[[nodiscard]] std::string OverviewText();
/// Returns the output of `zklock --version`, with the client library's version, and whether TLS and
/// SASL are available.
[[nodiscard]] std::string VersionText();
/// Returns the output of `zklock SUBCOMMAND --help`: all options of the subcommand. If it runs a
/// command and `arguments` contain -h but not --help, only the options that most runs need.
[[nodiscard]] std::string HelpText(const SubcommandSpec& subcommand,
                                   const std::vector<std::string>& arguments);

}  // namespace zklock::cli
