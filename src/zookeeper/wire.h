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

/// The parts of ZooKeeper's wire protocol that zklock handles itself: it checks that what a server
/// sends is well-formed, and closes the session, because it must wait for the reply to the close
/// without blocking (zookeeper_close blocks for up to 4.5 s and reports nothing). A frame is a
/// four-byte big-endian length, followed by that many bytes (jute; ZooKeeper's RequestHeader and
/// ReplyHeader).

/// The complete closeSession request: length, xid, type -11.
using CloseRequest = std::array<std::byte, 12>;
[[nodiscard]] CloseRequest MakeCloseRequest(std::int32_t xid);

/// What the first bytes from a server reveal.
enum class Greeting {
  kTooShort,   ///< fewer than kGreetingSize bytes
  kZooKeeper,  ///< the beginning of a ConnectResponse
  kForeign,    ///< the listener is not a ZooKeeper server
};
inline constexpr std::size_t kGreetingSize = 8;
[[nodiscard]] Greeting JudgeGreeting(const std::byte* data, std::size_t size);

/// The longest reply to accept. The list of a queue is the longest that is needed: this is enough
/// for half a million contenders. The library allocates as much as a frame's length field says,
/// before any of the frame has arrived.
inline constexpr std::uint32_t kLongestReply = 64U << 20U;

/// Checks each frame from a server before the client library decodes it. The library ignores the
/// results of its own decoders: a malformed frame makes it use uninitialised memory, or fail an
/// assertion. The first frame is the answer to the connect request.
class ReplyCheck {
 public:
  /// `continues`: the connect request named a session, which may have expired.
  explicit ReplyCheck(bool continues = false) : continues_(continues) {}
  /// Registers a request that was sent. Unless its reply is an error, the reply has these fields,
  /// one letter each: a string (s), bytes (b), a Stat (S), a vector of strings (v), an ACL (a). For
  /// a transaction, the letters are an m and one for each operation: s, S, or - if its result has
  /// no fields. Servers answer requests in order. The library itself checks that a reply has the
  /// request's xid, and otherwise closes the connection.
  void Expect(std::string fields) { expected_.push_back(std::move(fields)); }
  /// Checks what one call of the library has read. A read never spans two frames, and the pieces of
  /// a frame are adjacent in memory. Returns false if the connection must be closed.
  [[nodiscard]] bool Feed(const std::byte* data, std::size_t size);
  /// Returns what has arrived of a frame that is not complete, including its length. Must not be
  /// called once the library has lost the connection: it then frees the frame.
  [[nodiscard]] std::vector<std::byte> Incomplete() const;

 private:
  [[nodiscard]] bool IsSound(std::span<const std::byte> frame);

  bool continues_;
  bool is_greeted_ = false;
  std::deque<std::string> expected_;  // the fields of each request without a reply
  std::uint32_t length_ = 0;          // of the current frame, from the bytes that have arrived
  std::size_t length_bytes_ = 0;      // how many of these have arrived; 4: the length is complete
  const std::byte* frame_ = nullptr;  // the bytes that have arrived; null: none
  std::size_t arrived_ = 0;           // how many bytes have arrived
};

/// Searches a stream that arrives in pieces for the confirmation that a session no longer holds
/// anything: the reply to its close, or successful replies to all releasing multis before it. Other
/// frames (watch events, pings, late replies) are skipped without being stored.
class ReplyScanner {
 public:
  /// `close`: the xid of the close. `asked`: the unanswered requests before it, in order; true for
  /// a releasing multi. The servers answer in that order; frames that are not answers have a
  /// negative xid.
  explicit ReplyScanner(std::int32_t close, std::vector<bool> asked = {});
  /// Scans the next bytes. Returns true once the confirmation has been seen, and from then on.
  bool Feed(const std::byte* data, std::size_t size);
  /// Returns whether the close was answered with an error: the servers require other credentials.
  [[nodiscard]] bool is_close_refused() const { return close_refused_; }
  /// Returns whether a frame has an impossible length. The rest of the stream is then ignored.
  [[nodiscard]] bool is_foreign() const { return foreign_; }

 private:
  void JudgeHead();

  std::int32_t close_;
  std::vector<bool> asked_;
  std::size_t answered_ = 0;  // how many of the requests in `asked_` are answered
  std::size_t unreleased_;    // how many releasing multis are unanswered
  bool refused_ = false;      // a releasing multi failed: only the reply to the close counts
  bool close_refused_ = false;
  bool foreign_ = false;
  // The current frame's length and xid; in the close's reply also zxid and error; in a multi's also
  // the type of the first result, which is -1 if nothing was done (ReplyHeader, MultiHeader).
  std::array<std::byte, 24> head_{};
  std::size_t head_size_ = 0;
  std::size_t head_wanted_;
  std::size_t skip_ = 0;  // how many bytes of the current frame must still be skipped
  bool seen_ = false;
};

}  // namespace zklock::zookeeper
