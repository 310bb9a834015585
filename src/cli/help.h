#pragma once

#include <string>

namespace zklock::cli {

/// `zklock --help`.
[[nodiscard]] std::string OverviewText();
/// `zklock --version`: with the client library's version and whether it has TLS and SASL.
[[nodiscard]] std::string VersionText();
/// What stands below the options in `zklock SUBCOMMAND --help`.
[[nodiscard]] std::string RunFooter();
[[nodiscard]] std::string InspectFooter();
[[nodiscard]] std::string ReleaseFooter();

}  // namespace zklock::cli
