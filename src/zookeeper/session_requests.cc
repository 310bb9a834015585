#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "zookeeper/pending_request.h"
#include "zookeeper/result.h"
#include "zookeeper/session.h"

// The Store half of Session: from a call to the client library, and from the library's C callbacks
// to an answer. No answer is delivered inside a callback: exceptions must not pass through the
// library's frames, and the receiver may close the connection.

namespace zklock::zookeeper {
namespace {

// After a list of this many names its memory, two pages, is returned to the kernel.
constexpr int kLongList = 32;

// Of the versions of a contender that is converted. Anyone who may write to it can make its version
// large; then only whoever read it when it had one version more can still hit the new znode.
constexpr std::int32_t kMostSkipped = 500;

// Between a throttled request and the next attempt. Heartbeats are at least half a second apart.
constexpr Duration kLeastThrottlePause = std::chrono::milliseconds(10);
constexpr Duration kMostThrottlePause = std::chrono::milliseconds(160);

NodeStat ToNodeStat(const Stat* stat) {
  if (stat == nullptr) return {};
  return {.created_zxid = stat->czxid,
          .created_ms = stat->ctime,
          .modified_ms = stat->mtime,
          .ephemeral_owner = stat->ephemeralOwner,
          .version = stat->version};
}

/// The library's form of an ACL; the library only reads it.
const ACL_vector* ToAclVector(Acl acl, bool is_shared = false) {
  static char world[] = "world";
  static char anyone[] = "anyone";
  static char auth[] = "auth";
  static char nobody[] = "";
  // The servers replace "auth" by the identities that this connection has proven.
  static ACL creator_and_readers[] = {{ZOO_PERM_ALL, {auth, nobody}},
                                      {ZOO_PERM_READ, {world, anyone}}};
  static ACL creator_and_creators[] = {{ZOO_PERM_ALL, {auth, nobody}},
                                       {ZOO_PERM_READ | ZOO_PERM_CREATE, {world, anyone}}};
  static const ACL_vector kCreator{2, creator_and_readers};
  static const ACL_vector kShared{2, creator_and_creators};
  if (acl != Acl::kCreator) return &ZOO_OPEN_ACL_UNSAFE;
  return is_shared ? &kShared : &kCreator;
}

bool IsShared(NodeKind kind) {
  return kind == NodeKind::kSharedContainer || kind == NodeKind::kSharedPersistent;
}

int CreateMode(NodeKind kind) {
  switch (kind) {
    case NodeKind::kContainer:
    case NodeKind::kSharedContainer:
      return ZOO_CONTAINER;
    case NodeKind::kPersistent:
    case NodeKind::kSharedPersistent:
      return ZOO_PERSISTENT;
    case NodeKind::kEphemeral:
      return ZOO_EPHEMERAL;
    case NodeKind::kEphemeralSequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
  }
  return ZOO_EPHEMERAL_SEQUENTIAL;
}

/// None if the event does not change a znode.
std::optional<Change> ToChange(int type) {
  if (type == ZOO_CREATED_EVENT) return Change::kCreated;
  if (type == ZOO_DELETED_EVENT) return Change::kDeleted;
  if (type == ZOO_CHANGED_EVENT) return Change::kData;
  if (type == ZOO_CHILD_EVENT) return Change::kChildren;
  return std::nullopt;
}

}  // namespace

// The pipeline keeps the contract of Store: answers are delivered in the order of the requests. A
// server that throttles a request has not done it, but may have done those after it. They are all
// sent again, one by one and in order, except writes that succeeded. So each answer is from a time
// when all requests before it were done, as if nothing had been throttled.

void Session::Request(std::unique_ptr<PendingRequest> pending) {
  pending->session = this;
  pending->sent = clock_.Now();
  const bool waits = IsThrottled();
  pipeline_.push_back(std::move(pending));
  if (phase_ != Phase::kConnected) {
    AnswerLost(*pipeline_.back());
    TakeAnswers();
  } else if (!waits) {
    Send(*pipeline_.back());
  }
}

void Session::Send(PendingRequest& pending) {
  pending.sent = clock_.Now();
  pending.state = PendingRequest::State::kSent;
  connection_->HoldBack();
  const bool is_sent = pending.send(pending, connection_->handle()) == ZOK;
  // All requests of one wake-up leave in one segment, and a release together with the close.
  if (!delivering_ && !pending.releases) connection_->SendNow();
  if (is_sent) return connection_->Expect(pending.fields);
  AnswerLost(pending);
  TakeAnswers();
}

template <typename R>
void Session::Complete(PendingRequest& pending, int result, R reply) {
  const Error error = ToError(result);
  // This connection is of no more use, if it is not closed already.
  if (error == Error::kConnectionLoss) give_up_ = true;
  // The servers process requests in order: if a request made them close the connection, it is the
  // first that is lost.
  if (error == Error::kConnectionLoss && first_lost_.empty()) first_lost_ = pending.operation;
  if (IsAnswer(result) && pending.operation == closers_.request) closers_ = {};
  if (error == Error::kAuthRequired) auth_required_ = true;
  if (error == Error::kThrottled) {
    pending.state = PendingRequest::State::kThrottled;
    throttle_pause_ = std::clamp(2 * throttle_pause_, kLeastThrottlePause, kMostThrottlePause);
    send_again_at_ = clock_.Now() + throttle_pause_;
    return;  // this proves nothing about the session
  }
  if (error == Error::kNone && pending.commits) {
    lease_.Committed(pending.sent, clock_.Now());
  } else if (IsAnswer(result)) {
    lease_.Answered(pending.sent, clock_.Now());
  }
  if (IsAnswer(result) && IsBehindThrottled(pending)) {
    if (!pending.is_write || error != Error::kNone) {
      pending.state = PendingRequest::State::kThrottled;
      return;
    }
  } else {
    throttle_pause_ = {};
    if (IsAnswer(result)) SetEnd(std::nullopt);
  }
  reply.error = error;
  reply.sent = pending.sent;
  Answer(pending, std::move(reply));
  TakeAnswers();
}

template <typename R>
void Session::Answer(PendingRequest& pending, R reply) {
  pending.state = PendingRequest::State::kAnswered;
  pending.deliver = [done = std::move(std::get<Done<R>>(pending.done)), reply = std::move(reply)] {
    done(reply);
  };
}

void Session::AnswerLost(PendingRequest& pending) {
  std::visit(
      [&]<typename R>(const Done<R>& /*done*/) {
        R reply;
        reply.error = Error::kConnectionLoss;
        reply.sent = pending.sent;
        Answer(pending, std::move(reply));
      },
      pending.done);
}

void Session::AnswerAllLost() {
  for (const auto& pending : pipeline_) {
    if (pending->state != PendingRequest::State::kAnswered) AnswerLost(*pending);
  }
  TakeAnswers();
  throttle_pause_ = {};
}

void Session::TakeAnswers() {
  while (!pipeline_.empty() && pipeline_.front()->state == PendingRequest::State::kAnswered) {
    ready_.push_back(std::move(pipeline_.front()->deliver));
    pipeline_.pop_front();
  }
}

bool Session::IsBehindThrottled(const PendingRequest& pending) const {
  for (const auto& before : pipeline_) {
    if (before.get() == &pending) return false;
    if (before->state == PendingRequest::State::kThrottled) return true;
  }
  return false;
}

bool Session::IsThrottled() const {
  return std::any_of(pipeline_.begin(), pipeline_.end(), [](const auto& pending) {
    return pending->state == PendingRequest::State::kThrottled;
  });
}

TimePoint Session::NextSend() const {
  // If a request is in progress, its callback runs first.
  const bool is_in_progress = std::any_of(
      pipeline_.begin(), pipeline_.end(),
      [](const auto& pending) { return pending->state == PendingRequest::State::kSent; });
  return is_in_progress || !IsThrottled() ? kNever : send_again_at_;
}

void Session::SendThrottled(TimePoint now) {
  if (now < NextSend()) return;
  // One at a time: servers that throttle may accept one request where they refuse several.
  Send(**std::find_if(pipeline_.begin(), pipeline_.end(), [](const auto& pending) {
    return pending->state == PendingRequest::State::kThrottled;
  }));
}

std::vector<bool> Session::UnansweredReleases() const {
  std::vector<bool> releases;
  for (const auto& pending : pipeline_) {
    if (pending->state == PendingRequest::State::kSent) releases.push_back(pending->releases);
  }
  return releases;
}

void Session::OnCreated(int result, const char* path, const ::Stat* stat, const void* data) {
  auto* pending = static_cast<PendingRequest*>(const_cast<void*>(data));
  CreateReply reply;
  if (result == ZOK && path != nullptr) reply.path = path;
  if (result == ZOK) reply.stat = ToNodeStat(stat);
  pending->session->Complete(*pending, result, std::move(reply));
}

void Session::OnGot(int result, const char* value, int size, const ::Stat* stat, const void* data) {
  auto* pending = static_cast<PendingRequest*>(const_cast<void*>(data));
  GetReply reply;
  if (result == ZOK && value != nullptr && size > 0) {
    reply.data.assign(value, static_cast<std::size_t>(size));
  }
  if (result == ZOK) reply.stat = ToNodeStat(stat);
  pending->session->Complete(*pending, result, std::move(reply));
}

void Session::OnGotAcl(int result, ::ACL_vector* acl, ::Stat* /*stat*/, const void* data) {
  auto* pending = static_cast<PendingRequest*>(const_cast<void*>(data));
  AclReply reply;
  if (result == ZOK && acl != nullptr) {
    for (int i = 0; i < acl->count; ++i) {
      const ACL& entry = acl->data[i];
      reply.entries.push_back(
          {entry.id.scheme, entry.id.id, static_cast<unsigned>(entry.perms & ZOO_PERM_ALL)});
    }
  }
  pending->session->Complete(*pending, result, std::move(reply));
}

void Session::OnListed(int result, const ::String_vector* names, const void* data) {
  auto* pending = static_cast<PendingRequest*>(const_cast<void*>(data));
  ListReply reply;
  if (result == ZOK && names != nullptr) {
    std::size_t bytes = 0;
    for (int i = 0; i < names->count; ++i) bytes += std::strlen(names->data[i]);
    reply.children.Reserve(static_cast<std::size_t>(names->count), bytes);
    for (int i = 0; i < names->count; ++i) reply.children.Add(names->data[i]);
    if (names->count >= kLongList) pending->session->holds_garbage_ = true;
  }
  pending->session->Complete(*pending, result, std::move(reply));
}

void Session::OnSet(int result, const ::Stat* stat, const void* data) {
  auto* pending = static_cast<PendingRequest*>(const_cast<void*>(data));
  SetReply reply;
  if (result == ZOK) reply.stat = ToNodeStat(stat);
  pending->session->Complete(*pending, result, reply);
}

void Session::OnExists(int result, const ::Stat* /*stat*/, const void* data) {
  OnDone(result, data);
}

void Session::OnDone(int result, const void* data) {
  auto* pending = static_cast<PendingRequest*>(const_cast<void*>(data));
  pending->session->Complete(*pending, result, Reply{});
}

void Session::OnSynced(int result, const char* /*path*/, const void* data) { OnDone(result, data); }

void Session::OnStamped(int result, const void* data) {
  auto* pending = static_cast<PendingRequest*>(const_cast<void*>(data));
  SetReply reply;
  if (result == ZOK) reply.stat = ToNodeStat(&pending->stat);
  pending->session->Complete(*pending, result, reply);
}

void Session::OnWatchEvent(zhandle_t* /*handle*/, int type, int /*state*/, const char* path,
                           void* self) {
  // The library also reports the connection's end to every watcher; that is reported once
  // elsewhere.
  const std::optional<Change> change = ToChange(type);
  if (!change || path == nullptr) return;
  auto* session = static_cast<Session*>(self);
  session->ready_.emplace_back([session, path = std::string(path), change = *change] {
    if (session->listener_ != nullptr) session->listener_->OnWatch(path, change);
  });
}

int Session::SendMulti(PendingRequest& request, zhandle_t* handle) {
  request.fields = "m";
  for (const zoo_op_t& one : request.operations) {
    request.fields += one.type == ZOO_CREATE_OP ? 's' : one.type == ZOO_SETDATA_OP ? 'S' : '-';
  }
  const bool is_stamp = std::holds_alternative<Done<SetReply>>(request.done);
  return zoo_amulti(handle, static_cast<int>(request.operations.size()), request.operations.data(),
                    request.results.data(), is_stamp ? OnStamped : OnDone, &request);
}

void Session::Create(const std::string& path, const std::string& data, NodeKind kind,
                     Done<CreateReply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Create";
  pending->fields = "sS";
  pending->done = std::move(done);
  pending->is_write = true;
  pending->commits = true;
  pending->send = [=, this](PendingRequest& request, zhandle_t* handle) {
    return zoo_acreate2(handle, path.c_str(), data.data(), static_cast<int>(data.size()),
                        ToAclVector(access_.acl, IsShared(kind)), CreateMode(kind), OnCreated,
                        &request);
  };
  Request(std::move(pending));
}

void Session::Get(const std::string& path, Watch watch, Done<GetReply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Get";
  pending->fields = "bS";
  pending->done = std::move(done);
  pending->send = [=, this](PendingRequest& request, zhandle_t* handle) {
    return zoo_awget(handle, path.c_str(), watch == Watch::kYes ? OnWatchEvent : nullptr, this,
                     OnGot, &request);
  };
  Request(std::move(pending));
}

void Session::GetAcl(const std::string& path, Done<AclReply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "GetAcl";
  pending->fields = "aS";
  pending->done = std::move(done);
  pending->send = [=](PendingRequest& request, zhandle_t* handle) {
    return zoo_aget_acl(handle, path.c_str(), OnGotAcl, &request);
  };
  Request(std::move(pending));
}

void Session::List(const std::string& path, Watch watch, Done<ListReply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "List";
  pending->fields = "v";
  pending->done = std::move(done);
  pending->send = [=, this](PendingRequest& request, zhandle_t* handle) {
    return zoo_awget_children(handle, path.c_str(), watch == Watch::kYes ? OnWatchEvent : nullptr,
                              this, OnListed, &request);
  };
  Request(std::move(pending));
}

void Session::Exists(const std::string& path, Watch watch, Done<Reply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Exists";
  pending->fields = "S";
  pending->done = std::move(done);
  pending->send = [=, this](PendingRequest& request, zhandle_t* handle) {
    return zoo_awexists(handle, path.c_str(), watch == Watch::kYes ? OnWatchEvent : nullptr, this,
                        OnExists, &request);
  };
  Request(std::move(pending));
}

void Session::Delete(const std::string& path, std::int32_t version, Done<Reply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Delete";
  pending->done = std::move(done);
  pending->is_write = true;
  pending->send = [=](PendingRequest& request, zhandle_t* handle) {
    return zoo_adelete(handle, path.c_str(), version, OnDone, &request);
  };
  Request(std::move(pending));
}

void Session::Set(const std::string& path, const std::string& data, std::int32_t version,
                  Done<SetReply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Set";
  pending->fields = "S";
  pending->done = std::move(done);
  pending->is_write = true;
  pending->commits = true;
  pending->send = [=](PendingRequest& request, zhandle_t* handle) {
    return zoo_aset(handle, path.c_str(), data.data(), static_cast<int>(data.size()), version,
                    OnSet, &request);
  };
  Request(std::move(pending));
}

/// A transaction that begins with `writes`, and has room for `more` operations.
std::unique_ptr<PendingRequest> Session::Transaction(std::string_view operation,
                                                     const std::vector<DataWrite>& writes,
                                                     std::size_t more) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = operation;
  pending->is_write = true;
  pending->operations.resize(writes.size() + more);
  pending->results.resize(pending->operations.size());
  pending->paths.reserve(pending->operations.size());
  for (const DataWrite& one : writes) {
    pending->paths.push_back(one.path);
    pending->data.push_back(one.data);
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const std::string& data = pending->data[i];
    zoo_set_op_init(&pending->operations[i], pending->paths[i].c_str(), data.data(),
                    static_cast<int>(data.size()), writes[i].version, nullptr);
  }
  pending->send = SendMulti;
  return pending;
}

