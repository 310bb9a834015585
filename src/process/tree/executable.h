#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace zklock::process {

/// The command cannot be executed. `error` is the errno that execve set, or would set.
struct ExecFailed {
  int error = 0;
};

/// Returns the exit status that a shell uses: 127 if the command was not found, otherwise 126.
[[nodiscard]] int ExitStatusOf(ExecFailed failure);

/// Finds the file that execvp(3) would execute for `name`, to detect a typo before zklock joins the
/// queue. A name with a slash is used as is; any other is looked up in `path`, the value of PATH
/// (none if unset, which means the system's default path). A file that exists but is not executable
/// is skipped; if no other file is found, the error is EACCES rather than ENOENT. Unlike execvp,
/// skips directories that this process may not search, so that a mistyped name under another user's
/// PATH is reported as "not found", as in a shell.
///
/// Does not detect what only execve can, such as a missing interpreter or a bad binary.
[[nodiscard]] std::variant<std::string, ExecFailed> FindExecutable(
    std::string_view name, const std::optional<std::string>& path);

}  // namespace zklock::process
