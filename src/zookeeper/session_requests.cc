#include "zookeeper/session_requests.h"

#include <malloc.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "zookeeper/result.h"

namespace zklock::zookeeper {
namespace {

// The memory of a list of at least this many names (two pages) is returned to the kernel.
constexpr int kLongList = 32;

// The maximum number of versions to skip for a converted contender. Anyone who may write to a
// contender can raise its version above this. The new znode then repeats a version of the
// contender, so a request that depends on that version succeeds when it should fail.
constexpr std::int32_t kMostSkipped = 500;

// The pause before a throttled request is sent again. Heartbeats are at least half a second apart.
constexpr Duration kLeastThrottlePause = std::chrono::milliseconds(10);
constexpr Duration kMostThrottlePause = std::chrono::milliseconds(160);

// How many operations CreateAll() needs for each contender; without a scratch znode, it needs one.
constexpr std::size_t kStepsOfCreate = 4;
// Room for the number in the name of a sequential znode, which may be negative, and for the null
// character.
constexpr std::size_t kNumberSpace = 12;

/// Limits a time from a server, which may have any value, to 146 years before or after 1970, so
/// that no difference between two such times overflows a Duration.
std::int64_t ToMilliseconds(std::int64_t time) {
  constexpr auto kLimit =
      std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max()).count() / 2;
  return std::clamp(time, -kLimit, kLimit);
}

NodeStat ToNodeStat(const Stat* stat) {
  if (stat == nullptr) return {};
  return {.created_zxid = stat->czxid,
          .created_ms = ToMilliseconds(stat->ctime),
          .modified_ms = ToMilliseconds(stat->mtime),
          .ephemeral_owner = stat->ephemeralOwner,
          .version = stat->version,
          // DataNode.copyStat: cversion is twice the number of children ever made, minus the number
          // that exist, and overflows.
          .children_made = (static_cast<std::uint32_t>(stat->cversion) +
                            static_cast<std::uint32_t>(stat->numChildren)) /
                           2};
}

/// Returns an ACL in the library's form. The library only reads it.
const ACL_vector* ToAclVector(Acl acl, bool is_shared = false) {
  static char world[] = "world";
  static char anyone[] = "anyone";
  static char auth[] = "auth";
  static char nobody[] = "";
  // The servers replace "auth" with the identities that this connection has proven.
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

/// Returns none if the event does not report a change of a znode.
std::optional<Change> ToChange(int type) {
  if (type == ZOO_CREATED_EVENT) return Change::kCreated;
  if (type == ZOO_DELETED_EVENT) return Change::kDeleted;
  if (type == ZOO_CHANGED_EVENT) return Change::kData;
  if (type == ZOO_CHILD_EVENT) return Change::kChildren;
  return std::nullopt;
}

}  // namespace

/// One request of a Session, from the call to the delivery of the answer. The client library's
/// callbacks get a pointer to it.
struct SessionRequests::Pending {
  enum class State {
    kSent,       ///< the library has it and will pass it to exactly one callback
    kThrottled,  ///< waiting to be sent, for the first time or again
    kAnswered,   ///< `deliver` will be called once all requests before it are answered
  };
  /// `name`: the name of the function; a literal. `expected`: see ReplyCheck::Expect().
  template <typename R>
  Pending(std::string_view name, std::string expected, Done<R> receiver)
      : operation(name), fields(std::move(expected)), done(std::move(receiver)) {}

  State state = State::kThrottled;
  SessionRequests* session = nullptr;
  TimePoint sent{};
  bool commits = false;   // success means that a quorum has committed it
  bool releases = false;  // a WriteAndDelete() that writes and deletes
  bool is_write = false;  // must not be done twice
  std::string_view operation;
  std::string fields;  // of the expected answer
  std::function<int(Pending&, zhandle_t*)> send;
  std::variant<Done<Reply>, Done<CreateReply>, Done<CreateAllReply>, Done<SetReply>, Done<GetReply>,
               Done<ListReply>, Done<AclReply>>
      done;
  std::function<void()> deliver;
  // The library reads and writes these until the answer to a multi arrives.
  std::vector<std::string> paths;
  std::vector<std::string> data;
  std::vector<std::string> created;  // null-terminated paths
  std::vector<zoo_op_t> operations;
  std::vector<zoo_op_result_t> results;
  Stat stat{};

