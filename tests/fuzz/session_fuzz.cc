// Checks the client's side of a session with a server that replies to one request of each kind. The
// client library decodes whatever ReplyCheck lets through. The session must report nothing that the
// server has not sent.
//
// The input is a byte whose lowest bit asks for a valid greeting, followed by frames. Each frame is
// a byte of flags, a byte with its size, and its bytes. If bit 0 of the flags is set, the bytes are
// sent as they are. Otherwise they are preceded by their length and, unless bit 3 is set, by a
// header: that of the next reply, with an error if bit 1 is set, or that of a watch event if bit 2
// is set.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/fuzz.h"
#include "zookeeper/session.h"

namespace zklock::fuzz {
namespace {

using namespace std::chrono_literals;
using zookeeper::Error;

std::string Big(std::uint64_t number, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(number >> static_cast<unsigned>(shift) & 255U);
  }
  return text;
}

/// The server at the other end of the connection. It also serves as the transport to itself.
class Server final : public zookeeper::Transport {
 public:
  explicit Server(std::string_view script) : script_(script) {
    is_friendly_ = (TakeByte() & 1U) != 0;
  }

  std::unique_ptr<zookeeper::Helper> Start(const zookeeper::Endpoint& /*endpoint*/,
                                           UniqueFd socket) override {
    socket_ = std::move(socket);
    return std::make_unique<Wire>();
  }

