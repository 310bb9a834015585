#include "simulation/checks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lock/data/contender_data.h"
#include "lock/data/reserved.h"
#include "lock/data/run_history.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/release_record.h"
#include "protocol/run_records.h"
#include "protocol/semaphore.h"
#include "simulation/life.h"

namespace zklock::simulation {
namespace {

using protocol::Mode;

// Servers' clocks can differ by this much even if they do not jump.
constexpr Time kClockDifference = 100 * kMillisecond;

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

void Command::Extend(const std::shared_ptr<Command>& command, Time end) {
  command->lease_end = end;
  Watch(command);
  for (const auto& one : command->nested) Extend(one, end);
}

Time Command::EndBy(const std::shared_ptr<Command>& command, Time end) {
  command->is_ending = true;
  command->own_end = std::min(command->own_end, end);
  Watch(command);
  Time last = std::min(command->own_end, command->lease_end);
  for (const auto& one : command->nested) last = std::max(last, EndBy(one, end));
  return last;
}

bool Command::IsOverWithNested() const {
  return is_over &&
         std::all_of(nested.begin(), nested.end(), [](const auto& one) { return one->is_over; });
}

Checks::Checks(Ensemble& servers) : servers_(servers) {
  servers_.before_commit = [this](const Txn& txn) { BeforeCommit(txn); };
}

std::shared_ptr<Command> Checks::Begin(Command its_values) {
  const auto command = std::make_shared<Command>(std::move(its_values));
  std::erase_if(commands_, [](const auto& one) { return one->is_over; });
  for (const lock::Ticket& ticket : command->tickets) {
    for (const std::string& path : ticket.paths()) {
      if (excused_.contains(path)) command->is_excused = true;
      const auto noticed = noticed_by_.find({path, ticket.token});
      if (noticed != noticed_by_.end() && world->now() > noticed->second) {
        throw Violation(command->name + " starts long after " + path + " was deleted");
      }
    }
  }
  commands_.push_back(command);
  if (command->own_end < kForever) Command::Watch(command);
  if (command->is_excused) return command;
  for (const lock::Ticket& ticket : command->tickets) {
    if (!command->is_foreign) {
      CheckQueue(*command, ticket);
      if (!command->is_nested) CheckToken(ticket, command->permits.has_value());
    }
    CheckOverlap(*command, ticket);
    if (command->once_per) CheckStart(*command, ticket);
    const auto last = successes_.find(ticket.lock.path);
    if (command->min_interval && last != successes_.end() && !clocks_jump &&
        world->now() < last->second + command->min_interval->count() - kClockDifference) {
      throw Violation(command->name + " starts too soon after the last success");
    }
  }
  return command;
}

void Checks::CheckOverlap(const Command& command, const lock::Ticket& ticket) const {
  std::size_t others = 0;
  for (const auto& other : commands_) {
    if (other.get() == &command || other->is_excused || other->is_over) continue;
    for (const lock::Ticket& held : other->tickets) {
      if (held.lock.path != ticket.lock.path) continue;
      if (command.is_nested && held.path == ticket.path) continue;
      others += 1 + held.more.size();
      if (command.permits || (Reads(held) && Reads(ticket))) continue;
      throw Violation("overlap: " + command.name + " starts under " + ticket.path + " while " +
                      other->name + " runs under " + held.path);
    }
  }
  if (command.permits && others + 1 + ticket.more.size() > *command.permits) {
    throw Violation("too many permits of " + ticket.lock.path);
  }
}

/// Checks that the contender exists, and that no contender ahead of it excludes it. This finds the
/// cause of an overlap without an actual overlap.
void Checks::CheckQueue(const Command& command, const lock::Ticket& ticket) const {
  const Tree& tree = servers_.truth();
  for (const std::string& path : ticket.paths()) {
    const Znode* const own = tree.Find(path);
    if (own != nullptr && own->czxid == ticket.token) continue;
    throw Violation(command.name + " starts without its contender " + path);
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

/// Checks that the start is committed before the command is executed.
void Checks::CheckStart(const Command& command, const lock::Ticket& ticket) const {
  const std::string path = protocol::ChildPath(ticket.lock.path, protocol::kLastStartChild);
  const Znode* const node = servers_.truth().Find(path);
  const auto start = node == nullptr ? std::nullopt : protocol::ParseStartRecord(node->data);
  if (!start || start->token != ticket.token) {
    throw Violation(command.name + " starts, and " + path + " has another start");
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

void Checks::Excuse(const std::string& path, bool only_asked) {
  asked_.insert(path);
  if (only_asked) return;
  excused_.insert(path);
  for (const auto& one : commands_) {
    for (const lock::Ticket& ticket : one->tickets) {
      const auto paths = ticket.paths();
      if (std::find(paths.begin(), paths.end(), path) != paths.end()) one->is_excused = true;
    }
  }
}

void Checks::Allow(const std::string& path) {
  const auto found = reservations_.find(path);
  if (found != reservations_.end()) found->second.may_go = true;
}

bool Checks::WasRobbed(const std::set<std::int64_t>& sessions) const {
  return std::any_of(sessions.begin(), sessions.end(),
                     [this](std::int64_t session) { return robbed_.contains(session); });
}

void Checks::BeforeCommit(const Txn& txn) {
  latest_ms_ = std::max(latest_ms_, txn.ms);
  CheckPermits(txn);
  for (std::size_t i = 0; i < txn.changes.size(); ++i) {
    const Change& change = txn.changes[i];
    const auto data = protocol::ParseLockData(change.data);
    if (data && data->last_release) {
      // The record of a release counts as a start, dated by its time and the duration of the run.
      MayRefuse(change.path, world->now() - Duration(data->last_release->duration).count());
    }
    if (change.kind == Change::Kind::kDelete) {
      const bool returns = i + 1 < txn.changes.size() &&
                           txn.changes[i + 1].kind == Change::Kind::kCreate &&
                           txn.changes[i + 1].path == change.path;
      returns ? OnConverted(txn.changes[i + 1], txn) : OnDeleted(change.path, txn);
    } else if (change.kind == Change::Kind::kSet && IsRequest(change)) {
      asked_.insert(change.path);
    } else if (reservations_.contains(change.path)) {
      OnRenewed(change);
    } else if (protocol::BaseOf(change.path) == protocol::kLastStartChild) {
      OnStart(change, txn);
    } else if (change.kind == Change::Kind::kSet && change.path.ends_with("/last-run")) {
      OnHistory(change);
    }
  }
}

/// Checks that all permits of a run are created in one transaction, and deleted in one, unless
/// another client has deleted one of them by force.
void Checks::CheckPermits(const Txn& txn) const {
  // For each run: how many permits are created, and how many the run takes.
  std::map<std::string, std::pair<std::size_t, std::size_t>> created;
  // The key includes the czxid, because permits left by a lost create have the same UUID.
  std::map<std::pair<std::string, std::int64_t>, std::vector<std::string>> deleted;
  for (const Change& change : txn.changes) {
    const std::string parent = protocol::ParentOf(change.path);
    const auto name = protocol::ViewContenderName(protocol::BaseOf(change.path));
    if (!name || name->mark != protocol::Mark::kPermit) continue;
    const std::string run = protocol::ChildPath(parent, name->run());
    const auto data = lock::ParseContenderData(change.data);
    if (change.kind == Change::Kind::kCreate && data) {
      created[run] = {created[run].first + 1, data->take};
    }
    const Znode* const existing = servers_.truth().Find(change.path);
    if (change.kind == Change::Kind::kDelete && existing != nullptr) {
      deleted[{run, existing->czxid}].push_back(change.path);
    }
  }
  for (const auto& [run, counts] : created) {
    if (counts.first != counts.second) throw Violation("some permits are created: " + run);
  }
  for (const auto& [which, paths] : deleted) {
    const auto& [run, czxid] = which;
    std::size_t existing = 0;
    const std::string parent = protocol::ParentOf(paths.front());
    for (const std::string& child : servers_.truth().Find(parent)->children) {
      const std::string path = protocol::ChildPath(parent, child);
      const auto name = protocol::ViewContenderName(child);
      const bool is_same = name && protocol::ChildPath(parent, name->run()) == run;
      if (is_same && servers_.truth().Find(path)->czxid == czxid) ++existing;
    }
    const bool is_forced = std::any_of(paths.begin(), paths.end(),
                                       [&](const auto& path) { return excused_.contains(path); });
    if (existing != paths.size() && !is_forced) {
      throw Violation("some permits are deleted: " + run);
    }
  }
}

/// Checks that a contender stays while its command runs. This check needs no second contender, and
/// finds most defects.
void Checks::OnDeleted(const std::string& path, const Txn& txn) {
  const Znode* const node = servers_.truth().Find(path);
  if (node == nullptr) return;
  if (node->owner != 0) {
    // The run learns of the deletion through a heartbeat, or its lease ends.
    const Time timeout = servers_.truth().sessions().at(node->owner) * kMillisecond;
    noticed_by_[{path, node->czxid}] = world->now() + timeout + kSecond;
    const bool expired = txn.kind == Txn::Kind::kCloseSession && txn.server < 0;
    if (expired && servers_.unknown_grants.contains(node->owner)) Excuse(path);
    if (excused_.contains(path)) robbed_.insert(node->owner);
  }
  for (const auto& one : commands_) {
    if (one->is_over || one->process == nullptr) continue;
    for (const lock::Ticket& ticket : one->tickets) {
      const auto paths = ticket.paths();
      const bool is_own = std::find(paths.begin(), paths.end(), path) != paths.end();
      if (!is_own || node->czxid != ticket.token) continue;
      if (one->is_foreign) {
        one->is_over = true;
        one->process->Wake();
      }
      if (one->is_foreign) continue;
      if (one->is_excused) {
        world->At(noticed_by_.at({path, ticket.token}), [one, path] {
          if (one->is_over) return;
          throw Violation(one->name + " runs long after " + path + " was deleted by force");
        });
        continue;
      }
      const Time left = std::min(one->own_end, one->lease_end) - world->now();
      throw Violation(path + " is deleted while " + one->name + " runs, for " +
                      std::to_string(static_cast<double>(left) / 1e9) + " s more");
    }
  }
  const auto reserved = reservations_.find(path);
  if (reserved == reservations_.end()) return;
  const Reservation& reservation = reserved->second;
  const bool has_ended = reservation.until_ms && latest_ms_ >= *reservation.until_ms;
  // A set is reserved as a whole or not at all: if one reservation is gone, its maker releases the
  // others, perhaps in a new session.
  const bool is_rest = broken_sets_.contains(reservation.session);
  if (!reservation.may_go && !has_ended && !is_rest && !excused_.contains(path)) {
    throw Violation(path + " is deleted by " + std::to_string(txn.session) +
                    ", though nobody released it");
  }
  reservation.held->is_over = true;
  released_.insert(path);
  broken_sets_.insert(reservation.session);
  reservations_.erase(reserved);
}

/// Checks a contender's conversion to a reservation, which holds from then on.
void Checks::OnConverted(const Change& change, const Txn& txn) {
  const zookeeper::NodeStat stat{.created_zxid = txn.zxid, .created_ms = txn.ms};
  if (lock::FindReleaseRequest(servers_.truth().Find(change.path)->data)) {
    throw Violation(change.path + " becomes a reservation, though it was asked to leave");
  }
  const std::string name(protocol::BaseOf(change.path));
  const auto reserved = lock::FindReservation(name, change.data, stat);
  if (!reserved) throw Violation(change.path + " is no reservation after its conversion");
  const std::string parent = protocol::ParentOf(change.path);
  const bool is_permit = protocol::BaseOf(parent) == protocol::kPermitsChild;
  const std::string lock = is_permit ? protocol::ParentOf(parent) : parent;
  for (const auto& [path, other] : reservations_) {
    if (other.id != reserved->reservation.id) continue;
    if (other.lock == lock) throw Violation(lock + " is reserved twice for " + other.id);
    if (other.id.starts_with(kPoolId) && !MayHaveEnded(path)) {
      throw Violation(other.lock + " and " + lock + " are reserved for " + other.id);
    }
  }
  Command command{.name = "reservation " + change.path,
                  .tickets = {{.lock = {.path = lock, .chroot = ""},
                               .mode = reserved->mode,
                               .path = change.path,
                               .token = servers_.truth().Find(change.path)->czxid}},
                  .own_end = kForever,
                  .lease_end = kForever};
  if (is_permit) command.permits = kPermits;
  const auto until =
      reserved->until ? std::optional<std::int64_t>(reserved->until->count()) : std::nullopt;
  reservations_[change.path] = {lock,  reserved->reservation.id, until, txn.session, false,
                                false, Begin(std::move(command))};
  world->Count("reservations made");
}

/// Returns whether `change` asks a contender to leave. Checks that no run with --preempt asks
/// another one to leave.
bool Checks::IsRequest(const Change& change) {
  const auto data = lock::ParseContenderData(change.data);
  if (!data || !data->release_request) return false;
  if (data->release_request->by == kPreemptor) {
    world->Count("preempted contenders");
    if (data->preempts) throw Violation(change.path + " is asked to leave, though it preempts");
    if (reservations_.contains(change.path)) {
      throw Violation(change.path + " is asked to leave, though it is a reservation");
    }
  }
  return true;
}

/// Checks that a reservation never becomes shorter.
void Checks::OnRenewed(const Change& change) {
  Reservation& reservation = reservations_.at(change.path);
  const Znode& node = *servers_.truth().Find(change.path);  // before the change
  if (node.owner != 0) return;                              // it is being converted
  const auto reserved = lock::FindReservation(
      std::string(protocol::BaseOf(change.path)), change.data,
      {.created_zxid = node.czxid, .created_ms = node.ctime, .version = node.version});
  if (!reserved || reserved->until.has_value() != reservation.until_ms.has_value()) {
    throw Violation(change.path + " gets or loses its end");
  }
  if (!reserved->until) return;
  if (reserved->until->count() < *reservation.until_ms) {
    throw Violation(change.path + " is cut short");
  }
  reservation.had_ended = reservation.had_ended || latest_ms_ >= *reservation.until_ms;
  reservation.until_ms = reserved->until->count();
  world->Count("reservations renewed");
}

/// Checks that a live run is not recorded as lost.
void Checks::OnHistory(const Change& change) const {
  const auto history = lock::RunHistory::Parse(change.data);
  if (!history) return;
  for (const auto& entry : history->entries()) {
    if (entry.run.end != lock::RunRecord::End::kLost) continue;
    for (const auto& one : commands_) {
      if (one->is_over || one->is_excused || one->is_foreign) continue;
      for (const lock::Ticket& ticket : one->tickets) {
        if (ticket.token == entry.run.token) {
          throw Violation(one->name + " runs, and is recorded as lost");
        }
      }
    }
  }
}

void Checks::RequireRecent(const std::string& name, const std::string& path, Time interval) const {
  const auto last = refusing_.find(path);
  const bool is_recent = last != refusing_.end() &&
                         (clocks_jump || world->now() < last->second + interval + kClockDifference);
  if (!is_recent) throw Violation(name + " is refused as too recent, without a recent run");
}

/// Checks that no run with --once-per starts too soon after the previous one.
void Checks::OnStart(const Change& change, const Txn& txn) {
  const auto last = starts_.find(change.path);
  if (last != starts_.end() && !clocks_jump &&
      txn.ms < last->second + kOncePer.count() - kClockDifference / kMillisecond) {
    throw Violation("a start in " + change.path + " " + std::to_string(txn.ms - last->second) +
                    " ms after the last one");
  }
  starts_[change.path] = txn.ms;
  MayRefuse(change.path, world->now());
  world->Count("starts with --once-per");
}

}  // namespace zklock::simulation
