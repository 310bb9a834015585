#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zklock::zookeeper {

/// The few bytes of ZooKeeper's wire protocol that the client library does not let us send or see:
/// the close of a session whose reply must be waited for without blocking (zookeeper_close blocks
/// for up to 4.5 s and tells nothing), and the first bytes of a handshake. Frames are a four byte
/// big-endian length and so many bytes (jute; ZooKeeper's RequestHeader and ReplyHeader).

/// The whole closeSession request: length, xid, type -11.
using CloseRequest = std::array<std::byte, 12>;
[[nodiscard]] CloseRequest MakeCloseRequest(std::int32_t xid);

/// How the first bytes that a server sends look.
enum class Greeting {
  kTooShort,   ///< fewer than kGreetingSize bytes
  kZooKeeper,  ///< the beginning of a ConnectResponse
  kForeign,    ///< something else listens there
};
inline constexpr std::size_t kGreetingSize = 8;
[[nodiscard]] Greeting JudgeGreeting(const std::byte* data, std::size_t size);

/// Looks for the reply with one xid in a stream that arrives in pieces. Frames of other xids
/// (watch events, pings, late replies) are passed over without being kept.
class ReplyScanner {
 public:
  explicit ReplyScanner(std::int32_t xid) : xid_(xid) {}
  /// Takes the next bytes; true once the reply has been seen (and from then on).
  bool Feed(const std::byte* data, std::size_t size);

 private:
  std::int32_t xid_;
  std::array<std::byte, 8> head_{};  // length and xid of the frame under way
  std::size_t head_size_ = 0;
  std::size_t skip_ = 0;  // bytes of the frame under way that are still to pass
  bool seen_ = false;
};

}  // namespace zklock::zookeeper
