#include <zookeeper/zookeeper.h>

#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "zookeeper/session.h"

// The Store half of Session: from a call to the client library, and from its C callbacks to an
// answer. Nothing is delivered inside the library: exceptions must not pass through its frames, and
// a callback may want the connection closed.

namespace zklock::zookeeper {
namespace {

// From so many names on the memory that a list took is given back to the kernel: some 200 KiB.
constexpr int kLongList = 1000;

/// True for a result that the client library made up: no server has answered.
bool IsLibraryResult(int result) {
  switch (result) {
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
    case ZINVALIDSTATE:
    case ZSESSIONEXPIRED:
    case ZRUNTIMEINCONSISTENCY:
    case ZMARSHALLINGERROR:
    case ZSYSTEMERROR:
    case ZAUTHFAILED:  // what it gives to all that is outstanding when the credentials are refused
      return true;
    default:
      return false;
  }
}

Error ToError(int result) {
  switch (result) {
    case ZOK:
      return Error::kNone;
    case ZNONODE:
      return Error::kNoNode;
    case ZNODEEXISTS:
      return Error::kNodeExists;
    case ZNOAUTH:
      return Error::kNoAuth;
    case ZAUTHFAILED:
      return Error::kAuthFailed;
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
      return Error::kAuthRequired;
    case ZINVALIDACL:
      return Error::kInvalidAcl;
    case ZNOCHILDRENFOREPHEMERALS:
      return Error::kNoChildrenForEphemerals;
    case ZEPHEMERALONLOCALSESSION:
      return Error::kLocalSession;
    case ZNOTEMPTY:
      return Error::kNotEmpty;
    case ZBADVERSION:
      return Error::kBadVersion;
    case ZUNIMPLEMENTED:
      return Error::kUnimplemented;
    // The request was not done, but saying "lost" is as safe, and the cure is the same: reconnect.
    case ZSESSIONMOVED:
      return Error::kConnectionLoss;
    default:
      return IsLibraryResult(result) ? Error::kConnectionLoss : Error::kOther;
  }
}

NodeStat ToNodeStat(const Stat* stat) {
  if (stat == nullptr) return {};
  return {.created_zxid = stat->czxid,
          .created_ms = stat->ctime,
          .modified_ms = stat->mtime,
          .ephemeral_owner = stat->ephemeralOwner,
          .version = stat->version};
}

/// What the library takes for an ACL; it only reads it.
const ACL_vector* ToAclVector(Acl acl) {
  static char world[] = "world";
  static char anyone[] = "anyone";
  static char auth[] = "auth";
  static char nobody[] = "";
  // "auth" is put in by the servers: everybody this connection's credentials stand for.
  static ACL creator_and_readers[] = {{ZOO_PERM_ALL, {auth, nobody}},
                                      {ZOO_PERM_READ, {world, anyone}}};
  static const ACL_vector kCreator{2, creator_and_readers};
  return acl == Acl::kCreator ? &kCreator : &ZOO_OPEN_ACL_UNSAFE;
}

int CreateMode(NodeKind kind) {
  switch (kind) {
    case NodeKind::kContainer:
      return ZOO_CONTAINER;
    case NodeKind::kPersistent:
      return ZOO_PERSISTENT;
    case NodeKind::kEphemeral:
      return ZOO_EPHEMERAL;
    case NodeKind::kEphemeralSequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
  }
  return ZOO_EPHEMERAL_SEQUENTIAL;
}

}  // namespace

struct Session::Pending {
  Session* session = nullptr;
  TimePoint sent{};
  bool commits = false;   // answered with success it has gone through a quorum
  bool releases = false;  // a WriteAndDelete()
  std::variant<Done<Reply>, Done<CreateReply>, Done<GetReply>, Done<ListReply>> done;
  // The library reads and writes these until the answer to a multi comes.
  std::vector<std::string> paths;
  std::string data;
  std::vector<zoo_op_t> operations;
  std::vector<zoo_op_result_t> results;
};

template <typename Send>
void Session::Request(std::unique_ptr<Pending> pending, Send send) {
  pending->session = this;
  pending->sent = clock_.Now();
  if (phase_ == Phase::kConnected) {
    connection_->HoldBack();
    // From here on the library owns it, and gives it back to exactly one completion.
    Pending* raw = pending.release();
    const bool is_sent = send(*raw, connection_->handle()) == ZOK;
    // What one wake-up asks for leaves in one segment, and a release with the close.
    if (!delivering_ && !raw->releases) connection_->SendNow();
    if (is_sent) return asked_.push_back(raw->releases);
    pending.reset(raw);
  }
  std::visit(
      [&]<typename R>(Done<R>& done) {
        R reply;
        reply.error = Error::kConnectionLoss;
        reply.sent = pending->sent;
        ready_.emplace_back([done = std::move(done), reply = std::move(reply)] { done(reply); });
      },
      pending->done);
}

template <typename R>
void Session::Complete(Pending& pending, int result, R reply) {
  asked_.pop_front();  // the servers answer in order, and so does the library for those cut off
  if (result == ZSESSIONMOVED) give_up_ = true;
  if (result == ZSESSIONCLOSEDREQUIRESASLAUTH) auth_required_ = true;
  if (result == ZOK && pending.commits) {
    lease_.Committed(pending.sent, clock_.Now());
  } else if (!IsLibraryResult(result) && result != ZSESSIONMOVED) {
    lease_.Answered(pending.sent, clock_.Now());
  }
  reply.error = ToError(result);
  reply.sent = pending.sent;
  ready_.emplace_back([done = std::move(std::get<Done<R>>(pending.done)),
                       reply = std::move(reply)] { done(reply); });
}

void Session::OnCreated(int result, const char* path, const ::Stat* stat, const void* data) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(const_cast<void*>(data)));
  CreateReply reply;
  if (result == ZOK && path != nullptr) reply.path = path;
  if (result == ZOK) reply.stat = ToNodeStat(stat);
  pending->session->Complete(*pending, result, std::move(reply));
}

