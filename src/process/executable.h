#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace zklock::process {

/// The command cannot be executed: the errno that execve gave, or would give.
struct ExecFailed {
  int error = 0;
};

/// The shell's status for it: 127 if it is not there, else 126.
[[nodiscard]] int ExitStatusOf(ExecFailed failure);

/// The file that execvp(3) would execute for `name`, so that a typo is found before the queue is
/// joined. A name with a slash is taken as it is; any other is looked for in `path` (the value of
/// PATH; none: unset, which means the system's default path). A file that is there but may not be
/// executed is passed over and remembered: EACCES rather than ENOENT, if nothing better comes.
/// Unlike there a directory that may not be searched hides nothing: a typo under somebody else's
/// PATH is not found, as in a shell.
///
/// What only execve itself can find out (a missing interpreter, a bad binary) is found out there.
[[nodiscard]] std::variant<std::string, ExecFailed> FindExecutable(
    std::string_view name, const std::optional<std::string>& path);

}  // namespace zklock::process
