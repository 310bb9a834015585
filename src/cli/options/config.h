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
  int line = 0;             ///< from 1
  bool is_systems = false;  ///< from /etc/zklock.conf
};

/// Parses `name = value` lines. Blank lines are ignored, and so is everything after a `#` that
/// starts a line or follows white space; a value in double quotes is taken literally. Errors and
/// origins name `file`. Throws ConfigError for a malformed line, and for a name that is not one of
/// `names` or is set twice.
[[nodiscard]] std::vector<Setting> ParseConfig(std::string_view text, const std::string& file,
                                               const std::vector<std::string_view>& names);

/// Returns the text to write after `name = ` so that it is read as `value`, even with a comment
/// after it; none if no line can express `value`.
[[nodiscard]] std::optional<std::string> ConfigText(std::string_view value);

/// The contents of the configuration files.
struct Config {
  std::vector<Setting> settings;  ///< later ones override earlier ones
  /// Names the user's file and says why it is not used; empty if it is used or absent.
  std::string unused_file;
};

/// Reads `named`, which must exist. Without it, reads /etc/zklock.conf and then
/// $XDG_CONFIG_HOME/zklock.conf (~/.config/zklock.conf if the variable is not set), if they exist.
/// `names`: the names that a file may set. ReadFoundFile() reads these two files: the user's file
/// is not used if we lack permission to read it, or if another user could have put it there. Throws
/// ConfigError if a file cannot be read or used for any other reason, and std::system_error if the
/// system lacks descriptors or memory.
[[nodiscard]] Config ReadConfig(const std::optional<std::string>& named,
                                const std::vector<std::string_view>& names);

}  // namespace zklock::cli
