// Servers that send malformed replies, or send them too slowly or too fast.

#include "support/hostile_server.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/messages/provocation.h"
#include "cli/zklock.h"
#include "support/frames.h"
#include "support/peer.h"
#include "support/wait.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

ChildOptions Through(const HostileServer& server, const Words& words,
                     const std::string& patience = "1s") {
  ChildOptions options = Zklock(words);
  options.also_environment = {"ZKLOCK_SERVERS=" + server.address(),
                              "ZKLOCK_CONNECT_TIMEOUT=" + patience};
  return options;
}

/// Returns a watch event for `/a` (xid -1, zxid, error; type, state, path).
std::string WatchEvent() {
  using Server = HostileServer;
  return Server::Frame(Server::Number(-1) + Server::Number(-1) + Server::Number(-1) +
                       Server::Number(0) + Server::Number(3) + Server::Number(3) +
                       Server::Number(2) + "/a");
}

// zklock itself waits less than a second for its session to be closed.
constexpr std::chrono::seconds kAtOnce = 5s;

constexpr std::size_t kHeader = 4 + 16;  // the length, and the reply's header

std::string WithNumber(std::string frame, std::size_t at, std::int32_t number) {
  if (frame.size() >= at + 4) frame.replace(at, 4, HostileServer::Number(number));
  return frame;
}

/// Returns `frame` cut or extended to `size`, with its length field adjusted.
std::string Resized(std::string frame, std::size_t size) {
  frame.resize(size);
  return WithNumber(frame, 0, static_cast<std::int32_t>(size) - 4);
}

/// A way in which a hostile server can change a valid reply. None of the results is valid.
struct Change {
  std::string name;
  std::function<std::string(const std::string& frame)> make;
};
std::vector<Change> Changes() {
  using Server = HostileServer;
  const auto before = [](const std::string& more) {
    return [more](const std::string& frame) { return more + frame; };
  };
  return {
      {"two bytes less", [](auto& frame) { return Resized(frame, frame.size() - 2); }},
      {"the header cut", [](auto& frame) { return Resized(frame, 10); }},
      {"only the header, or half of it",
       [](auto& frame) { return Resized(frame, frame.size() > kHeader ? kHeader : 12); }},
      {"a byte more", [](auto& frame) { return Resized(frame, frame.size() + 1); }},
      {"a length 100 too great",
       [](auto& frame) { return WithNumber(frame, 0, static_cast<int>(frame.size()) + 96); }},
      {"a negative length", [](auto& frame) { return WithNumber(frame, 0, -5); }},
      {"another xid", [](auto& frame) { return WithNumber(frame, 4, 0x7f7f7f7f); }},
      {"another's fields",
       [](auto& frame) {
         std::string other =
             frame.substr(0, kHeader) + Server::Number(3) + "abc" + Server::Number(0);
         return Resized(other, other.size());
       }},
      {"no reply, but one that nobody asked for",
       before(Server::Frame(Server::Number(-8) + std::string(12, '\0')))},
      {"after an event without a path",
       before(Server::Frame(Server::Number(-1) + std::string(12, '\0') + Server::Number(3) +
                            Server::Number(3)))},
  };
}

/// Returns changes to the length of the reply's first field.
std::vector<Change> ChangesOfSizes() {
  std::vector<Change> changes;
  for (const std::int32_t number : {-1, -11, INT32_MIN, INT32_MAX, 1 << 28, 1000}) {
    changes.push_back({"its first field's length " + std::to_string(number),
                       [number](auto& frame) { return WithNumber(frame, kHeader, number); }});
  }
  return changes;
}

/// Returns the first word of a request, as Proxy names it: "get" of "get /lock".
std::string KindOf(const std::string& request) { return request.substr(0, request.find(' ')); }

/// A `zklock WORDS` and the state in which it finds the lock: free or held.
struct Scene {
  Words words;
  bool is_held = false;
};
std::vector<Scene> Scenes() {
  return {
      {{"exclusive", "LOCK", "--", "echo", "ran"}},
      {{"read", "LOCK", "--", "echo", "ran"}},
      {{"write", "LOCK", "--", "echo", "ran"}},
      {{"try", "LOCK", "--", "echo", "ran"}},
      {{"exclusive", "--wait", "1s", "LOCK", "--", "echo", "ran"}, true},
      {{"try", "LOCK", "--", "echo", "ran"}, true},
      {{"release", "--all", "--yes", "LOCK"}, true},
      {{"inspect", "LOCK"}, true},
  };
}

