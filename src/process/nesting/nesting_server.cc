#include "process/nesting/nesting_server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include "process/loop/system_error.h"
#include "process/nesting/nesting_socket.h"
#include "process/tree/ancestry.h"

namespace zklock::process {
namespace {

using protocol::NestingRequest;

// How long to wait before accepting again when the system had no descriptors left.
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);

// A flood of connections takes little processor time: after this many, or fewer if no more are
// there, the next are accepted only after the pause. A full queue of 4096 is still served in less
// than two seconds.
constexpr int kMostAtOnce = 64;
constexpr Duration kStrangerPause = std::chrono::milliseconds(20);
// How long another user's connections are closed without a look at /proc after one was refused.
constexpr Duration kStrangerTime = std::chrono::seconds(1);

bool Contains(const std::vector<ProcessId>& lineage, const ProcessId& process) {
  return std::find(lineage.begin(), lineage.end(), process) != lineage.end();
}

}  // namespace

NestingServer::NestingServer(const std::string& name, ProcessId root,
                             std::function<void(int)> before_run)
    : root_(root),
      before_run_(std::move(before_run)),
      epoll_(Check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      listener_(ListenAt(name)) {}

NestingServer::~NestingServer() = default;

void NestingServer::Open(std::vector<std::string> nodes, const protocol::NestingLease& lease) {
  nodes_ = std::move(nodes);
  lease_ = lease;
  state_ = State::kOpen;
  Watch(listener_.get());
}

void NestingServer::SetLease(const protocol::NestingLease& lease) {
  if (lease == lease_ || state_ == State::kEnded) return;
  lease_ = lease;
  for (const auto& connection : connections_) {
    // A stopped run may not read it. Its guard ends its tree by the lease that it knows.
    if (connection->runs) SendText(connection->socket.get(), FormatNesting(lease_));
  }
}

void NestingServer::Drain() {
  if (state_ == State::kOpen) state_ = State::kDraining;
}

void NestingServer::End() {
  if (std::exchange(state_, State::kEnded) == State::kEnded) return;
  // The nested run sees the end of the stream, and closes its own end once nothing of it is left.
  for (const auto& connection : connections_) shutdown(connection->socket.get(), SHUT_WR);
}

std::vector<pid_t> NestingServer::Runs() const {
  std::set<pid_t> pids;
  for (const auto& connection : connections_) {
    if (connection->runs) pids.insert(connection->peer.pid);
  }
  return {pids.begin(), pids.end()};
}

EventSource::Interest NestingServer::GetInterest() {
  return {.fd = epoll_.get(), .events = POLLIN, .wake = accept_again_};
}

void NestingServer::OnReady(short /*revents*/) {
  if (BootClock::now() >= accept_again_) {
    accept_again_ = kNever;
    Watch(listener_.get());
  }
  std::array<epoll_event, 16> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[static_cast<std::size_t>(i)].data.fd;
    if (fd == listener_.get()) {
      Accept();
      continue;
    }
    const auto found = std::find_if(connections_.begin(), connections_.end(),
                                    [fd](const auto& one) { return one->socket.get() == fd; });
    if (found != connections_.end()) Serve(**found);
  }
  std::erase_if(connections_, [](const auto& one) { return !one->socket; });
}

void NestingServer::Accept() {
  for (int accepted = 0; accepted < kMostAtOnce; ++accepted) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        return PauseAccepting(kAcceptPause);
      }
      if (accepted == 0) return;
      break;
    }
    if (Admit(std::move(socket))) return;
  }
  PauseAccepting(kStrangerPause);
}

void NestingServer::PauseAccepting(Duration pause) {
  Unwatch(listener_.get());  // it would stay ready
  accept_again_ = BootClock::now() + pause;
}

/// False if it is a stranger's.
bool NestingServer::Admit(UniqueFd socket) {
  const TimePoint now = BootClock::now();
  if (now >= strangers_end_) strangers_.clear();
  const auto peer = PeerOf(socket.get());
  if (!peer || strangers_.count(peer->uid) > 0) return false;
  const auto stat = peer->pid > 0 ? ReadProcessStat(peer->pid) : std::nullopt;
  const bool is_below = stat && Contains(Lineage(peer->pid), root_);
  // What /proc shows is another process's if the peer has ended and its pid was used again.
  if (is_below && EffectiveUserOf(peer->pid) == std::optional(peer->uid) && IsThere(*peer)) {
    Watch(socket.get());
    connections_.push_back(std::make_unique<Connection>(Connection{std::move(socket), stat->id}));
    return true;
  }
  // Root and our own user could do worse than connect again and again.
  if (peer->uid != 0 && peer->uid != geteuid()) {
    if (strangers_.empty()) strangers_end_ = now + kStrangerTime;
    strangers_.insert(peer->uid);
  }
  SendText(socket.get(), protocol::kNestingRefusal);
  return false;
}

void NestingServer::Serve(Connection& connection) {
  const ReceivedText received = ReceiveText(connection.socket.get());
  if (received.is_closed) return connection.socket.Reset();
  if (!received.text || connection.runs) return;
  const auto request = protocol::ParseNestingRequest(*received.text);
  if (!request) return connection.socket.Reset();
  Answer(connection, *request);
}

void NestingServer::Answer(Connection& connection, const NestingRequest& request) {
  const int socket = connection.socket.get();
  if (request.kind == NestingRequest::Kind::kRun && MayRun(connection, request.node)) {
    if (before_run_) before_run_(socket);
    connection.runs = SendText(socket, FormatNesting(lease_));
    if (connection.runs) return;
  } else if (request.kind != NestingRequest::Kind::kRun &&
             std::find(nodes_.begin(), nodes_.end(), request.node) != nodes_.end() &&
             !IsBelowRun(connection.peer.pid)) {
    // A release by a descendant of a nested run would wait for that run, and the run for the
    // release.
    const std::vector<pid_t> runs = Runs();
    if (request.kind == NestingRequest::Kind::kRelease) release_requested_ = true;
    SendText(socket, FormatNesting(protocol::NestingRelease{
                         runs.size(), runs.empty() ? 0 : static_cast<std::int64_t>(runs.front())}));
  } else {
    SendText(socket, protocol::kNestingRefusal);
  }
  connection.socket.Reset();
}

bool NestingServer::MayRun(const Connection& connection, const std::string& node) const {
  if (std::find(nodes_.begin(), nodes_.end(), node) == nodes_.end()) return false;
  if (BootClock::now() >= lease_.end) return false;
  switch (state_) {
    case State::kOpen:
      return true;
    case State::kDraining:
      return IsBelowRun(connection.peer.pid);
    case State::kClosed:
    case State::kEnded:
      return false;
  }
  return false;
}

bool NestingServer::IsBelowRun(pid_t process) const {
  const std::vector<ProcessId> lineage = Lineage(process);
  return std::any_of(connections_.begin(), connections_.end(),
                     [&](const auto& one) { return one->runs && Contains(lineage, one->peer); });
}

void NestingServer::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  Check(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void NestingServer::Unwatch(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace zklock::process
