#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "zookeeper/access.h"

namespace zklock::cli {

/// A file of credentials that other users can read or write. `what()` begins with its name.
class UnsafeFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The credentials in a text: one `scheme:credential` a line, used literally; empty lines and lines
/// that begin with '#' are ignored. `source` names the text in errors, which contain no part of it.
/// Throws ConfigError.
[[nodiscard]] std::vector<zookeeper::AuthInfo> ParseCredentials(std::string_view text,
                                                                const std::string& source);

/// Opens a regular file that belongs to this user or root, and that no other user can read or
/// write. Throws UnsafeFile, and ConfigError, which names the option.
[[nodiscard]] UniqueFd OpenSecret(const std::string& path, std::string_view option);
/// Throws ConfigError, which names the option, if the file cannot be read.
void RequireReadable(const std::string& path, std::string_view option);
/// Throws ConfigError if the file of a certificate contains no private key. Does nothing if it
/// cannot be read, or is too large to tell.
void RequireKey(const std::string& path);

/// The credentials in a regular file that belongs to this user or root, and that no other user can
/// read or write. Throws UnsafeFile, ConfigError.
[[nodiscard]] std::vector<zookeeper::AuthInfo> ReadCredentialsFile(const std::string& path);

/// A variable's value; none if it is unset or empty. The variable is removed from the environment,
/// and its value is erased from memory, since /proc/PID/environ shows that.
[[nodiscard]] std::optional<std::string> TakeSecret(const char* variable);

}  // namespace zklock::cli
