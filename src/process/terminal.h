#pragma once

#include <cstddef>

namespace zklock::process {

[[nodiscard]] bool IsTerminal(int fd);

/// A terminal that can erase what stands on it and draw it anew, as $TERM has it: not `dumb`, and
/// not none at all.
[[nodiscard]] bool CanErase(int fd);

/// In columns; 0 if it is no terminal, or one that does not say.
[[nodiscard]] std::size_t TerminalWidth(int fd);

/// False where `fd` is our terminal and another job is in its foreground: what is drawn would be
/// drawn over that.
[[nodiscard]] bool IsInForeground(int fd);

}  // namespace zklock::process