void Session::Write(const std::vector<DataWrite>& writes, Done<Reply> done) {
  auto pending = Transaction("Write", writes, 0);
  pending->done = std::move(done);
  Request(std::move(pending));
}

void Session::WriteAndDelete(const std::vector<DataWrite>& writes, const std::string& gone,
                             std::int32_t gone_version, Done<Reply> done) {
  auto pending = Transaction("WriteAndDelete", writes, 1);
  pending->done = std::move(done);
  pending->releases = true;
  pending->paths.push_back(gone);
  zoo_delete_op_init(&pending->operations.back(), pending->paths.back().c_str(), gone_version);
  Request(std::move(pending));
}

void Session::MakePersistent(const std::vector<Conversion>& conversions,
                             const std::vector<std::string>& checked, Done<Reply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "MakePersistent";
  pending->done = std::move(done);
  pending->is_write = true;
  pending->commits = true;
  pending->paths = checked;
  for (const Conversion& one : conversions) {
    pending->paths.push_back(one.path);
    pending->data.push_back(one.data);
  }
  // Whoever has read the contender, to ask it to leave or to delete it, names a version of its
  // data. No such request may hit the new znode: its versions begin above all of those.
  const auto skipped = [](const Conversion& one) { return std::min(one.version, kMostSkipped); };
  std::size_t operations = checked.size();
  for (const Conversion& one : conversions) {
    operations += 3 + static_cast<std::size_t>(skipped(one));
  }
  pending->operations.resize(operations);
  pending->results.resize(pending->operations.size());
  zoo_op_t* operation = pending->operations.data();
  for (std::size_t i = 0; i < checked.size(); ++i) {
    zoo_check_op_init(operation++, pending->paths[i].c_str(), -1);
  }
  for (std::size_t i = 0; i < conversions.size(); ++i) {
    const char* const path = pending->paths[checked.size() + i].c_str();
    const std::string& data = pending->data[i];
    zoo_delete_op_init(operation++, path, conversions[i].version);
    zoo_create_op_init(operation++, path, data.data(), static_cast<int>(data.size()),
                       ToAclVector(access_.acl), ZOO_PERSISTENT, nullptr, 0);
    const std::int32_t last = skipped(conversions[i]);
    for (std::int32_t version = 0; version <= last; ++version) {
      const bool is_last = version == last;
      zoo_set_op_init(operation++, path, data.data(), is_last ? static_cast<int>(data.size()) : 0,
                      version, nullptr);
    }
  }
  pending->send = SendMulti;
  Request(std::move(pending));
}

