#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zklock::cli {

/// The maximum width of untrusted text in a message or a label, in columns.
inline constexpr std::size_t kWidestForeign = 60;

/// Makes arbitrary bytes safe to show on one line of a UTF-8 terminal. Control characters (C0, DEL,
/// C1), characters that reorder or hide the text around them (bidirectional and zero-width ones)
/// and unassigned ones are escaped: `\n`, `\x1b`, `\u202e`. So are bytes that are not UTF-8:
/// `\xff`. Text wider than `columns` is cut, with '…' in the last column.
[[nodiscard]] std::string Printable(std::string_view foreign,
                                    std::size_t columns = std::string_view::npos);

/// Like Printable(), but cuts the beginning, with '…' in the first column.
[[nodiscard]] std::string PrintableEnd(std::string_view foreign, std::size_t columns);

/// Like Printable(), but cuts a URL, a path (with a slash and without spaces) or a HOST:PORT in the
/// middle, because the end matters as much as the beginning.
[[nodiscard]] std::string PrintableShort(std::string_view foreign, std::size_t columns);

/// Returns the width in columns of Printable(text).
[[nodiscard]] std::size_t DisplayWidth(std::string_view text);

}  // namespace zklock::cli
