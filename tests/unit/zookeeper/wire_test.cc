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

/// Returns a frame as a server sends it: length, xid, zxid, error, and a body of `body_size` bytes.
Bytes ReplyFrame(std::int32_t xid, int body_size) {
  Bytes frame;
  Append32(frame, 16 + body_size);
  Append32(frame, xid);
  // The rest may look like anything, even like a frame with the xid that the scanner looks for.
  for (int i = 0; i < 12 + body_size; ++i) frame.push_back(std::byte{0x11});
  return frame;
}

/// Returns the reply to the close.
Bytes CloseReply(std::int32_t error = 0, int body_size = 0) {
  Bytes frame = ReplyFrame(0x11111111, body_size);
  Bytes code;
  Append32(code, error);
  std::copy(code.begin(), code.end(), frame.begin() + 16);
  return frame;
}

// Returns the reply to a multi, up to the type of its first result.
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

// Returns how many bytes of `stream` have been read, in pieces of this size, when the reply is
// seen; 0 if it never is.
std::size_t SeenAfter(const Bytes& stream, std::size_t piece) {
  ReplyScanner scanner(kXid);
  for (std::size_t from = 0; from < stream.size(); from += piece) {
    const std::size_t size = std::min(piece, stream.size() - from);
    if (scanner.Feed(stream.data() + from, size)) return from + size;
  }
  return 0;
}

Bytes Of(std::initializer_list<std::int32_t> numbers) {
  Bytes bytes;
  for (const std::int32_t number : numbers) Append32(bytes, number);
  return bytes;
}

Bytes Joined(std::initializer_list<Bytes> parts) {
  Bytes whole;
  for (const Bytes& part : parts) Append(whole, part);
  return whole;
}

Bytes Text(std::string_view text) {
  return Joined({Of({static_cast<std::int32_t>(text.size())}), FromText(text)});
}

Bytes WithLength(const Bytes& frame) {
  return Joined({Of({static_cast<std::int32_t>(frame.size())}), frame});
}

/// Returns the answer to a connect request.
Bytes Grant(std::int32_t timeout = 30'000, std::int32_t session = 7, std::int32_t version = 0,
            std::int32_t password_size = 16, char read_only = 0) {
  return Joined({Of({version, timeout, session, session, password_size}), Bytes(16),
                 FromText({&read_only, 1})});
}

Bytes Answer(const Bytes& body, std::int32_t xid = kXid, std::int32_t error = 0) {
  return Joined({Of({xid, 0, 9, error}), body});
}

/// Feeds the frame as the library reads it: the length by itself, then the rest. Returns whether it
/// is sound.
bool Takes(ReplyCheck& check, const Bytes& frame) {
  const Bytes length = Of({static_cast<std::int32_t>(frame.size())});
  return check.Feed(length.data(), length.size()) && check.Feed(frame.data(), frame.size());
}

ReplyCheck Greeted() {
  ReplyCheck check;
  REQUIRE(Takes(check, Grant()));
  return check;
}

bool IsSound(const std::string& fields, const Bytes& body) {
  ReplyCheck check = Greeted();
  check.Expect(fields);
  return Takes(check, Answer(body));
}

const Bytes kStat(68, std::byte{3});

/// Returns the header of a result in a transaction.
Bytes Result(std::int32_t type, bool is_end = false) {
  return Joined({Of({type}), FromNumbers({is_end ? 1 : 0}), Of({0})});
}

const Bytes kEnd = Result(-1, true);

Bytes Failed(std::int32_t error) { return Joined({Result(-1), Of({error})}); }

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

TEST_CASE("seven bytes are too few to judge") {
  const Bytes whole = FromNumbers({0, 0, 0, 37, 0, 0, 0, 0});
  for (std::size_t size = 0; size < kGreetingSize; ++size) {
    CHECK(JudgeGreeting(whole.data(), size) == Greeting::kTooShort);
  }
  CHECK(Judge(FromText("HTTP/1.")) == Greeting::kTooShort);
}