  // The client library's callbacks. `data`: the request.
  static Pending& Of(const void* data) { return *static_cast<Pending*>(const_cast<void*>(data)); }
  template <typename R>
  static void Complete(const void* data, int result, R reply) {
    Of(data).session->Complete(Of(data), result, std::move(reply));
  }

  static void OnCreated(int result, const char* path, const ::Stat* stat, const void* data) {
    CreateReply reply;
    if (result == ZOK && path != nullptr) reply.path = path;
    if (result == ZOK) reply.stat = ToNodeStat(stat);
    Complete(data, result, std::move(reply));
  }

  static void OnGot(int result, const char* value, int size, const ::Stat* stat, const void* data) {
    GetReply reply;
    if (result == ZOK && value != nullptr && size > 0) {
      reply.data.assign(value, static_cast<std::size_t>(size));
    }
    if (result == ZOK) reply.stat = ToNodeStat(stat);
    Complete(data, result, std::move(reply));
  }

  static void OnGotAcl(int result, ::ACL_vector* acl, ::Stat* /*stat*/, const void* data) {
    AclReply reply;
    if (result == ZOK && acl != nullptr) {
      for (int i = 0; i < acl->count; ++i) {
        const ACL& entry = acl->data[i];
        reply.entries.push_back(
            {entry.id.scheme, entry.id.id, static_cast<unsigned>(entry.perms & ZOO_PERM_ALL)});
      }
    }
    Complete(data, result, std::move(reply));
  }

  static void OnListed(int result, const ::String_vector* names, const void* data) {
    ListReply reply;
    if (result == ZOK && names != nullptr) {
      std::size_t bytes = 0;
      for (int i = 0; i < names->count; ++i) bytes += std::strlen(names->data[i]);
      reply.children.Reserve(static_cast<std::size_t>(names->count), bytes);
      for (int i = 0; i < names->count; ++i) reply.children.Add(names->data[i]);
      if (names->count >= kLongList) Of(data).session->holds_garbage_ = true;
    }
    Complete(data, result, std::move(reply));
  }

  static void OnSet(int result, const ::Stat* stat, const void* data) {
    SetReply reply;
    if (result == ZOK) reply.stat = ToNodeStat(stat);
    Complete(data, result, reply);
  }

  static void OnExists(int result, const ::Stat* /*stat*/, const void* data) {
    OnDone(result, data);
  }

  static void OnDone(int result, const void* data) { Complete(data, result, Reply{}); }

  static void OnSynced(int result, const char* /*path*/, const void* data) { OnDone(result, data); }

  static void OnStamped(int result, const void* data) {
    SetReply reply;
    if (result == ZOK) reply.stat = ToNodeStat(&Of(data).stat);
    Complete(data, result, reply);
  }

  static void OnAllCreated(int result, const void* data) {
    const Pending& request = Of(data);
    CreateAllReply reply;
    if (result == ZOK) {
      reply.stat = ToNodeStat(&request.stat);
      for (const std::string& path : request.created) reply.paths.emplace_back(path.c_str());
    } else {
      const auto failed = std::find_if(
          request.results.begin(), request.results.end(),
          [](const auto& one) { return one.err != ZOK && one.err != ZRUNTIMEINCONSISTENCY; });
      const auto before = static_cast<std::size_t>(failed - request.results.begin());
      const std::size_t steps = request.operations.size() / request.created.size();
      reply.failed = std::min(before / steps, request.created.size() - 1);
      reply.may_not_delete = steps > 1 && before % steps == steps - 1;
    }
    Complete(data, result, std::move(reply));
  }

