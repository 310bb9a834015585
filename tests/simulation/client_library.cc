#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <zookeeper/proto.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "simulation/ensemble.h"
#include "simulation/process.h"

// The 23 functions of the single-threaded client library that src/zookeeper calls, over simulated
// servers. They are linked in place of the library's. If one were missing, the linker would take it
// from the library and report duplicates of all the others.
//
// A connection has a socket, because src/zookeeper reads from it: the first bytes of the handshake
// and, once it has taken the socket from the library to close the session, the heads of the
// replies. Each message arrives as a frame of 24 bytes, the head of a reply, with its content in
// `inbox`. The descriptors of these sockets and their system calls are simulated too: the real ones
// took a third of the time.

namespace zklock::simulation {

Ensemble* ensemble = nullptr;

namespace {

struct Accepted {
  std::int64_t session;
  int timeout_ms;
};
struct Watched {
  int type;
  std::string path;
};
using Arrival = std::variant<Accepted, Reply, Watched>;

constexpr std::size_t kFrame = 24;
constexpr std::int32_t kWatchXid = -1;
constexpr std::int32_t kPingXid = -2;
constexpr std::int32_t kCloseSession = -11;

void Put32(char* to, std::int32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(value >> (24 - 8 * i));
}

std::int32_t Get32(const char* from) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(from[i]);
  return static_cast<std::int32_t>(value);
}

/// A connection's socket. It outlives the library's handle while src/ still reads from it.
class Socket final : public Client {
 public:
  explicit Socket(Process* owner) : owner_(owner) {}
  ~Socket() override { HangUp(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void OnConnected() override {
    is_connected = true;
    owner_->Wake();
  }
  void OnRefused() override {
    error = ECONNREFUSED;
    OnConnected();
  }
  void OnAccepted(std::int64_t session, int timeout_ms) override {
    // A ConnectResponse: its length, and protocol version 0.
    Arrive(37, 0, 0, 0, Accepted{session, timeout_ms});
  }
  void OnReply(const Reply& reply) override {
    // A failed multi reports its error in its results.
    const bool in_results = reply.is_multi && reply.error != ZTHROTTLEDOP;
    Arrive(kFrame - 4, reply.xid, in_results ? 0 : reply.error,
           in_results && reply.error != 0 ? -1 : 1, reply);
  }
  void OnWatch(int type, const std::string& path) override {
    Arrive(kFrame - 4, kWatchXid, 0, 0, Watched{type, path});
  }
  void OnClosed() override {
    is_closed = true;
    connection.reset();
    owner_->Wake();
  }
  void Send(Request request) {
    ++owner_->requests;
    if (connection != nullptr && !owner_->is_killed()) {
      ensemble->Send(connection, std::move(request));
    }
  }

  void HangUp() {
    if (connection == nullptr) return;
    // Data still in a socket when it is closed may arrive much later, or never.
    const bool is_cut = ensemble->network().IsCut(owner_->place(), connection->server);
    ensemble->HangUp(connection, is_cut && world->random.Chance(0.5));
    connection.reset();
  }
  /// Sends the close of the session, if src/ has written it. Call this when src/ has taken the
  /// socket from the library.
  void TakeClose() {
    if (sent.size() == 12 && Get32(sent.data() + 8) == kCloseSession) {
      return Send({.kind = Request::Kind::kCloseSession, .xid = Get32(sent.data() + 4), .ops = {}});
    }
    HangUp();
  }

  int near = -1;        ///< the descriptor that the library gives out
  int descriptors = 0;  ///< how many refer to it
  bool is_connected = false;
  bool is_closed = false;  ///< by the server
  int error = 0;
  std::string received;  ///< frames that nobody has read
  std::string sent;      ///< by src/ itself
  std::shared_ptr<Connection> connection;
  std::deque<Arrival> inbox;

 private:
  void Arrive(std::int32_t length, std::int32_t xid, std::int32_t error_code, std::int32_t type,
              Arrival arrival) {
    std::array<char, kFrame> frame{};
    Put32(frame.data(), length);
    Put32(frame.data() + 4, xid);
    Put32(frame.data() + 16, error_code);
    Put32(frame.data() + 20, type);
    inbox.push_back(std::move(arrival));
    if (descriptors == 0) return HangUp();  // nothing reads from it any longer
    received.append(frame.data(), frame.size());
    owner_->Wake();
  }

  Process* owner_;
};

struct Completion {
  std::int32_t xid;
  std::function<void(const Reply&)> done;
  std::string path;
  std::set<std::string>* watchers = nullptr;  // where a success sets a watch
};

constexpr int kFirstDescriptor = 1 << 20;  // no real one is as large
int next_descriptor = kFirstDescriptor;
std::map<int, std::shared_ptr<Socket>> descriptors;  // null: a socket that was never connected
std::deque<std::shared_ptr<Socket>> sockets;         // kept while the servers may refer to them

int OpenDescriptor(const std::shared_ptr<Socket>& socket) {
  descriptors[next_descriptor] = socket;
  if (socket != nullptr) ++socket->descriptors;
  return next_descriptor++;
}

void CloseDescriptor(int fd) {
  const auto socket = std::move(descriptors.at(fd));
  descriptors.erase(fd);
  if (socket != nullptr) --socket->descriptors;
}

}  // namespace

zookeeper::Endpoint EndpointOf(int server) {
  const std::string address = "10.0.0." + std::to_string(server) + ":2181";
  return {address, address};
}

short ReadyEvents(int fd, short asked) {
  const auto found = descriptors.find(fd);
  if (found == descriptors.end() || found->second == nullptr) return 0;
  const Socket& socket = *found->second;
  int ready = 0;
  if (!socket.received.empty() || socket.is_closed) ready |= POLLIN;
  if (socket.is_connected) ready |= socket.is_closed ? POLLOUT | POLLHUP : POLLOUT;
  return static_cast<short>(ready & (asked | POLLHUP));
}

void CloseAllSockets() {
  sockets.clear();
  descriptors.clear();
}

}  // namespace zklock::simulation

namespace sim = zklock::simulation;
using sim::Completion;
using sim::OpType;
using sim::Reply;
using sim::Request;
using sim::Time;
using sim::world;

struct _zhandle {
  sim::Process* process = sim::Process::Current();
  int server = 0;
  watcher_fn watcher = nullptr;  // src/ uses the same one for all watches
  void* context = nullptr;
  int state = ZOO_NOTCONNECTED_STATE;
  int timeout_ms = 0;
  clientid_t id{};
  std::shared_ptr<sim::Socket> socket;
  Time last_received = 0;
  Time last_sent = 0;
  std::int32_t next_xid = 1;
  std::deque<Completion> outstanding;
  std::set<std::string> data_watchers;
  std::set<std::string> child_watchers;

