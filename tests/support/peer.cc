#include "support/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/child.h"
#include "support/frames.h"

namespace zklock::test {
namespace {

using Clock = std::chrono::steady_clock;

int Check(int result, const char* operation) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), operation);
  return result;
}

UniqueFd NewSocket() {
  return UniqueFd(Check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
}

void Connect(const UniqueFd& socket, const sockaddr_in& address) {
  Check(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        "connect");
  const int at_once = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
}

sockaddr_in AddressOf(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  Check(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  return address;
}

sockaddr_in ParseAddress(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (colon == std::string::npos ||
      inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    throw std::invalid_argument("'" + text + "' is no IPv4 address and port");
  }
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1))));
  return address;
}

UniqueFd BoundSocket(const std::string& text = "127.0.0.1:0") {
  UniqueFd socket = NewSocket();
  const sockaddr_in address = ParseAddress(text);
  if (address.sin_port != 0) {
    const int again = 1;  // even if earlier connections to this address linger
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  }
  Check(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  return socket;
}

std::string TextOf(const UniqueFd& socket) {
  const sockaddr_in address = AddressOf(socket);
  std::array<char, INET_ADDRSTRLEN> host{};
  inet_ntop(AF_INET, &address.sin_addr, host.data(), host.size());
  return host.data() + (":" + std::to_string(ntohs(address.sin_port)));
}

/// A listening socket and a thread that serves it.
///
/// Only that thread uses the connections. Other threads queue orders for it and wait until they are
/// done.
class Listener {
 public:
  explicit Listener(const std::string& address = "127.0.0.1:0")
      : socket_(BoundSocket(address)),
        wake_(Check(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
    Check(listen(socket_.get(), 512), "listen");
    address_ = TextOf(socket_);
  }
  virtual ~Listener() = default;

  /// Starts the thread. Call this once the object is complete, and Stop() before destroying it.
  void Start() {
    // Signals are left to the test's thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { Serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void Stop() {
    Do([this] { stopped_ = true; });
    thread_.join();
  }

  /// Runs `order` in the thread and waits until it is done.
  void Do(std::function<void()> order) {
    std::unique_lock lock(mutex_);
    const std::uint64_t number = ++ordered_;
    orders_.push_back(std::move(order));
    const std::uint64_t one = 1;
    Check(static_cast<int>(write(wake_.get(), &one, sizeof one)), "write");
    changed_.wait(lock, [&] { return done_ >= number; });
  }

  void WaitForConnections(int count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return connections_ >= count; })) {
      throw std::runtime_error("only " + std::to_string(connections_) + " connections to " +
                               address_ + ", not " + std::to_string(count));
    }
  }
  int connections() {
    const std::lock_guard lock(mutex_);
    return connections_;
  }
  [[nodiscard]] const std::string& address() const { return address_; }

 protected:
  virtual void OnConnection(UniqueFd connection) = 0;
  /// Adds more descriptors to poll.
  virtual void AddTo(std::vector<pollfd>& polled) = 0;
  /// Gets the poll results of those descriptors.
  virtual void OnReady(const std::vector<pollfd>& polled) = 0;
  virtual std::optional<Clock::time_point> NextMoment() { return std::nullopt; }

 private:
  void Serve() {
    while (!stopped_) {
      std::vector<pollfd> polled;
      AddTo(polled);
      polled.push_back({wake_.get(), POLLIN, 0});
      polled.push_back({socket_.get(), POLLIN, 0});
      int timeout = -1;
      if (const auto moment = NextMoment()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*moment - Clock::now());
        timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
      }
      if (poll(polled.data(), polled.size(), timeout) < 0) continue;
      const bool has_orders = polled[polled.size() - 2].revents != 0;
      const bool is_called = polled.back().revents != 0;
      polled.resize(polled.size() - 2);
      OnReady(polled);
      if (is_called) Accept();
      if (has_orders) DoOrders();
    }
  }

  void Accept() {
    UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    {
      const std::lock_guard lock(mutex_);
      ++connections_;
    }
    OnConnection(std::move(connection));
    changed_.notify_all();
  }

  void DoOrders() {
    std::uint64_t count = 0;
    if (read(wake_.get(), &count, sizeof count) < 0) return;
    const std::lock_guard lock(mutex_);
    for (const auto& order : orders_) order();
    orders_.clear();
    done_ = ordered_;
    changed_.notify_all();
  }

  UniqueFd socket_;
  UniqueFd wake_;
  std::string address_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::function<void()>> orders_;
  std::uint64_t ordered_ = 0;
  std::uint64_t done_ = 0;
  int connections_ = 0;
  bool stopped_ = false;  // used only by the thread
  std::thread thread_;
};

}  // namespace