/// A lock for one scene. If it is held, the holder is not a zklock, and does not answer requests.
class Setting {
 public:
  explicit Setting(const Scene& scene) : lock_(tree_.Create(NewLock("hostile"))) {
    if (scene.is_held) tree_.Create(lock_ + "/x-lock-", ZnodeKind::kEphemeralSequential, "{}");
  }
  [[nodiscard]] ChildOptions Options(const Scene& scene, const Proxy& proxy,
                                     const std::string& patience) const {
    ChildOptions options = ZklockAt(proxy.address(), scene.words);
    for (std::string& word : options.argv) {
      if (word == "LOCK") word = lock_;
    }
    options.also_environment.push_back("ZKLOCK_CONNECT_TIMEOUT=" + patience);
    return options;
  }

 private:
  Tree tree_;
  std::string lock_;
};

/// Returns the kinds of requests that zklock sends to a working server in this scene.
std::set<std::string> KindsOf(const Scene& scene) {
  const Setting setting(scene);
  std::mutex mutex;
  std::set<std::string> kinds;
  Proxy proxy(TestServers());
  proxy.EditReplies([&](const std::string& request, std::string reply) {
    const std::scoped_lock lock(mutex);
    kinds.insert(KindOf(request));
    return std::optional(std::move(reply));
  });
  Child child = Child::Start(setting.Options(scene, proxy, "1m"));
  child.Wait();
  const std::scoped_lock lock(mutex);
  return kinds;
}

/// A zklock for which every reply of one kind is changed.
struct Victim {
  std::string name;
  std::atomic<int> changed = 0;
  Proxy proxy{TestServers()};
  std::optional<Child> child;

  void Start(const Scene& scene, const Setting& setting, const std::string& kind,
             const Change& change, const std::string& patience) {
    name = kind + ": " + change.name;
    proxy.EditReplies([this, kind, change](const std::string& request, std::string reply) {
      // zklock reads nothing after the header of an error reply.
      const bool is_error = kind != "connect" && frames::Number(reply, kHeader - 4) != 0;
      if (KindOf(request) != kind || is_error) return std::optional(std::move(reply));
      ++changed;
      return std::optional(change.make(reply));
    });
    child.emplace(Child::Start(setting.Options(scene, proxy, patience)));
  }
};

/// A scene with one victim for each change of the replies of one kind.
struct Attack {
  Scene scene;
  std::string kind;
  Setting setting;
  std::deque<Victim> victims;

  Attack(const Scene& its_scene, const std::string& its_kind, const std::string& patience)
      : scene(its_scene), kind(its_kind), setting(its_scene) {
    std::vector<Change> changes = Changes();
    if (kind == "get" || kind == "list" || kind == "sync" || kind == "create") {
      for (Change& one : ChangesOfSizes()) changes.push_back(std::move(one));
      // A znode's data may be null instead of empty.
      if (kind == "get")
        std::erase_if(changes, [](auto& one) { return one.name.ends_with(" -1"); });
    }
    for (const Change& change : changes) {
      victims.emplace_back().Start(scene, setting, kind, change, patience);
    }
  }
};

std::vector<Words> Subcommands() {
  return {{"exclusive", "/l", "--", "true"},   {"read", "/l", "--", "true"},
          {"write", "/l", "--", "true"},       {"try", "/l", "--", "true"},
          {"release", "--all", "--yes", "/l"}, {"inspect", "/l"}};
}

}  // namespace

TEST_CASE("a session is granted even if the answer arrives in two pieces or byte by byte") {
  const std::string grant = HostileServer::Grant();
  const int cuts = static_cast<int>(grant.size());
  // The last case sends each byte by itself.
  const auto serve = [&](std::size_t cut) {
    return [&grant, cut](int socket, int) {
      if (!HostileServer::Receive(socket)) return;
      const std::size_t piece = cut < grant.size() ? cut : 1;
      for (std::size_t at = 0; at < grant.size();) {
        const std::size_t size = at == 0 || cut == grant.size() ? piece : grant.size() - at;
        if (!HostileServer::Send(socket, grant.substr(at, size))) return;
        at += size;
        std::this_thread::sleep_for(5ms);  // two segments, read one by one
      }
      while (HostileServer::Receive(socket)) {
      }
    };
  };
  std::vector<std::unique_ptr<HostileServer>> servers;
  std::vector<Child> all;
  for (int cut = 1; cut <= cuts; ++cut) {
    servers.push_back(std::make_unique<HostileServer>(serve(static_cast<std::size_t>(cut))));
    // All of them start at once, and a second would be too short for that on a busy machine.
    all.push_back(Child::Start(Through(*servers.back(), {"inspect", "/l"}, "5s")));
  }
  for (int cut = 1; cut <= cuts; ++cut) {
    Child& one = all[static_cast<std::size_t>(cut - 1)];
    CAPTURE(cut);
    CHECK(one.Wait() == Exited(69));
    CAPTURE(one.err());
    CHECK_THAT(one.err(), Catch::Contains("grants a session, but does not answer"));
  }
}

