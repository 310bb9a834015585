#pragma once

#include <cstddef>

namespace zklock::process {

[[nodiscard]] bool IsTerminal(int fd);

/// Whether `fd` is a terminal that can erase and redraw its text, by $TERM: neither unset nor
/// `dumb`.
[[nodiscard]] bool CanErase(int fd);

/// In columns; 0 if `fd` is not a terminal, or one of unknown size.
[[nodiscard]] std::size_t TerminalWidth(int fd);

/// False if `fd` is this process's terminal and another job is in its foreground: drawing would
/// overwrite that job's output.
[[nodiscard]] bool IsInForeground(int fd);

}  // namespace zklock::process