// ---- servers that are not there ----------------------------------------------------------------

ClosedPort::ClosedPort() : socket_(BoundSocket()), address_(TextOf(socket_)) {}

BlackHole::BlackHole() : listener_(BoundSocket()), filler_(NewSocket()) {
  // With a backlog of 0 the queue holds one connection; each later SYN is dropped.
  Check(listen(listener_.get(), 0), "listen");
  Connect(filler_, AddressOf(listener_));
  address_ = TextOf(listener_);
}

// ---- other servers -----------------------------------------------------------------------------

struct Peer::State final : Listener {
  explicit State(Manner how) : manner(how) {}

  void OnConnection(UniqueFd connection) override {
    if (manner != Manner::kClosesAtOnce) open.push_back(std::move(connection));
  }
  void AddTo(std::vector<pollfd>& polled) override {
    for (const UniqueFd& connection : open) polled.push_back({connection.get(), POLLIN, 0});
  }
  void OnReady(const std::vector<pollfd>& polled) override {
    for (const pollfd& one : polled) {
      if (one.revents != 0) Read(one.fd);
    }
  }

  void Read(int fd) {
    std::array<char, 4096> buffer{};
    const ssize_t size = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) return;
    if (size > 0 && manner == Manner::kSpeaksHttp) {
      constexpr std::string_view kAnswer =
          "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
      send(fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (size <= 0 || manner == Manner::kSpeaksHttp) {
      std::erase_if(open, [&](const UniqueFd& connection) { return connection.get() == fd; });
    }
  }

  const Manner manner;
  std::vector<UniqueFd> open;
};

Peer::Peer(Manner manner) : state_(std::make_unique<State>(manner)) { state_->Start(); }
Peer::~Peer() { state_->Stop(); }
const std::string& Peer::address() const { return state_->address(); }
int Peer::connections() const { return state_->connections(); }
void Peer::WaitForConnections(int count) const { state_->WaitForConnections(count); }

// ---- the proxy ----------------------------------------------------------------------------------

struct Proxy::State final : Listener {
  /// Bytes read from one side and not yet written to the other.
  struct Stream {
    UniqueFd* from;
    UniqueFd* to;
    const bool* passes;
    std::vector<std::string>* pieces;  // everything read, for the test
    struct Chunk {
      Clock::time_point due;
      std::string bytes;
    };
    std::deque<Chunk> chunks{};
    std::size_t size = 0;
    bool ended = false;
  };
  /// Passes replies through an Edit.
  struct Editor {
    Edit edit;
    FrameCutter requests{};
    FrameCutter replies{};
    bool is_request_handshake = true;
    bool is_reply_handshake = true;
    bool is_silent = false;
    std::map<std::int32_t, std::string> asked{};  // by xid

    void TakeRequests(std::string_view bytes) {
      requests.Append(bytes);
      for (std::string frame; !(frame = requests.Next()).empty();) {
        if (std::exchange(is_request_handshake, false)) continue;
        asked[frames::Number(frame, 4)] = frames::Describe(std::string_view(frame).substr(8));
      }
    }
    /// Returns the bytes to pass on instead.
    std::string EditReplies(std::string_view bytes) {
      replies.Append(bytes);
      std::string passed;
      for (std::string frame; !is_silent && !(frame = replies.Next()).empty();) {
        const bool is_handshake = std::exchange(is_reply_handshake, false);
        const std::string request = is_handshake ? "connect" : asked[frames::Number(frame, 4)];
        const auto edited = edit(request, std::move(frame));
        is_silent = !edited;
        passed += edited.value_or("");
      }
      return passed;
    }
  };
  struct Link {
    UniqueFd client;
    UniqueFd server;
    Stream requests;
    Stream replies;
    bool broken = false;
    bool has_asked = false;  // the client has asked for a session
    std::optional<Editor> editor{};
  };

