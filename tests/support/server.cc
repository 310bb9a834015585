#include "support/server.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

namespace zklock::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSessionMilliseconds = 40'000;
constexpr std::chrono::seconds kKeepAlivePeriod{1};

/// The answer to one request.
struct Answer {
  bool done = false;
  int result = ZOK;
  std::string text;  // data, or the path of the created znode
  Stat stat{};
  std::vector<std::string> names;
};

void OnStat(int result, const Stat* stat, const void* data) {
  auto* answer = static_cast<Answer*>(const_cast<void*>(data));
  answer->done = true;
  answer->result = result;
  if (result == ZOK && stat != nullptr) answer->stat = *stat;
}
void OnVoid(int result, const void* data) { OnStat(result, nullptr, data); }
void OnString(int result, const char* text, const void* data) {
  OnStat(result, nullptr, data);
  if (result == ZOK) static_cast<Answer*>(const_cast<void*>(data))->text = text;
}
void OnData(int result, const char* value, int size, const Stat* stat, const void* data) {
  OnStat(result, stat, data);
  if (result == ZOK && size > 0) {
    static_cast<Answer*>(const_cast<void*>(data))
        ->text.assign(value, static_cast<std::size_t>(size));
  }
}
void OnNames(int result, const String_vector* names, const void* data) {
  OnStat(result, nullptr, data);
  if (result != ZOK) return;
  auto& to = static_cast<Answer*>(const_cast<void*>(data))->names;
  to.assign(names->data, names->data + names->count);
  std::sort(to.begin(), to.end());
}

void OnAcl(int result, ACL_vector* acl, Stat* stat, const void* data) {
  OnStat(result, stat, data);
  if (result != ZOK) return;
  auto& to = static_cast<Answer*>(const_cast<void*>(data))->names;
  for (int i = 0; i < acl->count; ++i) {
    const ACL& one = acl->data[i];
    const std::string id = one.id.id;
    // Leaves out the hash of the password.
    to.push_back(std::string(one.id.scheme) + ":" + id.substr(0, id.find(':')) + " " +
                 std::to_string(one.perms));
  }
  std::sort(to.begin(), to.end());
}

void OnWatch(zhandle_t* /*handle*/, int /*type*/, int /*state*/, const char* /*path*/,
             void* fired) {
  *static_cast<bool*>(fired) = true;
}
void IgnoreEvent(zhandle_t*, int, int, const char*, void*) {}
void DropLog(const char*) {}

int ModeOf(ZnodeKind kind) {
  switch (kind) {
    case ZnodeKind::kPersistent:
      return ZOO_PERSISTENT;
    case ZnodeKind::kEphemeral:
      return ZOO_EPHEMERAL;
    case ZnodeKind::kEphemeralSequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
    case ZnodeKind::kContainer:
      return ZOO_CONTAINER;
  }
  return ZOO_PERSISTENT;
}

/// Returns "user:password" as in an ACL, with the hash of the password. Uses openssl, because the
/// standard library has no SHA-1.
std::string DigestId(const std::string& credential) {
  const Finished hash =
      Run({.argv = {"sh", "-c", "openssl dgst -sha1 -binary | base64"}, .stdin_text = credential});
  if (hash.exit != Exited(0)) throw std::runtime_error("openssl: " + hash.err);
  return credential.substr(0, credential.find(':')) + ":" + hash.out.substr(0, hash.out.find('\n'));
}

}  // namespace

std::string TestServers() {
  const char* servers = std::getenv("ZKLOCK_TEST_SERVERS");
  if (servers == nullptr || *servers == '\0') {
    throw std::runtime_error(
        "ZKLOCK_TEST_SERVERS is not set: this test needs a ZooKeeper server. scripts/test starts "
        "one; by hand: export ZKLOCK_TEST_SERVERS=$(scripts/zookeeper start --tick 500)");
  }
  return servers;
}

std::string NewLock(std::string_view name) {
  // The pid is not enough: it may be reused while the server still has the old data.
  static const auto run = std::random_device{}();
  static std::atomic<int> count{0};
  return "/t/" + std::string(name) + "-" + std::to_string(getpid()) + "-" + std::to_string(run) +
         "-" + std::to_string(++count);
}

