#pragma once

#include <string>
#include <vector>

#include "cli/options/option_table.h"

namespace zklock::cli {

/// `zklock --help`.
[[nodiscard]] std::string OverviewText();
/// `zklock --version`: also the client library's version, and whether it has TLS and SASL.
[[nodiscard]] std::string VersionText();
/// `zklock SUBCOMMAND --help`: the options of the table. If `arguments` have only -h, those that
/// most runs need.
[[nodiscard]] std::string HelpText(const SubcommandSpec& subcommand,
                                   const std::vector<std::string>& arguments);

}  // namespace zklock::cli
