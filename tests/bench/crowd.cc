// Many contenders in one process, using zklock's own library, for scripts/bench:
//
//   crowd fill SERVERS LOCK COUNT curator|kazoo   znodes at the end of a queue
//   crowd herd SERVERS LOCK COUNT GRANTS COMMAND [ARG...]
//                                                 what zklock avoids: all watch the LOCK's
//                                                 children, and each release wakes all of them
//   crowd queue SERVERS LOCK COUNT                COUNT contenders of one LOCK; each releases at
//                                                 once
//   crowd many SERVERS LOCK COUNT                 COUNT LOCKs below LOCK with one contender each
//
// fill and herd print "ready" when all have joined, and begin when standard input ends. queue and
// many print lines "WHAT COUNT SECONDS", and also wait for the end of the input once all have
// joined.

#include <fmt/core.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "bench/epoll_loop.h"
#include "lock/acquire/acquire.h"
#include "lock/hold/hold.h"
#include "process/tree/identity.h"
#include "process/tree/pidfd.h"
#include "protocol/contender_name.h"
#include "zookeeper/server_list.h"
#include "zookeeper/session.h"

namespace zklock::bench {
namespace {

using namespace std::chrono_literals;
using zookeeper::Watch;
using Words = std::vector<std::string>;

constexpr Duration kSessionTimeout = 60s;
// How many join at the same time: few enough that the bench does not measure a listen backlog.
constexpr std::size_t kMostJoining = 200;
constexpr int kSteps = 10;

const SystemClock kClock;

void Require(bool is_so, const std::string& what) {
  if (!is_so) throw std::runtime_error(what);
}

std::vector<zookeeper::Endpoint> EndpointsOf(const std::string& servers) {
  const auto parsed = zookeeper::ParseServerList(servers);
  const auto* list = std::get_if<zookeeper::ServerList>(&parsed);
  Require(list != nullptr, "no server list: " + servers);
  std::vector<zookeeper::Endpoint> endpoints;
  for (const auto& server : list->servers) {
    const std::string address = zookeeper::ToString(server);
    endpoints.push_back({address, address});
  }
  return endpoints;
}

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

/// Keeps the sessions alive until standard input ends.
void WaitForInputsEnd(EpollLoop& loop) {
  class Input final : public EventSource {
   public:
    Interest GetInterest() override { return {.fd = STDIN_FILENO, .events = POLLIN}; }
    void OnReady(short revents) override {
      char byte = 0;
      has_ended = has_ended || (revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0);
    }
    bool has_ended = false;
  };
  Input input;
  loop.Add(input);
  loop.RunUntil([&] { return input.has_ended; });
  loop.Remove(input);
}

void SayReady() {
  fmt::print("ready\n");
  std::fflush(stdout);
}

void CloseAll(EpollLoop& loop, const std::vector<zookeeper::Session*>& sessions) {
  for (auto* session : sessions) {
    session->BeginClose();
    loop.Touch(*session);
  }
  loop.RunUntil([&] {
    return std::all_of(sessions.begin(), sessions.end(),
                       [](const auto* session) { return session->IsClosed(); });
  });
}

// ---- fill -----------------------------------------------------------------------------------

int Fill(const std::string& servers, const std::string& lock, int count,
         const std::string& dialect) {
  EpollLoop loop;
  zookeeper::Session session(EndpointsOf(servers), kSessionTimeout, kClock);
  loop.Add(session);
  loop.RunUntil([&] { return session.IsConnected(); });
  int created = 0;
  for (int i = 0; i < count; ++i) {
    const std::string prefix = protocol::MakeContenderPrefix(
        "filler", process::MakeUuid(), protocol::Mode::kExclusive,
        dialect == "kazoo" ? protocol::Dialect::kKazoo : protocol::Dialect::kCurator);
    session.Create(lock + "/" + prefix, "", zookeeper::NodeKind::kEphemeralSequential,
                   [&](const zookeeper::CreateReply& reply) {
                     Require(reply.error == zookeeper::Error::kNone, "cannot create in " + lock);
                     ++created;
                   });
    loop.Touch(session);
    if (i % static_cast<int>(kMostJoining) == 0) loop.RunUntil([&] { return created > i; });
  }
  loop.RunUntil([&] { return created == count; });
  SayReady();
  WaitForInputsEnd(loop);
  CloseAll(loop, {&session});
  return 0;
}

// ---- herd -----------------------------------------------------------------------------------

/// A command that runs while the loop continues.
class Command final : public EventSource {
 public:
  void Start(const Words& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    Require(posix_spawnp(&pid_, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0,
            "cannot run " + words.front());
    pidfd_ = process::PidFd::Open(pid_);
  }
  [[nodiscard]] bool ended() const { return ended_; }

  Interest GetInterest() override {
    if (!pidfd_) return {};
    return {.fd = pidfd_->fd(), .events = POLLIN};
  }
  void OnReady(short revents) override {
    if (revents == 0) return;
    waitpid(pid_, nullptr, 0);
    pidfd_.reset();
    ended_ = true;
  }

 private:
  pid_t pid_ = 0;
  std::optional<process::PidFd> pidfd_;
  bool ended_ = false;
};

/// A contender that watches all children and holds when its number is the lowest.
class HerdMember final : public zookeeper::StoreListener {
 public:
  HerdMember(const std::string& servers, std::string lock)
      : lock_(std::move(lock)), session_(EndpointsOf(servers), kSessionTimeout, kClock) {
    session_.SetListener(this);
  }
  zookeeper::Session& session() { return session_; }
  [[nodiscard]] bool is_queued() const { return !own_.empty(); }
  [[nodiscard]] bool has_listed() const { return has_listed_; }
  [[nodiscard]] bool holds() const { return holds_; }