struct Tree::State {
  State(const std::string& credential, const std::string& servers) {
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));
    handle = zookeeper_init2(servers.c_str(), IgnoreEvent, kSessionMilliseconds, nullptr, nullptr,
                             ZOO_NO_LOG_CLIENTENV, DropLog);
    if (handle == nullptr) throw std::runtime_error("no handle for " + servers);
    if (!credential.empty()) {
      MustBe(zoo_add_auth(handle, "digest", credential.data(), static_cast<int>(credential.size()),
                          nullptr, nullptr),
             "add the credential");
    }
    const auto deadline = Clock::now() + kPatience;
    while (zoo_state(handle) != ZOO_CONNECTED_STATE) Process(deadline, "a session");
    // Signals are left to the test's thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    keeper = std::jthread([this](const std::stop_token& stop) { KeepAlive(stop); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~State() {
    keeper = {};  // stopped and joined
    zookeeper_close(handle);
  }

  /// Keeps the session alive while the test is busy: the library's loop does not run then, so it
  /// sends no pings, and the session would expire in the middle of a long test.
  void KeepAlive(const std::stop_token& stop) const {
    std::mutex sleeping;
    std::condition_variable_any woken;
    std::unique_lock lock(sleeping);
    for (;;) {
      woken.wait_for(lock, stop, kKeepAlivePeriod, [] { return false; });
      if (stop.stop_requested()) return;
      const std::lock_guard use(in_use);
      Turn(Clock::now());
    }
  }

  void Process(Clock::time_point deadline, const std::string& what) const {
    if (Clock::now() >= deadline) throw std::runtime_error("timed out waiting for " + what);
    const int result = Turn(deadline);
    if (result == ZSESSIONEXPIRED) throw std::runtime_error("the test's own session expired");
  }

  /// Runs the library's loop once, waiting no longer than until `deadline`. Returns the library's
  /// result.
  int Turn(Clock::time_point deadline) const {
    int fd = -1;
    int interest = 0;
    timeval left{};
    zookeeper_interest(handle, &fd, &interest, &left);
    const auto now = Clock::now();
    // Otherwise executed programs would inherit the library's socket.
    if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
    pollfd polled{fd, 0, 0};
    if ((interest & ZOOKEEPER_READ) != 0) polled.events |= POLLIN;
    if ((interest & ZOOKEEPER_WRITE) != 0) polled.events |= POLLOUT;
    const auto wake =
        std::max(now, std::min(deadline, now + std::chrono::seconds(left.tv_sec) +
                                             std::chrono::microseconds(left.tv_usec)));
    poll(&polled, 1,
         static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wake - now).count()));
    int events = 0;
    if ((polled.revents & ~POLLOUT) != 0) events |= ZOOKEEPER_READ;
    if ((polled.revents & POLLOUT) != 0) events |= ZOOKEEPER_WRITE;
    return zookeeper_process(handle, events);
  }

  /// Sends a request by calling `send`, which gets the answer to fill in and returns the library's
  /// result. Waits for the answer.
  template <typename Send>
  Answer Ask(const std::string& what, Send send) const {
    const std::lock_guard use(in_use);
    Answer& answer = answers.emplace_back();
    const int sent = send(&answer);
    if (sent != ZOK) throw std::runtime_error(what + ": " + zerror(sent));
    const auto deadline = Clock::now() + kPatience;
    while (!answer.done) Process(deadline, what);
    return std::move(answer);
  }

  static void MustBe(int result, const std::string& what) {
    if (result != ZOK) throw std::runtime_error(what + ": " + zerror(result));
  }

  zhandle_t* handle = nullptr;
  mutable std::deque<Answer> answers;  // some may arrive after their call has failed
  mutable std::recursive_mutex
      in_use;  // guards the handle, used by the test's thread and the keeper
  std::jthread keeper;
};

Tree::Tree(const std::string& credential, const std::string& servers)
    : state_(std::make_unique<State>(credential, servers.empty() ? TestServers() : servers)) {}
Tree::~Tree() = default;

std::int64_t Tree::session() const { return zoo_client_id(state_->handle)->client_id; }

std::optional<Znode> Tree::Get(const std::string& path) {
  const Answer answer = state_->Ask("get " + path, [&](Answer* to) {
    return zoo_aget(state_->handle, path.c_str(), 0, OnData, to);
  });
  if (answer.result == ZNONODE) return std::nullopt;
  State::MustBe(answer.result, "get " + path);
  return Znode{answer.text, answer.stat.czxid, answer.stat.ephemeralOwner, answer.stat.mzxid,
               answer.stat.pzxid};
}

std::vector<std::string> Tree::Children(const std::string& path) {
  const Answer answer = state_->Ask("list " + path, [&](Answer* to) {
    return zoo_aget_children(state_->handle, path.c_str(), 0, OnNames, to);
  });
  if (answer.result != ZNONODE) State::MustBe(answer.result, "list " + path);
  return answer.names;
}

std::string Tree::Create(const std::string& path, ZnodeKind kind, const std::string& data) {
  const auto create = [&](const std::string& what, ZnodeKind how, const std::string& text) {
    return state_->Ask("create " + what, [&](Answer* to) {
      return zoo_acreate(state_->handle, what.c_str(), text.data(), static_cast<int>(text.size()),
                         &ZOO_OPEN_ACL_UNSAFE, ModeOf(how), OnString, to);
    });
  };
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const int result = create(path.substr(0, slash), ZnodeKind::kPersistent, "").result;
    if (result != ZNODEEXISTS) State::MustBe(result, "create a parent of " + path);
  }
  const Answer answer = create(path, kind, data);
  State::MustBe(answer.result, "create " + path);
  return answer.text;
}

