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

/// The real server that the tests use, from $ZKLOCK_TEST_SERVERS: "127.0.0.1:PORT". Throws where it
/// is not set: a test against a server is never skipped.
[[nodiscard]] std::string TestServers();

/// A path that no other test uses, now or later: "/t/NAME-…". Nothing is there, and /t may not be
/// there either.
[[nodiscard]] std::string NewLock(std::string_view name);

/// A znode as the servers know it.
struct Znode {
  std::string data;
  std::int64_t created_zxid = 0;
  std::int64_t ephemeral_owner = 0;
  std::int64_t data_zxid = 0;      ///< the transaction that wrote its data last
  std::int64_t children_zxid = 0;  ///< the transaction that made or deleted a child last
};

enum class ZnodeKind { kPersistent, kEphemeral, kEphemeralSequential, kContainer };

/// What everyone may do with a znode, as bits of its ACL.
enum Permission : int { kRead = 1, kWrite = 2, kCreate = 4, kDelete = 8, kAdmin = 16 };

/// A test's own eyes and hands on the servers, with a session of its own: it shares no code with
/// zklock's, so that it can tell of it. Synchronous, while a thread of its own keeps the session
/// alive however long nothing is asked; what does not come within the patience, or was not to be
/// expected, throws std::runtime_error.
class Tree {
 public:
  /// `servers`: the tests' own if empty. `credential`: "user:password" of the scheme digest; none
  /// if empty.
  explicit Tree(const std::string& credential = "", const std::string& servers = "");
  /// Ends the session, and with it the ephemeral znodes it made.
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  [[nodiscard]] bool Exists(const std::string& path) { return Get(path).has_value(); }
  /// None when it is not there.
  std::optional<Znode> Get(const std::string& path);
  /// Sorted; none when it is not there.
  std::vector<std::string> Children(const std::string& path);

  /// Returns its path. Parents are made where missing, as persistent znodes.
  std::string Create(const std::string& path, ZnodeKind kind = ZnodeKind::kPersistent,
                     const std::string& data = "");
  /// It is there.
  void Delete(const std::string& path);
  void SetData(const std::string& path, const std::string& data);
  /// What everyone may do with it: any of Permission.
  void SetAcl(const std::string& path, int permissions) { SetAcl(path, {{"", permissions}}); }
  /// Who may do what with it: users as credentials ("user:password"), everyone as "".
  void SetAcl(const std::string& path, const std::vector<std::pair<std::string, int>>& entries);
  /// Sorted: "digest:user 31", "world:anyone 1".
  std::vector<std::string> GetAcl(const std::string& path);

  /// Waits until the children of `path` are as wanted, by watches. Returns them, sorted.
  std::vector<std::string> WaitForChildren(
      const std::string& path,
      const std::function<bool(const std::vector<std::string>&)>& are_right,
      std::chrono::milliseconds patience = kPatience);
  /// As WaitForChildren, until there are so many.
  std::vector<std::string> WaitForChildren(const std::string& path, std::size_t count,
                                           std::chrono::milliseconds patience = kPatience);

  /// This handle's own session.
  [[nodiscard]] std::int64_t session() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Creates `path`, below which and with which there may be so many znodes where the servers enforce
/// quotas.
void SetHardQuota(Tree& tree, const std::string& path, int znodes);

/// The children's names, by their sequence numbers: the queue's order.
[[nodiscard]] std::vector<std::string> InQueueOrder(std::vector<std::string> children);

}  // namespace zklock::test
