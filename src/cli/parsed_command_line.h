#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "cli/option_table.h"

namespace zklock::cli {

/// A usage error. `what()` is the message; `subcommand` is the one whose help to point to, empty
/// for zklock's own.
class UsageError : public std::runtime_error {
 public:
  UsageError(const std::string& what, std::string subcommand_name)
      : std::runtime_error(what), subcommand(std::move(subcommand_name)) {}
  std::string subcommand;
};

/// --help, --version, --print-config: text for standard output, and nothing else to do.
struct Text {
  std::string text;
};

/// What one call of zklock is to do.
using ParsedCommandLine = std::variant<RunOptions, InspectOptions, ReleaseOptions, Text>;

}  // namespace zklock::cli
