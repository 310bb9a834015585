// The input is a server's bytes, as zklock-transport receives them before and during SASL.

#include "transport/sasl_frames.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/fuzz.h"

namespace zklock::fuzz {
namespace {

/// A separate heap block, so that an overread is detected.
std::string Copy(std::string_view bytes) { return {bytes.begin(), bytes.end()}; }

/// Takes each frame in turn, and returns the number of bytes in whole frames.
std::size_t TakeFrames(std::string_view stream) {
  std::size_t taken = 0;
  for (;;) {
    const std::string head = Copy(stream.substr(0, 4));
    const auto length = transport::FrameLength(head);
    Require(!length || (head.size() == 4 && *length > 0 && *length <= (1U << 20U)),
            "a frame's length is positive and bounded");
    if (!length || stream.size() < 4 + *length) return taken;
    const std::string frame = Copy(stream.substr(4, *length));
    (void)transport::GrantsSession(frame);
    const auto reply = transport::ParseSaslReply(frame);
    Require(reply.has_value() == (frame.size() >= 16), "a reply has a header");
    Require(!reply || !reply->token || 20 + reply->token->size() <= frame.size(),
            "a token is within its frame");
    stream.remove_prefix(4 + *length);
    taken += 4 + *length;
  }
}

}  // namespace

void Try(std::string_view input) {
  (void)TakeFrames(input);
  const std::string request = transport::MakeSaslRequest(0x01020304, input);
  Require(request.size() == 16 + input.size() && request.ends_with(input),
          "a request carries its token");
  const auto length = transport::FrameLength(request);
  Require(!length || *length == request.size() - 4, "a request is framed");
}

}  // namespace zklock::fuzz
