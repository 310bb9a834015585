#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "simulation/network.h"
#include "simulation/tree.h"
#include "simulation/world.h"

// A model of ZooKeeper 3.8: a whole ensemble in virtual time.
//
//   ensemble.cc  servers and their clients: connections, the order of requests, reads, watches
//   quorum.cc    servers among themselves: elections, the log, commits, sessions
//   tree.cc      znodes, and which writes are refused

namespace zklock::simulation {

struct Request {
  /// kOpenSession is only used between servers.
  enum class Kind { kPing, kGet, kList, kExists, kSync, kWrite, kOpenSession, kCloseSession };
  Kind kind;
  std::int32_t xid;
  std::vector<Op> ops;  ///< the operations of a write; a read uses the first one's path
  bool is_multi = false;
  bool watches = false;
};

struct Reply {
  std::int32_t xid = 0;
  int error = ZOK;
  bool is_multi = false;
  std::size_t failed = 0;  ///< which operation of a multi
  std::string path{};
  std::string data{};
  std::vector<std::string> children{};
  Stat stat{};
  struct Changed {
    std::string path;
    Stat stat;  ///< after the change
  };
  std::vector<Changed> changes{};
};

/// The client's end of a connection. One of its functions is called for each message that arrives,
/// in order.
class Client {
 public:
  virtual ~Client() = default;
  virtual void OnConnected() = 0;  ///< TCP's connect
  virtual void OnRefused() = 0;
  /// `session` is 0 if the session has expired.
  virtual void OnAccepted(std::int64_t session, int timeout_ms) = 0;
  virtual void OnReply(const Reply& reply) = 0;
  virtual void OnWatch(int type, const std::string& path) = 0;
  virtual void OnClosed() = 0;
};

struct Connection {
  std::uint64_t number;
  int server;
  Place place;
  Client* client;  ///< null once it has hung up
  std::shared_ptr<Pipe> to_server;
  std::shared_ptr<Pipe> to_client;
  bool is_open = false;  ///< at the server
  std::int64_t session = 0;
  int timeout_ms = 0;
};

struct Server {
  int id = 0;
  bool is_up = true;
  std::uint64_t life = 0;  ///< changes with each crash
  // Settings.
  int least_timeout_ms = 0;
  int most_timeout_ms = 0;
  Time fsync = kMillisecond;         ///< typical duration
  std::int64_t clock_offset_ms = 0;  ///< offset of its wall clock
  double throttles = 0;              ///< share of its requests that are answered with ZTHROTTLEDOP

  // On disk. A crash loses what has not been written.
  std::int64_t accepted_epoch = 0;
  int accepted_from = -1;  ///< the leader of that epoch
  std::int64_t current_epoch = 0;
  std::vector<const Txn*> log{};
  std::size_t on_disk = 0;  ///< length of the log on disk
  bool disk_is_busy = false;
  std::uint64_t log_number = 0;  ///< changes when the log is cut

  // In memory. `tree` is the log's first `committed` entries.
  std::size_t committed = 0;
  Tree tree{};

  enum class Role { kLooking, kFollowing, kLeading };
  Role role = Role::kLooking;
  std::uint64_t term = 0;  ///< changes with the role; events of older terms are ignored
  bool serves = false;     ///< clients

  // As a follower.
  int leader = -1;
  std::uint64_t leader_term = 0;
  std::shared_ptr<Pipe> to_leader{};
  bool is_synced = false;  ///< the log matches the leader's
  std::size_t synced = 0;  ///< length of the log when it joined
  Time heard = 0;
  Time began = 0;                         ///< the term
  std::map<std::int64_t, int> touched{};  ///< sessions to list in the answer to the next ping

  // As the leader.
  struct Peer {
    std::uint64_t term;  ///< the follower's
    std::shared_ptr<Pipe> pipe;
    std::size_t acknowledged = 0;
    std::size_t synced = 0;  ///< the length of the log when it joined
    bool is_synced = false;
    bool serves = false;
    Time heard = 0;
  };
  std::map<int, Peer> peers{};
  Tree prepared{};  ///< the state after all entries of the log, committed or not
  std::int64_t next_zxid = 0;
  struct Tracked {
    int timeout_ms;
    Time expires;
    int owner = -1;  ///< the server that it last connected to
    bool is_closing = false;
  };
  std::map<std::int64_t, Tracked> tracked{};
  struct PendingSync {
    std::size_t after;  ///< length of the log that must be committed first
    int server;
    std::uint64_t request;
  };
  std::vector<PendingSync> syncs{};

  // Clients. The requests of a session keep their order, whatever connection they arrived over: a
  // read waits for the writes before it.
  struct Queued {
    std::uint64_t number;
    std::shared_ptr<Connection> connection;
    Request request;
    bool waits;  ///< for the leader
    bool is_throttled;
  };
  std::map<std::int64_t, std::deque<Queued>> queues{};
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections{};
  std::map<std::string, std::set<std::uint64_t>> data_watches{};
  std::map<std::string, std::set<std::uint64_t>> child_watches{};
};

class Ensemble {
 public:
  Ensemble(Network& network, int servers, int tick_ms);

