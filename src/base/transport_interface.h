#pragma once

#include <climits>
#include <cstddef>

/// What zklock and zklock-transport agree on, apart from the arguments (see transport/main.cc).
namespace zklock::transport_interface {

// Descriptors of zklock-transport, beside its standard streams.
inline constexpr int kServer = 3;  ///< a proxy command's connection to the server
inline constexpr int kSecret = 4;  ///< a pipe with what must not be an argument
static_assert(kSecret == kServer + 1);

/// The secret is in the pipe before zklock-transport runs, and any pipe has room for this much.
inline constexpr std::size_t kLongestSecret = PIPE_BUF;

// Marks in what it writes to standard error, whose tail zklock reports.
inline constexpr char kRefusalMark = '!';     ///< precedes a refusal of the credentials
inline constexpr char kDiscardLine[] = "\f";  ///< discards the lines that precede it

}  // namespace zklock::transport_interface
