#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/child.h"

namespace zklock::test {

/// Returns the address of the tests' real server, from $ZKLOCK_TEST_SERVERS: "127.0.0.1:PORT".
/// Throws if it is not set: a test against a server is never skipped.
[[nodiscard]] std::string TestServers();

/// Returns a path that no other test uses, now or later: "/t/NAME-…". It does not exist, and /t
/// might not exist either.
[[nodiscard]] std::string NewLock(std::string_view name);

/// A znode, as read from the servers.
struct Znode {
  std::string data;
  std::int64_t created_zxid = 0;
  std::int64_t ephemeral_owner = 0;
  std::int64_t data_zxid = 0;      ///< the transaction that last wrote its data
  std::int64_t children_zxid = 0;  ///< the transaction that last created or deleted a child
};

enum class ZnodeKind { kPersistent, kEphemeral, kEphemeralSequential, kContainer };

/// Permissions as bits of an ACL.
enum Permission : int { kRead = 1, kWrite = 2, kCreate = 4, kDelete = 8, kAdmin = 16 };

/// A test's own access to the servers, with its own session. It shares no code with zklock, so that
/// it can check zklock's results. Calls are synchronous; a thread keeps the session alive between
/// them. An operation that fails or takes longer than the patience throws std::runtime_error.
class Tree {
 public:
  /// `servers`: the tests' own if empty. `credential`: "user:password" for the digest scheme; none
  /// if empty.
  explicit Tree(const std::string& credential = "", const std::string& servers = "");
  /// Ends the session, which deletes its ephemeral znodes.
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  [[nodiscard]] bool Exists(const std::string& path) { return Get(path).has_value(); }
  /// Reads a znode; returns nothing if it does not exist.
  std::optional<Znode> Get(const std::string& path);
  /// Returns the children's names, sorted; empty if the znode does not exist.
  std::vector<std::string> Children(const std::string& path);

  /// Creates a znode, and missing parents as persistent znodes. Returns its path.
  std::string Create(const std::string& path, ZnodeKind kind = ZnodeKind::kPersistent,
                     const std::string& data = "");
  /// Deletes a znode, which must exist.
  void Delete(const std::string& path);
  void SetData(const std::string& path, const std::string& data);
  /// Gives everyone these permissions, bits of Permission.
  void SetAcl(const std::string& path, int permissions) { SetAcl(path, {{"", permissions}}); }
  /// Gives each user permissions. Users are credentials ("user:password"), "" is everyone.
  void SetAcl(const std::string& path, const std::vector<std::pair<std::string, int>>& entries);
  /// Returns the entries, sorted, as "digest:user 31", "world:anyone 1".
  std::vector<std::string> GetAcl(const std::string& path);

  /// Waits, using watches, until `are_right` accepts the children of `path`. Returns them, sorted.
  std::vector<std::string> WaitForChildren(
      const std::string& path,
      const std::function<bool(const std::vector<std::string>&)>& are_right,
      std::chrono::milliseconds patience = kPatience);
  /// Like WaitForChildren above, until there are `count` children.
  std::vector<std::string> WaitForChildren(const std::string& path, std::size_t count,
                                           std::chrono::milliseconds patience = kPatience);

  /// Returns the id of this handle's session.
  [[nodiscard]] std::int64_t session() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `auto [tree, lock] = MadeLock("name");`: a LOCK that exists, at a path that no other test uses.
struct MadeLock {
  explicit MadeLock(std::string_view name, const std::string& data = "")
      : lock(tree.Create(NewLock(name), ZnodeKind::kPersistent, data)) {}
  Tree tree;
  const std::string lock;
};

/// Creates a LOCK as zklock does, but persistent: the servers may delete a container, and the
/// record in it, as soon as it is empty.
[[nodiscard]] inline std::string NewPersistentLock(std::string_view name) {
  return MadeLock(name, "zklock/1").lock;
}

/// Creates `path` with a hard quota: if the servers enforce quotas, there can be at most `znodes`
/// znodes at and below `path`, and `bytes` of data in them; -1: no limit.
void SetHardQuota(Tree& tree, const std::string& path, int znodes, int bytes = -1);

/// Sorts the children's names by sequence number, the order of the queue.
[[nodiscard]] std::vector<std::string> InQueueOrder(std::vector<std::string> children);

}  // namespace zklock::test
