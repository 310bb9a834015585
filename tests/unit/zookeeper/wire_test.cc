#include "zookeeper/wire.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::zookeeper {
namespace {

using Bytes = std::vector<std::byte>;

Bytes FromText(std::string_view text) {
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

Bytes FromNumbers(std::initializer_list<int> numbers) {
  Bytes bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

void Append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

void Append32(Bytes& to, std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  for (const int shift : {24, 16, 8, 0}) to.push_back(static_cast<std::byte>(bits >> shift & 0xff));
}

/// A frame as a server sends it: length, xid, zxid, error, and a body of this many bytes.
Bytes ReplyFrame(std::int32_t xid, int body_size) {
  Bytes frame;
  Append32(frame, 16 + body_size);
  Append32(frame, xid);
  // The rest may look like anything, even like a frame with the xid that is searched for.
  for (int i = 0; i < 12 + body_size; ++i) frame.push_back(std::byte{0x11});
  return frame;
}

/// The reply to the close.
Bytes CloseReply(std::int32_t error = 0, int body_size = 0) {
  Bytes frame = ReplyFrame(0x11111111, body_size);
  Bytes code;
  Append32(code, error);
  std::copy(code.begin(), code.end(), frame.begin() + 16);
  return frame;
}

// The reply to a multi, up to the type of its first result.
Bytes MultiReply(std::int32_t xid, std::int32_t error, std::int32_t type) {
  Bytes frame;
  for (const std::int32_t number : {16 + 30, xid, 0x11111111, 0x11111111, error, type}) {
    Append32(frame, number);
  }
  frame.resize(4 + 16 + 30, std::byte{0x11});
  return frame;
}

Greeting Judge(const Bytes& bytes) { return JudgeGreeting(bytes.data(), bytes.size()); }

constexpr std::int32_t kXid = 0x11111111;

// How many bytes of a stream, which arrives in pieces of this size, are read until the reply has
// been seen; 0: never.
std::size_t SeenAfter(const Bytes& stream, std::size_t piece) {
  ReplyScanner scanner(kXid);
  for (std::size_t from = 0; from < stream.size(); from += piece) {
    const std::size_t size = std::min(piece, stream.size() - from);
    if (scanner.Feed(stream.data() + from, size)) return from + size;
  }
  return 0;
}

}  // namespace

TEST_CASE("a close request is its length, its xid and the type -11") {
  const CloseRequest request = MakeCloseRequest(0x01020304);
  CHECK(Bytes(request.begin(), request.end()) ==
        FromNumbers({0, 0, 0, 8, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xf5}));
  const CloseRequest negative = MakeCloseRequest(-2);
  CHECK(Bytes(negative.begin() + 4, negative.begin() + 8) == FromNumbers({0xff, 0xff, 0xff, 0xfe}));
}

TEST_CASE("a greeting of 36 or 37 bytes in version 0 is a ZooKeeper server's") {
  CHECK(Judge(FromNumbers({0, 0, 0, 36, 0, 0, 0, 0})) == Greeting::kZooKeeper);
  CHECK(Judge(FromNumbers({0, 0, 0, 37, 0, 0, 0, 0})) == Greeting::kZooKeeper);
  CHECK(Judge(FromNumbers({0, 0, 0, 37, 0, 0, 0, 0, 0, 0, 0x75, 0x30})) == Greeting::kZooKeeper);
}

TEST_CASE("any other greeting is not a ZooKeeper server's") {
  CHECK(Judge(FromNumbers({0, 0, 0, 35, 0, 0, 0, 0})) == Greeting::kForeign);
  CHECK(Judge(FromNumbers({0, 0, 0, 38, 0, 0, 0, 0})) == Greeting::kForeign);
  CHECK(Judge(FromNumbers({0, 0, 0, 37, 0, 0, 0, 1})) == Greeting::kForeign);
  CHECK(Judge(FromNumbers({1, 0, 0, 37, 0, 0, 0, 0})) == Greeting::kForeign);
  CHECK(Judge(FromNumbers({0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})) == Greeting::kForeign);
  CHECK(Judge(FromText("HTTP/1.1 400 Bad Request\r\n")) == Greeting::kForeign);
  CHECK(Judge(FromText("SSH-2.0-OpenSSH_9.2\r\n")) == Greeting::kForeign);
  CHECK(Judge(FromNumbers({0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46, 0x00})) ==
        Greeting::kForeign);  // a TLS alert
}

TEST_CASE("a frame of an impossible length is noticed, wherever the stream is split") {
  // A frame of two bytes, an empty one, and one whose length is the case.
  const auto [length, sound] =
      GENERATE(table<std::uint32_t, bool>({{0, true},
                                           {5, true},
                                           {FrameLengths::kLongest, true},
                                           {FrameLengths::kLongest + 1, false},
                                           {0x7fffffff, false},
                                           {0x80000000, false},
                                           {0xffffffff, false}}));
  std::vector<std::byte> stream;
  for (const unsigned value : {0U, 0U, 0U, 2U, 255U, 255U, 0U, 0U, 0U, 0U, length >> 24U,
                               length >> 16U & 255U, length >> 8U & 255U, length & 255U}) {
    stream.push_back(static_cast<std::byte>(value));
  }
  for (std::size_t split = 0; split < stream.size(); ++split) {
    FrameLengths frames;
    CHECK(frames.Feed(stream.data(), split));
    CHECK(frames.Feed(stream.data() + split, stream.size() - split) == sound);
  }
}

TEST_CASE("seven bytes are too few to judge") {
  const Bytes whole = FromNumbers({0, 0, 0, 37, 0, 0, 0, 0});
  for (std::size_t size = 0; size < kGreetingSize; ++size) {
    CHECK(JudgeGreeting(whole.data(), size) == Greeting::kTooShort);
  }
  CHECK(Judge(FromText("HTTP/1.")) == Greeting::kTooShort);
}

TEST_CASE("a reply is found after other frames, wherever the stream is split in two") {
  Bytes stream;
  Append(stream, ReplyFrame(-2, 0));   // a ping's
  Append(stream, ReplyFrame(-1, 40));  // a watch event
  Append(stream, ReplyFrame(7, 300));  // a late reply to another request
  const std::size_t before = stream.size();
  Append(stream, CloseReply());
  Append(stream, ReplyFrame(8, 10));

  for (std::size_t first = 0; first <= stream.size(); ++first) {
    ReplyScanner scanner(kXid);
    CAPTURE(first);
    // Up to its error, which must be 0.
    CHECK(scanner.Feed(stream.data(), first) == (first >= before + 20));
    CHECK(scanner.Feed(stream.data() + first, stream.size() - first));
  }
}

TEST_CASE("a reply is found in pieces of any size") {
  Bytes stream;
  Append(stream, ReplyFrame(-2, 0));
  Append(stream, ReplyFrame(7, 23));
  const std::size_t before = stream.size();
  Append(stream, CloseReply(0, 5));

  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    CAPTURE(piece);
    const std::size_t pieces = (before + 20 + piece - 1) / piece;
    CHECK(SeenAfter(stream, piece) == std::min(pieces * piece, stream.size()));
  }
}

TEST_CASE("a refused close is not a confirmation") {
  const Bytes refused = CloseReply(-124);
  for (std::size_t piece = 1; piece <= refused.size(); ++piece) {
    ReplyScanner scanner(kXid);
    for (std::size_t from = 0; from < refused.size(); from += piece) {
      CHECK_FALSE(scanner.Feed(refused.data() + from, std::min(piece, refused.size() - from)));
    }
    CHECK(scanner.is_close_refused());
  }
}

TEST_CASE("an xid inside another frame's body is not the reply") {
  Bytes stream;
  Append(stream, ReplyFrame(7, 64));  // full of bytes that look like kXid
  Append(stream, ReplyFrame(-2, 0));
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) CHECK(SeenAfter(stream, piece) == 0);
}