  static void OnWatchEvent(zhandle_t* /*handle*/, int type, int /*state*/, const char* path,
                           void* self) {
    // The library also reports the connection's end to every watcher; zklock reports that once,
    // elsewhere.
    const std::optional<Change> change = ToChange(type);
    if (!change || path == nullptr) return;
    auto* session = static_cast<SessionRequests*>(self);
    session->ready_.emplace_back([session, path = std::string(path), change = *change] {
      if (session->listener_ != nullptr) session->listener_->OnWatch(path, change);
    });
  }

  /// Makes this request a transaction of `count` operations.
  void SetOperations(std::size_t count) {
    operations.resize(count);
    results.resize(count);
    send = SendMulti;
  }

  /// Makes this request a transaction that begins with `writes` and has room for `more` operations.
  void SetWrites(const std::vector<DataWrite>& writes, std::size_t more) {
    is_write = true;
    SetOperations(writes.size() + more);
    paths.reserve(operations.size());
    for (const DataWrite& one : writes) {
      paths.push_back(one.path);
      data.push_back(one.data);
    }
    for (std::size_t i = 0; i < writes.size(); ++i) {
      zoo_set_op_init(&operations[i], paths[i].c_str(), data[i].data(),
                      static_cast<int>(data[i].size()), writes[i].version, nullptr);
    }
  }