void Session::Sync(const std::string& path, Done<Reply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Sync";
  pending->fields = "s";
  pending->done = std::move(done);
  pending->send = [=](PendingRequest& request, zhandle_t* handle) {
    return zoo_async(handle, path.c_str(), OnSynced, &request);
  };
  Request(std::move(pending));
}

void Session::Check(const std::vector<std::string>& paths, Done<Reply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Check";
  pending->done = std::move(done);
  pending->commits = true;
  pending->paths = paths;
  pending->operations.resize(paths.size());
  pending->results.resize(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    zoo_check_op_init(&pending->operations[i], pending->paths[i].c_str(), -1);
  }
  pending->send = SendMulti;
  Request(std::move(pending));
}

void Session::CheckCreate(const std::string& path, Done<Reply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "CheckCreate";
  pending->done = std::move(done);
  pending->paths = {path};
  pending->operations.resize(2);
  pending->results.resize(2);
  for (zoo_op_t& operation : pending->operations) {
    zoo_create_op_init(&operation, pending->paths[0].c_str(), "", 0, ToAclVector(access_.acl),
                       ZOO_EPHEMERAL, nullptr, 0);
  }
  pending->send = SendMulti;
  Request(std::move(pending));
}

void Session::Stamp(const std::string& path, Done<SetReply> done) {
  auto pending = std::make_unique<PendingRequest>();
  pending->operation = "Stamp";
  pending->done = std::move(done);
  pending->is_write = true;
  pending->commits = true;
  pending->paths = {path};
  pending->operations.resize(3);
  pending->results.resize(3);
  const char* const name = pending->paths[0].c_str();
  // The library has no create2 in a transaction: the write of nothing returns the metadata.
  zoo_create_op_init(&pending->operations[0], name, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
                     nullptr, 0);
  zoo_set_op_init(&pending->operations[1], name, "", 0, -1, &pending->stat);
  zoo_delete_op_init(&pending->operations[2], name, -1);
  pending->send = SendMulti;
  Request(std::move(pending));
}

}  // namespace zklock::zookeeper