  State(const std::string& onward, const std::string& address)
      : Listener(address), server(ParseAddress(onward)) {}

  void OnConnection(UniqueFd connection) override {
    UniqueFd onward = NewSocket();
    try {
      Connect(onward, server);
    } catch (const std::system_error&) {
      return;  // no server: closes the client's connection at once
    }
    const int at_once = 1;
    setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    Link& link = links.emplace_back();
    link.client = std::move(connection);
    link.server = std::move(onward);
    if (edit) link.editor = Editor{edit};
    link.requests = {.from = &link.client,
                     .to = &link.server,
                     .passes = &passes_requests,
                     .pieces = &sent_by_clients};
    link.replies = {.from = &link.server,
                    .to = &link.client,
                    .passes = &passes_replies,
                    .pieces = &sent_by_servers};
  }

  // The most bytes held back in one direction: no more than the kernel's buffers could hold.
  static constexpr std::size_t kMostHeld = 1 << 20;

  short EventsOf(const Stream& in, const Stream& out) const {
    const bool reads = !in.ended && *in.passes && in.size < kMostHeld;
    const bool writes =
        *out.passes && !out.chunks.empty() && out.chunks.front().due <= Clock::now();
    return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  }

  void AddTo(std::vector<pollfd>& polled) override {
    for (const Link& link : links) {
      const short client = EventsOf(link.requests, link.replies);
      const short server_side = EventsOf(link.replies, link.requests);
      // Even with no events requested, poll would keep reporting a broken connection.
      polled.push_back({client != 0 ? link.client.get() : -1, client, 0});
      polled.push_back({server_side != 0 ? link.server.get() : -1, server_side, 0});
    }
  }

  void OnReady(const std::vector<pollfd>& polled) override {
    auto link = links.begin();
    for (std::size_t i = 0; i + 1 < polled.size(); i += 2, ++link) {
      if (polled[i].revents != 0) link->broken |= !Read(*link, link->requests);
      if (polled[i + 1].revents != 0) link->broken |= !Read(*link, link->replies);
      link->broken |= !Write(link->requests) || !Write(link->replies);
      link->broken |= HasPassedItsEnd(link->requests) || HasPassedItsEnd(link->replies);
    }
    links.remove_if([](const Link& one) { return one.broken; });
  }

  std::optional<Clock::time_point> NextMoment() override {
    std::optional<Clock::time_point> next;
    for (const Link& link : links) {
      for (const Stream* stream : {&link.requests, &link.replies}) {
        if (!*stream->passes || stream->chunks.empty()) continue;
        const Clock::time_point due = stream->chunks.front().due;
        if (due > Clock::now() && (!next || due < *next)) next = due;
      }
    }
    return next;
  }

  // Returns false if the connection is broken.
  bool Read(Link& link, Stream& stream) const {
    if (stream.ended || !*stream.passes || stream.size >= kMostHeld) return true;
    std::array<char, 65536> buffer;
    const ssize_t size = recv(stream.from->get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) {
      stream.ended = true;
      return true;
    }
    std::string bytes(buffer.data(), static_cast<std::size_t>(size));
    stream.pieces->push_back(bytes);
    const bool is_connect = &stream == &link.requests && !std::exchange(link.has_asked, true);
    if (forgets_sessions && is_connect) ForgetSession(bytes);
    if (link.editor && &stream == &link.requests) link.editor->TakeRequests(bytes);
    if (link.editor && &stream == &link.replies) bytes = link.editor->EditReplies(bytes);
    if (loses_closes && EndsWithClose(bytes)) bytes.resize(bytes.size() - kCloseSize);
    stream.size += bytes.size();
    if (!bytes.empty()) stream.chunks.push_back({Clock::now() + delay, std::move(bytes)});
    return true;
  }

