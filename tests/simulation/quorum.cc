#include <algorithm>
#include <tuple>
#include <utility>

#include "simulation/ensemble.h"

// The protocol between servers.
//
// An election is simpler than ZooKeeper's: a server that looks for a leader knows at once how new
// the log of each server that it can reach is. The result is the same: the server with the newest
// log in a majority leads, in a new epoch that this majority has accepted, and entries that its log
// lacks are lost.

namespace zklock::simulation {
namespace {

using Role = Server::Role;

constexpr std::int64_t kWallClock = 1'700'000'000'000;  // ms since 1970 at virtual time 0
constexpr int kSyncLimit = 5;                           // ticks; syncLimit
constexpr int kInitLimit = 10;                          // initLimit

std::string Describe(const Txn& txn) {
  std::string text = fmt::format("session {:x}", txn.session);
  if (txn.kind == Txn::Kind::kOpenSession) text += " opens";
  if (txn.kind == Txn::Kind::kCloseSession) text += " closes";
  if (txn.error != ZOK) text += fmt::format(", error {}", txn.error);
  for (const Change& change : txn.changes) {
    text += change.kind == Change::Kind::kCreate   ? ", creates "
            : change.kind == Change::Kind::kDelete ? ", deletes "
                                                   : ", writes ";
    text += change.path;
  }
  return text;
}

std::int64_t LastZxid(const Server& server) {
  return server.log.empty() ? 0 : server.log.back()->zxid;
}

/// Returns whether `server` may follow this leader: it has accepted neither a newer epoch, nor this
/// one from another leader.
bool CanAccept(const Server& server, const Server& leader) {
  return leader.accepted_epoch > server.accepted_epoch ||
         (leader.accepted_epoch == server.accepted_epoch && server.accepted_from == leader.id);
}

}  // namespace

// ---- terms ------------------------------------------------------------------------------------

void Ensemble::InTerm(Server& server, Time delay, std::function<void(Server&)> what) {
  world->After(delay, [=, this, id = server.id, term = server.term, life = server.life,
                       what = std::move(what)]() mutable {
    Server& one = At(id);
    if (!one.is_up || one.term != term || one.life != life) return;
    const Time stalled = network_.stalled_until(id);
    if (stalled > world->now()) return InTerm(one, stalled - world->now(), std::move(what));
    what(one);
  });
}

void Ensemble::BeginTerm(Server& server, Role role) {
  StopServing(server);
  ++server.term;
  server.role = role;
  server.leader = -1;
  server.to_leader.reset();
  server.is_synced = false;
  server.touched.clear();
  server.peers.clear();
  server.tracked.clear();
  server.syncs.clear();
  server.heard = server.began = world->now();
}

void Ensemble::Abandon(Server& server, const char* why) {
  world->Trace("server {} abandons: {}", server.id, why);
  // Its followers see their connections close.
  for (const auto& [id, peer] : server.peers) {
    ToFollower(server, id, [this](Server& follower) { Abandon(follower, "its leader has gone"); });
  }
  if (server.role == Role::kFollowing) {
    ToLeader(server, [id = server.id](Server& leader) { leader.peers.erase(id); });
  }
  BeginTerm(server, Role::kLooking);
  InTerm(server, world->random.Around(100 * kMillisecond), [this](Server& one) { Look(one); });
}

void Ensemble::Crash(Server& server) {
  if (!server.is_up) return;
  world->Trace("server {} crashes", server.id);
  Abandon(server, "crash");
  server.is_up = false;
  ++server.life;
  server.disk_is_busy = false;
  server.log.resize(server.on_disk);
  ++server.log_number;
  if (server.committed > server.log.size()) {
    server.committed = 0;
    server.tree = Tree();
  }
}

void Ensemble::Restart(Server& server) {
  if (server.is_up) return;
  world->Trace("server {} restarts", server.id);
  server.is_up = true;
  BeginTerm(server, Role::kLooking);
  InTerm(server, world->random.Around(500 * kMillisecond), [this](Server& one) { Look(one); });
}

Server* Ensemble::Leader() {
  Server* best = nullptr;
  for (Server& one : servers_) {
    if (!one.is_up || one.role != Role::kLeading || !one.serves) continue;
    if (best == nullptr || one.current_epoch > best->current_epoch) best = &one;
  }
  return best;
}

// ---- elections --------------------------------------------------------------------------------

bool Ensemble::Reaches(const Server& one, const Server& other) const {
  return other.is_up && network_.stalled_until(other.id) <= world->now() &&
         !network_.IsCut(one.id, other.id) && !network_.IsCut(other.id, one.id);
}

void Ensemble::Look(Server& server) {
  const auto look_again = [&] {
    InTerm(server, world->random.Around(200 * kMillisecond), [this](Server& one) { Look(one); });
  };
  // The log that it votes with, and may lead with, must be on its disk.
  if (server.on_disk < server.log.size()) {
    WriteToDisk(server);
    return look_again();
  }
  std::vector<const Server*> looking{&server};
  for (Server& other : servers_) {
    if (other.id == server.id || !Reaches(server, other)) continue;
    if (other.role == Role::kLeading && CanAccept(server, other)) return Join(server, other);
    if (other.role == Role::kLooking) looking.push_back(&other);
  }
  if (static_cast<int>(looking.size()) >= majority()) {
    const auto order = [](const Server* one) {
      return std::tuple(one->current_epoch, LastZxid(*one), one->id);
    };
    std::int64_t epoch = 0;
    const Server* best = &server;
    for (const Server* one : looking) {
      epoch = std::max(epoch, one->accepted_epoch);
      if (order(one) > order(best)) best = one;
    }
    if (best == &server) return Lead(server, epoch + 1);
  }
  look_again();
}

void Ensemble::Lead(Server& server, std::int64_t epoch) {
  world->Trace("server {} leads epoch {}", server.id, epoch);
  BeginTerm(server, Role::kLeading);
  server.accepted_epoch = epoch;
  server.accepted_from = server.id;
  if (majority() == 1) server.current_epoch = epoch;
  WriteToDisk(server);
  LeadTick(server);
}

void Ensemble::Join(Server& server, Server& leader) {
  BeginTerm(server, Role::kFollowing);
  // Accept the epoch before the leader counts on this server: otherwise, it could still commit an
  // entry in an older epoch that the leader, already in its own epoch, would not have.
  server.accepted_epoch = leader.accepted_epoch;
  server.accepted_from = leader.id;
  server.leader = leader.id;
  server.leader_term = leader.term;
  server.to_leader = network_.MakePipe(server.id, leader.id);
  network_.Send(server.to_leader, [this, to = leader.id, to_term = leader.term, from = server.id,
                                   from_term = server.term] {
    Server& one = At(to);
    if (one.is_up && one.term == to_term) OnJoin(one, At(from), from_term);
  });
  FollowTick(server);
}

void Ensemble::OnJoin(Server& leader, Server& follower, std::uint64_t term) {
  const auto state = [](const Server& one) { return std::tuple(one.current_epoch, LastZxid(one)); };
  const bool has_majority = leader.current_epoch == leader.accepted_epoch;
  if (!has_majority && state(follower) > state(leader)) {
    return Abandon(leader, "a follower is ahead of it");
  }
  leader.peers[follower.id] = {
      .term = term, .pipe = network_.MakePipe(leader.id, follower.id), .heard = world->now()};
  if (has_majority) return SendLog(leader, follower.id);
  if (static_cast<int>(leader.peers.size()) + 1 < majority()) return;
  // No server of a majority is ahead: this log has everything that was committed in any earlier
  // epoch.
  leader.current_epoch = leader.accepted_epoch;
  for (const auto& [id, peer] : leader.peers) SendLog(leader, id);
}

void Ensemble::SendLog(Server& leader, int follower) {
  leader.peers.at(follower).synced = leader.log.size();
  ToFollower(leader, follower, [this, log = leader.log](Server& one) { OnSync(one, log); });
}

void Ensemble::OnSync(Server& follower, const std::vector<const Txn*>& log) {
  ReplaceLog(follower, log);
  follower.is_synced = true;
  follower.synced = log.size();
  WriteToDisk(follower);
}

void Ensemble::ReplaceLog(Server& server, const std::vector<const Txn*>& log) {
  const auto differs = std::mismatch(server.log.begin(), server.log.end(), log.begin(), log.end());
  const auto common = static_cast<std::size_t>(differs.first - server.log.begin());
  if (common < server.log.size()) {
    world->Count("entries lost with their leader");
    ++server.log_number;
    server.on_disk = std::min(server.on_disk, common);
  }
  if (common < server.committed) {
    server.committed = 0;
    server.tree = Tree();
  }
  server.log = log;
}

void Ensemble::Activate(Server& leader) {
  world->Trace("server {} has a majority, log of {}", leader.id, leader.log.size());
  world->Count("elections");
  leader.next_zxid = (leader.current_epoch << 32) + 1;
  leader.serves = true;
  CommitUpTo(leader, leader.log.size());
  leader.prepared = leader.tree;
  for (const auto& [session, timeout] : leader.tree.sessions()) {
    leader.tracked[session] = {.timeout_ms = timeout, .expires = 0};
    (void)Touch(leader, session, timeout);
  }
  InTerm(leader, tick_ms_ * kMillisecond, [this](Server& one) { ExpireSessions(one); });
  InTerm(leader, container_interval, [this](Server& one) { DeleteContainers(one); });
}

void Ensemble::LeadTick(Server& leader) {
  const Time tick = tick_ms_ * kMillisecond;
  int supporters = 1;
  for (const auto& [id, peer] : leader.peers) {
    if (world->now() - peer.heard <= kSyncLimit * tick) ++supporters;
    ToFollower(leader, id, [this](Server& follower) {  // PING
      ToLeader(follower, [this, touched = std::exchange(follower.touched, {})](Server& one) {
        for (const auto& [session, timeout] : touched) (void)Touch(one, session, timeout);
      });
    });
  }
  const bool is_late = !leader.serves && world->now() - leader.began > kInitLimit * tick;
  if (is_late || (leader.serves && supporters < majority())) {
    return Abandon(leader, "too few follow");
  }
  InTerm(leader, tick / 2, [this](Server& one) { LeadTick(one); });
}

void Ensemble::FollowTick(Server& follower) {
  const Time tick = tick_ms_ * kMillisecond;
  const Time now = world->now();
  if (now - follower.heard > kSyncLimit * tick ||
      (!follower.serves && now - follower.began > kInitLimit * tick)) {
    return Abandon(follower, "the leader is silent");
  }
  InTerm(follower, tick / 2, [this](Server& one) { FollowTick(one); });
}

void Ensemble::ToLeader(Server& server, std::function<void(Server&)> what) {
  if (server.role == Role::kLeading) return what(server);
  if (server.role != Role::kFollowing) return;
  network_.Send(server.to_leader,
                [this, from = server.id, from_term = server.term, to = server.leader,
                 to_term = server.leader_term, what = std::move(what)] {
                  Server& leader = At(to);
                  if (!leader.is_up || leader.term != to_term) return;
                  const auto peer = leader.peers.find(from);
                  if (peer == leader.peers.end() || peer->second.term != from_term) return;
                  peer->second.heard = world->now();
                  what(leader);
                });
}

void Ensemble::ToFollower(Server& leader, int follower, std::function<void(Server&)> what) {
  if (follower == leader.id) return what(leader);
  const auto peer = leader.peers.find(follower);
  if (peer == leader.peers.end()) return;
  network_.Send(peer->second.pipe,
                [this, follower, term = peer->second.term, what = std::move(what)] {
                  Server& one = At(follower);
                  if (!one.is_up || one.term != term) return;
                  one.heard = world->now();
                  what(one);
                });
}

// ---- the log ----------------------------------------------------------------------------------

void Ensemble::Propose(Server& leader, Txn txn) {
  txns_.push_back(std::move(txn));
  const Txn* const entry = &txns_.back();
  on_propose(*entry);
  leader.log.push_back(entry);
  for (const auto& [id, peer] : leader.peers) {
    ToFollower(leader, id, [this, entry](Server& follower) {
      follower.log.push_back(entry);
      WriteToDisk(follower);
    });
  }
  WriteToDisk(leader);
}

/// Writes the log to disk. Each write covers all entries that arrived during the previous one.
void Ensemble::WriteToDisk(Server& server) {
  if (std::exchange(server.disk_is_busy, true)) return;
  world->After(world->random.Around(server.fsync),
               [this, id = server.id, life = server.life, number = server.log_number,
                entries = server.log.size()] {
                 Server& one = At(id);
                 if (one.life != life) return;
                 one.disk_is_busy = false;
                 if (one.log_number == number) one.on_disk = std::max(one.on_disk, entries);
                 if (one.on_disk < one.log.size()) WriteToDisk(one);
                 OnDisk(one);
               });
}

void Ensemble::OnDisk(Server& server) {
  if (server.role == Role::kLeading) return OnAcknowledged(server);
  if (server.role != Role::kFollowing || !server.is_synced) return;
  // Not earlier: after a crash, this server would count as newer than servers that have entries it
  // lacks (ZOOKEEPER-4643).
  if (server.on_disk >= server.synced) server.current_epoch = server.accepted_epoch;
  ToLeader(server, [this, id = server.id, entries = server.on_disk](Server& leader) {
    Server::Peer& peer = leader.peers.at(id);
    peer.acknowledged = entries;
    peer.is_synced = peer.is_synced || entries >= peer.synced;
    OnAcknowledged(leader);
  });
}

void Ensemble::OnAcknowledged(Server& leader) {
  std::vector<std::size_t> acknowledged{leader.on_disk};
  for (const auto& [id, peer] : leader.peers) {
    if (peer.is_synced) acknowledged.push_back(peer.acknowledged);
  }
  if (static_cast<int>(acknowledged.size()) < majority()) return;
  std::sort(acknowledged.rbegin(), acknowledged.rend());
  const std::size_t safe = acknowledged[static_cast<std::size_t>(majority() - 1)];
  if (!leader.serves) {
    if (safe < leader.log.size()) return;
    Activate(leader);
  }
  for (auto& [id, peer] : leader.peers) {
    if (peer.is_synced && !std::exchange(peer.serves, true)) SendCommit(leader, id);
  }
  // Commit one by one: a sync is answered after the entry before it and before the next one.
  AnswerSyncs(leader);
  while (leader.committed < safe) {
    CommitUpTo(leader, leader.committed + 1);
    for (const auto& [id, peer] : leader.peers) {
      if (peer.serves) SendCommit(leader, id);
    }
    AnswerSyncs(leader);
  }
}

void Ensemble::SendCommit(Server& leader, int follower) {
  ToFollower(leader, follower, [this, entries = leader.committed](Server& one) {
    one.serves = true;
    CommitUpTo(one, entries);
  });
}

void Ensemble::CommitUpTo(Server& server, std::size_t entries) {
  while (server.committed < entries) {
    const Txn* const txn = server.log.at(server.committed);
    const bool is_first = server.committed == history_.size();
    if (!is_first && history_.at(server.committed) != txn) {
      throw std::logic_error("the simulated servers have committed different entries");
    }
    if (is_first) {
      world->Trace("{:x}: {}", txn->zxid, world->traces() ? Describe(*txn) : "");
      before_commit(*txn);
      for (const Change& change : txn->changes) truth_.Apply(change, *txn);
      truth_.ApplySession(*txn);
      history_.push_back(txn);
    }
    ++server.committed;
    Apply(server, *txn);
    if (is_first) after_commit(*txn);
  }
}

// ---- at the leader ----------------------------------------------------------------------------

void Ensemble::OnForwarded(Server& leader, int from, std::int64_t session, std::uint64_t number,
                           const Request& request) {
  if (!leader.serves) return;
  if (request.kind == Request::Kind::kCloseSession) {
    // Any client may close the session, over any connection.
    return BeginClose(leader, session, from, number);
  }
  if (request.kind == Request::Kind::kSync) {
    leader.syncs.push_back({leader.log.size(), from, number});
    // If no proposal is pending, no majority is asked.
    return AnswerSyncs(leader);
  }
  Txn txn{.zxid = leader.next_zxid++,
          .ms = kWallClock + world->now() / kMillisecond + leader.clock_offset_ms,
          .session = session,
          .server = from,
          .request = number};
  if (request.kind == Request::Kind::kOpenSession) {
    txn.kind = Txn::Kind::kOpenSession;
    txn.timeout_ms = request.xid;
    leader.tracked[session] = {.timeout_ms = request.xid, .expires = 0, .owner = from};
    (void)Touch(leader, session, request.xid);
    leader.prepared.ApplySession(txn);
  } else {
    txn.error = session == 0 ? static_cast<int>(ZOK) : CheckSession(leader, session, from);
    if (txn.error == ZOK) leader.prepared.Prepare(request.ops, txn);
  }
  Propose(leader, std::move(txn));
}

bool Ensemble::Submit(const std::vector<Op>& ops) {
  Server* const leader = Leader();
  if (leader == nullptr) return false;
  OnForwarded(*leader, -1, 0, 0, {.kind = Request::Kind::kWrite, .xid = 0, .ops = ops});
  return true;
}

void Ensemble::AnswerSyncs(Server& leader) {
  auto& syncs = leader.syncs;
  while (!syncs.empty() && syncs.front().after <= leader.committed) {
    ToFollower(
        leader, syncs.front().server, [this, number = syncs.front().request](Server& follower) {
          for (const auto& [session, queue] : follower.queues) {
            const bool is_here = std::any_of(queue.begin(), queue.end(),
                                             [&](const auto& one) { return one.number == number; });
            if (is_here) return FinishQueued(follower, session, number, {});
          }
        });
    syncs.erase(syncs.begin());
  }
}

/// Extends a session that the leader hears of: through requests of its own clients, through the
/// answers to its pings, which list the sessions that the follower has heard of, and through a
/// reconnect, but not through forwarded requests. Returns false if the session is over.
bool Ensemble::Touch(Server& leader, std::int64_t session, int timeout_ms) {
  const auto found = leader.tracked.find(session);
  if (found == leader.tracked.end() || found->second.is_closing) return false;
  // The end is rounded up to a whole tick.
  const Time tick = tick_ms_ * kMillisecond;
  const Time end = world->now() + timeout_ms * kMillisecond - leader.began;
  found->second.timeout_ms = timeout_ms;
  found->second.expires = leader.began + (end / tick + 1) * tick;
  return true;
}

int Ensemble::CheckSession(Server& leader, std::int64_t session, int owner) {
  const auto found = leader.tracked.find(session);
  if (found == leader.tracked.end() || found->second.is_closing) return ZSESSIONEXPIRED;
  if (found->second.owner < 0) found->second.owner = owner;
  return found->second.owner == owner ? ZOK : ZSESSIONMOVED;
}

void Ensemble::BeginClose(Server& leader, std::int64_t session, int server, std::uint64_t number) {
  const auto tracked = leader.tracked.find(session);
  if (tracked != leader.tracked.end()) tracked->second.is_closing = true;
  Txn txn{.kind = Txn::Kind::kCloseSession,
          .zxid = leader.next_zxid++,
          .ms = kWallClock + world->now() / kMillisecond + leader.clock_offset_ms,
          .session = session,
          .server = server,
          .request = number};
  for (const std::string& path : leader.prepared.EphemeralsOf(session)) {
    txn.changes.push_back({.kind = Change::Kind::kDelete, .path = path});
    leader.prepared.Apply(txn.changes.back(), txn);
  }
  leader.prepared.ApplySession(txn);
  Propose(leader, std::move(txn));
}

void Ensemble::ExpireSessions(Server& leader) {
  std::vector<std::int64_t> expired;
  for (auto& [session, tracked] : leader.tracked) {
    if (!tracked.is_closing && tracked.expires <= world->now()) expired.push_back(session);
  }
  for (const std::int64_t session : expired) {
    world->Trace("session {:x} expires", session);
    world->Count("expiries");
    BeginClose(leader, session, -1, 0);
  }
  const Time tick = tick_ms_ * kMillisecond;
  const Time since = (world->now() - leader.began) % tick;
  InTerm(leader, tick - since, [this](Server& one) { ExpireSessions(one); });
}

void Ensemble::DeleteContainers(Server& leader) {
  std::vector<std::string> empty;
  for (const auto& [path, node] : leader.prepared.nodes()) {
    if (node.is_container && node.created > 0 && node.children.empty()) empty.push_back(path);
  }
  for (const std::string& path : empty) {
    world->Count("containers deleted");
    (void)Submit({{.type = OpType::kDeleteContainer, .path = path}});
  }
  InTerm(leader, container_interval, [this](Server& one) { DeleteContainers(one); });
}

}  // namespace zklock::simulation
