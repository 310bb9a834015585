#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace zklock::process {

/// The command cannot be executed: the errno of execve, or the one it would give.
struct ExecFailed {
  int error = 0;
};

/// The exit status that a shell gives for it: 127 if it was not found, else 126.
[[nodiscard]] int ExitStatusOf(ExecFailed failure);

/// The file that execvp(3) would execute for `name`, so that a typo is found before the queue is
/// joined. A name with a slash is used as it is; any other is looked up in `path` (the value of
/// PATH; none: unset, which means the system's default path). A file that exists but may not be
/// executed is skipped, but gives EACCES rather than ENOENT if no other file is found. Unlike in
/// execvp, a directory that may not be searched does not count: a typo with another user's PATH is
/// "not found", as in a shell.
///
/// What only execve can detect (a missing interpreter, a bad binary) is not checked here.
[[nodiscard]] std::variant<std::string, ExecFailed> FindExecutable(
    std::string_view name, const std::optional<std::string>& path);

}  // namespace zklock::process
