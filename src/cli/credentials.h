#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "zookeeper/access.h"

namespace zklock::cli {

/// A file of credentials that somebody else may read or write. `what()` begins with its name.
class UnsafeFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The credentials in a text: one `scheme:credential` a line, word for word; empty lines and lines
/// that begin with '#' are passed over. `source` names the text in errors, which hold nothing of
/// it. Throws ConfigError.
[[nodiscard]] std::vector<zookeeper::AuthInfo> ParseCredentials(std::string_view text,
                                                                const std::string& source);

/// The credentials in a regular file of this user's or root's, which nobody else may be able to
/// read or write. Throws UnsafeFile, ConfigError.
[[nodiscard]] std::vector<zookeeper::AuthInfo> ReadCredentialsFile(const std::string& path);

/// A variable's value, none if it is empty. It leaves this process's environment, and its memory
/// too: /proc shows that.
[[nodiscard]] std::optional<std::string> TakeSecret(const char* variable);

}  // namespace zklock::cli
