#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "protocol/children.h"
#include "protocol/lease.h"

namespace zklock::zookeeper {

/// The result of one request, from the servers or from the loss of the connection.
enum class Error {
  kNone,
  kNoNode,
  kNodeExists,
  kNoAuth,
  kAuthFailed,    ///< the credentials were refused
  kAuthRequired,  ///< the servers require credentials
  kInvalidAcl,
  kNoChildrenForEphemerals,
  kLocalSession,  ///< the session is local to its server, and can own no znode
  kNotEmpty,
  kBadVersion,  ///< the znode was written since it was read
  kUnimplemented,
  kQuotaExceeded,
  kThrottled,       ///< not done; Session sends the request again, and never passes this on
  kConnectionLoss,  ///< the reply is lost: the request may or may not have been done
  kOther,           ///< no correct server sends it for a correct request
};

/// Returns whether the reply was lost. The store's next event shows whether the session was too.
[[nodiscard]] bool IsLost(Error error);

/// Returns whether the servers refused the request because of the credentials or an ACL.
[[nodiscard]] bool IsRefusal(Error error);

/// A znode's metadata.
struct NodeStat {
  std::int64_t created_zxid = 0;     ///< czxid: the fencing token of a contender
  std::int64_t created_ms = 0;       ///< by the servers' clock, since 1970
  std::int64_t modified_ms = 0;      ///< likewise
  std::int64_t ephemeral_owner = 0;  ///< the session that it is deleted with; 0: not ephemeral
  std::int32_t version = 0;          ///< of the data, incremented by each write
  std::int64_t children_made = 0;    ///< in total: also the number of the next sequential child
};

struct Reply {
  Error error = Error::kNone;
  TimePoint sent{};  ///< just before the request was sent
};
struct CreateReply : Reply {
  std::string path;
  NodeStat stat;
};
struct CreateAllReply : Reply {
  std::vector<std::string> paths;
  NodeStat stat;                ///< the same for each of them
  std::size_t failed = 0;       ///< the index of the first contender that was refused
  bool may_not_delete = false;  ///< it was refused because it could not be deleted
};
struct SetReply : Reply {
  NodeStat stat;
};
struct GetReply : Reply {
  std::string data;
  NodeStat stat;
};
struct ListReply : Reply {
  protocol::Children children;
};

// Permissions in an ACL, as bits of the wire protocol.
inline constexpr unsigned kMayRead = 1;
inline constexpr unsigned kMayWrite = 2;
inline constexpr unsigned kMayCreate = 4;  ///< children
inline constexpr unsigned kMayDelete = 8;  ///< children
inline constexpr unsigned kMayAdmin = 16;  ///< set the ACL

/// The permissions that an ACL grants to one identity: "world" and "anyone" for everyone.
struct AclEntry {
  std::string scheme;
  std::string id;  ///< for "digest": USER:HASH; most readers do not see the hash
  unsigned rights = 0;
};
struct AclReply : Reply {
  std::vector<AclEntry> entries;
};

template <typename R>
using Done = std::function<void(const R&)>;

enum class NodeKind {
  kContainer,
  kPersistent,
  kEphemeral,
  kEphemeralSequential,
  // The znodes above a LOCK are shared: everyone may create children in them, whatever the ACL of
  // the other znodes that zklock creates.
  kSharedContainer,
  kSharedPersistent,
};

/// For a write or delete regardless of the version.
inline constexpr std::int32_t kAnyVersion = -1;

/// For a write or delete that the servers always refuse: kBadVersion shows that it would be
/// allowed. No znode has this version.
inline constexpr std::int32_t kNoVersion = -2;

/// A znode that becomes persistent, for Store::MakePersistent().
struct Conversion {
  std::string path;
  std::int32_t version = 0;
  std::string data;  ///< the new data
};

/// A write to one znode, for Store::WriteAndDelete().
struct DataWrite {
  std::string path;
  std::string data;          ///< the new data
  std::int32_t version = 0;  ///< the version that the data must still have
};

/// An ephemeral sequential znode, for Store::CreateAll().
struct NewContender {
  std::string parent;
  std::string prefix;  ///< the beginning of its name
  std::string data;
};

/// Whether the servers send one event when the answer to this read changes.
enum class Watch { kNo, kYes };

/// The change that a watch reports.
enum class Change {
  kCreated,
  kDeleted,
  kData,      ///< the data was written to
  kChildren,  ///< a child was created or deleted
};

/// Receives events that are not answers to requests.
class StoreListener {
 public:
  StoreListener() = default;
  StoreListener(const StoreListener&) = delete;
  StoreListener& operator=(const StoreListener&) = delete;
  virtual ~StoreListener() = default;
  /// A server accepted the session. `fresh`: it is a new session; the znodes of the previous one
  /// are gone.
  virtual void OnConnected(bool fresh) = 0;
  /// The connection is lost, and with it all watches; every outstanding request has already been
  /// answered with kConnectionLoss. The store connects to another server by itself.
  virtual void OnDisconnected() {}
  /// The servers have ended the session. The store does nothing until Renew().
  virtual void OnExpired() = 0;
  /// The servers refuse the credentials (kAuthFailed) or require some (kAuthRequired). The store
  /// then does nothing more. Not called while a lock is held: the next server is tried instead.
  virtual void OnRefused(Error /*why*/) {}
  /// A watch on this path has fired. Events and the answers to reads arrive in the order in which
  /// the connected server saw the changes.
  virtual void OnWatch(const std::string& /*path*/, Change /*change*/) {}
};

/// What lock/ needs from ZooKeeper: the port between the protocol and a real session, or the fake
/// session of the tests.
///
/// Requests are sent in the order of the calls, and answered in that order, each exactly once and
/// never before the call returns. Without a connection the answer is kConnectionLoss. For one
/// thread only. Callbacks may call the store.
class Store {
 public:
  virtual ~Store() = default;