  void OnConnected(bool /*fresh*/) override {
    const std::string prefix = protocol::MakeContenderPrefix(
        "herd", process::MakeUuid(), protocol::Mode::kExclusive, protocol::Dialect::kCurator);
    session_.Create(lock_ + "/" + prefix, "", zookeeper::NodeKind::kEphemeralSequential,
                    [this](const zookeeper::CreateReply& reply) {
                      Require(reply.error == zookeeper::Error::kNone, "cannot create in " + lock_);
                      own_ = reply.path.substr(lock_.size() + 1);
                    });
  }
  /// Call this once all have joined. Otherwise, each one that joins would wake all before it.
  void Begin() { List(); }
  void OnDisconnected() override { throw std::runtime_error("the server has gone"); }
  void OnExpired() override { throw std::runtime_error("a session expired"); }
  void OnRefused(zookeeper::Error /*why*/) override { throw std::runtime_error("refused"); }
  void OnWatch(const std::string& /*path*/, zookeeper::Change /*change*/) override { List(); }

 private:
  void List() {
    session_.List(lock_, Watch::kYes, [this](const zookeeper::ListReply& reply) {
      Require(reply.error == zookeeper::Error::kNone, "cannot list " + lock_);
      has_listed_ = true;
      holds_ =
          std::all_of(reply.children.begin(), reply.children.end(), [&](std::string_view name) {
            return protocol::ParseContenderName(name)->number >=
                   protocol::ParseContenderName(own_)->number;
          });
    });
  }

  std::string lock_;
  zookeeper::Session session_;
  std::string own_;
  bool has_listed_ = false;
  bool holds_ = false;
};

int Herd(const std::string& servers, const std::string& lock, int count, int grants,
         const Words& words) {
  EpollLoop loop;
  std::vector<std::unique_ptr<HerdMember>> herd;
  std::vector<zookeeper::Session*> sessions;
  for (int i = 0; i < count; ++i) {
    herd.push_back(std::make_unique<HerdMember>(servers, lock));
    sessions.push_back(&herd.back()->session());
    loop.Add(*sessions.back());
    loop.RunUntil([&] { return herd.back()->is_queued(); });
  }
  for (const auto& member : herd) {
    member->Begin();
    loop.Touch(member->session());
    loop.RunUntil([&] { return member->has_listed(); });
  }
  SayReady();
  WaitForInputsEnd(loop);
  std::vector<std::unique_ptr<Command>> commands;
  // They hold the lock in the order in which they joined.
  for (int i = 0; i < std::min(grants, count); ++i) {
    loop.RunUntil([&] { return herd[static_cast<std::size_t>(i)]->holds(); });
    commands.push_back(std::make_unique<Command>());
    commands.back()->Start(words);
    loop.Add(*commands.back());
    loop.RunUntil([&] { return commands.back()->ended(); });
    sessions[static_cast<std::size_t>(i)]->BeginClose();
    loop.Touch(*sessions[static_cast<std::size_t>(i)]);
  }
  CloseAll(loop, sessions);
  return 0;
}

// ---- queue and many -------------------------------------------------------------------------

/// One contender, as in zklock itself.
class Contender {
 public:
  Contender(const std::string& servers, std::string path)
      : path_(std::move(path)), session_(EndpointsOf(servers), kSessionTimeout, kClock) {}

