#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/peer.h"

namespace zklock::test {

/// A request or reply of ZooKeeper's wire protocol, as passed on by a Proxy.
struct Frame {
  std::int32_t xid = 0;  ///< -1 for a watch event
  std::string what;      ///< for requests: "get PATH", "close", …
  std::size_t size = 0;  ///< on the wire, including the length field
};

namespace frames {

inline std::int32_t Number(std::string_view bytes, std::size_t at) {
  std::uint32_t bits = 0;
  for (std::size_t i = at; i < at + 4 && i < bytes.size(); ++i) {
    bits = (bits << 8U) | static_cast<unsigned char>(bytes[i]);
  }
  return static_cast<std::int32_t>(bits);
}

/// Returns the `what` of a request; `body` begins after the xid.
inline std::string Describe(std::string_view body) {
  const auto path = [&](std::size_t at) {
    return " " + std::string(body.substr(at + 4, static_cast<std::size_t>(Number(body, at))));
  };
  switch (Number(body, 0)) {
    case 4:
      return "get" + path(4);
    case 5:
      return "set" + path(4);
    case 8:
      return "list" + path(4);
    case 9:
      return "sync" + path(4);
    case 11:
      return "ping";
    case 14:  // the first operation's type, two more fields, the operation
      return (Number(body, 4) == 13 ? "check" : "multi") + path(13);
    case 15:
    case 19:
      return "create" + path(4);
    case -11:
      return "close";
    default:
      return "type " + std::to_string(Number(body, 0));
  }
}

}  // namespace frames

/// Splits one direction of a connection into frames as bytes arrive.
class FrameCutter {
 public:
  void Append(std::string_view bytes) { bytes_ += bytes; }
  /// Returns the next whole frame with its length field; empty if there is none yet.
  std::string Next() {
    if (bytes_.size() < 4) return "";
    const auto size = static_cast<std::size_t>(frames::Number(bytes_, 0)) + 4;
    if (bytes_.size() < size) return "";
    std::string frame = bytes_.substr(0, size);
    bytes_.erase(0, size);
    return frame;
  }

 private:
  std::string bytes_;
};

/// Returns the frames in one direction of a connection, without the initial handshake. An
/// incomplete last frame is left out.
inline std::vector<Frame> FramesOf(std::string_view bytes, bool of_client) {
  std::vector<Frame> found;
  bool handshake = true;
  while (bytes.size() >= 4) {
    const auto size = static_cast<std::size_t>(frames::Number(bytes, 0)) + 4;
    if (size > bytes.size()) break;
    if (!handshake) {
      const std::string_view body = bytes.substr(8, size - 8);
      found.push_back({.xid = frames::Number(bytes, 4),
                       .what = of_client ? frames::Describe(body) : "",
                       .size = size});
    }
    handshake = false;
    bytes.remove_prefix(size);
  }
  return found;
}

/// Returns the requests that a client has sent through `proxy`.
inline std::vector<Frame> RequestsOf(const Proxy& proxy) {
  std::string bytes;
  for (const std::string& piece : proxy.Requests()) bytes += piece;
  return FramesOf(bytes, true);
}
inline std::vector<std::string> WordsOf(const std::vector<Frame>& requests) {
  std::vector<std::string> words;
  for (const Frame& request : requests) words.push_back(request.what);
  return words;
}

}  // namespace zklock::test
