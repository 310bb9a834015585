#include "simulation/ensemble.h"

#include <algorithm>
#include <utility>

#include "protocol/lock_path.h"

// Connections and requests between servers and their clients.

namespace zklock::simulation {

using Kind = Request::Kind;

Ensemble::Ensemble(Network& network, int servers, int tick_ms)
    : network_(network), tick_ms_(tick_ms), servers_(static_cast<std::size_t>(servers)) {
  for (int i = 0; i < servers; ++i) {
    Server& server = At(i);
    server.id = i;
    server.least_timeout_ms = 2 * tick_ms;
    server.most_timeout_ms = 20 * tick_ms;
    InTerm(server, world->random.Around(50 * kMillisecond), [this](Server& one) { Look(one); });
  }
}

// ---- connections ------------------------------------------------------------------------------

std::shared_ptr<Connection> Ensemble::Connect(Place place, int server, Client* client) {
  auto connection =
      std::make_shared<Connection>(Connection{.number = next_number_++,
                                              .server = server,
                                              .place = place,
                                              .client = client,
                                              .to_server = network_.MakePipe(place, server),
                                              .to_client = network_.MakePipe(server, place)});
  // The operating system accepts the connection, even while the server's process is stalled.
  if (network_.IsCut(place, server) || network_.IsCut(server, place)) return connection;
  const Time round_trip = network_.delay(place, server) + network_.delay(server, place);
  world->After(world->random.Around(round_trip), [this, connection] {
    Server& one = At(connection->server);
    connection->is_open = one.is_up;
    if (one.is_up) one.connections[connection->number] = connection;
    if (connection->client == nullptr) return;
    one.is_up ? connection->client->OnConnected() : connection->client->OnRefused();
  });
  return connection;
}

void Ensemble::Greet(const std::shared_ptr<Connection>& connection, std::int64_t session,
                     int timeout_ms) {
  network_.Send(connection->to_server,
                [=, this] { OnGreeting(At(connection->server), connection, session, timeout_ms); });
}

void Ensemble::Send(const std::shared_ptr<Connection>& connection, Request request) {
  network_.Send(connection->to_server, [this, connection, request = std::move(request)]() mutable {
    OnRequest(At(connection->server), connection, std::move(request));
  });
}

void Ensemble::HangUp(const std::shared_ptr<Connection>& connection, bool loses_rest) {
  connection->client = nullptr;
  if (loses_rest) return network_.Break(*connection->to_server);
  network_.Send(connection->to_server,
                [this, connection] { Close(At(connection->server), connection); });
}

void Ensemble::Answer(const Connection& connection, std::function<void(Client&)> what) {
  if (!connection.is_open) return;
  const auto open = At(connection.server).connections.find(connection.number);
  if (open == At(connection.server).connections.end()) return;
  network_.Send(connection.to_client, [to = open->second, what = std::move(what)] {
    if (to->client != nullptr) what(*to->client);
  });
}

void Ensemble::Close(Server& server, const std::shared_ptr<Connection>& connection) {
  if (!connection->is_open) return;
  Answer(*connection, [](Client& client) { client.OnClosed(); });
  connection->is_open = false;
  server.connections.erase(connection->number);
  for (auto* watches : {&server.data_watches, &server.child_watches}) {
    for (auto one = watches->begin(); one != watches->end();) {
      one->second.erase(connection->number);
      one = one->second.empty() ? watches->erase(one) : std::next(one);
    }
  }
}

void Ensemble::CloseConnections(Server& server, std::int64_t session) {
  const auto all = server.connections;
  for (const auto& [number, connection] : all) {
    if (session == 0 || connection->session == session) Close(server, connection);
  }
}

void Ensemble::StopServing(Server& server) {
  server.serves = false;
  server.queues.clear();
  CloseConnections(server);
}

void Ensemble::OnGreeting(Server& server, const std::shared_ptr<Connection>& connection,
                          std::int64_t session, int timeout_ms) {
  if (!server.is_up || !connection->is_open) return;
  if (!server.serves) return Close(server, connection);
  connection->timeout_ms = std::clamp(timeout_ms, server.least_timeout_ms, server.most_timeout_ms);
  const int timeout = connection->timeout_ms;
  if (session == 0) {
    const std::int64_t fresh = (std::int64_t{server.id + 1} << 56) + next_session_++;
    const std::uint64_t number = next_number_++;
    Request open{.kind = Kind::kOpenSession, .xid = timeout, .ops = {}};
    server.queues[fresh].push_back({number, connection, open, true, false});
    return ToLeader(server, [=, this, from = server.id](Server& leader) {
      OnForwarded(leader, from, fresh, number, open);
    });
  }
  // An older connection of this session ends.
  CloseConnections(server, session);
  if (timeout < timeout_ms) unknown_grants[session] = timeout;
  ToLeader(server, [=, this, from = server.id](Server& leader) {  // REVALIDATE
    const bool is_valid = Touch(leader, session, timeout);
    if (is_valid) leader.tracked[session].owner = from;
    ToFollower(leader, from,
               [=, this](Server& one) { Accept(one, connection, is_valid ? session : 0); });
  });
}

void Ensemble::Accept(Server& server, const std::shared_ptr<Connection>& connection,
                      std::int64_t session) {
  if (!connection->is_open) return;
  connection->session = session;
  on_accept(session);
  Answer(*connection, [session, timeout = connection->timeout_ms](Client& client) {
    client.OnAccepted(session, session == 0 ? 0 : timeout);
  });
  if (session == 0) Close(server, connection);
}

// ---- requests ---------------------------------------------------------------------------------

void Ensemble::OnRequest(Server& server, const std::shared_ptr<Connection>& connection,
                         Request request) {
  if (!server.is_up || !connection->is_open) return;
  const std::int64_t session = connection->session;
  const bool leads = server.role == Server::Role::kLeading;
  if (leads) {
    (void)Touch(server, session, connection->timeout_ms);
  } else {
    server.touched[session] = connection->timeout_ms;
  }
  const bool is_throttled = server.throttles > 0 && request.kind != Kind::kCloseSession &&
                            request.kind != Kind::kPing && world->random.Chance(server.throttles);
  if (is_throttled) world->Count("requests throttled");
  // At the leader itself a sync waits for nothing.
  const bool forwards =
      !is_throttled && (request.kind == Kind::kWrite || request.kind == Kind::kCloseSession ||
                        (request.kind == Kind::kSync && !leads));
  const std::uint64_t number = next_number_++;
  server.queues[session].push_back({number, connection, request, forwards, is_throttled});
  if (forwards) {
    ToLeader(server, [=, this, from = server.id](Server& leader) {
      OnForwarded(leader, from, session, number, request);
    });
  }
  RunQueue(server, session);
}

void Ensemble::RunQueue(Server& server, std::int64_t session) {
  for (;;) {
    const auto queue = server.queues.find(session);
    if (queue == server.queues.end()) return;
    if (queue->second.empty()) {
      server.queues.erase(queue);
      return;
    }
    if (queue->second.front().waits) return;
    const Server::Queued queued = std::move(queue->second.front());
    queue->second.pop_front();
    Read(server, queued);
  }
}

void Ensemble::Read(Server& server, const Server::Queued& queued) {
  const auto& connection = queued.connection;
  if (!connection->is_open) return;
  const Request& request = queued.request;
  Reply reply{.xid = request.xid, .is_multi = request.is_multi};
  const int problem = server.role == Server::Role::kLeading
                          ? CheckSession(server, connection->session, server.id)
                          : static_cast<int>(ZOK);
  if (problem == ZSESSIONMOVED) return Close(server, connection);
  if (queued.is_throttled) {
    reply.error = ZTHROTTLEDOP;
  } else if (problem != ZOK) {
    reply.error = problem;
  } else if (!request.ops.empty() && request.kind != Kind::kSync) {
    const std::string& path = request.ops.front().path;
    const Znode* const node = server.tree.Find(path);
    if (node == nullptr) {
      reply.error = ZNONODE;
    } else {
      if (request.kind == Kind::kGet) reply.data = node->data;
      if (request.kind == Kind::kList) {
        reply.children.assign(node->children.begin(), node->children.end());
      }
      reply.stat = server.tree.StatOf(path);
    }
    // Only exists leaves a watch on a znode that does not exist.
    if (request.watches && (node != nullptr || request.kind == Kind::kExists)) {
      auto& watches = request.kind == Kind::kList ? server.child_watches : server.data_watches;
      watches[path].insert(connection->number);
    }
  }
  Answer(*connection, [reply = std::move(reply)](Client& client) { client.OnReply(reply); });
}

void Ensemble::FinishQueued(Server& server, std::int64_t session, std::uint64_t number,
                            const Reply& reply) {
  const auto queue = server.queues.find(session);
  if (queue == server.queues.end()) return;
  auto& queued = queue->second;
  const auto found = std::find_if(queued.begin(), queued.end(),
                                  [&](const auto& one) { return one.number == number; });
  if (found == queued.end()) return;
  const Server::Queued done = std::move(*found);
  queued.erase(found);
  if (done.request.kind == Kind::kOpenSession) {
    Accept(server, done.connection, session);
  } else if (reply.error == ZSESSIONMOVED) {
    Close(server, done.connection);
  } else {
    Answer(*done.connection,
           [reply, xid = done.request.xid, is_multi = done.request.is_multi](Client& client) {
             Reply own = reply;
             own.xid = xid;
             own.is_multi = is_multi;
             client.OnReply(own);
           });
  }
  RunQueue(server, session);
}

// ---- what is committed -------------------------------------------------------------------------

void Ensemble::Fire(Server& server, std::map<std::string, std::set<std::uint64_t>>& watches,
                    const std::string& path, int type, std::set<std::uint64_t>& done) {
  const auto found = watches.find(path);
  if (found == watches.end()) return;
  const auto watchers = std::move(found->second);
  watches.erase(found);
  for (const std::uint64_t number : watchers) {
    if (!done.insert(number).second) continue;
    const auto connection = server.connections.find(number);
    if (connection == server.connections.end()) continue;
    Answer(*connection->second, [type, path](Client& client) { client.OnWatch(type, path); });
  }
}

void Ensemble::FireWatches(Server& server, const Change& change) {
  std::set<std::uint64_t> done;
  std::set<std::uint64_t> parents;
  if (change.kind == Change::Kind::kSet) {
    return Fire(server, server.data_watches, change.path, ZOO_CHANGED_EVENT, done);
  }
  const bool creates = change.kind == Change::Kind::kCreate;
  const int type = creates ? ZOO_CREATED_EVENT : ZOO_DELETED_EVENT;
  Fire(server, server.data_watches, change.path, type, done);
  if (!creates) Fire(server, server.child_watches, change.path, type, done);
  Fire(server, server.child_watches, protocol::ParentOf(change.path), ZOO_CHILD_EVENT, parents);
}

void Ensemble::Apply(Server& server, const Txn& txn) {
  Reply reply{.error = txn.error, .failed = txn.failed};
  for (const Change& change : txn.changes) {
    server.tree.Apply(change, txn);
    reply.changes.push_back({change.path, server.tree.StatOf(change.path)});
    if (server.serves) FireWatches(server, change);
  }
  server.tree.ApplySession(txn);
  if (!reply.changes.empty()) {
    reply.path = reply.changes.front().path;
    reply.stat = reply.changes.front().stat;
  }
  if (txn.server == server.id) FinishQueued(server, txn.session, txn.request, reply);
  if (txn.kind == Txn::Kind::kCloseSession) {
    server.queues.erase(txn.session);
    server.touched.erase(txn.session);
    server.tracked.erase(txn.session);
    CloseConnections(server, txn.session);
  }
}

}  // namespace zklock::simulation
