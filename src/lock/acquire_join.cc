#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lock/acquire.h"
#include "lock/contender_check.h"
#include "protocol/lease.h"
#include "protocol/release_record.h"

// The way into the queue: make the LOCK, create the contender, find it again when a reply was lost.

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::NodeKind;
using zookeeper::Watch;

// An empty container is reaped by the servers once a minute: more often than this in a row, and
// somebody deletes LOCK on purpose.
constexpr int kMostRemakes = 8;

/// The znodes from the root down to `path` itself: "/a", "/a/b".
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

std::string Acquire::FindBlocker(const protocol::Children& children) const {
  if (IsSimple()) {
    return children.Has(protocol::kSimpleName) ? std::string(protocol::kSimpleName) : "";
  }
  const protocol::Contenders contenders(children);
  if (request_.permits && contenders.size() < *request_.permits) return "";
  const auto* const blocker = protocol::FirstInTheWay(contenders, request_.mode);
  return blocker == nullptr ? "" : std::string(blocker->full);
}

void Acquire::Look() {
  BeginStep(State::kLooking);
  // The sync, because a script that has just released may ask a server that has not heard of it.
  store_.Sync(request_.QueuePath(), scope_.Wrap([](const zookeeper::Reply&) {}));
  store_.List(request_.QueuePath(), Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error == Error::kNoNode) return Join();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                const auto go_on = [this](const protocol::Children& children) {
                  const std::string blocker = FindBlocker(children);
                  if (blocker.empty()) return Join();
                  predecessor_ = blocker;
                  store_.Get(ChildPath(blocker), Watch::kNo,
                             InStep([this](const zookeeper::GetReply& found) {
                               if (found.error == Error::kNoNode)
                                 return Join();  // it has just gone: the queue decides
                               OnPredecessor(found);
                             }));
                  SearchHolders(children, predecessor_);
                };
                const protocol::Contenders contenders(reply.children);
                if (Judge(reply.children, contenders, go_on) == Verdict::kFine) {
                  go_on(reply.children);
                }
              }));
}

void Acquire::Join() {
  BeginStep(State::kJoining);
  observer_.OnJoining();
  if (wait_deadline_ == kNever && request_.wait) {
    wait_deadline_ = After(clock_.Now(), *request_.wait);
  }
  create_sent_ = true;
  create_sent_at_ = clock_.Now();
  // Who stands there before this place is taken is to be refused, not only told of.
  judged_ = semaphore_judged_ = false;
  looked_at_.clear();
  above_.clear();
  permits_data_.reset();
  const std::string prefix =
      request_.permits ? protocol::MakeLeasePrefix(request_.host, uuid_)
                       : protocol::MakeContenderPrefix(request_.host, uuid_, request_.mode,
                                                       request_.dialect, request_.supersede);
  store_.Create(ChildPath(prefix), request_.data,
                IsSimple() ? NodeKind::kEphemeral : NodeKind::kEphemeralSequential,
                InStep([this](const zookeeper::CreateReply& reply) { OnCreated(reply); }));
  // In the same write: replies keep the order, so that what LOCK is used for is known when the list
  // decides, and this list has our contender in it.
  AskForUse();
  store_.List(request_.QueuePath(), Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (!ticket_) return;  // told of with the create's reply
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                Consider(reply.children, Proof::kCreate);
              }));
}

void Acquire::AskForUse() {
  store_.Get(request_.QueuePath(), Watch::kNo, InStep([this](const zookeeper::GetReply& reply) {
               if (ticket_) TakeLockData(reply);
             }));
  if (request_.below.empty() || judged_) return;
  // With the lease as with the turnstile's contender: who uses LOCK without permits looks for
  // leases once it has joined, so that of two that come together one sees the other.
  store_.List(request_.lock.path, Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (!ticket_ || reply.error == Error::kNoNode) return;
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                TakeUseOfLock(reply.children);
              }));
}

void Acquire::OnCreated(const zookeeper::CreateReply& reply) {
  switch (reply.error) {
    case Error::kNone:
      ticket_ = Ticket{.lock = request_.lock,
                       .mode = request_.mode,
                       .path = reply.path,
                       .session = store_.session_id(),
                       .token = reply.stat.created_zxid,
                       .created = std::chrono::milliseconds(reply.stat.created_ms),
                       .created_after = create_sent_at_};
      joined_ = true;
      observer_.OnQueued(*ticket_);
      return;
    case Error::kNoNode:
      create_sent_ = false;
      request_.below.empty() ? MakeLock() : LookBeforeMaking();
      return;
    case Error::kNodeExists:
      if (!IsSimple()) return OnUnexpected("queue in", reply.error, "CREATE");
      create_sent_ = false;
      WaitForSimple();
      return;
    case Error::kNoChildrenForEphemerals:
      Finish(Unusable{Unusable::Why::kEphemeral});
      return;
    case Error::kLocalSession:
      Finish(Unusable{Unusable::Why::kLocalSessions});
      return;
    case Error::kUnimplemented:
      Finish(Unusable{Unusable::Why::kOldServers});
      return;
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
    case Error::kInvalidAcl:
    case Error::kQuotaExceeded:
    case Error::kNotEmpty:
    case Error::kBadVersion:
    case Error::kThrottled:
    case Error::kConnectionLoss:
    case Error::kSessionExpired:
    case Error::kOther:
      OnUnexpected("queue in", reply.error, "CREATE");
  }
}

void Acquire::WaitForSimple() {
  apart_since_.reset();
  joined_ = true;
  if (next_read_ == kNever) {
    next_read_ = clock_.Now() + protocol::WaiterReadPeriod(store_.lease().timeout());
  }
  const std::string name(protocol::kSimpleName);
  observer_.OnWaiting(request_.lock, name, 1);
  WatchPredecessor(name);
  SearchHolders({name}, predecessor_unreadable_ ? "" : predecessor_);
}

