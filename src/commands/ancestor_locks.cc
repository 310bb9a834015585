#include "commands/ancestor_locks.h"

#include <algorithm>

namespace zklock::commands {
using State = process::NestingLink::State;

void AncestorLocks::Add(lock::Ticket ticket, std::unique_ptr<process::NestingLink> link) {
  tickets_.push_back(std::move(ticket));
  links_.push_back(std::move(link));
}

std::string AncestorLocks::DisplayPath() const {
  std::string shown;
  for (const lock::Ticket& ticket : tickets_) {
    shown += (shown.empty() ? "" : ", ") + ticket.lock.display_path();
  }
  return shown;
}

TimePoint AncestorLocks::lease_end() const {
  TimePoint end = kNever;
  for (const auto& link : links_) end = std::min(end, link->lease().end);
  return end;
}

Duration AncestorLocks::session_timeout() const {
  Duration timeout = links_.front()->lease().session_timeout;
  for (const auto& link : links_) timeout = std::min(timeout, link->lease().session_timeout);
  return timeout;
}

bool AncestorLocks::is_lost() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->state() != State::kHeld; });
}

std::vector<int> AncestorLocks::descriptors() const {
  std::vector<int> descriptors;
  for (const auto& link : links_) descriptors.push_back(link->fd());
  return descriptors;
}

void AncestorLocks::AddTo(process::EventLoop& loop) const {
  for (const auto& link : links_) loop.Add(*link);
}

void AncestorLocks::RemoveFrom(process::EventLoop& loop) const {
  for (const auto& link : links_) loop.Remove(*link);
}

}  // namespace zklock::commands