  // A connect request consists of a length, a version, a zxid, a timeout, the session's id, and its
  // password of 16 bytes, preceded by its length.
  static void ForgetSession(std::string& request) {
    constexpr std::size_t kId = 20;
    constexpr std::size_t kPassword = 32;
    constexpr std::size_t kEnd = 48;
    if (request.size() < kEnd) return;
    request.replace(kId, 8, 8, '\0');
    request.replace(kPassword, kEnd - kPassword, kEnd - kPassword, '\0');
  }

  // A close consists of a length, an xid and the type -11.
  static constexpr std::size_t kCloseSize = 12;
  static bool EndsWithClose(std::string_view bytes) {
    if (bytes.size() < kCloseSize) return false;
    const std::string_view end = bytes.substr(bytes.size() - kCloseSize);
    return end.substr(0, 4) == std::string_view("\0\0\0\x08", 4) &&
           end.substr(8) == "\xff\xff\xff\xf5";
  }

  static bool Write(Stream& stream) {
    while (*stream.passes && !stream.chunks.empty() && stream.chunks.front().due <= Clock::now()) {
      std::string& bytes = stream.chunks.front().bytes;
      const ssize_t size =
          send(stream.to->get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (size < 0) return errno == EAGAIN || errno == EINTR;
      stream.size -= static_cast<std::size_t>(size);
      bytes.erase(0, static_cast<std::size_t>(size));
      if (bytes.empty()) stream.chunks.pop_front();
    }
    return true;
  }

  static bool HasPassedItsEnd(const Stream& stream) {
    return stream.ended && stream.chunks.empty() && *stream.passes;
  }

  sockaddr_in server;
  std::list<Link> links;
  bool passes_requests = true;
  bool passes_replies = true;
  bool loses_closes = false;
  bool forgets_sessions = false;
  std::chrono::milliseconds delay{};
  Edit edit;
  std::vector<std::string> sent_by_clients;
  std::vector<std::string> sent_by_servers;

  void SetPasses(bool requests, bool replies) {
    Do([=, this] {
      passes_requests = requests;
      passes_replies = replies;
    });
  }
};

Proxy::Proxy(const std::string& server, const std::string& address)
    : state_(std::make_unique<State>(server, address)) {
  state_->Start();
}
Proxy::~Proxy() { state_->Stop(); }
const std::string& Proxy::address() const { return state_->address(); }
int Proxy::connections() const { return state_->connections(); }
void Proxy::WaitForConnections(int count) const { state_->WaitForConnections(count); }
void Proxy::Freeze() { state_->SetPasses(false, false); }
void Proxy::ForgetSessions() {
  state_->Do([this] { state_->forgets_sessions = true; });
}
void Proxy::LoseCloses(bool lose) {
  state_->Do([this, lose] { state_->loses_closes = lose; });
}
void Proxy::FreezeReplies() { state_->SetPasses(true, false); }
void Proxy::Thaw() { state_->SetPasses(true, true); }
void Proxy::Cut() {
  state_->Do([this] { state_->links.clear(); });
}
void Proxy::Redirect(const std::string& server) {
  state_->Do([this, address = ParseAddress(server)] { state_->server = address; });
}
void Proxy::EditReplies(Edit edit) {
  state_->Do([&] { state_->edit = std::move(edit); });
}
void Proxy::Delay(std::chrono::milliseconds delay) {
  state_->Do([this, delay] { state_->delay = delay; });
}

std::vector<std::string> Proxy::Requests() const {
  std::vector<std::string> requests;
  state_->Do([&] { requests = state_->sent_by_clients; });
  return requests;
}
std::string Proxy::Replies() const {
  std::string replies;
  state_->Do([&] {
    for (const std::string& piece : state_->sent_by_servers) replies += piece;
  });
  return replies;
}

}  // namespace zklock::test
