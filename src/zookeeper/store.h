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

/// What the servers, or the loss of them, answer to one request.
enum class Error {
  kNone,
  kNoNode,
  kNodeExists,
  kNoAuth,
  kAuthFailed,    ///< the credentials were refused
  kAuthRequired,  ///< the servers want credentials
  kInvalidAcl,
  kNoChildrenForEphemerals,
  kLocalSession,  ///< the session is its server's alone, and can own no znode
  kNotEmpty,
  kBadVersion,  ///< written to since it was read
  kUnimplemented,
  kQuotaExceeded,
  kThrottled,       ///< not done; the session asks again, so that nobody else gets this answer
  kConnectionLoss,  ///< the reply is lost: the request may or may not have been done
  kSessionExpired,
  kOther,  ///< anything that a sound server does not answer to a sound request
};

/// The reply is lost, with the connection or with the session: the store tells with its next event
/// what became of them.
[[nodiscard]] bool IsLost(Error error);

/// The servers do not let us: credentials or an ACL are in the way.
[[nodiscard]] bool IsRefusal(Error error);

/// What the servers tell of a znode.
struct NodeStat {
  std::int64_t created_zxid = 0;     ///< czxid: the fencing token of a contender
  std::int64_t created_ms = 0;       ///< by the servers' clock, since 1970
  std::int64_t modified_ms = 0;      ///< likewise
  std::int64_t ephemeral_owner = 0;  ///< the session it lives with; 0: it stays
  std::int32_t version = 0;          ///< of its data: one more with each write
};

struct Reply {
  Error error = Error::kNone;
  TimePoint sent{};  ///< just before the request was sent
};
struct CreateReply : Reply {
  std::string path;
  NodeStat stat;
};
struct GetReply : Reply {
  std::string data;
  NodeStat stat;
};
struct ListReply : Reply {
  protocol::Children children;
};

template <typename R>
using Done = std::function<void(const R&)>;

enum class NodeKind { kContainer, kPersistent, kEphemeral, kEphemeralSequential };

/// For a write or a delete that does not ask what was there.
inline constexpr std::int32_t kAnyVersion = -1;

/// Whether the servers are to send one event when the answer to this read changes.
enum class Watch { kNo, kYes };

/// Told of what happens without having been asked for.
class StoreListener {
 public:
  virtual ~StoreListener() = default;
  /// A server accepted the session. `fresh`: a new one; what the last one had created has gone.
  virtual void OnConnected(bool fresh) = 0;
  /// The server has gone; every outstanding request was answered kConnectionLoss before. Watches
  /// are gone with it. The store looks for another server by itself.
  virtual void OnDisconnected() = 0;
  /// The servers have ended the session. Nothing happens until Renew().
  virtual void OnExpired() = 0;
  /// The servers do not take the credentials, kAuthFailed, or do not serve who has none,
  /// kAuthRequired; nothing happens any more. Not while something is held: then that server is
  /// left, and the next one tried.
  virtual void OnRefused(Error why) = 0;
  /// A watch on this path fired, whatever the event was.
  virtual void OnWatch(const std::string& path) = 0;
};

/// What the lock layer asks of ZooKeeper: the port between the protocol and a real session (or the
/// tests' fake).
///
/// Requests are sent in the order of the calls, and answered in that order, each exactly once and
/// never before the call returns. Without a connection the answer is kConnectionLoss. Calls with
/// one thread only; callbacks may call back into the store.
class Store {
 public:
  virtual ~Store() = default;

  /// At most one listener; null is none. The listener outlives its registration.
  virtual void SetListener(StoreListener* listener) = 0;

  [[nodiscard]] virtual bool IsConnected() const = 0;
  /// 0 before the first session.
  [[nodiscard]] virtual std::int64_t session_id() const = 0;
  /// How long the session is proven to live; its timeout() is the T that counts: the shortest that
  /// was granted to this session. It is up to date before the listener's OnConnected().
  [[nodiscard]] virtual const protocol::Lease& lease() const = 0;

  virtual void Create(const std::string& path, const std::string& data, NodeKind kind,
                      Done<CreateReply> done) = 0;
  virtual void Get(const std::string& path, Watch watch, Done<GetReply> done) = 0;
  virtual void List(const std::string& path, Watch watch, Done<ListReply> done) = 0;
  /// Whether it is there. Unlike the two above, its watch also stands on what is not.
  virtual void Exists(const std::string& path, Watch watch, Done<Reply> done) = 0;
  /// If its data still is of `version`: else kBadVersion.
  virtual void Delete(const std::string& path, std::int32_t version, Done<Reply> done) = 0;
  /// Replaces the data, if it still is of `version`: else kBadVersion. kAnyVersion: in any case.
  virtual void Set(const std::string& path, const std::string& data, std::int32_t version,
                   Done<Reply> done) = 0;
  /// One transaction, done as a whole or not at all: `data` to the znode `path`, if its data still
  /// has this version, and the end of the znode `gone`. It is sent together with what is asked
  /// next, the session's close.
  virtual void WriteAndDelete(const std::string& path, const std::string& data,
                              std::int32_t version, const std::string& gone, Done<Reply> done) = 0;
  virtual void Sync(const std::string& path, Done<Reply> done) = 0;
  /// The committed heartbeat: a multi of check(path, -1). It goes through a quorum, wakes no watch,
  /// and fails with kNoNode if one is gone.
  virtual void Check(const std::vector<std::string>& paths, Done<Reply> done) = 0;

  /// While something is held: `stop` is when the command gets its stop signal unless the lease is
  /// proven anew. Connection attempts hurry accordingly.
  virtual void SetHolding(TimePoint stop) = 0;
  /// The server does not answer: leave it, keep the session, try the next.
  virtual void GiveUpServer() = 0;
  /// After OnExpired: begin a new session.
  virtual void Renew() = 0;
};

}  // namespace zklock::zookeeper
