// The input is an xid of four bytes, a byte that selects how the rest is split, and a server's
// bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.h"
#include "zookeeper/wire.h"

namespace zklock::fuzz {
namespace {

using zookeeper::Greeting;
using zookeeper::ReplyScanner;

/// The big-endian number in the four bytes at `position`.
std::int32_t Number(std::string_view bytes, std::size_t position) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(position, 4)) {
    number = number * 256 + static_cast<unsigned char>(byte);
  }
  return static_cast<std::int32_t>(number);
}

/// The end of the head of a reply without an error, if there is one.
std::optional<std::size_t> FindReply(std::string_view stream, std::int32_t xid) {
  for (std::size_t begin = 0; begin + 8 <= stream.size();) {
    const auto length = static_cast<std::uint32_t>(Number(stream, begin));
    if (length < 16 || length > zookeeper::kLongestReply) return std::nullopt;
    if (Number(stream, begin + 4) == xid) {
      if (begin + 20 > stream.size()) return std::nullopt;
      if (Number(stream, begin + 16) == 0) return begin + 20;
    }
    begin += 4 + std::size_t{length};
  }
  return std::nullopt;
}

/// Each piece is a separate heap block, so an overread is detected.
std::vector<std::byte> Copy(std::string_view bytes) {
  std::vector<std::byte> copy(bytes.size());
  std::transform(bytes.begin(), bytes.end(), copy.begin(),
                 [](char byte) { return static_cast<std::byte>(byte); });
  return copy;
}

/// Feeds the stream in pieces whose sizes are derived from `step`, or in one piece if it is 0.
void TryPieces(std::string_view stream, std::int32_t xid, std::size_t step) {
  const std::optional<std::size_t> reply = FindReply(stream, xid);
  ReplyScanner scanner(xid);
  std::size_t begin = 0;
  std::size_t size = step;
  do {
    const std::size_t left = stream.size() - begin;
    const std::vector<std::byte> piece = Copy(stream.substr(begin, step == 0 ? left : size));
    const bool seen = scanner.Feed(piece.data(), piece.size());
    begin += piece.size();
    Require(seen == (reply && *reply <= begin), "the reply is seen as soon as its head is there");
    size = size * 7 % 13 + (step == 1 ? 0 : 1);
    if (step == 1) size = 1;
  } while (begin < stream.size());
  Require(scanner.Feed(nullptr, 0) == reply.has_value(), "a reply once seen stays seen");
}

/// Checks that splitting does not change which releases are detected, and that only the reply to a
/// close is detected if no release is pending.
void TryReleases(std::string_view stream, std::int32_t xid, std::size_t step) {
  std::vector<bool> asked;
  for (std::size_t bits = step; bits != 0; bits >>= 1U) asked.push_back((bits & 1U) != 0);
  const std::vector<std::byte> whole = Copy(stream);
  ReplyScanner at_once(xid, asked);
  const bool seen = at_once.Feed(whole.data(), whole.size());
  ReplyScanner byte_by_byte(xid, asked);
  for (const std::byte& byte : whole) byte_by_byte.Feed(&byte, 1);
  Require(byte_by_byte.Feed(nullptr, 0) == seen, "splitting does not change the result");
  const bool closed = ReplyScanner(xid).Feed(whole.data(), whole.size());
  Require(seen || !closed, "the close's reply is sufficient");
  Require(step != 0 || seen == closed, "where nothing lets go only the close's reply is");
}

void TryGreeting(std::string_view stream) {
  const std::vector<std::byte> bytes = Copy(stream);
  Greeting expected = Greeting::kTooShort;
  if (stream.size() >= zookeeper::kGreetingSize) {
    const std::int32_t length = Number(stream, 0);
    const bool known = (length == 36 || length == 37) && Number(stream, 4) == 0;
    expected = known ? Greeting::kZooKeeper : Greeting::kForeign;
  }
  Require(zookeeper::JudgeGreeting(bytes.data(), bytes.size()) == expected,
          "a greeting is known by its length and version");
}

}  // namespace

void Try(std::string_view input) {
  if (input.size() < 5) return;
  const std::int32_t xid = Number(input, 0);
  const auto step = static_cast<std::size_t>(static_cast<unsigned char>(input[4]));
  const std::string_view stream = input.substr(5);
  for (const std::size_t each : {std::size_t{0}, std::size_t{1}, step}) {
    TryPieces(stream, xid, each);
  }
  TryReleases(stream, xid, step);
  TryGreeting(stream);
}

}  // namespace zklock::fuzz
