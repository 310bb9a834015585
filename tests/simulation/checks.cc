#include "simulation/checks.h"

#include <algorithm>

#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::simulation {
namespace {

using protocol::Mode;

bool Reads(const lock::Ticket& ticket) { return ticket.mode == Mode::kRead; }

}  // namespace

void Command::Watch(const std::shared_ptr<Command>& command) {
  if (command->is_over) return;
  const Time end = std::min(command->own_end, command->lease_end);
  world->At(end, [command] {
    if (command->is_over) return;
    if (world->now() < std::min(command->own_end, command->lease_end)) return Watch(command);
    command->is_over = true;
    world->Trace("{}: the command ends", command->name);
    command->process->Wake();
  });
}

Checks::Checks(Ensemble& servers) : servers_(servers) {
  servers_.before_commit = [this](const Txn& txn) { BeforeCommit(txn); };
}

void Checks::Begin(const std::shared_ptr<Command>& command) {
  std::erase_if(commands_, [](const auto& one) { return one->is_over; });
  for (const lock::Ticket& ticket : command->tickets) {
    if (excused_.contains(ticket.path)) command->is_excused = true;
  }
  commands_.push_back(command);
  if (command->is_excused) return;
  for (const lock::Ticket& ticket : command->tickets) {
    CheckQueue(*command, ticket);
    CheckToken(ticket, command->permits.has_value());
    std::size_t others = 0;
    for (const auto& other : commands_) {
      if (other == command || other->is_excused) continue;
      for (const lock::Ticket& held : other->tickets) {
        if (held.lock.path != ticket.lock.path) continue;
        ++others;
        if (command->permits || (Reads(held) && Reads(ticket))) continue;
        throw Violation("overlap: " + command->name + " starts under " + ticket.path + " while " +
                        other->name + " runs under " + held.path);
      }
    }
    if (command->permits && others >= *command->permits) {
      throw Violation("too many permits of " + ticket.lock.path);
    }
  }
}

/// The contender is there, and no other that excludes it is before it: what makes overlaps possible
/// is found without waiting for one.
void Checks::CheckQueue(const Command& command, const lock::Ticket& ticket) const {
  const Tree& tree = servers_.truth();
  const Znode* const own = tree.Find(ticket.path);
  if (own == nullptr || own->czxid != ticket.token) {
    throw Violation(command.name + " starts without its contender " + ticket.path);
  }
  if (command.permits || ticket.id().has_reused_name()) return;
  const auto name = protocol::ParseContenderName(protocol::BaseOf(ticket.path));
  for (const std::string& child : tree.Find(ticket.lock.path)->children) {
    const auto other = protocol::ParseContenderName(child);
    if (!other || other->number >= name->number) continue;
    if (Reads(ticket) && other->reads()) continue;
    if (excused_.contains(protocol::ChildPath(ticket.lock.path, child))) continue;
    throw Violation(command.name + " starts under " + ticket.path + " behind " + child);
  }
}

void Checks::CheckToken(const lock::Ticket& ticket, bool is_permit) {
  Tokens& last = tokens_[ticket.lock.path];
  if (!is_permit && ticket.token <= (Reads(ticket) ? last.excluding : last.all)) {
    throw Violation("the token of " + ticket.path + " is not the newest");
  }
  last.all = std::max(last.all, ticket.token);
  if (!Reads(ticket)) last.excluding = std::max(last.excluding, ticket.token);
}

void Checks::Excuse(const std::string& path) {
  excused_.insert(path);
  for (const auto& one : commands_) {
    for (const lock::Ticket& ticket : one->tickets) {
      if (ticket.path == path) one->is_excused = true;
    }
  }
}

std::vector<std::string> Checks::HeldPaths() const {
  std::vector<std::string> paths;
  for (const auto& one : commands_) {
    if (one->is_over) continue;
    for (const lock::Ticket& ticket : one->tickets) paths.push_back(ticket.path);
  }
  return paths;
}

/// A contender stays as long as its command runs. Needs no second contender, and finds most
/// defects.
void Checks::BeforeCommit(const Txn& txn) {
  for (const Change& change : txn.changes) {
    if (change.kind != Change::Kind::kDelete) continue;
    for (const auto& one : commands_) {
      if (one->is_over || one->is_excused) continue;
      for (const lock::Ticket& ticket : one->tickets) {
        const Znode* const node = servers_.truth().Find(change.path);
        if (ticket.path != change.path || node == nullptr || node->czxid != ticket.token) continue;
        throw Violation(
            ticket.path + " is deleted while " + one->name + " runs, for " +
            std::to_string(
                static_cast<double>(std::min(one->own_end, one->lease_end) - world->now()) / 1e9) +
            " s more");
      }
    }
  }
}

}  // namespace zklock::simulation
