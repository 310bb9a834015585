#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "lock/data/acquire_request.h"
#include "lock/data/callback_scope.h"
#include "lock/data/ticket.h"
#include "protocol/children.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Returns the prefix of the name of a contender with this UUID.
[[nodiscard]] std::string ContenderPrefix(const AcquireRequest& request, std::string_view uuid);

/// Our own contender in a queue: created once for each session, and found again if the reply to its
/// create is lost.
class OwnContender {
 public:
  /// `request` must outlive this; our contender is AcquireRequest::given if that is set.
  /// `make_uuid` is called for each session, and whenever a znode with our UUID turns out to belong
  /// to another session. A repeated create keeps its UUID.
  OwnContender(zookeeper::Store& store, const Clock& clock, const AcquireRequest& request,
               std::function<std::string()> make_uuid);

  /// Returns none until its create is known to have succeeded.
  [[nodiscard]] const std::optional<Ticket>& ticket() const { return ticket_; }
  /// Returns its name; empty without a ticket.
  [[nodiscard]] std::string_view name() const;
  /// Returns whether it exists or may exist: a create was sent, and is not known to have failed.
  [[nodiscard]] bool may_exist() const { return ticket_ || create_sent_; }
  /// Stores the version of LOCK's data; none if that data is not zklock's.
  void SetLockVersion(std::optional<std::int32_t> version) {
    ticket_->lock_version = version;
    ticket_->lock_version_is_guess = false;
  }
  /// Assumes that LOCK's data has been written `writes` times since its version was noted.
  void GuessLockVersion(std::int32_t writes) {
    if (!ticket_->lock_version) return;
    *ticket_->lock_version += writes;
    ticket_->lock_version_is_guess = true;
  }

  /// Creates the contender. When `done` is called with Error::kNone, there is a ticket. If it takes
  /// several permits, created() is set instead: the caller must read the metadata of the first and
  /// call Adopt(). If AcquireRequest::must_be_deletable(), it is created only if we may delete it,
  /// because the run may leave the queue and keep its session.
  void Create(zookeeper::Done<zookeeper::CreateReply> done);
  [[nodiscard]] const std::vector<std::string>& created() const { return created_; }
  /// After a create that failed with Error::kNoAuth, returns the permission that is missing on the
  /// queue.
  [[nodiscard]] const char* missing_right() const { return may_not_delete_ ? "DELETE" : "CREATE"; }
  /// Returns the children that our create may have made although its reply was lost, in queue
  /// order: all that have our UUID. Anyone can create such children.
  [[nodiscard]] std::vector<std::string> FindCreated(const protocol::Children& children) const;
  /// Adopts the children `names` as our contender if `reply`, the answer to the read of the first,
  /// shows that this session owns them. Otherwise returns false, and the next create uses a new
  /// UUID: the children will be deleted with their own session, and nobody has a ticket for them
  /// (CURATOR-498, -604).
  bool Adopt(const std::vector<std::string>& names, const zookeeper::GetReply& reply);
  /// Deletes children with our UUID that are not our contender, so that they do not block others:
  /// they come from a create that succeeded although its reply was lost. Returns whether there were
  /// any.
  bool DeleteStrays(const protocol::Children& children);
  /// Returns whether a delete was refused for lack of permission: strays of ours may remain.
  [[nodiscard]] bool may_have_strays() const { return delete_refused_; }
  /// Leaves the queue, but keeps the session.
  void Delete();
  /// Called when the session has expired: our contender is gone with it.
  void OnExpired();

  /// Returns this contender, with all its permits, and those that the session holds in other LOCKs.
  [[nodiscard]] std::vector<ContenderId> All() const;
  [[nodiscard]] bool IsOneOfAll(const std::string& path) const;
  /// Calls CheckContenders() for All().
  void Check(zookeeper::Done<zookeeper::Reply> done);

 private:
  void CreateAll(zookeeper::Done<zookeeper::CreateReply> done);
  void DeleteTogether(const std::vector<std::string>& paths);
  void Take(const std::string& path, const zookeeper::NodeStat& stat);
  [[nodiscard]] std::string ChildPath(std::string_view child) const;
  [[nodiscard]] bool HasOurUuid(std::string_view child) const;

  zookeeper::Store& store_;
  const Clock& clock_;
  const AcquireRequest& request_;
  std::function<std::string()> make_uuid_;

  std::string uuid_;
  bool create_sent_ = false;    ///< a create with uuid_ was sent, and is not known to have failed
  TimePoint create_sent_at_{};  ///< when the first of these creates was sent: it may have succeeded
  std::vector<std::string> created_;
  bool may_not_delete_ = false;  ///< the last create was refused for lack of DELETE
  bool delete_refused_ = false;
  std::optional<Ticket> ticket_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