  static int SendMulti(Pending& request, zhandle_t* handle) {
    request.fields = "m";
    for (const zoo_op_t& one : request.operations) {
      request.fields += one.type == ZOO_CREATE_OP ? 's' : one.type == ZOO_SETDATA_OP ? 'S' : '-';
    }
    const bool is_stamp = std::holds_alternative<Done<SetReply>>(request.done);
    const auto completion = is_stamp ? OnStamped : request.created.empty() ? OnDone : OnAllCreated;
    return zoo_amulti(handle, static_cast<int>(request.operations.size()),
                      request.operations.data(), request.results.data(), completion, &request);
  }
};

SessionRequests::SessionRequests(const Clock& clock, Duration timeout, Access access)
    : clock_(clock), access_(std::move(access)), lease_(timeout) {}

SessionRequests::~SessionRequests() = default;

void SessionRequests::Request(std::unique_ptr<Pending> pending) {
  pending->session = this;
  pending->sent = clock_.Now();
  const bool waits = IsThrottled();
  pipeline_.push_back(std::move(pending));
  if (!IsConnected()) {
    AnswerLost(*pipeline_.back());
    TakeAnswers();
  } else if (!waits) {
    Send(*pipeline_.back());
  }
}

void SessionRequests::Send(Pending& pending) {
  pending.sent = clock_.Now();
  pending.state = Pending::State::kSent;
  connection()->HoldBack();
  const bool is_sent = pending.send(pending, connection()->handle()) == ZOK;
  // All requests of one wake-up are sent in one segment, and a release is sent with the close.
  if (!delivering_ && !pending.releases) connection()->SendNow();
  if (is_sent) return connection()->Expect(pending.fields);
  AnswerLost(pending);
  TakeAnswers();
}

template <typename R>
void SessionRequests::Complete(Pending& pending, int result, R reply) {
  const Error error = ToError(result);
  OnReply(pending.operation, error, IsAnswer(result), pending.commits);
  if (error == Error::kThrottled) {
    pending.state = Pending::State::kThrottled;
    throttle_pause_ = std::clamp(2 * throttle_pause_, kLeastThrottlePause, kMostThrottlePause);
    send_again_at_ = clock_.Now() + throttle_pause_;
    return;  // such an answer proves nothing about the session
  }
  if (error == Error::kNone && pending.commits) {
    lease_.Committed(pending.sent, clock_.Now());
  } else if (IsAnswer(result)) {
    lease_.Answered(pending.sent, clock_.Now());
  }
  if (IsAnswer(result) && IsBehindThrottled(pending)) {
    if (!pending.is_write || error != Error::kNone) {
      pending.state = Pending::State::kThrottled;
      return;
    }
  } else {
    throttle_pause_ = {};
    if (IsAnswer(result)) OnServed();
  }
  reply.error = error;
  reply.sent = pending.sent;
  Answer(pending, std::move(reply));
  TakeAnswers();
}

template <typename R>
void SessionRequests::Answer(Pending& pending, R reply) {
  pending.state = Pending::State::kAnswered;
  pending.deliver = [done = std::move(std::get<Done<R>>(pending.done)), reply = std::move(reply)] {
    done(reply);
  };
}

void SessionRequests::AnswerLost(Pending& pending) {
  std::visit(
      [&]<typename R>(const Done<R>& /*done*/) {
        R reply;
        reply.error = Error::kConnectionLoss;
        reply.sent = pending.sent;
        Answer(pending, std::move(reply));
      },
      pending.done);
}

void SessionRequests::AnswerAllLost() {
  for (const auto& pending : pipeline_) {
    if (pending->state != Pending::State::kAnswered) AnswerLost(*pending);
  }
  TakeAnswers();
  throttle_pause_ = {};
}

void SessionRequests::TakeAnswers() {
  while (!pipeline_.empty() && pipeline_.front()->state == Pending::State::kAnswered) {
    ready_.push_back(std::move(pipeline_.front()->deliver));
    pipeline_.pop_front();
  }
}

bool SessionRequests::IsBehindThrottled(const Pending& pending) const {
  for (const auto& before : pipeline_) {
    if (before.get() == &pending) return false;
    if (before->state == Pending::State::kThrottled) return true;
  }
  return false;
}

bool SessionRequests::IsThrottled() const {
  return std::any_of(pipeline_.begin(), pipeline_.end(), [](const auto& pending) {
    return pending->state == Pending::State::kThrottled;
  });
}

TimePoint SessionRequests::NextSend() const {
  // If a request is in progress, its callback runs first.
  const bool is_in_progress =
      std::any_of(pipeline_.begin(), pipeline_.end(),
                  [](const auto& pending) { return pending->state == Pending::State::kSent; });
  return is_in_progress || !IsThrottled() ? kNever : send_again_at_;
}

void SessionRequests::SendThrottled(TimePoint now) {
  if (now < NextSend()) return;
  // One at a time: a server that throttles several requests may accept a single one.
  Send(**std::find_if(pipeline_.begin(), pipeline_.end(), [](const auto& pending) {
    return pending->state == Pending::State::kThrottled;
  }));
}

void SessionRequests::Clear() {
  pipeline_.clear();
  ready_.clear();
}

void SessionRequests::Deliver() {
  delivering_ = true;
  while (!ready_.empty()) {
    const std::function<void()> next = std::move(ready_.front());
    ready_.pop_front();
    next();
  }
  delivering_ = false;
  if (connection() != nullptr) connection()->SendNow();
  if (!holds_garbage_ || !pipeline_.empty()) return;
  // The library allocates each name in a list separately, and the allocator would keep all that
  // memory during a wait that may last hours. While the list is in use, the pipeline is not empty.
  holds_garbage_ = false;
  malloc_trim(0);
}

std::vector<bool> SessionRequests::UnansweredReleases() const {
  std::vector<bool> releases;
  for (const auto& pending : pipeline_) {
    if (pending->state == Pending::State::kSent) releases.push_back(pending->releases);
  }
  return releases;
}

void SessionRequests::Create(const std::string& path, const std::string& data, NodeKind kind,
                             Done<CreateReply> done) {
  auto pending = std::make_unique<Pending>("Create", "sS", std::move(done));
  pending->is_write = true;
  pending->commits = true;
  pending->send = [=, this](Pending& request, zhandle_t* handle) {
    return zoo_acreate2(handle, path.c_str(), data.data(), static_cast<int>(data.size()),
                        ToAclVector(access_.acl, IsShared(kind)), CreateMode(kind),
                        Pending::OnCreated, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::CreateAll(const std::vector<NewContender>& contenders,
                                const std::string& scratch, Done<CreateAllReply> done) {
  auto pending = std::make_unique<Pending>("CreateAll", "", std::move(done));
  pending->is_write = true;
  pending->commits = true;
  for (const NewContender& one : contenders) {
    pending->paths.push_back(one.parent + "/" + one.prefix);
    pending->paths.push_back(one.parent + "/" + scratch);
    pending->data.push_back(one.data);
    pending->created.emplace_back(pending->paths[pending->paths.size() - 2].size() + kNumberSpace,
                                  '\0');
  }
  pending->SetOperations(contenders.size() * (scratch.empty() ? 1 : kStepsOfCreate));
  zoo_op_t* operation = pending->operations.data();
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const char* const path = pending->paths[2 * i].c_str();
    const char* const other = pending->paths[2 * i + 1].c_str();
    const std::string& data = pending->data[i];
    std::string& created = pending->created[i];
    zoo_create_op_init(operation++, path, data.data(), static_cast<int>(data.size()),
                       ToAclVector(access_.acl), ZOO_EPHEMERAL_SEQUENTIAL, created.data(),
                       static_cast<int>(created.size()));
    if (scratch.empty()) continue;
    // As in Stamp(). All znodes of one transaction have the same metadata.
    zoo_create_op_init(operation++, other, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, nullptr, 0);
    zoo_set_op_init(operation++, other, "", 0, -1, &pending->stat);
    zoo_delete_op_init(operation++, other, -1);
  }
  Request(std::move(pending));
}

void SessionRequests::Get(const std::string& path, Watch watch, Done<GetReply> done) {
  auto pending = std::make_unique<Pending>("Get", "bS", std::move(done));
  pending->send = [=, this](Pending& request, zhandle_t* handle) {
    return zoo_awget(handle, path.c_str(), watch == Watch::kYes ? Pending::OnWatchEvent : nullptr,
                     this, Pending::OnGot, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::GetAcl(const std::string& path, Done<AclReply> done) {
  auto pending = std::make_unique<Pending>("GetAcl", "aS", std::move(done));
  pending->send = [=](Pending& request, zhandle_t* handle) {
    return zoo_aget_acl(handle, path.c_str(), Pending::OnGotAcl, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::List(const std::string& path, Watch watch, Done<ListReply> done) {
  auto pending = std::make_unique<Pending>("List", "v", std::move(done));
  pending->send = [=, this](Pending& request, zhandle_t* handle) {
    return zoo_awget_children(handle, path.c_str(),
                              watch == Watch::kYes ? Pending::OnWatchEvent : nullptr, this,
                              Pending::OnListed, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::Exists(const std::string& path, Watch watch, Done<Reply> done) {
  auto pending = std::make_unique<Pending>("Exists", "S", std::move(done));
  pending->send = [=, this](Pending& request, zhandle_t* handle) {
    return zoo_awexists(handle, path.c_str(),
                        watch == Watch::kYes ? Pending::OnWatchEvent : nullptr, this,
                        Pending::OnExists, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::Delete(const std::string& path, std::int32_t version, Done<Reply> done) {
  auto pending = std::make_unique<Pending>("Delete", "", std::move(done));
  pending->is_write = true;
  pending->send = [=](Pending& request, zhandle_t* handle) {
    return zoo_adelete(handle, path.c_str(), version, Pending::OnDone, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::Set(const std::string& path, const std::string& data, std::int32_t version,
                          Done<SetReply> done) {
  auto pending = std::make_unique<Pending>("Set", "S", std::move(done));
  pending->is_write = true;
  pending->commits = true;
  pending->send = [=](Pending& request, zhandle_t* handle) {
    return zoo_aset(handle, path.c_str(), data.data(), static_cast<int>(data.size()), version,
                    Pending::OnSet, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::WriteAndDelete(const std::vector<DataWrite>& writes,
                                     const std::vector<std::string>& gone,
                                     std::int32_t gone_version, Done<Reply> done) {
  auto pending = std::make_unique<Pending>("WriteAndDelete", "", std::move(done));
  pending->SetWrites(writes, gone.size());
  pending->releases = !writes.empty() && !gone.empty();
  pending->paths.insert(pending->paths.end(), gone.begin(), gone.end());
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const std::size_t at = writes.size() + i;
    zoo_delete_op_init(&pending->operations[at], pending->paths[at].c_str(),
                       i == 0 ? gone_version : kAnyVersion);
  }
  Request(std::move(pending));
}

void SessionRequests::MakePersistent(const std::vector<Conversion>& conversions,
                                     const std::vector<std::string>& checked,
                                     const std::vector<std::string>& deleted, Done<Reply> done) {
  auto pending = std::make_unique<Pending>("MakePersistent", "", std::move(done));
  pending->is_write = true;
  pending->commits = true;
  pending->paths = checked;
  for (const Conversion& one : conversions) {
    pending->paths.push_back(one.path);
    pending->data.push_back(one.data);
  }
  pending->paths.insert(pending->paths.end(), deleted.begin(), deleted.end());
  // A process that has read the contender, to ask it to leave or to delete it, names a version of
  // the contender's data. No such request may hit the new znode, so its version begins above those.
  const auto skipped = [](const Conversion& one) { return std::min(one.version, kMostSkipped); };
  std::size_t operations = checked.size() + deleted.size();
  for (const Conversion& one : conversions) {
    operations += 3 + static_cast<std::size_t>(skipped(one));
  }
  pending->SetOperations(operations);
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
  const std::size_t first_deleted = checked.size() + conversions.size();
  for (std::size_t i = first_deleted; i < pending->paths.size(); ++i) {
    zoo_delete_op_init(operation++, pending->paths[i].c_str(), kAnyVersion);
  }
  Request(std::move(pending));
}

void SessionRequests::Sync(const std::string& path, Done<Reply> done) {
  auto pending = std::make_unique<Pending>("Sync", "s", std::move(done));
  pending->send = [=](Pending& request, zhandle_t* handle) {
    return zoo_async(handle, path.c_str(), Pending::OnSynced, &request);
  };
  Request(std::move(pending));
}

void SessionRequests::Check(const std::vector<std::string>& paths, Done<Reply> done) {
  auto pending = std::make_unique<Pending>("Check", "", std::move(done));
  pending->commits = true;
  pending->paths = paths;
  pending->SetOperations(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    zoo_check_op_init(&pending->operations[i], pending->paths[i].c_str(), -1);
  }
  Request(std::move(pending));
}

void SessionRequests::CheckCreate(const std::string& path, const std::string& data, bool and_delete,
                                  Done<Reply> done) {
  auto pending = std::make_unique<Pending>("CheckCreate", "", std::move(done));
  pending->paths = {path};
  const std::string& kept = pending->data.emplace_back(data);
  pending->SetOperations(and_delete ? 4 : 2);
  const char* const name = pending->paths[0].c_str();
  for (zoo_op_t& operation : pending->operations) {
    const bool is_first = &operation == &pending->operations[0];
    zoo_create_op_init(&operation, name, kept.data(), is_first ? static_cast<int>(kept.size()) : 0,
                       ToAclVector(access_.acl), ZOO_EPHEMERAL, nullptr, 0);
  }
  if (and_delete) zoo_delete_op_init(&pending->operations[1], name, -1);
  Request(std::move(pending));
}

void SessionRequests::Stamp(const std::string& path, Done<SetReply> done) {
  auto pending = std::make_unique<Pending>("Stamp", "", std::move(done));
  pending->is_write = true;
  pending->commits = true;
  pending->paths = {path};
  pending->SetOperations(3);
  const char* const name = pending->paths[0].c_str();
  // The library has no create2 in a transaction; an empty write returns the metadata instead.
  zoo_create_op_init(&pending->operations[0], name, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
                     nullptr, 0);
  zoo_set_op_init(&pending->operations[1], name, "", 0, -1, &pending->stat);
  zoo_delete_op_init(&pending->operations[2], name, -1);
  Request(std::move(pending));
}

}  // namespace zklock::zookeeper
