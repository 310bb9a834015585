#include "process/nesting/nesting_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <set>
#include <utility>

#include "process/loop/system_error.h"
#include "process/nesting/nesting_socket.h"
#include "process/tree/ancestry.h"

namespace zklock::process {
namespace {

using protocol::NestingRequest;

// How long to wait before accepting again when there were too few descriptors.
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);

// Limits the CPU time that a flood of connections takes: accepting pauses for kStrangerPause once
// this many have been refused, or all waiting ones if they are fewer. A full queue of 4096 is still
// served in less than two seconds.
constexpr int kMostAtOnce = 64;
constexpr Duration kStrangerPause = std::chrono::milliseconds(20);
// For how long after a refusal the same user's connections are closed without reading /proc.
constexpr Duration kStrangerTime = std::chrono::seconds(1);

/// Whether there are descriptors for a connection, the peer's pidfd and a file in /proc. With
/// fewer, a nested run could not be told from a stranger.
bool HasDescriptors(int open_file) {
  std::array<UniqueFd, 3> files;
  for (UniqueFd& file : files) {
    file = UniqueFd(fcntl(open_file, F_DUPFD_CLOEXEC, 0));
    if (!file) return false;
  }
  return true;
}

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
    // A stopped run does not read this. Its guard then ends the tree by the last lease that the run
    // has read.
    if (connection->runs) SendText(connection->link.socket(), FormatNesting(lease_));
  }
}

void NestingServer::Drain() {
  if (state_ == State::kOpen) state_ = State::kDraining;
}

void NestingServer::End() {
  if (std::exchange(state_, State::kEnded) == State::kEnded) return;
  // The nested run sees EOF, and closes its end once none of its processes is left.
  for (const auto& connection : connections_) connection->link.End();
}

std::vector<pid_t> NestingServer::Runs() const {
  std::set<pid_t> pids;
  for (const auto& connection : connections_) {
    if (connection->runs) pids.insert(connection->peer.pid);
  }
  return {pids.begin(), pids.end()};
}

EventSource::Interest NestingServer::GetInterest() {
  TimePoint wake = accept_again_;
  for (const auto& connection : connections_) wake = std::min(wake, connection->link.wake());
  return {.fd = epoll_.get(), .events = POLLIN, .wake = wake};
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
                                    [fd](const auto& one) { return one->link.ToPoll().fd == fd; });
    if (found != connections_.end()) Serve(**found);
  }
  const TimePoint now = BootClock::now();
  for (const auto& connection : connections_) {
    if (now >= connection->link.wake()) SeeEnd(*connection);
  }
  std::erase_if(connections_, [](const auto& one) { return one->is_over; });
}

void NestingServer::Accept() {
  for (int accepted = 0; accepted < kMostAtOnce; ++accepted) {
    if (!HasDescriptors(listener_.get())) return PauseAccepting(kAcceptPause);
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
  Unwatch(listener_.get());  // otherwise it would stay ready
  accept_again_ = BootClock::now() + pause;
}

/// Returns false if the connection was refused.
bool NestingServer::Admit(UniqueFd socket) {
  const TimePoint now = BootClock::now();
  if (now >= strangers_end_) strangers_.clear();
  const auto peer = PeerOf(socket.get());
  if (!peer || strangers_.count(peer->uid) > 0) return false;
  const auto stat = peer->pid > 0 ? ReadProcessStat(peer->pid) : std::nullopt;
  const bool is_below = stat && Contains(Lineage(peer->pid), root_);
  // If the peer has ended and its pid has been reused, /proc shows another process.
  if (is_below && EffectiveUserOf(peer->pid) == std::optional(peer->uid) && IsThere(*peer)) {
    Watch(socket.get());
    connections_.push_back(
        std::make_unique<Connection>(Connection{RunConnection(std::move(socket)), stat->id}));
    return true;
  }
  // Root and this process's own user could do more harm in other ways.
  if (peer->uid != 0 && peer->uid != geteuid()) {
    if (strangers_.empty()) strangers_end_ = now + kStrangerTime;
    strangers_.insert(peer->uid);
  }
  SendText(socket.get(), protocol::kNestingStranger);
  return false;
}

void NestingServer::Serve(Connection& connection) {
  if (connection.runs) return SeeEnd(connection);
  const ReceivedText received = ReceiveText(connection.link.socket());
  if (!received.text && !received.is_closed) return;
  const auto request = received.text ? protocol::ParseNestingRequest(*received.text) : std::nullopt;
  connection.runs = request && Answer(connection, *request);
  connection.is_over = !connection.runs;
  // Whatever a run sends from now on is read only after it has closed its end: see RunConnection.
  // The guard may have a copy of the connection of a run that was not admitted, so closing it here
  // would not remove it from epoll.
  if (connection.runs) {
    Watch(connection.link.socket(), POLLRDHUP, EPOLL_CTL_MOD);
  } else {
    Unwatch(connection.link.socket());
  }
}

/// Returns whether the run was admitted.
bool NestingServer::Answer(Connection& connection, const NestingRequest& request) {
  const int socket = connection.link.socket();
  if (request.kind == NestingRequest::Kind::kRun && MayRun(connection, request.node)) {
    if (before_run_) before_run_(socket);
    return SendText(socket, FormatNesting(lease_));
  }
  // The reply counts the runs that are left, and processes below one of them are refused, so first
  // check which runs have ended.
  for (const auto& one : connections_) {
    if (one->runs) SeeEnd(*one);
  }
  if (request.kind != NestingRequest::Kind::kRun &&
      std::find(nodes_.begin(), nodes_.end(), request.node) != nodes_.end() &&
      !IsBelowRun(connection.peer.pid)) {
    // A release by a descendant of a nested run would wait for that run, and the run for the
    // release.
    const std::vector<pid_t> runs = Runs();
    if (request.kind == NestingRequest::Kind::kRelease) release_requested_ = true;
    const auto first = runs.empty() ? 0 : static_cast<std::int64_t>(runs.front());
    SendText(socket, FormatNesting(protocol::NestingRelease{runs.size(), first, nodes_.size()}));
  } else {
    SendText(socket, protocol::kNestingRefusal);
  }
  return false;
}

void NestingServer::SeeEnd(Connection& run) {
  Unwatch(run.link.ToPoll().fd);
  run.is_over = run.link.HasEnded();
  // A command is younger than its zklock, which forks it. If an older process could pass for the
  // command, descendants of that process would count as descendants of the run.
  const ProcessId left = run.link.command().value_or(run.peer);
  run.is_over = run.is_over || left.start_time < run.peer.start_time;
  run.runs = !run.is_over;
  if (run.is_over) return;
  run.peer = left;
  const pollfd next = run.link.ToPoll();
  Watch(next.fd, next.events);
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

void NestingServer::Watch(int fd, short events, int operation) {
  epoll_event event{};
  event.events = static_cast<std::uint32_t>(events);  // epoll uses the values of poll(2)
  event.data.fd = fd;
  Check(epoll_ctl(epoll_.get(), operation, fd, &event), "epoll_ctl");
}

void NestingServer::Unwatch(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace zklock::process
