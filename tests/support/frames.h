#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::test {

/// One request or answer of ZooKeeper's wire protocol, as a Proxy has passed it on.
struct Frame {
  std::int32_t xid = 0;  ///< -1: a watch's event
  std::string what;      ///< of a request: "get PATH", "close", …
  std::size_t size = 0;  ///< on the wire, the length before it included
};

namespace frames {

inline std::int32_t Number(std::string_view bytes, std::size_t at) {
  std::uint32_t bits = 0;
  for (std::size_t i = at; i < at + 4 && i < bytes.size(); ++i) {
    bits = (bits << 8U) | static_cast<unsigned char>(bytes[i]);
  }
  return static_cast<std::int32_t>(bits);
}

/// `body` begins behind the xid.
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
    case 14:  // the type of its first operation, two more fields, the operation
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

/// Cuts a connection's bytes in one direction into frames, as they come.
class FrameCutter {
 public:
  void Append(std::string_view bytes) { bytes_ += bytes; }
  /// The next whole frame, its length in front; none yet: empty.
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

/// One connection's bytes in one direction, without the handshake that they begin with. The last
/// frame may not be there as a whole yet: it is left out.
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

}  // namespace zklock::test