void Tree::Delete(const std::string& path) {
  const Answer answer = state_->Ask("delete " + path, [&](Answer* to) {
    return zoo_adelete(state_->handle, path.c_str(), -1, OnVoid, to);
  });
  State::MustBe(answer.result, "delete " + path);
}

void Tree::SetData(const std::string& path, const std::string& data) {
  const Answer answer = state_->Ask("set " + path, [&](Answer* to) {
    return zoo_aset(state_->handle, path.c_str(), data.data(), static_cast<int>(data.size()), -1,
                    OnStat, to);
  });
  State::MustBe(answer.result, "set " + path);
}

void Tree::SetAcl(const std::string& path,
                  const std::vector<std::pair<std::string, int>>& entries) {
  std::vector<std::string> texts;
  texts.reserve(2 * entries.size());
  std::vector<ACL> acl;
  for (const auto& [credential, permissions] : entries) {
    char* scheme = texts.emplace_back(credential.empty() ? "world" : "digest").data();
    char* id = texts.emplace_back(credential.empty() ? "anyone" : DigestId(credential)).data();
    acl.push_back({permissions, {scheme, id}});
  }
  ACL_vector all{static_cast<std::int32_t>(acl.size()), acl.data()};
  const Answer answer = state_->Ask("set the ACL of " + path, [&](Answer* to) {
    return zoo_aset_acl(state_->handle, path.c_str(), -1, &all, OnVoid, to);
  });
  State::MustBe(answer.result, "set the ACL of " + path);
}

std::vector<std::string> Tree::GetAcl(const std::string& path) {
  const Answer answer = state_->Ask("get the ACL of " + path, [&](Answer* to) {
    return zoo_aget_acl(state_->handle, path.c_str(), OnAcl, to);
  });
  State::MustBe(answer.result, "get the ACL of " + path);
  return answer.names;
}

std::vector<std::string> Tree::WaitForChildren(
    const std::string& path, const std::function<bool(const std::vector<std::string>&)>& are_right,
    std::chrono::milliseconds patience) {
  const std::lock_guard use(state_->in_use);
  const auto deadline = Clock::now() + patience;
  std::string last;
  for (;;) {
    // The flag must outlive this call, because the library may call the watch later.
    static std::vector<std::unique_ptr<bool>> flags;
    bool* fired = flags.emplace_back(std::make_unique<bool>(false)).get();
    Answer answer = state_->Ask("list " + path, [&](Answer* to) {
      return zoo_awget_children(state_->handle, path.c_str(), OnWatch, fired, OnNames, to);
    });
    if (answer.result == ZNONODE) {
      const Answer exists = state_->Ask("exists " + path, [&](Answer* to) {
        return zoo_awexists(state_->handle, path.c_str(), OnWatch, fired, OnStat, to);
      });
      if (exists.result == ZOK) continue;  // it was just created: list again
    } else {
      State::MustBe(answer.result, "list " + path);
    }
    if (are_right(answer.names)) return answer.names;
    last.clear();
    for (const std::string& name : answer.names) last += "\n  " + name;
    while (!*fired) {
      state_->Process(deadline, "the expected children of " + path +
                                    "; found:" + (last.empty() ? " none" : last));
    }
  }
}

std::vector<std::string> Tree::WaitForChildren(const std::string& path, std::size_t count,
                                               std::chrono::milliseconds patience) {
  return WaitForChildren(
      path, [count](const auto& children) { return children.size() == count; }, patience);
}

void SetHardQuota(Tree& tree, const std::string& path, int znodes, int bytes) {
  tree.Create(path);
  // In the format of zkCli.sh's setquota.
  const std::string quota = "/zookeeper/quota" + path;
  tree.Create(quota + "/zookeeper_limits", ZnodeKind::kPersistent,
              "count=-1,bytes=-1=;byteHardLimit=" + std::to_string(bytes) +
                  ";countHardLimit=" + std::to_string(znodes));
  tree.Create(quota + "/zookeeper_stats", ZnodeKind::kPersistent, "count=1,bytes=0");
}

std::vector<std::string> InQueueOrder(std::vector<std::string> children) {
  const auto number = [](const std::string& name) {
    return name.size() < 10 ? name : name.substr(name.size() - 10);
  };
  std::sort(children.begin(), children.end(),
            [&](const std::string& a, const std::string& b) { return number(a) < number(b); });
  return children;
}

}  // namespace zklock::test