void Acquire::MakeLock() {
  if (make_error_ == Error::kNoAuth || make_error_ == Error::kInvalidAcl) {
    return FinishRefused("make", make_error_, "CREATE", make_refused_);
  }
  if (make_error_ == Error::kNoChildrenForEphemerals) {
    return Finish(Unusable{Unusable::Why::kBelowEphemeral});
  }
  if (make_error_ == Error::kQuotaExceeded) return FindQuota();
  if (++remakes_ > kMostRemakes) {
    return Finish(Defect{Defect::What::kVanishes, request_.lock.display_path()});
  }
  make_error_ = Error::kNone;
  const NodeKind kind = containers_ ? NodeKind::kContainer : NodeKind::kPersistent;
  for (const std::string& path : PathAndParents(request_.QueuePath())) {
    // By its data LOCK is known as zklock's, which may be written to; those above it are anybody's.
    std::string data;
    if (path == request_.lock.path) data = protocol::FormatLockData({});
    if (path == request_.QueuePath() && request_.permits) data = std::to_string(*request_.permits);
    store_.Create(path, data, kind, scope_.Wrap([this, path](const zookeeper::CreateReply& reply) {
      OnMade(path, reply);
    }));
  }
  Join();
}

void Acquire::OnMade(const std::string& path, const zookeeper::CreateReply& reply) {
  // Servers that do not know containers answer so and close the connection: what was asked after
  // it is lost, and says nothing.
  if (reply.error == Error::kUnimplemented) containers_ = false;
  if (IsLost(reply.error)) return;
  // A parent that is there need not let us create in its own parent: what comes of the ones below
  // counts. kNoNode only says that one above could not be made.
  if (reply.error == Error::kNodeExists) {
    make_error_ = Error::kNone;
  } else if (reply.error != Error::kNoNode) {
    make_error_ = reply.error;
    make_refused_ = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  }
}

void Acquire::FindQuota() {
  BeginStep(State::kDeciding);
  // The servers keep a quota's limits below /zookeeper/quota, and allow one quota on a path.
  const auto limited = std::make_shared<std::string>(request_.lock.path);
  const std::vector<std::string> paths = PathAndParents(request_.QueuePath());
  for (const std::string& path : paths) {
    const bool is_last = &path == &paths.back();
    store_.Get(
        "/zookeeper/quota" + path + "/zookeeper_limits", Watch::kNo,
        InStep([this, limited, path, is_last](const zookeeper::GetReply& reply) {
          if (IsLost(reply.error)) return;
          if (reply.error == Error::kNone) *limited = path;
          if (!is_last) return;
          Finish(QuotaExceeded{request_.lock.display_path(), request_.lock.DisplayPath(*limited)});
        }));
  }
}

void Acquire::Rejoin() {
  BeginStep(State::kRejoining);
  // A new handle may lag behind what we have seen: only what follows a sync, and an answered
  // heartbeat where there is a contender to check, is evidence.
  if (!ticket_ && !create_sent_) return request_.try_only ? Look() : Join();
  store_.Sync(request_.QueuePath(), scope_.Wrap([](const zookeeper::Reply&) {}));
  if (!ticket_) {
    store_.List(request_.QueuePath(), Watch::kNo,
                InStep([this](const zookeeper::ListReply& reply) { FindLostCreate(reply); }));
    return;
  }
  CheckContenders(store_, AllOurs(), InStep([this](const zookeeper::Reply& reply) {
                    if (reply.error == Error::kNoNode)
                      return Finish(Busy{Busy::Why::kRemoved, "", ""});
                    if (reply.error != Error::kNone)
                      OnUnexpected("check", reply.error, "READ", ticket_->path);
                  }));
  if (NeedsUse()) AskForUse();
  store_.List(request_.QueuePath(), Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                Consider(reply.children, Proof::kNone);
              }));
}

void Acquire::FindLostCreate(const zookeeper::ListReply& reply) {
  if (reply.error == Error::kNoNode) return Join();
  if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
  for (const std::string_view child : reply.children) {
    if (IsSimple() ? child != protocol::kSimpleName : !IsOfOurUuid(child)) continue;
    store_.Get(ChildPath(child), Watch::kNo,
               InStep([this, name = std::string(child)](const zookeeper::GetReply& got) {
                 AdoptIfOurs(name, got);
               }));
    return;
  }
  // Not done, and after the sync it never will be: create with the same UUID, so that even a
  // ghost nobody can think of would be known by it.
  Join();
}

void Acquire::AdoptIfOurs(const std::string& name, const zookeeper::GetReply& reply) {
  // The one znode may have been anybody's; a name with our UUID was ours.
  if (reply.error == Error::kNoNode && IsSimple()) return Join();
  if (reply.error == Error::kNoNode) return Finish(Busy{Busy::Why::kRemoved, "", ""});
  if (reply.error != Error::kNone) return OnUnexpected("read our own contender in", reply.error);
  if (reply.stat.ephemeral_owner != store_.session_id()) {
    // An older session's: it dies with that one, and is nobody's ticket (CURATOR-498, -604).
    uuid_ = make_uuid_();
    create_sent_ = false;
    return Join();
  }
  ticket_ = Ticket{.lock = request_.lock,
                   .mode = request_.mode,
                   .path = ChildPath(name),
                   .session = store_.session_id(),
                   .token = reply.stat.created_zxid,
                   .created = std::chrono::milliseconds(reply.stat.created_ms),
                   .created_after = create_sent_at_};
  joined_ = true;
  observer_.OnQueued(*ticket_);
  CheckOwn();  // finding it proves nothing: a committed answer does
}

}  // namespace zklock::lock
