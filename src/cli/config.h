#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::cli {

/// One line of a configuration file: an option's long name, without dashes, and its text.
struct Setting {
  std::string name;
  std::string value;
  std::string file;
  int line = 0;  ///< from 1
};

/// A configuration that cannot be used. `what()` begins with the file, and the line where there is
/// one: "/etc/zklock.conf:3: ...".
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws, with errno as `error`: std::system_error if the system lacks descriptors or memory, else
/// a ConfigError with `what`.
[[noreturn]] void ThrowUnread(const std::string& file, int error, const std::string& what);

/// Reads lines `name = value`. Blank lines, and what follows a `#` at the start of a line or behind
/// white space, count for nothing; a value in double quotes is taken as it is between them. `file`
/// is for errors and origins. Throws ConfigError for a line that is none, or a name that is no
/// option's (IsConfigurable).
[[nodiscard]] std::vector<Setting> ParseConfig(std::string_view text, const std::string& file);

/// The text behind `name = ` that is read as `value`, also with a comment behind it; none where no
/// line can say it.
[[nodiscard]] std::optional<std::string> ConfigText(std::string_view value);

/// Whether a configuration file may set this option, of whichever subcommand.
[[nodiscard]] bool IsConfigurable(std::string_view name);
/// All of them, in the order of --help.
[[nodiscard]] const std::vector<std::string_view>& ConfigurableNames();

/// What the configuration files say.
struct Config {
  std::vector<Setting> settings;  ///< the stronger ones later
  /// The user's file and why it is not used, as a message; empty if it is used or absent.
  std::string unused_file;
};

/// Reads `named`, which must be there; without it /etc/zklock.conf, then
/// $XDG_CONFIG_HOME/zklock.conf (~/.config if not set), if they are there. The user's file is not
/// used if it is not ours to read or belongs to another user (not root). Throws ConfigError if
/// another file cannot be read, and std::system_error if the system lacks descriptors or memory.
[[nodiscard]] Config ReadConfig(const std::optional<std::string>& named);

}  // namespace zklock::cli
