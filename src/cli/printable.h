#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zklock::cli {

/// Somebody else's bytes, made fit for a terminal that shows UTF-8, on one line of it: controls
/// (C0, DEL, C1), characters that turn or hide what stands around them (bidirectional and
/// zero-width ones) and what is not assigned become visible: `\n`, `\x1b`, `\u202e`. So do bytes
/// that are not UTF-8: `\xff`. Wider than `columns`: cut, with '…' as its last column.
[[nodiscard]] std::string Printable(std::string_view foreign,
                                    std::size_t columns = std::string_view::npos);

/// As Printable, but cut at the beginning, with '…' as its first column.
[[nodiscard]] std::string PrintableEnd(std::string_view foreign, std::size_t columns);

/// How many columns a terminal takes for `text`, as Printable shows it.
[[nodiscard]] std::size_t DisplayWidth(std::string_view text);

}  // namespace zklock::cli
