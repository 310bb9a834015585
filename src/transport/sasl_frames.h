#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::transport {

// What SASL needs of ZooKeeper's wire protocol (jute): a frame is a four-byte big-endian length and
// that many bytes. A SASL request (type 102) and its reply carry one token each.

/// The length of the frame that begins with these four bytes; none if no ZooKeeper server or client
/// would send it.
[[nodiscard]] std::optional<std::size_t> FrameLength(std::string_view head);

/// A whole frame.
[[nodiscard]] std::string MakeSaslRequest(std::int32_t xid, std::string_view token);

/// Whether a connect response, without its length, grants a session: else the session has expired.
[[nodiscard]] bool GrantsSession(std::string_view response);

struct SaslReply {
  std::int32_t xid = 0;
  std::int32_t error = 0;
  std::optional<std::string> token;  ///< none: the server is content, or has no SASL
};
/// A frame from the server without its length, which need not be a reply to a SASL request: see its
/// xid. None if it is too short for a reply.
[[nodiscard]] std::optional<SaslReply> ParseSaslReply(std::string_view frame);

}  // namespace zklock::transport