void Session::OnGot(int result, const char* value, int size, const ::Stat* stat, const void* data) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(const_cast<void*>(data)));
  GetReply reply;
  if (result == ZOK && value != nullptr && size > 0) {
    reply.data.assign(value, static_cast<std::size_t>(size));
  }
  if (result == ZOK) reply.stat = ToNodeStat(stat);
  pending->session->Complete(*pending, result, std::move(reply));
}

void Session::OnListed(int result, const ::String_vector* names, const void* data) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(const_cast<void*>(data)));
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

void Session::OnSet(int result, const ::Stat* /*stat*/, const void* data) { OnDone(result, data); }

void Session::OnExists(int result, const ::Stat* /*stat*/, const void* data) {
  OnDone(result, data);
}

void Session::OnDone(int result, const void* data) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(const_cast<void*>(data)));
  pending->session->Complete(*pending, result, Reply{});
}

void Session::OnSynced(int result, const char* /*path*/, const void* data) { OnDone(result, data); }

void Session::OnWatchEvent(zhandle_t* /*handle*/, int type, int /*state*/, const char* path,
                           void* self) {
  // The library also tells every watcher of the connection's end; that is told once, elsewhere.
  if (type == ZOO_SESSION_EVENT || path == nullptr) return;
  auto* session = static_cast<Session*>(self);
  session->ready_.emplace_back([session, path = std::string(path)] {
    if (session->listener_ != nullptr) session->listener_->OnWatch(path);
  });
}

int Session::SendMulti(Pending& request, zhandle_t* handle) {
  return zoo_amulti(handle, static_cast<int>(request.operations.size()), request.operations.data(),
                    request.results.data(), OnDone, &request);
}

void Session::Create(const std::string& path, const std::string& data, NodeKind kind,
                     Done<CreateReply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  pending->commits = true;
  Request(std::move(pending), [&](Pending& request, zhandle_t* handle) {
    return zoo_acreate2(handle, path.c_str(), data.data(), static_cast<int>(data.size()),
                        ToAclVector(access_.acl), CreateMode(kind), OnCreated, &request);
  });
}

void Session::Get(const std::string& path, Watch watch, Done<GetReply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  Request(std::move(pending), [&](Pending& request, zhandle_t* handle) {
    return zoo_awget(handle, path.c_str(), watch == Watch::kYes ? OnWatchEvent : nullptr, this,
                     OnGot, &request);
  });
}

void Session::List(const std::string& path, Watch watch, Done<ListReply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  Request(std::move(pending), [&](Pending& request, zhandle_t* handle) {
    return zoo_awget_children(handle, path.c_str(), watch == Watch::kYes ? OnWatchEvent : nullptr,
                              this, OnListed, &request);
  });
}

void Session::Exists(const std::string& path, Watch watch, Done<Reply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  Request(std::move(pending), [&](Pending& request, zhandle_t* handle) {
    return zoo_awexists(handle, path.c_str(), watch == Watch::kYes ? OnWatchEvent : nullptr, this,
                        OnExists, &request);
  });
}

void Session::Delete(const std::string& path, std::int32_t version, Done<Reply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  Request(std::move(pending), [&](Pending& request, zhandle_t* handle) {
    return zoo_adelete(handle, path.c_str(), version, OnDone, &request);
  });
}

void Session::Set(const std::string& path, const std::string& data, std::int32_t version,
                  Done<Reply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  pending->commits = true;
  Request(std::move(pending), [&](Pending& request, zhandle_t* handle) {
    return zoo_aset(handle, path.c_str(), data.data(), static_cast<int>(data.size()), version,
                    OnSet, &request);
  });
}

void Session::WriteAndDelete(const std::string& path, const std::string& data, std::int32_t version,
                             const std::string& gone, Done<Reply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  pending->releases = true;
  pending->paths = {path, gone};
  pending->data = data;
  pending->operations.resize(2);
  pending->results.resize(2);
  zoo_set_op_init(&pending->operations[0], pending->paths[0].c_str(), pending->data.data(),
                  static_cast<int>(pending->data.size()), version, nullptr);
  zoo_delete_op_init(&pending->operations[1], pending->paths[1].c_str(), -1);
  Request(std::move(pending), SendMulti);
}

void Session::Sync(const std::string& path, Done<Reply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  Request(std::move(pending), [&](Pending& request, zhandle_t* handle) {
    return zoo_async(handle, path.c_str(), OnSynced, &request);
  });
}

void Session::Check(const std::vector<std::string>& paths, Done<Reply> done) {
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  pending->commits = true;
  pending->paths = paths;
  pending->operations.resize(paths.size());
  pending->results.resize(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    zoo_check_op_init(&pending->operations[i], pending->paths[i].c_str(), -1);
  }
  Request(std::move(pending), SendMulti);
}

}  // namespace zklock::zookeeper
