#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/found_file.h"

namespace zklock::cli {

/// One line of a configuration file: an option's long name, without dashes, and its value.
struct Setting {
  std::string name;
  std::string value;
  std::string file;
  int line = 0;  ///< from 1
};

/// Reads lines `name = value`. Blank lines are ignored, and so is everything after a `#` that
/// starts a line or follows white space; a value in double quotes is used as it is between them.
/// `file` is for errors and origins. Throws ConfigError for a line of another form, or a name that
/// is not one of `names`, or is set twice.
[[nodiscard]] std::vector<Setting> ParseConfig(std::string_view text, const std::string& file,
                                               const std::vector<std::string_view>& names);

/// The text to write after `name = ` so that it is read as `value`, also with a comment after it;
/// none if no line can express it.
[[nodiscard]] std::optional<std::string> ConfigText(std::string_view value);

/// The contents of the configuration files.
struct Config {
  std::vector<Setting> settings;  ///< the stronger ones later
  /// A message with the user's file and why it is not used; empty if it is used or absent.
  std::string unused_file;
};

/// Reads `named`, which must exist; if it is not given, /etc/zklock.conf and then
/// $XDG_CONFIG_HOME/zklock.conf (~/.config if the variable is not set), if they exist. `names` are
/// the names that a file may set. The last two are read by ReadFoundFile: the user's file is not
/// used if we may not read it, or if it is in another user's hands. Throws ConfigError if a file
/// cannot be read or used otherwise, and std::system_error if the system lacks descriptors or
/// memory.
[[nodiscard]] Config ReadConfig(const std::optional<std::string>& named,
                                const std::vector<std::string_view>& names);

}  // namespace zklock::cli
