#pragma once

#include <string>

#include "cli/option_table.h"

namespace zklock::cli {

/// `zklock --help`.
[[nodiscard]] std::string OverviewText();
/// `zklock --version`: also the client library's version, and whether it has TLS and SASL.
[[nodiscard]] std::string VersionText();
/// `zklock SUBCOMMAND --help`: the options are those of the table.
[[nodiscard]] std::string HelpText(const SubcommandSpec& subcommand);

}  // namespace zklock::cli
