#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::transport {

// The parts of ZooKeeper's wire protocol (jute) that SASL needs. A frame is a four-byte big-endian
// length followed by that many bytes. A SASL request (type 102) and its reply carry one token each.

/// Returns the length of the frame that begins with these four bytes; none if no ZooKeeper server
/// or client would send such a frame.
[[nodiscard]] std::optional<std::size_t> FrameLength(std::string_view head);

/// Returns a complete SASL request, including its length field.
[[nodiscard]] std::string MakeSaslRequest(std::int32_t xid, std::string_view token);

/// Returns whether a connect response, passed without its length field, grants a session. If not,
/// the session has expired.
[[nodiscard]] bool GrantsSession(std::string_view response);

struct SaslReply {
  std::int32_t xid = 0;
  std::int32_t error = 0;
  std::optional<std::string> token;  ///< none: the server has accepted the client, or has no SASL
};
/// Parses a frame from the server, passed without its length field. It may answer something other
/// than a SASL request: check the xid. Returns none if it is too short for a reply.
[[nodiscard]] std::optional<SaslReply> ParseSaslReply(std::string_view frame);

}  // namespace zklock::transport
