#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

namespace zklock::cli {

/// The maximum size of a configuration file.
inline constexpr std::size_t kLargestFile = std::size_t{64} * 1024;

/// A configuration that cannot be used. `what()` begins with the file, and with the line if there
/// is one: "/etc/zklock.conf:3: ...".
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws for a file that cannot be read: std::system_error if `error`, an errno, means that the
/// system lacks descriptors or memory, otherwise a ConfigError with `what`.
[[noreturn]] void ThrowUnread(const std::string& file, int error, const std::string& what);
/// Likewise, with a message that contains the file's name and the text for the errno.
[[noreturn]] void ThrowUnread(const std::string& file, int error);

/// The deleter of a stdio stream.
struct CloseFile {
  void operator()(std::FILE* stream) const { std::fclose(stream); }
};

/// The result of reading a file from its default place, rather than one that the user named.
struct FoundFile {
  std::optional<std::string> text;  ///< none if it does not exist or is not used
  /// Why it is not used: we lack permission to read it, or another user could have put it there.
  /// Empty if it is used or does not exist.
  std::string unused;
};

/// Reads the file at the absolute `path`. Its settings take effect with our privileges, so
/// everything on the path, followed step by step through symbolic links, must belong to the
/// effective user or to root: a path through another user's link, directory or file is not used.
///
/// Throws ConfigError for a path that passes this test but that others may change (everyone, or a
/// group other than the user's own private one, according to /etc/passwd and /etc/group; sticky
/// directories are fine), and for anything but a regular file of at most 64 KiB. Throws
/// std::system_error if the system lacks descriptors or memory.
[[nodiscard]] FoundFile ReadFoundFile(const std::string& path);

}  // namespace zklock::cli
