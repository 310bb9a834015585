#include "commands/session/ancestor_locks.h"

#include <algorithm>

#include "protocol/lease.h"

namespace zklock::commands {

using State = process::NestingLink::State;

std::string DisplayPaths(const std::vector<lock::Ticket>& tickets) {
  std::string paths;
  for (const lock::Ticket& ticket : tickets) {
    paths += (paths.empty() ? "" : ", ") + ticket.lock.display_path();
  }
  return paths;
}

std::string DisplayPaths(const std::vector<cli::WantedLock>& locks) {
  std::string paths;
  for (const cli::WantedLock& lock : locks) paths += (paths.empty() ? "" : ", ") + lock.path;
  return paths;
}

void AncestorLocks::Add(lock::Ticket ticket, std::unique_ptr<process::NestingLink> link) {
  tickets_.push_back(std::move(ticket));
  links_.push_back(std::move(link));
}

std::string AncestorLocks::DisplayPath() const { return DisplayPaths(tickets_); }

TimePoint AncestorLocks::lease_end() const {
  TimePoint end = kNever;
  for (const auto& link : links_) end = std::min(end, link->lease().end);
  return end;
}

Duration AncestorLocks::GraceFor(Duration kill_after) const {
  Duration grace = kill_after;
  for (const auto& link : links_) {
    grace = std::min(grace, protocol::GraceFor(kill_after, link->lease().session_timeout));
  }
  return grace;
}

bool AncestorLocks::is_lost() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->state() != State::kHeld; });
}

void AncestorLocks::NameCommand(const process::ProcessId& command) const {
  for (const auto& link : links_) link->NameCommand(command);
}

std::vector<int> AncestorLocks::descriptors() const {
  std::vector<int> descriptors;
  for (const auto& link : links_) descriptors.push_back(link->fd());
  return descriptors;
}

void AncestorLocks::AddTo(process::EventLoop& loop) const {
  for (const auto& link : links_) loop.Add(*link);
}

}  // namespace zklock::commands
