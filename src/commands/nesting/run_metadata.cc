#include "commands/nesting/run_metadata.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "commands/nesting/holder_claim.h"
#include "lock/data/contender_data.h"
#include "protocol/held.h"

namespace zklock::commands {
namespace {

/// For the wait graph: the contenders that already hold locks on our behalf, each named by its
/// first permit.
std::vector<std::string> InheritedContenders() {
  std::vector<std::string> paths;
  std::int64_t last_token = 0;
  for (const protocol::HeldLock& held : AncestorHolds(getpid())) {
    if (std::exchange(last_token, held.token) != held.token) paths.push_back(held.node);
  }
  return paths;
}

/// With --any: the other LOCKs that our run queues for.
std::vector<std::string> AlternativesTo(const cli::WantedLock& wanted,
                                        const cli::RunOptions& options) {
  std::vector<std::string> paths;
  if (!options.any || options.try_only) return paths;
  for (const cli::WantedLock& one : options.locks) {
    if (one.path == wanted.path) continue;
    paths.push_back(lock::LockName::In(options.server.servers.chroot, one.path).path);
  }
  return paths;
}

lock::ContenderData DataFor(const cli::RunOptions& options, const cli::WantedLock& wanted,
                            const process::Identity& self) {
  return {.mode = wanted.mode,
          .host = self.host,
          .user = self.user,
          .pid = self.pid,
          .boot_id = self.boot_id,
          .start_time = self.start_time,
          .label = options.label,
          .pid_namespace = self.pid_namespace,
          .preempts = options.preempt != cli::Preempt::kNobody,
          .take = options.take,
          .under = InheritedContenders(),
          .any = AlternativesTo(wanted, options)};
}

}  // namespace

std::optional<std::string> GetEnvironment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string ContenderDataFor(const cli::RunOptions& options, const cli::WantedLock& wanted,
                             const process::Identity& self, bool contained) {
  lock::ContenderData data = DataFor(options, wanted, self);
  data.reserve = options.reserve;
  if (!data.reserve.empty()) data.reserve_reason = options.reserve_reason;
  if (options.command.empty()) return lock::FormatContenderData(data);
  std::string command = options.command.front();
  if (options.publish_command) {
    for (std::size_t i = 1; i < options.command.size(); ++i) command += " " + options.command[i];
  } else {
    command.erase(0, command.find_last_of('/') + 1);  // without a slash: npos + 1 is 0
  }
  data.command = command;
  data.contained = contained;
  return lock::FormatContenderData(data);
}

std::string KeeperDataFor(const cli::RunOptions& options, const cli::WantedLock& wanted,
                          const KeeperIdentity& keeper) {
  lock::ContenderData data = DataFor(options, wanted, keeper.self);
  data.command = keeper.owner.name();
  data.owner = lock::OwnerData{keeper.owner.id().pid, keeper.owner.id().start_time, keeper.socket};
  return lock::FormatContenderData(data);
}

std::vector<std::string> EnvironmentFor(const std::vector<lock::Ticket>& own,
                                        const std::vector<lock::Ticket>& inherited,
                                        const process::Identity& self, const std::string& socket) {
  auto held = protocol::ParseHeld(GetEnvironment("ZKLOCK_HELD").value_or(""));
  for (const lock::Ticket& ticket : own) {
    for (const std::string& path : ticket.paths()) {
      held.push_back(
          {ticket.mode, self.pid, self.pid_namespace, self.start_time, ticket.token, socket, path});
    }
  }
  std::vector<lock::Ticket> tickets = own;
  tickets.insert(tickets.end(), inherited.begin(), inherited.end());
  std::sort(tickets.begin(), tickets.end(),
            [](const auto& one, const auto& other) { return one.lock.path < other.lock.path; });
  std::vector<std::string> locks;
  std::vector<std::string> modes;
  std::vector<std::string> nodes;
  std::vector<std::string> tokens;
  for (const lock::Ticket& ticket : tickets) {
    locks.push_back(ticket.lock.display_path());
    modes.emplace_back(protocol::ModeName(ticket.mode));
    nodes.push_back(ticket.display_path());
    tokens.push_back(std::to_string(ticket.token));
  }
  std::vector<std::pair<std::string, std::string>> added = {
      {"ZKLOCK_LOCK", fmt::format("{}", fmt::join(locks, " "))},
      {"ZKLOCK_MODE", fmt::format("{}", fmt::join(modes, " "))},
      {"ZKLOCK_NODE", fmt::format("{}", fmt::join(nodes, " "))},
      {"ZKLOCK_TOKEN", fmt::format("{}", fmt::join(tokens, " "))},
  };
  if (!held.empty()) added.emplace_back("ZKLOCK_HELD", protocol::FormatHeld(held));
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(added.begin(), added.end(), [&](const auto& one) { return one.first == name; });
    if (!replaced) environment.emplace_back(text);
  }
  for (const auto& [name, value] : added) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace zklock::commands
