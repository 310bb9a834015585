#include "process/nesting/nesting_link.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "process/nesting/nesting_socket.h"

namespace zklock::process {
namespace {

/// Returns the effective user of a process; none if it is not alive.
std::optional<uid_t> UserOf(const ProcessId& process) {
  const std::optional<uid_t> user = EffectiveUserOf(process.pid);
  const auto now = ReadProcessStat(process.pid);
  if (!now || now->is_dead || now->id != process) return std::nullopt;
  return user;
}

}  // namespace

std::unique_ptr<NestingLink> NestingLink::Open(const std::string& name, const ProcessId& holder,
                                               const ProcessId& owner,
                                               const protocol::NestingRequest& request) {
  UniqueFd socket = ConnectTo(name);
  if (!socket) return nullptr;
  const auto peer = PeerOf(socket.get());
  const bool is_holder = peer && peer->pid == holder.pid && UserOf(holder) && IsThere(*peer);
  const bool is_trusted = is_holder && (peer->uid == 0 || peer->uid == geteuid() ||
                                        UserOf(owner) == std::optional(peer->uid));
  // A holder that refuses us may have closed its end already (EPIPE), after its answer.
  if (!is_trusted || (!SendText(socket.get(), FormatNesting(request)) && errno != EPIPE)) {
    errno = EPERM;
    return nullptr;
  }
  return std::unique_ptr<NestingLink>(new NestingLink(std::move(socket)));
}

void NestingLink::NameCommand(const ProcessId& command) const {
  // If this fails, the holder is gone, and the run ends.
  SendText(socket_.get(), FormatNesting(protocol::NestingCommand{command.pid, command.start_time}));
}

EventSource::Interest NestingLink::GetInterest() {
  const bool listens = state_ == State::kAsking || state_ == State::kHeld;
  return {.fd = listens ? socket_.get() : -1, .events = POLLIN};
}

void NestingLink::OnReady(short /*revents*/) {
  while (state_ == State::kAsking || state_ == State::kHeld) {
    const ReceivedText received = ReceiveText(socket_.get());
    if (received.is_closed) state_ = State::kEnded;
    if (!received.text) return;
    Take(*received.text);
  }
}

void NestingLink::Take(const std::string& text) {
  if (const auto lease = protocol::ParseNestingLease(text)) {
    lease_ = *lease;
    state_ = State::kHeld;
  } else if (const auto release = protocol::ParseNestingRelease(text)) {
    release_ = *release;
    state_ = State::kReleasing;
  } else if (state_ == State::kHeld) {
    state_ = State::kEnded;
  } else {
    state_ = text == protocol::kNestingStranger ? State::kStranger : State::kRefused;
  }
}

}  // namespace zklock::process