  void Join(EpollLoop& loop) {
    acquire_.emplace(
        session_, kClock,
        lock::AcquireRequest{.lock = {path_, ""}, .host = "crowd", .connect_timeout = 60s},
        process::MakeUuid, [this](const lock::AcquireEvent& event) {
          if (std::holds_alternative<lock::WaitingEvent>(event)) waits_ = true;
        });
    loop.Add(session_);
    loop.AddBeside(*acquire_, session_);
  }
  /// Releases the lock with a record, so that the next contender need not list the queue.
  void LetGo(EpollLoop& loop) {
    const lock::Ticket ticket = std::get<lock::Acquired>(*acquire_->outcome()).ticket;
    loop.Remove(*acquire_);
    acquire_.reset();
    lock::Hold hold(session_, kClock, {ticket}, 10s, [](const lock::HoldEvent&) {});
    session_.BeginClose(hold.Release({.host = "crowd"}));
    loop.Touch(session_);
  }
  [[nodiscard]] bool settled() const { return waits_ || (acquire_ && acquire_->outcome()); }
  [[nodiscard]] bool holds() const {
    if (!acquire_ || !acquire_->outcome()) return false;
    Require(std::holds_alternative<lock::Acquired>(*acquire_->outcome()), "a lock was not given");
    return true;
  }
  zookeeper::Session& session() { return session_; }

 private:
  std::string path_;
  zookeeper::Session session_;
  std::optional<lock::Acquire> acquire_;
  bool waits_ = false;
};

class Crowd {
 public:
  Crowd(const std::string& servers, const std::string& lock, int count, bool one_lock) {
    for (int i = 0; i < count; ++i) {
      const std::string path = one_lock ? lock : lock + "/" + std::to_string(i);
      contenders_.push_back(std::make_unique<Contender>(servers, path));
    }
  }

  /// Runs until every contender holds its lock or waits for it.
  void JoinAll() {
    std::size_t begun = 0;
    Tell("joined", [&](std::size_t index) {
      for (; begun < std::min(index + kMostJoining, contenders_.size()); ++begun) {
        contenders_[begun]->Join(loop_);
      }
      loop_.RunUntil([&] { return contenders_[index]->settled(); });
    });
  }
  void AwaitLeave() { WaitForInputsEnd(loop_); }
  /// Makes each contender release its lock as soon as it has acquired it.
  void PassOn() {
    std::deque<Contender*> left, closing;
    for (const auto& contender : contenders_) left.push_back(contender.get());
    Tell("passed", [&](std::size_t) {
      auto next = left.end();
      loop_.RunUntil([&] {
        // They are queued in the order in which they joined, except for those that joined at the
        // same time.
        const auto last =
            left.begin() + std::min<std::ptrdiff_t>(std::ssize(left),
                                                    static_cast<std::ptrdiff_t>(2 * kMostJoining));
        next = std::find_if(left.begin(), last, [](auto* one) { return one->holds(); });
        return next != last;
      });
      (*next)->LetGo(loop_);
      closing.push_back(*next);
      left.erase(next);
      if (closing.size() <= kMostJoining) return;
      loop_.RunUntil([&] { return closing.front()->session().IsClosed(); });
      closing.pop_front();
    });
  }
  void End() {
    std::vector<zookeeper::Session*> sessions;
    for (const auto& contender : contenders_) sessions.push_back(&contender->session());
    CloseAll(loop_, sessions);
  }

 private:
  template <typename Step>
  void Tell(const char* what, Step step) {
    const std::size_t count = contenders_.size();
    const std::size_t part = std::max<std::size_t>(count / kSteps, 1);
    const TimePoint began = kClock.Now();
    for (std::size_t index = 0; index < count; ++index) {
      step(index);
      if ((index + 1) % part == 0) {
        fmt::print("{} {} {:.6f}\n", what, index + 1, Seconds(kClock.Now() - began));
        std::fflush(stdout);
      }
    }
  }

  EpollLoop loop_;
  std::vector<std::unique_ptr<Contender>> contenders_;
};

int Scale(const std::string& servers, const std::string& lock, int count, bool one_lock) {
  Crowd crowd(servers, lock, count, one_lock);
  crowd.JoinAll();
  crowd.AwaitLeave();
  crowd.PassOn();
  crowd.End();
  return 0;
}

int Main(const Words& words) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Require(words.size() >= 4, "see the head of tests/bench/crowd.cc");
  const std::string& what = words[0];
  const int count = std::stoi(words[3]);
  if (what == "fill" && words.size() == 5) return Fill(words[1], words[2], count, words[4]);
  if (what == "herd" && words.size() > 5) {
    return Herd(words[1], words[2], count, std::stoi(words[4]), {words.begin() + 5, words.end()});
  }
  if (what == "queue") return Scale(words[1], words[2], count, true);
  if (what == "many") return Scale(words[1], words[2], count, false);
  throw std::runtime_error("what is '" + what + "'?");
}

}  // namespace
}  // namespace zklock::bench

int main(int argc, char** argv) {
  try {
    return zklock::bench::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "crowd: {}\n", error.what());
    return 70;
  }
}
