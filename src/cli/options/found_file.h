#pragma once

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

namespace zklock::cli {

/// A configuration that cannot be used. `what()` begins with the file, and the line if there is
/// one:
/// "/etc/zklock.conf:3: ...".
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws for a file that cannot be read: std::system_error if `error`, an errno, means that the
/// system lacks descriptors or memory, else a ConfigError with `what`.
[[noreturn]] void ThrowUnread(const std::string& file, int error, const std::string& what);
/// Likewise, with the name of the file and the errno's text.
[[noreturn]] void ThrowUnread(const std::string& file, int error);

/// The deleter of a stdio stream.
struct CloseFile {
  void operator()(std::FILE* stream) const { std::fclose(stream); }
};

/// What became of a file that was found in a usual place, rather than named by the user.
struct FoundFile {
  std::optional<std::string> text;  ///< none if it does not exist or is not used
  /// Why it is not used: we may not read it, or somebody else could have put it there. Else empty.
  std::string unused;
};

/// Reads the file at the absolute `path`. What it says is done with our rights, so everything on
/// the way to it, followed step by step through symbolic links, must belong to the effective user
/// or to root: a path through a link, directory or file of another user is not used.
///
/// Throws ConfigError for a path that is ours but that others may change (the world, or a group
/// other than the user's own private one; sticky directories are fine), and for anything but a
/// regular file of at most 64 KiB. Throws std::system_error if the system lacks descriptors or
/// memory.
[[nodiscard]] FoundFile ReadFoundFile(const std::string& path);

}  // namespace zklock::cli
