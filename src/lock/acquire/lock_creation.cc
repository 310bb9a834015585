#include "lock/acquire/lock_creation.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using zookeeper::CreateReply;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::NodeKind;
using zookeeper::Watch;

// The servers delete empty containers once a minute. If LOCK vanishes this many times in a row,
// something else deletes it.
constexpr int kMostAttempts = 8;

/// Returns the znodes from the root down to `path` itself: "/a", "/a/b".
std::vector<std::string> PathAndParents(const std::string& path) {
  std::vector<std::string> paths;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    paths.push_back(path.substr(0, slash));
  }
  paths.push_back(path);
  return paths;
}

}  // namespace

std::optional<Unusable::Why> CannotOwnContenders(Error error) {
  if (error == Error::kNoChildrenForEphemerals) return Unusable::Why::kEphemeral;
  if (error == Error::kLocalSession) return Unusable::Why::kLocalSessions;
  if (error == Error::kUnimplemented) return Unusable::Why::kOldServers;
  return std::nullopt;
}

LockCreation::LockCreation(zookeeper::Store& store, const AcquireRequest& request)
    : store_(store), request_(request) {}

std::optional<AcquireOutcome> LockCreation::failure() const {
  const LockName& lock = request_.lock;
  if (error_ == Error::kNoAuth || error_ == Error::kInvalidAcl) {
    return Refused{"make", lock.display_path(), error_, "CREATE", lock.DisplayPath(refused_path_)};
  }
  if (error_ == Error::kNoChildrenForEphemerals) {
    const bool is_lock = refused_path_ == lock.path;
    return Unusable{is_lock ? Unusable::Why::kEphemeral : Unusable::Why::kBelowEphemeral};
  }
  if (error_ == Error::kQuotaExceeded) return QuotaExceeded{lock.display_path(), ""};
  if (attempts_ == kMostAttempts) return Defect{Defect::What::kVanishes, lock.display_path()};
  return std::nullopt;
}

void LockCreation::Send() {
  ++attempts_;
  error_ = Error::kNone;
  const NodeKind kind = containers_ ? NodeKind::kContainer : NodeKind::kPersistent;
  const NodeKind above = containers_ ? NodeKind::kSharedContainer : NodeKind::kSharedPersistent;
  for (const std::string& path : PathAndParents(request_.QueuePath())) {
    // The data marks LOCK as zklock's, so that zklock may write to it later. The znodes above it
    // belong to no program.
    std::string data;
    if (path == request_.lock.path) data = protocol::FormatLockData({});
    if (path == request_.QueuePath() && request_.permits) data = std::to_string(*request_.permits);
    const bool is_above = path.size() < request_.lock.path.size();
    // The chroot is not a container: it is created only once, and an event reports that.
    const bool is_chroot = path.size() <= request_.lock.chroot.size();
    store_.Create(path, data,
                  is_chroot  ? NodeKind::kSharedPersistent
                  : is_above ? above
                             : kind,
                  scope_.Wrap([this, path](const CreateReply& reply) { OnCreated(path, reply); }));
  }
}

void LockCreation::OnCreated(const std::string& path, const CreateReply& reply) {
  // Servers that do not support containers give this answer and close the connection: the replies
  // to all later requests are lost.
  if (reply.error == Error::kUnimplemented) containers_ = false;
  if (IsLost(reply.error)) return;
  // If a znode already exists, errors above it, such as a missing permission to create, do not
  // matter. kNoNode only means that a znode above could not be created.
  if (reply.error == Error::kNodeExists) {
    error_ = Error::kNone;
  } else if (reply.error != Error::kNoNode) {
    error_ = reply.error;
    refused_path_ = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  }
}

void FindQuota(zookeeper::Store& store, const AcquireRequest& request,
               const std::function<void(const QuotaExceeded&)>& done) {
  // The servers keep a quota's limits below /zookeeper/quota, and allow only one quota on a path.
  const LockName& lock = request.lock;
  const auto found = std::make_shared<QuotaExceeded>(QuotaExceeded{lock.display_path(), ""});
  const std::vector<std::string> paths = PathAndParents(request.QueuePath());
  for (const std::string& path : paths) {
    const bool is_last = &path == &paths.back();
    store.Get("/zookeeper/quota" + path + "/zookeeper_limits", Watch::kNo,
              [found, limited = lock.DisplayPath(path), is_last, done](const GetReply& reply) {
                if (IsLost(reply.error)) return;
                if (reply.error == Error::kNone) found->limit = limited;
                if (is_last) done(*found);
              });
  }
}

}  // namespace zklock::lock