TEST_CASE("the replies to all releasing multis are as good as the reply to the close") {
  // The requests before the close: another one, a releasing one, another one, a releasing one.
  const std::vector<bool> asked = {false, true, false, true};
  const auto seen_after = [&](const Bytes& stream, std::size_t piece) {
    ReplyScanner scanner(kXid, asked);
    for (std::size_t from = 0; from < stream.size(); from += piece) {
      const std::size_t size = std::min(piece, stream.size() - from);
      if (scanner.Feed(stream.data() + from, size)) return from + size;
    }
    return std::size_t{0};
  };
  Bytes stream;
  Append(stream, MultiReply(40, 0, -1));  // this failure is not that of a releasing one
  Append(stream, MultiReply(41, 0, 5));
  Append(stream, ReplyFrame(-1, 40));  // a watch event
  Append(stream, ReplyFrame(-2, 0));   // a ping's
  Append(stream, ReplyFrame(42, 300));
  const std::size_t before = stream.size();
  SECTION("the last one is done as well") {
    Append(stream, MultiReply(43, 0, 5));
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
      const std::size_t pieces = (before + 24 + piece - 1) / piece;
      CHECK(seen_after(stream, piece) == std::min(pieces * piece, stream.size()));
    }
  }
  SECTION("the last one was not done") {
    SECTION("by its results") { Append(stream, MultiReply(43, 0, -1)); }
    SECTION("by its error") { Append(stream, MultiReply(43, -101, 5)); }
    SECTION("by having no results") { Append(stream, ReplyFrame(43, 0)); }
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
      CHECK(seen_after(stream, piece) == 0);
    }
    const std::size_t close = stream.size();
    Append(stream, CloseReply());
    CHECK(seen_after(stream, 1) == close + 20);
  }
}

TEST_CASE("a reply that has been seen stays seen") {
  ReplyScanner scanner(kXid);
  const Bytes reply = CloseReply();
  CHECK(scanner.Feed(reply.data(), reply.size()));
  const Bytes other = ReplyFrame(7, 3);
  CHECK(scanner.Feed(other.data(), other.size()));
  CHECK(scanner.Feed(nullptr, 0));
}

TEST_CASE("frames of impossible lengths do no harm") {
  Bytes stream;
  for (const std::int32_t length : {0, 3, 4, -1, INT32_MIN}) {
    Append32(stream, length);
    Append32(stream, 7);
  }
  Append(stream, CloseReply());
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) CHECK(SeenAfter(stream, piece) > 0);
}

}  // namespace zklock::zookeeper
