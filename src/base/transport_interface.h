#pragma once

#include <climits>
#include <cstddef>

/// The interface between zklock and zklock-transport, apart from the arguments (see
/// transport/main.cc).
namespace zklock::transport_interface {

// Descriptors of zklock-transport besides its standard streams.
inline constexpr int kServer = 3;  ///< a proxy command's connection to the server
inline constexpr int kSecret = 4;  ///< a pipe with the secret, which must not be an argument
static_assert(kSecret == kServer + 1);

/// The secret is written to the pipe before zklock-transport runs: any pipe can buffer this much.
inline constexpr std::size_t kLongestSecret = PIPE_BUF;

// Marks in zklock-transport's standard error, whose last lines zklock reports.
inline constexpr char kRefusalMark = '!';     ///< precedes the message about refused credentials
inline constexpr char kDiscardLine[] = "\f";  ///< discards the lines that precede it

}  // namespace zklock::transport_interface
