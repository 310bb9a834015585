#pragma once

#include <zookeeper/zookeeper.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zklock::simulation {

enum class OpType { kCreate, kDelete, kSet, kCheck, kDeleteContainer };

/// One write, as a client requests it. `mode`: for a create, the client library's number for it.
struct Op {
  OpType type;
  std::string path;
  std::string data{};
  int mode = 0;
  std::int32_t version = -1;
};

/// The effect of a transaction on one znode. The leader has already made all checks.
struct Change {
  enum class Kind { kCreate, kDelete, kSet };
  Kind kind;
  std::string path;
  std::string data{};
  std::int64_t owner = 0;
  bool is_container = false;
  std::int32_t version = 0;  ///< kSet: the new one
};

/// An entry of the log. A failed transaction is an entry too, and just as slow.
struct Txn {
  enum class Kind { kOpenSession, kCloseSession, kWrite };
  Kind kind = Kind::kWrite;
  std::int64_t zxid = 0;
  std::int64_t ms = 0;  ///< the leader's clock
  std::int64_t session = 0;
  int timeout_ms = 0;  ///< kOpenSession
  int error = ZOK;
  std::size_t failed = 0;  ///< which of the writes had that error
  std::vector<Change> changes{};
  /// The server whose client sent the request (-1: the leader did it by itself), and that server's
  /// number for the request.
  int server = -1;
  std::uint64_t request = 0;
};

struct Znode {
  std::string data{};
  std::int64_t owner = 0;
  bool is_container = false;
  std::int64_t czxid = 0;
  std::int64_t mzxid = 0;
  std::int64_t ctime = 0;
  std::int64_t mtime = 0;
  std::int32_t version = 0;
  std::int32_t created = 0;  ///< how many children were ever created: the next one's number
  std::set<std::string> children{};
};

/// The znodes and sessions of one server.
class Tree {
 public:
  Tree() { nodes_["/"] = {}; }

  [[nodiscard]] const Znode* Find(const std::string& path) const;
  [[nodiscard]] Stat StatOf(const std::string& path) const;
  [[nodiscard]] const std::map<std::string, Znode>& nodes() const { return nodes_; }
  /// Returns the sessions, each with the timeout that it was opened with.
  [[nodiscard]] const std::map<std::int64_t, int>& sessions() const { return sessions_; }
  [[nodiscard]] std::vector<std::string> EphemeralsOf(std::int64_t session) const;

  /// Checks `ops` at the leader, applies all of them or none, and fills `txn`.
  void Prepare(const std::vector<Op>& ops, Txn& txn);
  /// Applies `change` at every server, once it is committed.
  void Apply(const Change& change, const Txn& txn);
  void ApplySession(const Txn& txn);

 private:
  int PrepareOne(const Op& op, Txn& txn);
  void Save(const std::string& path);
  void Put(const std::string& path, const std::optional<Znode>& node);

  std::map<std::string, Znode> nodes_;
  std::map<std::int64_t, int> sessions_;
  std::map<std::int64_t, std::set<std::string>> ephemerals_;
  std::vector<std::pair<std::string, std::optional<Znode>>> undo_;  // of Prepare()
  bool saves_ = false;
};

}  // namespace zklock::simulation