  void Complete(int error) {
    for (Completion& one : std::exchange(outstanding, {})) one.done(Reply{.error = error});
  }
  int Fail(int result, int error) {
    state = ZOO_NOTCONNECTED_STATE;
    if (socket != nullptr) {
      socket->HangUp();
      sim::CloseDescriptor(socket->near);
      socket.reset();
    }
    errno = error;
    return result;
  }
  int Send(Request request, std::function<void(const Reply&)> done,
           std::set<std::string>* watchers = nullptr) {
    if (state != ZOO_CONNECTED_STATE) return ZINVALIDSTATE;
    request.xid = next_xid++;
    outstanding.push_back({request.xid, std::move(done), request.ops.front().path, watchers});
    last_sent = world->now();
    socket->Send(std::move(request));
    return ZOK;
  }
  int Write(std::vector<sim::Op> ops, std::function<void(const Reply&)> done,
            bool is_multi = false) {
    return Send(
        {.kind = Request::Kind::kWrite, .xid = 0, .ops = std::move(ops), .is_multi = is_multi},
        std::move(done));
  }
  int Read(Request::Kind kind, const char* path, watcher_fn watch, void* its_context,
           std::function<void(const Reply&)> done) {
    Request request{.kind = kind,
                    .xid = 0,
                    .ops = {{.type = OpType::kCheck, .path = path}},
                    .watches = watch != nullptr};
    if (watch == nullptr) return Send(std::move(request), std::move(done));
    watcher = watch;
    context = its_context;
    // Sets the watch whether or not the znode exists.
    if (kind == Request::Kind::kExists) data_watchers.insert(path);
    auto* const watchers = kind == Request::Kind::kGet    ? &data_watchers
                           : kind == Request::Kind::kList ? &child_watchers
                                                          : nullptr;
    return Send(std::move(request), std::move(done), watchers);
  }
  void Receive(const sim::Accepted& accepted);
  void Receive(const Reply& reply);
  void Receive(const sim::Watched& watched);
};

void _zhandle::Receive(const sim::Accepted& accepted) {
  ++process->requests;  // an answered connect counts as a request, too
  if (accepted.session == 0) {
    state = ZOO_EXPIRED_SESSION_STATE;
    return;
  }
  id.client_id = accepted.session;
  std::memcpy(id.passwd, "a secret of 16 b", sizeof id.passwd);
  timeout_ms = accepted.timeout_ms;
  auto& unknown = sim::ensemble->unknown_grants;
  if (const auto one = unknown.find(id.client_id); one != unknown.end()) {
    if (timeout_ms <= one->second) unknown.erase(one);
  }
  state = ZOO_CONNECTED_STATE;
}

void _zhandle::Receive(const Reply& reply) {
  if (reply.xid == sim::kPingXid) return;
  if (outstanding.empty() || outstanding.front().xid != reply.xid) {
    throw std::logic_error("a simulated reply out of order");
  }
  const Completion completion = std::move(outstanding.front());
  outstanding.pop_front();
  if (completion.watchers != nullptr && reply.error == ZOK) {
    completion.watchers->insert(completion.path);
  }
  completion.done(reply);
}

void _zhandle::Receive(const sim::Watched& watched) {
  std::size_t watchers = 0;
  if (watched.type != ZOO_CHILD_EVENT) watchers += data_watchers.erase(watched.path);
  if (watched.type == ZOO_CHILD_EVENT || watched.type == ZOO_DELETED_EVENT) {
    watchers += child_watchers.erase(watched.path);
  }
  if (watchers > 0) watcher(this, watched.type, ZOO_CONNECTED_STATE, watched.path.c_str(), context);
}

namespace {

std::string Text(const char* value, int size) { return {value, static_cast<std::size_t>(size)}; }

sim::Op OpOf(const zoo_op_t& op) {
  switch (op.type) {
    case ZOO_CREATE_OP:
      return {OpType::kCreate, op.create_op.path, Text(op.create_op.data, op.create_op.datalen),
              op.create_op.flags};
    case ZOO_DELETE_OP:
      return {.type = OpType::kDelete, .path = op.delete_op.path, .version = op.delete_op.version};
    case ZOO_SETDATA_OP:
      return {.type = OpType::kSet,
              .path = op.set_op.path,
              .data = Text(op.set_op.data, op.set_op.datalen),
              .version = op.set_op.version};
    default:
      return {.type = OpType::kCheck, .path = op.check_op.path, .version = op.check_op.version};
  }
}

}  // namespace

extern "C" {

const int ZOO_PERM_READ = 1;
const int ZOO_PERM_WRITE = 2;
const int ZOO_PERM_CREATE = 4;
const int ZOO_PERM_DELETE = 8;
const int ZOO_PERM_ADMIN = 16;
const int ZOO_PERM_ALL = 31;
const int ZOOKEEPER_WRITE = 1;
const int ZOOKEEPER_READ = 2;
const int ZOO_PERSISTENT = 0;
const int ZOO_EPHEMERAL = 1;
const int ZOO_PERSISTENT_SEQUENTIAL = 2;
const int ZOO_EPHEMERAL_SEQUENTIAL = 3;
const int ZOO_CONTAINER = 4;
const int ZOO_EXPIRED_SESSION_STATE = -112;
const int ZOO_AUTH_FAILED_STATE = -113;
const int ZOO_CONNECTING_STATE = 1;
const int ZOO_ASSOCIATING_STATE = 2;
const int ZOO_CONNECTED_STATE = 3;
const int ZOO_NOTCONNECTED_STATE = 999;
const int ZOO_CREATED_EVENT = 1;
const int ZOO_DELETED_EVENT = 2;
const int ZOO_CHANGED_EVENT = 3;
const int ZOO_CHILD_EVENT = 4;
struct ACL_vector ZOO_OPEN_ACL_UNSAFE = {0, nullptr};

void zoo_set_debug_level(ZooLogLevel) {}
int zoo_set_servers_resolution_delay(zhandle_t*, int) { return ZOK; }
int zoo_add_auth(zhandle_t*, const char*, const char*, int, void_completion_t, const void*) {
  return ZOK;
}
int zoo_state(zhandle_t* zh) { return zh->state; }
int zoo_recv_timeout(zhandle_t* zh) { return zh->timeout_ms; }
const clientid_t* zoo_client_id(zhandle_t* zh) { return &zh->id; }

zhandle_t* zookeeper_init2(const char* host, watcher_fn, int recv_timeout,
                           const clientid_t* clientid, void*, int, log_callback_fn) {
  auto* const zh = new _zhandle;
  zh->server = std::atoi(std::strrchr(host, '.') + 1);
  zh->timeout_ms = recv_timeout;
  if (clientid != nullptr) zh->id = *clientid;
  return zh;
}

int zookeeper_close(zhandle_t* zh) {
  (void)zh->Fail(ZOK, 0);
  zh->Complete(ZCLOSING);
  delete zh;
  return ZOK;
}

int zookeeper_interest(zhandle_t* zh, int* fd, int* interest, struct timeval* tv) {
  const Time now = world->now();
  const Time timeout = zh->timeout_ms * sim::kMillisecond;
  *fd = -1;
  *interest = 0;
  *tv = {};
  if (zh->state == ZOO_EXPIRED_SESSION_STATE) return ZINVALIDSTATE;
  if (zh->socket == nullptr) {
    std::erase_if(sim::sockets, [](const auto& one) {
      return one.use_count() == 1 && one->connection == nullptr;
    });
    zh->socket = std::make_shared<sim::Socket>(zh->process);
    sim::sockets.push_back(zh->socket);
    zh->socket->near = sim::OpenDescriptor(zh->socket);
    zh->socket->connection =
        sim::ensemble->Connect(zh->process->place(), zh->server, zh->socket.get());
    zh->state = ZOO_CONNECTING_STATE;
    zh->last_received = zh->last_sent = now;
  }
  *fd = zh->socket->near;
  const Time receive_left = timeout * 2 / 3 - (now - zh->last_received);
  if (receive_left <= 0) return zh->Fail(ZOPERATIONTIMEOUT, ETIMEDOUT);
  Time send_left = timeout / 3;
  if (zh->state == ZOO_CONNECTED_STATE) {
    send_left -= now - zh->last_sent;
    if (send_left <= 0) {
      if (zh->outstanding.empty()) {
        zh->socket->Send({.kind = Request::Kind::kPing, .xid = sim::kPingXid, .ops = {}});
        zh->last_sent = now;
      }
      send_left = timeout / 3;
    }
  }
  const Time left = std::min(receive_left, send_left) / 1000;
  *tv = {left / 1'000'000, left % 1'000'000};
  *interest = ZOOKEEPER_READ;
  if (zh->state == ZOO_CONNECTING_STATE) *interest |= ZOOKEEPER_WRITE;
  return ZOK;
}

int zookeeper_process(zhandle_t* zh, int events) {
  if (zh->socket == nullptr) return ZINVALIDSTATE;
  if (zh->state == ZOO_CONNECTING_STATE && (events & ZOOKEEPER_WRITE) != 0) {
    if (zh->socket->error != 0) return zh->Fail(ZCONNECTIONLOSS, zh->socket->error);
    zh->state = ZOO_ASSOCIATING_STATE;
    zh->last_sent = world->now();
    if (zh->socket->connection != nullptr) {
      sim::ensemble->Greet(zh->socket->connection, zh->id.client_id, zh->timeout_ms);
    }
    return ZOK;
  }
  if ((events & ZOOKEEPER_READ) == 0) return ZNOTHING;
  sim::Socket& socket = *zh->socket;
  if (sim::descriptors.at(socket.near) != zh->socket) {
    // The code in src/ has taken over the library's socket: the descriptor now belongs to another
    // socket.
    socket.TakeClose();
    sim::CloseDescriptor(socket.near);
    zh->socket.reset();
    zh->state = ZOO_NOTCONNECTED_STATE;
    zh->Complete(ZCONNECTIONLOSS);
    errno = EHOSTDOWN;
    return ZCONNECTIONLOSS;
  }
  if (socket.received.empty()) {
    if (!socket.is_closed) return ZNOTHING;
    const int result = zh->Fail(ZCONNECTIONLOSS, EHOSTDOWN);
    zh->Complete(ZCONNECTIONLOSS);
    errno = EHOSTDOWN;
    return result;
  }
  zh->last_received = world->now();
  socket.received.erase(0, sim::kFrame);
  const sim::Arrival arrival = std::move(socket.inbox.front());
  socket.inbox.pop_front();
  std::visit([zh](const auto& one) { zh->Receive(one); }, arrival);
  return zh->state == ZOO_EXPIRED_SESSION_STATE ? ZSESSIONEXPIRED : ZOK;
}

// ---- requests ---------------------------------------------------------------------------------

int zoo_acreate2(zhandle_t* zh, const char* path, const char* value, int size,
                 const struct ACL_vector*, int mode, string_stat_completion_t completion,
                 const void* data) {
  return zh->Write({{OpType::kCreate, path, Text(value, size), mode}}, [=](const Reply& reply) {
    completion(reply.error, reply.path.c_str(), &reply.stat, data);
  });
}

int zoo_adelete(zhandle_t* zh, const char* path, int version, void_completion_t completion,
                const void* data) {
  return zh->Write({{.type = OpType::kDelete, .path = path, .version = version}},
                   [=](const Reply& reply) { completion(reply.error, data); });
}

int zoo_aset(zhandle_t* zh, const char* path, const char* value, int size, int version,
             stat_completion_t completion, const void* data) {
  return zh->Write(
      {{.type = OpType::kSet, .path = path, .data = Text(value, size), .version = version}},
      [=](const Reply& reply) { completion(reply.error, &reply.stat, data); });
}

int zoo_awget(zhandle_t* zh, const char* path, watcher_fn watch, void* context,
              data_completion_t completion, const void* data) {
  return zh->Read(Request::Kind::kGet, path, watch, context, [=](const Reply& reply) {
    const auto size = static_cast<int>(reply.data.size());
    completion(reply.error, reply.data.data(), size, &reply.stat, data);
  });
}

// No simulated run has credentials, so none asks for an ACL.
int zoo_aget_acl(zhandle_t*, const char*, acl_completion_t, const void*) { return ZUNIMPLEMENTED; }

int zoo_awget_children(zhandle_t* zh, const char* path, watcher_fn watch, void* context,
                       strings_completion_t completion, const void* data) {
  return zh->Read(Request::Kind::kList, path, watch, context, [=](const Reply& reply) {
    std::vector<char*> names;
    for (const std::string& name : reply.children) names.push_back(const_cast<char*>(name.c_str()));
    const String_vector vector{static_cast<std::int32_t>(names.size()), names.data()};
    completion(reply.error, &vector, data);
  });
}

int zoo_awexists(zhandle_t* zh, const char* path, watcher_fn watch, void* context,
                 stat_completion_t completion, const void* data) {
  return zh->Read(Request::Kind::kExists, path, watch, context,
                  [=](const Reply& reply) { completion(reply.error, &reply.stat, data); });
}

int zoo_async(zhandle_t* zh, const char* path, string_completion_t completion, const void* data) {
  return zh->Read(Request::Kind::kSync, path, nullptr, nullptr,
                  [=](const Reply& reply) { completion(reply.error, reply.path.c_str(), data); });
}

void zoo_create_op_init(zoo_op_t* op, const char* path, const char* value, int size,
                        const struct ACL_vector* acl, int mode, char* buffer, int buffer_size) {
  op->type = ZOO_CREATE_OP;
  op->create_op = {path, value, size, buffer, buffer_size, acl, mode, 0};
}
void zoo_delete_op_init(zoo_op_t* op, const char* path, int version) {
  op->type = ZOO_DELETE_OP;
  op->delete_op = {path, version};
}
void zoo_set_op_init(zoo_op_t* op, const char* path, const char* data, int size, int version,
                     struct Stat* stat) {
  op->type = ZOO_SETDATA_OP;
  op->set_op = {path, data, size, version, stat};
}
void zoo_check_op_init(zoo_op_t* op, const char* path, int version) {
  op->type = ZOO_CHECK_OP;
  op->check_op = {path, version};
}

int zoo_amulti(zhandle_t* zh, int count, const zoo_op_t* ops, zoo_op_result_t* results,
               void_completion_t completion, const void* data) {
  std::vector<sim::Op> asked;
  for (int i = 0; i < count; ++i) asked.push_back(OpOf(ops[i]));
  const auto done = [=](const Reply& reply) {
    const auto failed = static_cast<int>(reply.failed);
    std::size_t change = 0;
    for (int i = 0; i < count; ++i) {
      const int after = i == failed ? reply.error : ZRUNTIMEINCONSISTENCY;
      results[i].err = reply.error == ZOK || i < failed ? static_cast<int>(ZOK) : after;
      if (reply.error != ZOK || ops[i].type == ZOO_CHECK_OP) continue;
      const Reply::Changed& one = reply.changes.at(change++);
      if (ops[i].type == ZOO_SETDATA_OP && ops[i].set_op.stat != nullptr) {
        *ops[i].set_op.stat = one.stat;
      }
      if (ops[i].type != ZOO_CREATE_OP || ops[i].create_op.buf == nullptr) continue;
      const auto space = static_cast<std::size_t>(ops[i].create_op.buflen);
      char* const created = ops[i].create_op.buf;
      created[one.path.copy(created, space - 1)] = '\0';
    }
    completion(reply.error, data);
  };
  return zh->Write(std::move(asked), done, /*is_multi=*/true);
}

// ---- system calls ------------------------------------------------------------------------------
//
// The linker redirects all calls to the wrapped functions here. Calls to recv() arrive through
// src/zookeeper's check of the data that the library receives.

ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  const auto& socket = sim::descriptors.at(fd);
  if (socket == nullptr) {
    errno = ENOTCONN;
    return -1;
  }
  if (socket->received.empty() && !socket->is_closed) {
    errno = EAGAIN;
    return -1;
  }
  const std::size_t count = socket->received.copy(static_cast<char*>(buffer), size);
  if ((flags & MSG_PEEK) == 0) socket->received.erase(0, count);
  return static_cast<ssize_t>(count);
}

ssize_t __wrap_send(int fd, const void* bytes, size_t size, int /*flags*/) {  // NOLINT
  sim::descriptors.at(fd)->sent.append(static_cast<const char*>(bytes), size);
  return static_cast<ssize_t>(size);
}

int __wrap_poll(pollfd* fds, nfds_t count, int /*timeout*/) {  // NOLINT
  int ready = 0;
  for (nfds_t i = 0; i < count; ++i) {
    fds[i].revents = sim::ReadyEvents(fds[i].fd, fds[i].events);
    if (fds[i].revents != 0) ++ready;
  }
  return ready;
}

int __wrap_socket(int /*domain*/, int /*type*/, int /*protocol*/) {  // NOLINT
  return sim::OpenDescriptor(nullptr);
}

int __wrap_fcntl(int fd, int command, int /*argument*/) {  // NOLINT
  return command == F_DUPFD_CLOEXEC ? sim::OpenDescriptor(sim::descriptors.at(fd)) : 0;
}

int __wrap_dup3(int from, int to, int /*flags*/) {  // NOLINT
  const auto socket = sim::descriptors.at(from);
  sim::CloseDescriptor(to);
  sim::descriptors[to] = socket;
  if (socket != nullptr) ++socket->descriptors;
  return to;
}

int __wrap_setsockopt(int, int, int, const void*, socklen_t) { return 0; }  // NOLINT
int __wrap_shutdown(int, int) { return 0; }                                 // NOLINT

int __real_close(int fd);   // NOLINT
int __wrap_close(int fd) {  // NOLINT
  if (fd < sim::kFirstDescriptor) return __real_close(fd);
  sim::CloseDescriptor(fd);
  return 0;
}

}  // extern "C"
