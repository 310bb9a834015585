#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zklock::zookeeper {

/// What zklock itself reads of ZooKeeper's wire protocol: whether what a server sends is
/// well-formed, and the close of a session, whose reply must be awaited without blocking
/// (zookeeper_close blocks for up to 4.5 s and reports nothing). A frame is a four-byte big-endian
/// length and that many bytes (jute; ZooKeeper's RequestHeader and ReplyHeader).

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

/// The longest reply that is needed is the list of a queue. This is enough for half a million
/// contenders. The library allocates what a frame's length says, before any of it has arrived.
inline constexpr std::uint32_t kLongestReply = 64U << 20U;

/// Checks each frame from a server before the client library decodes it. The library ignores the
/// results of its own decoders: a malformed frame makes it use uninitialised memory, or fail an
/// assertion. The first frame is the answer to the connect request.
class ReplyCheck {
 public:
  /// `continues`: the connect request named a session, which may have expired.
  explicit ReplyCheck(bool continues = false) : continues_(continues) {}
  /// A request has been sent, whose reply, unless it is an error, has these fields, a letter each:
  /// a string (s), bytes (b), a Stat (S), a vector of strings (v), an ACL (a). The reply to a
  /// transaction is an m and a letter for each operation: s, S, or - if its result has no fields.
  /// Servers answer requests in their order. That the xid is the request's is left to the library,
  /// which closes the connection if not.
  void Expect(std::string fields) { expected_.push_back(std::move(fields)); }
  /// Takes what the library has read by one call, which is never of two frames; pieces of a frame
  /// are adjacent in memory. False: the connection must be closed.
  [[nodiscard]] bool Feed(const std::byte* data, std::size_t size);
  /// The answer to the connect request has been seen.
  [[nodiscard]] bool is_greeted() const { return is_greeted_; }

 private:
  [[nodiscard]] bool IsSound(std::span<const std::byte> frame);

  bool continues_;
  bool is_greeted_ = false;
  std::deque<std::string> expected_;  // of each request without a reply: the fields
  std::uint32_t length_ = 0;          // of the current frame, as far as its bytes have arrived
  std::size_t length_bytes_ = 0;      // that have arrived; 4: the length is complete
  const std::byte* frame_ = nullptr;  // its bytes that have arrived; null: none
  std::size_t arrived_ = 0;           // how many
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
  /// A frame has a length that no reply has: nothing more is found in this stream.
  [[nodiscard]] bool is_foreign() const { return foreign_; }

 private:
  void JudgeHead();

  std::int32_t close_;
  std::vector<bool> asked_;
  std::size_t answered_ = 0;  // of those
  std::size_t unreleased_;    // how many releasing multis are unanswered
  bool refused_ = false;      // one of them was not done: only the reply to the close counts
  bool close_refused_ = false;
  bool foreign_ = false;
  // The current frame's length and xid; in the close's reply also zxid and error; in a multi's also
  // the type of the first result, which is -1 if nothing was done (ReplyHeader, MultiHeader).
  std::array<std::byte, 24> head_{};
  std::size_t head_size_ = 0;
  std::size_t head_wanted_;
  std::size_t skip_ = 0;  // bytes of the current frame that are still to be skipped
  bool seen_ = false;
};

}  // namespace zklock::zookeeper
