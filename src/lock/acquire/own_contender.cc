#include "lock/acquire/own_contender.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lock/data/contender_check.h"
#include "lock/data/reserved.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

using zookeeper::CreateReply;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::NodeKind;
using zookeeper::Reply;

std::string ContenderPrefix(const AcquireRequest& request, std::string_view uuid) {
  const bool reserves = request.reserve && !request.is_for_turnstile();
  return request.permits
             ? protocol::MakePermitPrefix(request.host, uuid, reserves)
             : protocol::MakeContenderPrefix(request.host, uuid, request.mode, request.dialect,
                                             request.supersedes(), reserves);
}

OwnContender::OwnContender(zookeeper::Store& store, const Clock& clock,
                           const AcquireRequest& request, std::function<std::string()> make_uuid)
    : store_(store),
      clock_(clock),
      request_(request),
      make_uuid_(std::move(make_uuid)),
      uuid_(request.given ? request.given->uuid : make_uuid_()) {
  if (!request.given) return;
  create_sent_ = true;
  create_sent_at_ = request.given->sent;
  ticket_ = request.given->known;
  if (!request.given->path.empty()) Take(request.given->path, request.given->stat);
}

std::string_view OwnContender::name() const {
  return ticket_ ? protocol::BaseOf(ticket_->path) : std::string_view();
}

void OwnContender::Create(zookeeper::Done<CreateReply> done) {
  if (!std::exchange(create_sent_, true)) create_sent_at_ = clock_.Now();
  if (request_.znodes() > 1 || request_.must_be_deletable()) return CreateAll(std::move(done));
  store_.Create(ChildPath(ContenderPrefix(request_, uuid_)), request_.data,
                request_.is_simple() ? NodeKind::kEphemeral : NodeKind::kEphemeralSequential,
                scope_.Wrap([this, done = std::move(done)](const CreateReply& reply) {
                  if (reply.error == Error::kNone) Take(reply.path, reply.stat);
                  const bool exists = reply.error == Error::kNodeExists && request_.is_simple();
                  if (reply.error == Error::kNoNode || exists) create_sent_ = false;
                  done(reply);
                }));
}

void OwnContender::CreateAll(zookeeper::Done<CreateReply> done) {
  const zookeeper::NewContender one{request_.QueuePath(), ContenderPrefix(request_, uuid_),
                                    request_.data};
  const std::string scratch = request_.must_be_deletable() ? StampName(store_) : "";
  store_.CreateAll({request_.znodes(), one}, scratch,
                   scope_.Wrap([this, done = std::move(done)](const auto& reply) {
                     if (reply.error == Error::kNoNode) create_sent_ = false;
                     may_not_delete_ = reply.may_not_delete;
                     created_.clear();
                     for (const std::string& path : reply.paths) {
                       created_.emplace_back(protocol::BaseOf(path));
                     }
                     const bool is_complete = request_.must_be_deletable() && !created_.empty();
                     if (is_complete) Take(reply.paths.front(), reply.stat);
                     done(CreateReply{{reply.error, reply.sent}});
                   }));
}

std::vector<std::string> OwnContender::FindCreated(const protocol::Children& children) const {
  std::vector<std::string> names;
  for (const std::string_view child : children) {
    if (request_.is_simple() ? child == protocol::kSimpleName : HasOurUuid(child)) {
      names.emplace_back(child);
    }
  }
  // The names of our contenders differ only in their numbers.
  std::sort(names.begin(), names.end());
  return names;
}

bool OwnContender::Adopt(const std::vector<std::string>& names, const GetReply& reply) {
  if (reply.stat.ephemeral_owner != store_.session_id()) {
    uuid_ = make_uuid_();
    create_sent_ = false;
    return false;
  }
  Take(ChildPath(names.front()), reply.stat);
  for (auto name = names.begin() + 1; name != names.end(); ++name) {
    ticket_->more.push_back(ChildPath(*name));
  }
  return true;
}

void OwnContender::Take(const std::string& path, const zookeeper::NodeStat& stat) {
  ticket_ = Ticket{.lock = request_.lock,
                   .mode = request_.mode,
                   .path = path,
                   .session = store_.session_id(),
                   .token = stat.created_zxid,
                   .created = std::chrono::milliseconds(stat.created_ms),
                   .created_after = create_sent_at_,
                   .created_before = clock_.Now()};
}

bool OwnContender::DeleteStrays(const protocol::Children& children) {
  std::vector<std::string> strays;
  for (const std::string_view child : children) {
    if (HasOurUuid(child) && !IsOneOfAll(ChildPath(child))) strays.push_back(ChildPath(child));
  }
  if (!strays.empty()) DeleteTogether(strays);
  return !strays.empty();
}

/// Deletes `paths` in one transaction, or one by one if one of them is already gone.
void OwnContender::DeleteTogether(const std::vector<std::string>& paths) {
  const auto take = [this](const Reply& reply) {
    if (reply.error == Error::kNoAuth) delete_refused_ = true;
  };
  const auto delete_singly = [this, paths, take] {
    for (const std::string& path : paths) {
      store_.Delete(path, zookeeper::kAnyVersion, scope_.Wrap(take));
    }
  };
  if (paths.size() == 1) return delete_singly();
  store_.WriteAndDelete({}, paths, zookeeper::kAnyVersion,
                        scope_.Wrap([delete_singly, take](const Reply& reply) {
                          take(reply);
                          if (reply.error == Error::kNoNode) delete_singly();
                        }));
}

void OwnContender::Delete() {
  if (ticket_) DeleteTogether(ticket_->paths());
}

void OwnContender::OnExpired() {
  ticket_.reset();
  create_sent_ = false;
  uuid_ = make_uuid_();
}

std::vector<ContenderId> OwnContender::All() const {
  std::vector<ContenderId> all = request_.held;
  if (!ticket_) return all;
  const std::vector<ContenderId> own = ticket_->ids();
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

bool OwnContender::IsOneOfAll(const std::string& path) const {
  const std::vector<ContenderId> all = All();
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.path == path; });
}

void OwnContender::Check(zookeeper::Done<Reply> done) {
  CheckContenders(store_, All(), std::move(done));
}

std::string OwnContender::ChildPath(std::string_view child) const {
  return protocol::ChildPath(request_.QueuePath(), child);
}

bool OwnContender::HasOurUuid(std::string_view child) const {
  return child.find(uuid_) != std::string_view::npos;
}

}  // namespace zklock::lock
