#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zklock::zookeeper {

/// The few bytes of ZooKeeper's wire protocol that the client library does not give access to: the
/// close of a session, whose reply must be awaited without blocking (zookeeper_close blocks for up
/// to 4.5 s and reports nothing), and the first bytes of a handshake. A frame is a four-byte
/// big-endian length and that many bytes (jute; ZooKeeper's RequestHeader and ReplyHeader).

/// The whole closeSession request: length, xid, type -11.
using CloseRequest = std::array<std::byte, 12>;
[[nodiscard]] CloseRequest MakeCloseRequest(std::int32_t xid);

/// What the first bytes from a server are.
enum class Greeting {
  kTooShort,   ///< fewer than kGreetingSize bytes
  kZooKeeper,  ///< the beginning of a ConnectResponse
  kForeign,    ///< the listener is not a ZooKeeper server
};
inline constexpr std::size_t kGreetingSize = 8;
[[nodiscard]] Greeting JudgeGreeting(const std::byte* data, std::size_t size);

/// Follows the frames of a stream that arrives in pieces: the client library believes their
/// lengths.
class FrameLengths {
 public:
  /// More than any reply that a server can send: a list of all the children that a LOCK can have.
  static constexpr std::uint32_t kLongest = 1U << 30U;
  /// Takes the next bytes. False once a frame has a length that is negative or longer than
  /// kLongest.
  bool Feed(const std::byte* data, std::size_t size);

 private:
  std::uint32_t length_ = 0;      // of the frame, as far as its bytes have arrived
  std::size_t length_bytes_ = 0;  // that have arrived; 4: the length is complete
  std::size_t left_ = 0;          // bytes of the frame that have not arrived
  bool is_sound_ = true;
};

/// Searches a stream that arrives in pieces for the confirmation that a session holds nothing any
/// more: the reply to its close, or the replies to all releasing multis before it, each done as a
/// whole. Other frames (watch events, pings, late replies) are skipped without being stored.
class ReplyScanner {
 public:
  /// `close`: the close's xid. `asked`: the unanswered requests before it, in order; true for a
  /// releasing multi. The servers answer in that order; frames that are not answers have a negative
  /// xid.
  explicit ReplyScanner(std::int32_t close, std::vector<bool> asked = {});
  /// Takes the next bytes. True once the confirmation has been seen, and from then on.
  bool Feed(const std::byte* data, std::size_t size);
  /// The close was answered with an error: the servers require other credentials.
  [[nodiscard]] bool is_close_refused() const { return close_refused_; }

 private:
  void JudgeHead();

  std::int32_t close_;
  std::vector<bool> asked_;
  std::size_t answered_ = 0;  // of those
  std::size_t unreleased_;    // how many releasing multis are unanswered
  bool refused_ = false;      // one of them was not done: only the reply to the close counts
  bool close_refused_ = false;
  // The current frame's length and xid; in the close's reply also zxid and error; in a multi's also
  // the type of the first result, which is -1 if nothing was done (ReplyHeader, MultiHeader).
  std::array<std::byte, 24> head_{};
  std::size_t head_size_ = 0;
  std::size_t head_wanted_;
  std::size_t skip_ = 0;  // bytes of the current frame that are still to be skipped
  bool seen_ = false;
};

}  // namespace zklock::zookeeper