  /// Sets the only listener; null removes it. The listener must outlive its registration.
  virtual void SetListener(StoreListener* listener) = 0;

  [[nodiscard]] virtual bool IsConnected() const = 0;
  /// Returns 0 without a session: before the first, and after one has expired.
  [[nodiscard]] virtual std::int64_t session_id() const = 0;
  /// Returns how long the session is proven to live. Its timeout() is T, the shortest timeout that
  /// was granted to this session. Updated before the listener's OnConnected() is called.
  [[nodiscard]] virtual const protocol::Lease& lease() const = 0;

  virtual void Create(const std::string& path, const std::string& data, NodeKind kind,
                      Done<CreateReply> done) = 0;
  /// Creates all `contenders` in one transaction, done as a whole or not at all. With `scratch`,
  /// their parents must differ, and it fails with kNoAuth unless all of them could also be deleted:
  /// to test this, it creates a znode of this name in each parent and deletes it again; no other
  /// client sees it. If `scratch` is empty, the answer has no metadata.
  virtual void CreateAll(const std::vector<NewContender>& contenders, const std::string& scratch,
                         Done<CreateAllReply> done) = 0;
  virtual void Get(const std::string& path, Watch watch, Done<GetReply> done) = 0;
  virtual void List(const std::string& path, Watch watch, Done<ListReply> done) = 0;
  /// Asks whether the znode exists. Unlike Get() and List(), sets a watch even if it does not.
  virtual void Exists(const std::string& path, Watch watch, Done<Reply> done) = 0;
  /// Deletes the znode. Fails with kBadVersion unless its data still has this version; with
  /// kAnyVersion, always deletes it.
  virtual void Delete(const std::string& path, std::int32_t version, Done<Reply> done) = 0;
  /// Replaces the data. Fails with kBadVersion unless it still has this version; with kAnyVersion,
  /// always replaces it.
  virtual void Set(const std::string& path, const std::string& data, std::int32_t version,
                   Done<SetReply> done) = 0;
  /// In one transaction, done as a whole or not at all, does all `writes` and deletes the znodes
  /// `gone` if the data of each written znode and of the first deleted one still has its version
  /// (`gone_version` for the latter). Fails with kNoNode if one of them is gone. A transaction that
  /// both writes and deletes is a release: it is sent together with the next request, the close of
  /// the session. One that only writes, or only deletes, is sent at once.
  virtual void WriteAndDelete(const std::vector<DataWrite>& writes,
                              const std::vector<std::string>& gone, std::int32_t gone_version,
                              Done<Reply> done) = 0;
  /// In one transaction, replaces each of `conversions` with a persistent znode of the same path,
  /// if each still has its version and all znodes in `checked` exist, and deletes those in
  /// `deleted`. Fails with kNoNode if one of these znodes is gone.
  virtual void MakePersistent(const std::vector<Conversion>& conversions,
                              const std::vector<std::string>& checked,
                              const std::vector<std::string>& deleted, Done<Reply> done) = 0;
  virtual void Sync(const std::string& path, Done<Reply> done) = 0;
  /// Sends the committed heartbeat: a multi of check(path, -1). A quorum commits it; it triggers no
  /// watch, and fails with kNoNode if one of the znodes is gone.
  virtual void Check(const std::vector<std::string>& paths, Done<Reply> done) = 0;
  virtual void GetAcl(const std::string& path, Done<AclReply> done) = 0;
  /// Asks whether this session may create the ephemeral znode `path` with this data (a quota may
  /// limit it) and, with `and_delete`, delete it. The transaction creates it twice in a row, so the
  /// servers always refuse it: with kNodeExists if the session may, otherwise with the reason why
  /// not.
  virtual void CheckCreate(const std::string& path, const std::string& data, bool and_delete,
                           Done<Reply> done) = 0;
  /// Reads the servers' clock: creates the ephemeral znode `path` and deletes it again in one
  /// transaction. No other client sees the znode, and nothing is left behind, whatever happens. The
  /// answer has its metadata.
  virtual void Stamp(const std::string& path, Done<SetReply> done) = 0;

  /// For use while a lock is held. `stop`: when the command gets its stop signal unless the lease
  /// is extended. `end`: the end of the lease. Connection attempts get less time accordingly.
  virtual void SetHolding(TimePoint stop, TimePoint end) = 0;
  /// Leaves a server that does not answer or, with `refusal`, has refused a heartbeat. Keeps the
  /// session and tries the next server.
  virtual void GiveUpServer(Error refusal = Error::kNone) = 0;
  /// Begins a new session after OnExpired().
  virtual void Renew() = 0;
};

}  // namespace zklock::zookeeper
