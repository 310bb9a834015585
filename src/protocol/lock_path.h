#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace zklock::protocol {

/// Why a LOCK (or a root, or a chroot) is not a usable path.
enum class BadPath {
  kEmpty,
  kNotAbsolute,
  kRoot,        ///< `/`
  kZooKeepers,  ///< `/zookeeper`, or below it
  kEndsInSlash,
  kEmptyComponent,
  kDot,  ///< a component `.`
  kDotDot,
  kNoUtf8,
  kControlCharacter,
  kRefusedCharacter,  ///< one that the servers refuse
};

/// Returns the absolute path of `lock`: `/jobs/backup` unchanged, `backup` below `root`. Rejects,
/// before any connection is made: the empty path, empty components, `.` and `..`, a trailing slash,
/// control characters (C0, DEL, C1), invalid UTF-8, code points that the servers refuse
/// (U+D800..U+F8FF, U+FFF0..U+FFFF, and all higher ones, which they see as surrogate pairs), `/`
/// itself, and `/zookeeper` and paths below it. `root` must itself be valid, but may be `/`.
[[nodiscard]] std::variant<std::string, BadPath> ResolveLock(std::string_view lock,
                                                             std::string_view root);

/// Applies the same rules to an absolute path, such as a root or a chroot.
[[nodiscard]] std::variant<std::string, BadPath> CheckAbsolutePath(std::string_view path);

/// Returns the path of `parent`'s child `child`; `parent` may be "/".
[[nodiscard]] std::string ChildPath(std::string_view parent, std::string_view child);
/// Returns the part before the last slash; "/" for a child of the root.
[[nodiscard]] std::string ParentOf(std::string_view path);
/// Returns the part after the last slash.
[[nodiscard]] std::string_view BaseOf(std::string_view path);

}  // namespace zklock::protocol