TEST_CASE("a reply is found after other frames, wherever the stream is split in two") {
  Bytes stream;
  Append(stream, ReplyFrame(-2, 0));   // the reply to a ping
  Append(stream, ReplyFrame(-1, 40));  // a watch event
  Append(stream, ReplyFrame(7, 300));  // a late reply to another request
  const std::size_t before = stream.size();
  Append(stream, CloseReply());
  Append(stream, ReplyFrame(8, 10));

  for (std::size_t first = 0; first <= stream.size(); ++first) {
    ReplyScanner scanner(kXid);
    CAPTURE(first);
    // The reply is found once its error code, which must be 0, has been read.
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
  // The requests before the close; true: a multi that releases something.
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
  Append(stream, MultiReply(40, 0, -1));  // fails, but is not a releasing multi
  Append(stream, MultiReply(41, 0, 5));
  Append(stream, ReplyFrame(-1, 40));  // a watch event
  Append(stream, ReplyFrame(-2, 0));   // the reply to a ping
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

TEST_CASE("a stream with a frame of an impossible length confirms nothing") {
  for (const std::int32_t length : {0, 4, 15, (1 << 30) + 1, -1, INT32_MIN}) {
    for (const std::int32_t xid : {7, kXid}) {
      Bytes stream;
      Append(stream, ReplyFrame(-2, 0));
      Append32(stream, length);
      Append32(stream, xid);
      stream.resize(stream.size() + 11);
      Append(stream, CloseReply());
      ReplyScanner scanner(kXid);
      CHECK_FALSE(scanner.Feed(stream.data(), stream.size()));
      CHECK(scanner.is_foreign());
    }
  }
}

TEST_CASE(
    "a reply is sound with the fields that its request expects, and not a byte less or more") {
  const auto [fields, body] = GENERATE(table<std::string, Bytes>({
      {"", Bytes()},
      {"s", Text("/lock")},
      {"s", Text("")},
      {"S", kStat},
      {"sS", Joined({Text("/lock/a"), kStat})},
      {"bS", Joined({Text("data"), kStat})},
      {"bS", Joined({Of({-1}), kStat})},
      {"v", Of({0})},
      {"v", Joined({Of({2}), Text("a"), Text("b")})},
      {"aS", Joined({Of({2, 31}), Text("digest"), Text("alice:x"), Of({1}), Text("world"),
                     Text("anyone"), kStat})},
      {"m-", Joined({Result(13), kEnd})},
      {"msS-", Joined({Result(1), Text("/a"), Result(5), kStat, Result(2), kEnd})},
      {"mS-", Joined({Failed(0), Failed(-110), kEnd})},
      {"mS-", Joined({Failed(-103), Failed(-2), kEnd})},
  }));
  CAPTURE(fields, body.size());
  CHECK(IsSound(fields, body));
  for (std::size_t size = 0; size < body.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(IsSound(fields, Bytes(body.begin(), body.begin() + static_cast<long>(size))));
  }
  CHECK_FALSE(IsSound(fields, Joined({body, Bytes(1)})));
}

TEST_CASE("negative lengths and counts, and those that exceed the frame, are not sound") {
  const std::int32_t count = GENERATE(-1, -11, INT32_MIN, INT32_MAX, 1 << 28, 200);
  CAPTURE(count);
  const Bytes rest(100);
  CHECK_FALSE(IsSound("s", Joined({Of({count}), rest})));
  CHECK_FALSE(IsSound("v", Joined({Of({count}), rest})));
  CHECK_FALSE(IsSound("v", Joined({Of({1, count}), rest})));
  CHECK_FALSE(IsSound("a", Joined({Of({count}), rest})));
  CHECK_FALSE(IsSound("a", Joined({Of({1, 31, count}), rest})));
  if (count != -1) CHECK_FALSE(IsSound("bS", Joined({Of({count}), kStat})));
}

TEST_CASE("a string with a null character is not sound") {
  using namespace std::string_view_literals;
  CHECK_FALSE(IsSound("s", Text("/a\0b"sv)));
  CHECK_FALSE(IsSound("v", Joined({Of({1}), Text("\0"sv)})));
}

TEST_CASE("a transaction is sound only with all of its results, or an error for each") {
  CHECK_FALSE(IsSound("mS-", Joined({Failed(0), Failed(0), kEnd})));
  CHECK_FALSE(IsSound("mS-", Joined({Failed(0), Failed(-2), kEnd})));
  CHECK_FALSE(IsSound("mS-", Joined({Result(5), kStat, Failed(-110), kEnd})));
  CHECK_FALSE(IsSound("mS-", Joined({Result(5), kStat, kEnd})));
  CHECK_FALSE(IsSound("m-", Joined({Result(2), Result(2), kEnd})));
  CHECK_FALSE(IsSound("m-", Joined({Result(2), Result(-1), Of({-110})})));
  CHECK_FALSE(IsSound("mS-", Joined({Result(2), Result(5), kStat, kEnd})));
}

TEST_CASE("the library reads nothing after the header of a reply with an error") {
  ReplyCheck check = Greeted();
  check.Expect("v");
  check.Expect("msS");
  CHECK(Takes(check, Answer({}, kXid, -101)));
  CHECK(Takes(check, Answer(Bytes(5), kXid, 1)));
}

TEST_CASE("replies answer requests in their order, and only those") {
  ReplyCheck check = Greeted();
  check.Expect("s");
  check.Expect("S");
  CHECK(Takes(check, Answer({}, -2)));  // the reply to a ping
  CHECK(Takes(check, Answer(Text("/a"))));
  CHECK(Takes(check, Answer({}, -4)));  // the reply to credentials
  CHECK(Takes(check, Answer({}, -4, -115)));
  CHECK(Takes(check, Answer(kStat)));
  CHECK_FALSE(Takes(check, Answer({})));
}

TEST_CASE("of the frames that answer no request, only those that zklock can get are sound") {
  const auto [frame, sound] = GENERATE(table<Bytes, bool>({
      {Answer({}, -2), true},
      {Answer(Bytes(1), -2), false},
      {Answer(Bytes(1), -4), false},
      {Answer({}, -8), false},
      {Answer(Joined({Of({3, 3}), Text("/a")}), -1), true},
      {Answer(Joined({Of({3, 3}), Text("/a")}), -1, -1), true},
      {Answer(Of({3, 3}), -1), false},
      {Answer(Of({3, 3, -1}), -1), false},
      {Answer({}, -1, -1), false},
      {Answer({}, -3), false},
  }));
  ReplyCheck check = Greeted();
  CHECK(Takes(check, frame) == sound);
}

TEST_CASE("the answer to a connect request grants a session that the library can use") {
  const auto cut = [](Bytes bytes, std::size_t size) {
    bytes.resize(size);
    return bytes;
  };
  const auto [frame, sound] = GENERATE_COPY(table<Bytes, bool>({
      {Grant(), true},
      {cut(Grant(), 36), true},
      {cut(Grant(), 35), false},
      {Joined({Grant(), Bytes(1)}), false},
      {Grant(30'000, 7, 1), false},
      {Grant(30'000, 7, 0, 15), false},
      {Grant(30'000, 7, 0, -1), false},
      {Grant(30'000, 7, 0, 16, 1), false},
      {Grant(0), false},
      {Grant(-1), false},
      {Grant(INT32_MAX / 2), true},
      {Grant(INT32_MAX / 2 + 1), false},
      {Bytes(), false},
  }));
  CAPTURE(frame.size());
  ReplyCheck check;
  // The library reads this answer in one piece, with its length.
  const Bytes whole = WithLength(frame);
  const bool accepted = check.Feed(whole.data(), whole.size());
  CHECK((accepted && Takes(check, Answer({}, -2))) == sound);  // then the reply to a ping
}

TEST_CASE("only a session that existed can have expired") {
  ReplyCheck fresh;
  CHECK_FALSE(Takes(fresh, Grant(0, 0)));
  ReplyCheck continued(true);
  CHECK(Takes(continued, Grant(0, 0)));
}

TEST_CASE("a frame of an impossible length is rejected before the rest arrives") {
  // The library allocates the whole frame before any of it has arrived.
  static constexpr std::uint32_t kMostBytes = 64U << 20U;
  const auto [length, sound] = GENERATE(table<std::uint32_t, bool>({{0, false},
                                                                    {15, false},
                                                                    {16, true},
                                                                    {kMostBytes, true},
                                                                    {kMostBytes + 1, false},
                                                                    {0x7fffffff, false},
                                                                    {0x80000000, false},
                                                                    {0xffffffff, false}}));
  ReplyCheck check = Greeted();
  const Bytes bytes = Of({static_cast<std::int32_t>(length)});
  CHECK(check.Feed(bytes.data(), 3));
  CHECK(check.Feed(bytes.data() + 3, 1) == sound);
}

TEST_CASE("a frame may arrive in any pieces") {
  for (const bool is_sound : {true, false}) {
    const Bytes frame = WithLength(Answer(Text(is_sound ? "/a" : std::string_view("/\0", 2))));
    for (std::size_t split = 1; split < frame.size(); ++split) {
      ReplyCheck check = Greeted();
      check.Expect("s");
      CHECK(check.Feed(frame.data(), split));
      CHECK(check.Feed(frame.data() + split, frame.size() - split) == is_sound);
    }
  }
}

TEST_CASE("a library that reads differently from this one is not trusted") {
  const Bytes two = Joined({WithLength(Answer({}, -2)), WithLength(Answer({}, -2))});
  ReplyCheck check = Greeted();
  CHECK_FALSE(check.Feed(two.data(), two.size()));
  const Bytes copy = two;
  ReplyCheck elsewhere = Greeted();
  CHECK(elsewhere.Feed(two.data(), 10));
  CHECK_FALSE(elsewhere.Feed(copy.data() + 10, 10));
}

}  // namespace zklock::zookeeper
