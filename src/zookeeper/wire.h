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

/// Looks in a stream that arrives in pieces for what tells that a session holds nothing any more:
/// the reply to its close, or the replies to all the multis before it that let go, each done as a
/// whole. Other frames (watch events, pings, late replies) are passed over without being kept.
class ReplyScanner {
 public:
  /// `close`: the close's xid. `asked`: what was asked before it and has not been answered, in
  /// order; true for a multi that lets go. The servers answer in that order; what they say unasked
  /// has a negative xid.
  explicit ReplyScanner(std::int32_t close, std::vector<bool> asked = {});
  /// Takes the next bytes; true once that has been seen (and from then on).
  bool Feed(const std::byte* data, std::size_t size);
  /// The close was answered with an error: the servers want other credentials.
  [[nodiscard]] bool is_close_refused() const { return close_refused_; }

 private:
  void JudgeHead();

  std::int32_t close_;
  std::vector<bool> asked_;
  std::size_t answered_ = 0;  // of those
  std::size_t unreleased_;    // how many multis that let go are still to be answered
  bool refused_ = false;      // one of them did nothing: only the close will tell
  bool close_refused_ = false;
  // Length and xid of the frame under way; of the close's reply also zxid and error, and of a
  // multi's the type of the first result too, which is -1 where nothing was done (ReplyHeader,
  // MultiHeader).
  std::array<std::byte, 24> head_{};
  std::size_t head_size_ = 0;
  std::size_t head_wanted_;
  std::size_t skip_ = 0;  // bytes of the frame under way that are still to pass
  bool seen_ = false;
};

}  // namespace zklock::zookeeper
