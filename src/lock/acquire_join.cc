#include <string>
#include <utility>
#include <vector>

#include "lock/acquire.h"

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

std::string FirstConflicting(const std::vector<std::string>& children, protocol::Mode mode) {
  for (const auto& contender : protocol::Queue(children)) {
    if (mode != protocol::Mode::kRead || !contender.reads()) return contender.full;
  }
  return "";
}

}  // namespace

void Acquire::Look() {
  BeginStep(State::kLooking);
  // The sync, because a script that has just released may ask a server that has not heard of it.
  store_.Sync(request_.lock.path, scope_.Wrap([](const zookeeper::Reply&) {}));
  store_.List(request_.lock.path, Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error == Error::kNoNode) return Join();
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                const auto go_on = [this, children = reply.children] {
                  const std::string blocker = FirstConflicting(children, request_.mode);
                  if (blocker.empty()) return Join();
                  predecessor_ = blocker;
                  store_.Get(ChildPath(blocker), Watch::kNo,
                             InStep([this](const zookeeper::GetReply& found) {
                               if (found.error == Error::kNoNode)
                                 return Join();  // it has just gone: the queue decides
                               OnPredecessor(found);
                             }));
                };
                if (Judge(reply.children, go_on) == Verdict::kFine) go_on();
              }));
}

void Acquire::Join() {
  BeginStep(State::kJoining);
  if (wait_deadline_ == kNever && request_.wait) {
    wait_deadline_ = After(clock_.Now(), *request_.wait);
  }
  create_sent_ = true;
  const std::string prefix = protocol::MakeContenderPrefix(request_.host, uuid_, request_.mode);
  store_.Create(ChildPath(prefix), request_.data, NodeKind::kEphemeralSequential,
                InStep([this](const zookeeper::CreateReply& reply) { OnCreated(reply); }));
  // In the same write: replies keep the order, so that this list has our contender in it.
  store_.List(request_.lock.path, Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (!ticket_) return;  // told of with the create's reply
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                Consider(reply.children, Proof::kCreate);
              }));
}

void Acquire::OnCreated(const zookeeper::CreateReply& reply) {
  switch (reply.error) {
    case Error::kNone:
      ticket_ = Ticket{.lock = request_.lock,
                       .mode = request_.mode,
                       .path = reply.path,
                       .session = store_.session_id(),
                       .token = reply.stat.created_zxid};
      joined_ = true;
      observer_.OnQueued(*ticket_);
      return;
    case Error::kNoNode:
      create_sent_ = false;
      MakeLock();
      return;
    case Error::kNoChildrenForEphemerals:
      Finish(Unusable{"it is somebody's ephemeral znode", "use another LOCK"});
      return;
    default:
      OnUnexpected("queue in", reply.error);
  }
}

void Acquire::MakeLock() {
  if (make_error_ == Error::kNoAuth) return FinishRefused("make", make_error_);
  if (make_error_ == Error::kNoChildrenForEphemerals) {
    return Finish(Unusable{"a znode above it is somebody's ephemeral one", "use another LOCK"});
  }
  if (make_error_ == Error::kUnimplemented) containers_ = false;
  if (++remakes_ > kMostRemakes) {
    return Finish(Defect{"the LOCK vanishes as often as it is made"});
  }
  make_error_ = Error::kNone;
  const NodeKind kind = containers_ ? NodeKind::kContainer : NodeKind::kPersistent;
  for (const std::string& path : PathAndParents(request_.lock.path)) {
    store_.Create(path, "", kind, scope_.Wrap([this](const zookeeper::CreateReply& reply) {
      // A parent that is there need not let us create in its own parent: what comes of the ones
      // below counts. kNoNode only says that one above could not be made.
      if (reply.error == Error::kNodeExists) {
        make_error_ = Error::kNone;
      } else if (reply.error != Error::kNoNode) {
        make_error_ = reply.error;
      }
    }));
  }
  Join();
}

void Acquire::Rejoin() {
  BeginStep(State::kRejoining);
  // A new handle may lag behind what we have seen: only what follows a sync, and an answered
  // heartbeat where there is a contender to check, is evidence.
  if (!ticket_ && !create_sent_) return request_.try_only ? Look() : Join();
  store_.Sync(request_.lock.path, scope_.Wrap([](const zookeeper::Reply&) {}));
  if (!ticket_) {
    store_.List(request_.lock.path, Watch::kNo,
                InStep([this](const zookeeper::ListReply& reply) { FindLostCreate(reply); }));
    return;
  }
  store_.Check({ticket_->path}, InStep([this](const zookeeper::Reply& reply) {
                 if (reply.error == Error::kNoNode)
                   return Finish(Busy{Busy::Why::kRemoved, "", ""});
                 if (reply.error != Error::kNone) OnUnexpected("check", reply.error);
               }));
  store_.List(request_.lock.path, Watch::kNo, InStep([this](const zookeeper::ListReply& reply) {
                if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
                Consider(reply.children, Proof::kNone);
              }));
}

void Acquire::FindLostCreate(const zookeeper::ListReply& reply) {
  if (reply.error == Error::kNoNode) return Join();
  if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
  for (const std::string& child : reply.children) {
    if (child.find(uuid_) == std::string::npos) continue;
    store_.Get(ChildPath(child), Watch::kNo,
               InStep([this, child](const zookeeper::GetReply& got) { AdoptIfOurs(child, got); }));
    return;
  }
  // Not done, and after the sync it never will be: create with the same UUID, so that even a
  // ghost nobody can think of would be known by it.
  Join();
}

void Acquire::AdoptIfOurs(const std::string& name, const zookeeper::GetReply& reply) {
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
                   .token = reply.stat.created_zxid};
  joined_ = true;
  observer_.OnQueued(*ticket_);
  CheckOwn();  // finding it proves nothing: a committed answer does
}

}  // namespace zklock::lock