  // For clients.
  [[nodiscard]] std::shared_ptr<Connection> Connect(Place place, int server, Client* client);
  void Greet(const std::shared_ptr<Connection>& connection, std::int64_t session, int timeout_ms);
  void Send(const std::shared_ptr<Connection>& connection, Request request);
  /// Closes the connection. Messages in transit still arrive, unless `loses_rest`.
  void HangUp(const std::shared_ptr<Connection>& connection, bool loses_rest);

  // Faults.
  void Crash(Server& server);
  void Restart(Server& server);
  void CloseConnections(Server& server, std::int64_t session = 0);
  /// Writes as a client whose session never ends. Returns false if there is no leader.
  bool Submit(const std::vector<Op>& ops);

  [[nodiscard]] std::vector<Server>& servers() { return servers_; }
  [[nodiscard]] int size() const { return static_cast<int>(servers_.size()); }
  /// Returns the leader that serves with a majority; null if there is none.
  [[nodiscard]] Server* Leader();
  /// Returns the committed state, as if one server applied every commit at once.
  [[nodiscard]] const Tree& truth() const { return truth_; }
  [[nodiscard]] const std::vector<const Txn*>& history() const { return history_; }
  [[nodiscard]] int tick_ms() const { return tick_ms_; }
  [[nodiscard]] Network& network() { return network_; }

  /// Called before and after an entry is committed, once for all servers.
  std::function<void(const Txn&)> before_commit = [](const Txn&) {};
  std::function<void(const Txn&)> after_commit = [](const Txn&) {};
  std::function<void(std::int64_t session)> on_accept = [](std::int64_t) {};
  std::function<void(const Txn&)> on_propose = [](const Txn&) {};
  Time container_interval = 60 * kSecond;
  /// The timeouts of sessions that were granted a shorter one, until their clients get the answer.
  /// If the answer is lost, the session expires too soon for the client (zklock(1), CAVEATS).
  std::map<std::int64_t, int> unknown_grants;

 private:
  // Servers and their clients.
  void Answer(const Connection& connection, std::function<void(Client&)> what);
  void OnGreeting(Server& server, const std::shared_ptr<Connection>& connection,
                  std::int64_t session, int timeout_ms);
  void Accept(Server& server, const std::shared_ptr<Connection>& connection, std::int64_t session);
  void OnRequest(Server& server, const std::shared_ptr<Connection>& connection, Request request);
  void RunQueue(Server& server, std::int64_t session);
  void Read(Server& server, const Server::Queued& queued);
  void FinishQueued(Server& server, std::int64_t session, std::uint64_t request,
                    const Reply& reply);
  void Close(Server& server, const std::shared_ptr<Connection>& connection);
  void Fire(Server& server, std::map<std::string, std::set<std::uint64_t>>& watches,
            const std::string& path, int type, std::set<std::uint64_t>& done);
  void FireWatches(Server& server, const Change& change);
  void StopServing(Server& server);

  // Servers among themselves.
  [[nodiscard]] Server& At(int id) { return servers_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool Reaches(const Server& one, const Server& other) const;
  [[nodiscard]] int majority() const { return size() / 2 + 1; }
  void InTerm(Server& server, Time delay, std::function<void(Server&)> what);
  void BeginTerm(Server& server, Server::Role role);
  void Abandon(Server& server, const char* why);
  void Look(Server& server);
  void Join(Server& server, Server& leader);
  void OnJoin(Server& leader, Server& follower, std::uint64_t term);
  void SendLog(Server& leader, int follower);
  void OnSync(Server& follower, const std::vector<const Txn*>& log);
  void ReplaceLog(Server& server, const std::vector<const Txn*>& log);
  void Lead(Server& server, std::int64_t epoch);
  void Activate(Server& leader);
  void LeadTick(Server& leader);
  void FollowTick(Server& follower);
  void ToLeader(Server& server, std::function<void(Server& leader)> what);
  void ToFollower(Server& leader, int follower, std::function<void(Server& follower)> what);
  void WriteToDisk(Server& server);
  void OnDisk(Server& server);
  void OnAcknowledged(Server& leader);
  void SendCommit(Server& leader, int follower);
  void CommitUpTo(Server& server, std::size_t entries);
  void Apply(Server& server, const Txn& txn);
  void Propose(Server& leader, Txn txn);
  void OnForwarded(Server& leader, int from, std::int64_t session, std::uint64_t number,
                   const Request& request);
  [[nodiscard]] bool Touch(Server& leader, std::int64_t session, int timeout_ms);
  [[nodiscard]] static int CheckSession(Server& leader, std::int64_t session, int owner);
  void BeginClose(Server& leader, std::int64_t session, int server, std::uint64_t number);
  void ExpireSessions(Server& leader);
  void DeleteContainers(Server& leader);
  void AnswerSyncs(Server& leader);

  Network& network_;
  const int tick_ms_;
  std::vector<Server> servers_;
  std::deque<Txn> txns_;  // all transactions; the servers' logs point to them
  Tree truth_;
  std::vector<const Txn*> history_;
  std::uint64_t next_number_ = 1;
  std::int64_t next_session_ = 1;
};

}  // namespace zklock::simulation