  /// Answers the requests that have arrived. Returns false if it sends nothing.
  bool Serve() {
    std::array<char, 4096> buffer;
    ssize_t size = 0;
    while ((size = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
      requests_.append(buffer.data(), static_cast<std::size_t>(size));
    }
    bool sends = false;
    while (HasRequest() && (is_friendly_ || !script_.empty())) {
      sends = true;
      if (std::exchange(is_friendly_, false)) {
        TakeRequest();
        Send(Framed(Big(0, 4) + Big(30'000, 4) + Big(1, 8) + Big(16, 4) + std::string(17, '\0')));
      } else {
        SendNext();
      }
    }
    return sends;
  }

 private:
  struct Wire final : zookeeper::Helper {
    const std::string& ErrorTail() override { return words; }
    void ForgetWords() override {}
    std::string words;
  };

  std::uint8_t TakeByte() {
    if (script_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(script_.front());
    script_.remove_prefix(1);
    return byte;
  }
  void SendNext() {
    const unsigned how = TakeByte();
    const std::size_t size = std::min<std::size_t>(TakeByte(), script_.size());
    std::string bytes(script_.substr(0, size));
    script_.remove_prefix(size);
    if ((how & 1U) != 0) return Send(bytes);
    const bool is_event = (how & 4U) != 0;
    const std::string xid = is_event ? Big(~0ULL, 4) : TakeRequest();
    const std::string error = Big((how & 2U) != 0 ? static_cast<std::uint64_t>(-101) : 0, 4);
    if ((how & 8U) == 0) bytes.insert(0, xid + Big(9, 8) + error);
    Send(Framed(bytes));
  }
  void Send(std::string_view bytes) const {
    (void)send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  static std::string Framed(const std::string& body) { return Big(body.size(), 4) + body; }
  [[nodiscard]] std::size_t RequestSize() const {
    std::size_t size = 0;
    for (const char byte : requests_.substr(0, 4))
      size = size << 8U | static_cast<unsigned char>(byte);
    return 4 + size;
  }
  [[nodiscard]] bool HasRequest() const {
    return requests_.size() >= 4 && requests_.size() >= RequestSize();
  }
  /// Removes the next request, and returns its xid.
  std::string TakeRequest() {
    std::string xid = requests_.substr(4, 4);
    requests_.erase(0, RequestSize());
    return xid;
  }

  std::string_view script_;
  bool is_friendly_ = false;  // has yet to send a valid greeting
  UniqueFd socket_;
  std::string requests_;
};

/// Makes one request of each kind, and checks the reported results.
class Client final : public zookeeper::StoreListener {
 public:
  Client(zookeeper::Store& store, std::string_view input) : store_(store), input_(input) {}
  [[nodiscard]] bool is_lost() const { return lost_; }

  void OnConnected(bool /*fresh*/) override {
    using zookeeper::Watch;
    store_.Create("/a", "data", zookeeper::NodeKind::kEphemeral, [this](const auto& reply) {
      if (!Counts(reply)) return;
      Sent(reply.path);
      Sent(reply.stat);
    });
    store_.Get("/a", Watch::kYes, [this](const auto& reply) {
      if (!Counts(reply)) return;
      Sent(reply.data);
      Sent(reply.stat);
    });
    store_.List("/a", Watch::kYes, [this](const auto& reply) {
      if (!Counts(reply)) return;
      for (const std::string_view name : reply.children) Sent(name);
    });
    store_.Exists("/a", Watch::kYes, [this](const auto& reply) { Counts(reply); });
    store_.Delete("/a", 1, [this](const auto& reply) { Counts(reply); });
    store_.Set("/a", "data", 1, [this](const auto& reply) {
      if (Counts(reply)) Sent(reply.stat);
    });
    store_.WriteAndDelete({{"/a", "data", 1}}, {"/b"}, 2,
                          [this](const auto& reply) { Counts(reply); });
    store_.MakePersistent({{"/a", 1, "data"}}, {"/b"}, {"/c"},
                          [this](const auto& reply) { Counts(reply); });
    store_.Sync("/a", [this](const auto& reply) { Counts(reply); });
    store_.Check({"/a", "/b"}, [this](const auto& reply) { Counts(reply); });
    store_.Stamp("/a", [this](const auto& reply) {
      if (Counts(reply)) Sent(reply.stat);
    });
  }
  void OnDisconnected() override { lost_ = true; }
  void OnExpired() override { lost_ = true; }
  void OnRefused(Error /*why*/) override { lost_ = true; }
  void OnWatch(const std::string& path, zookeeper::Change /*change*/) override { Sent(path); }

 private:
  bool Counts(const zookeeper::Reply& reply) {
    Require(++answers_ <= 11, "each request is answered once");
    return reply.error == Error::kNone;
  }
  void Sent(std::string_view text) const {
    Require(input_.find(text) != std::string_view::npos, "what is reported has been sent");
  }
  void Sent(const zookeeper::NodeStat& stat) const {
    Sent(Big(static_cast<std::uint64_t>(stat.created_zxid), 8));
    Sent(Big(static_cast<std::uint64_t>(stat.ephemeral_owner), 8));
    // Implausible times are clamped, so that the difference of two does not overflow.
    constexpr auto kLimit =
        std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max()).count() / 2;
    const std::int64_t modified = stat.modified_ms;
    Require(modified >= -kLimit && modified <= kLimit, "any two times have a difference");
    if (modified == -kLimit || modified == kLimit) return;
    Sent(Big(static_cast<std::uint64_t>(modified), 8));
  }

  zookeeper::Store& store_;
  std::string_view input_;
  int answers_ = 0;
  bool lost_ = false;
};

}  // namespace

void Try(std::string_view input) {
  const SystemClock clock;
  Server server(input);
  zookeeper::Session session({{"127.0.0.1:1", "a server"}}, 30s, clock, {}, &server);
  Client client(session, input);
  session.SetListener(&client);
  for (bool is_idle = false; !client.is_lost() && session.failed_rounds() == 0 && !is_idle;) {
    const EventSource::Interest interest = session.GetInterest();
    pollfd ready{.fd = interest.fd, .events = interest.events, .revents = 0};
    // Everything that either side has sent has already arrived.
    is_idle = poll(&ready, 1, 0) == 0;
    session.OnReady(ready.revents);
    is_idle = !server.Serve() && is_idle;
  }
}

}  // namespace zklock::fuzz
