#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "zookeeper/access.h"

namespace zklock::cli {

/// A file of secrets that belongs to another user, or that others can read or write. `what()`
/// begins with its name.
class UnsafeFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses credentials: one `scheme:credential` per line, used literally; blank lines and lines that
/// begin with '#' are ignored. Errors name `source`, but never quote the text. Throws ConfigError.
[[nodiscard]] std::vector<zookeeper::AuthInfo> ParseCredentials(std::string_view text,
                                                                const std::string& source);

/// Opens a regular file that belongs to this user or root, and that no other user can read or
/// write. Throws UnsafeFile, or a ConfigError that names the option.
[[nodiscard]] UniqueFd OpenSecret(const std::string& path, std::string_view option);
/// Throws a ConfigError that names the option if the file, which zklock-transport reads for each
/// connection, cannot be read or is not a regular one: a FIFO could be read only once.
void RequireReadable(const std::string& path, std::string_view option);
/// Throws ConfigError if the certificate file `path` contains no private key. Does nothing if the
/// file cannot be read or is too large to search.
void RequireKey(const std::string& path);

/// Reads credentials from a regular file that belongs to this user or root, and that no other user
/// can read or write. Throws UnsafeFile and ConfigError.
[[nodiscard]] std::vector<zookeeper::AuthInfo> ReadCredentialsFile(const std::string& path);

/// Returns a variable's value; none if it is unset or empty. Removes the variable from the
/// environment, and erases its value from the memory that /proc/PID/environ shows.
[[nodiscard]] std::optional<std::string> TakeSecret(const char* variable);

}  // namespace zklock::cli
