#include "transport/sasl_frames.h"

namespace zklock::transport {
namespace {

constexpr std::size_t kInt = 4;
// A ReplyHeader: xid, zxid, error.
constexpr std::size_t kErrorAt = kInt + 8;
constexpr std::size_t kHeader = kErrorAt + kInt;
// A ConnectResponse: protocol version, timeout, session id, password.
constexpr std::size_t kTimeoutAt = kInt;
// Larger than any frame that can precede the first answer to a client's request.
constexpr std::uint32_t kMostBytes = 1U << 20U;
constexpr std::int32_t kSaslType = 102;

std::uint32_t ReadUnsigned(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kInt; ++i) {
    value = (value << 8U) | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

std::int32_t ReadInt(std::string_view bytes, std::size_t at) {
  return static_cast<std::int32_t>(ReadUnsigned(bytes, at));
}

void AppendInt(std::string& bytes, std::uint32_t value) {
  for (unsigned shift = 32; shift > 0; shift -= 8) {
    bytes += static_cast<char>((value >> (shift - 8)) & 0xffU);
  }
}

}  // namespace

std::optional<std::size_t> FrameLength(std::string_view head) {
  if (head.size() < kInt) return std::nullopt;
  const std::uint32_t length = ReadUnsigned(head, 0);
  if (length == 0 || length > kMostBytes) return std::nullopt;
  return length;
}

std::string MakeSaslRequest(std::int32_t xid, std::string_view token) {
  std::string frame;
  AppendInt(frame, static_cast<std::uint32_t>(3 * kInt + token.size()));
  AppendInt(frame, static_cast<std::uint32_t>(xid));
  AppendInt(frame, kSaslType);
  AppendInt(frame, static_cast<std::uint32_t>(token.size()));
  frame += token;
  return frame;
}

bool GrantsSession(std::string_view response) {
  return response.size() >= kTimeoutAt + kInt && ReadInt(response, kTimeoutAt) > 0;
}

std::optional<SaslReply> ParseSaslReply(std::string_view frame) {
  if (frame.size() < kHeader) return std::nullopt;
  SaslReply reply{.xid = ReadInt(frame, 0), .error = ReadInt(frame, kErrorAt), .token = {}};
  frame.remove_prefix(kHeader);
  if (frame.size() < kInt) return reply;
  const std::int32_t size = ReadInt(frame, 0);
  frame.remove_prefix(kInt);
  if (size >= 0 && static_cast<std::size_t>(size) <= frame.size()) {
    reply.token = std::string(frame.substr(0, static_cast<std::size_t>(size)));
  }
  return reply;
}

}  // namespace zklock::transport