TEST_CASE("no malformed reply ends zklock, makes it run a command, or keeps it for long",
          "[slow]") {
  std::vector<std::pair<Scene, std::string>> all;
  for (const Scene& scene : Scenes()) {
    const std::set<std::string> kinds = KindsOf(scene);
    CHECK(kinds.contains("connect"));
    for (const std::string& kind : kinds) all.emplace_back(scene, kind);
  }
  // The victims wait most of the time, so several attacks can run at once; all would need too many
  // descriptors.
  std::deque<Attack> attacks;
  for (std::size_t next = 0; next < all.size() || !attacks.empty(); attacks.pop_front()) {
    for (; next < all.size() && attacks.size() < 4; ++next) {
      attacks.emplace_back(all[next].first, all[next].second, "1s");
    }
    Attack& attack = attacks.front();
    CAPTURE(attack.scene.words);
    for (Victim& victim : attack.victims) {
      CAPTURE(victim.name);
      const Exit exit = victim.child->Wait();
      const std::string& out = victim.child->out();
      CAPTURE(out, victim.child->err());
      // 75: other replies have shown that the lock is held.
      const bool ends = exit == Exited(0) || exit == Exited(69) || exit == Exited(75);
      CHECK(ends);
      // If replies of another kind are malformed, the command may run: a list shows the contender
      // that was created, and the release comes later.
      const std::string& kind = attack.kind;
      if (kind == "connect" || kind == "list" || kind == "check" || kind == "get") {
        CHECK(out.find("ran") == std::string::npos);
      }
    }
  }
}

TEST_CASE("TERM ends zklock at once while it gets malformed replies") {
  const Scene scene = GENERATE(from_range(Scenes()));
  CAPTURE(scene.words);
  for (const std::string& kind : KindsOf(scene)) {
    Attack attack(scene, kind, "1h");
    for (Victim& victim : attack.victims) {
      CAPTURE(victim.name);
      WaitUntil([&] { return victim.changed > 0 || victim.child->HasEnded(); });
      if (!victim.child->HasEnded()) victim.child->Signal(SIGTERM);
      const Exit exit = victim.child->Wait(kAtOnce);
      CAPTURE(victim.child->err());
      const bool ends = exit == Exited(0) || exit == Exited(69) || exit == Exited(75) ||
                        exit == Exited(128 + SIGTERM) || exit == Killed(SIGTERM);
      CHECK(ends);
    }
  }
}

TEST_CASE("a frame of an impossible length ends the connection, not zklock") {
  const int length = GENERATE(-5, INT32_MIN);
  const Words words = GENERATE(from_range(Subcommands()));
  CAPTURE(length, words);
  const HostileServer server([length](int socket, int) {
    if (!HostileServer::Receive(socket) || !HostileServer::Send(socket, HostileServer::Grant())) {
      return;
    }
    while (HostileServer::Receive(socket) &&
           HostileServer::Send(socket, HostileServer::Number(length) + std::string(50, 'x'))) {
    }
  });
  Run(Through(server, words, "500ms"), Exited(69));
}

TEST_CASE("zklock leaves a server that sends without end before it has answered SASL") {
  const HostileServer server([](int socket, int) {
    std::string events;
    for (int i = 0; i < 1000; ++i) events += WatchEvent();
    if (!HostileServer::Receive(socket) || !HostileServer::Send(socket, HostileServer::Grant())) {
      return;
    }
    while (HostileServer::Send(socket, events)) {
    }
  });
  ChildOptions options = Through(server, {"try", "--sasl", "digest-md5", "/l", "--", "true"}, "6s");
  options.also_environment.emplace_back("ZKLOCK_AUTH=sasl:alice:tulip");
  CHECK_THAT(Run(options, Exited(69)).err, Catch::Contains("sends much, but no answer to SASL"));
}

TEST_CASE(
    "a signal or a time limit ends zklock even if a server sends watch events without pause") {
  const Words words = GENERATE(from_range(Subcommands()));
  CAPTURE(words);
  std::atomic<int> floods = 0;
  const HostileServer server([&floods](int socket, int) {
    std::string events;
    for (int i = 0; i < 1000; ++i) events += WatchEvent();
    if (!HostileServer::Receive(socket) || !HostileServer::Send(socket, HostileServer::Grant())) {
      return;
    }
    while (HostileServer::Send(socket, events)) ++floods;
  });
  SECTION("TERM") {
    Child child = Child::Start(Through(server, words, "1h"));
    WaitUntil([&] { return floods > 100; });  // more than the kernel buffers, so zklock reads them
    child.Signal(SIGTERM);
    const Exit exit = child.Wait(kAtOnce);
    CHECK((exit == Exited(128 + SIGTERM) || exit == Killed(SIGTERM)));
  }
  SECTION("its own limit") { Run(Through(server, words, "500ms"), Exited(69)); }
}

}  // namespace zklock::test
