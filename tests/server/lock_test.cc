#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lock/acquire/acquire.h"
#include "lock/hold/hold.h"
#include "process/transport/name_lookup.h"
#include "process/tree/identity.h"
#include "server/client.h"
#include "support/peer.h"
#include "support/server.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;
using protocol::Mode;

/// How a contender is started.
struct Start {
  Mode mode = Mode::kExclusive;
  bool try_only = false;
  std::optional<Duration> wait = std::nullopt;
  std::vector<std::string> servers = {TestServers()};
  Duration session_timeout = 10s;
};

/// A zklock without a command: its session, its contender, and its hold.
class Contender : public lock::AcquireObserver, public lock::HoldObserver {
 public:
  Contender(process::EventLoop& loop, std::string lock, Start start = {})
      : loop_(loop), session_(EndpointsOf(start.servers), start.session_timeout, clock_) {
    loop_.Add(session_);
    acquire_.emplace(session_, clock_,
                     lock::AcquireRequest{.lock = {std::move(lock), ""},
                                          .mode = start.mode,
                                          .host = "host",
                                          .data = "data",
                                          .try_only = start.try_only,
                                          .wait = start.wait,
                                          .connect_timeout = 30s},
                     process::MakeUuid, *this);
    loop_.Add(*acquire_);
  }
  ~Contender() override {
    if (hold_) loop_.Remove(*hold_);
    if (acquire_) loop_.Remove(*acquire_);
    loop_.Remove(session_);
  }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  [[nodiscard]] bool is_decided() const { return acquire_ && acquire_->outcome(); }
  [[nodiscard]] bool has_acquired() const {
    return is_decided() && std::holds_alternative<lock::Acquired>(*acquire_->outcome());
  }
  [[nodiscard]] const lock::AcquireOutcome& outcome() const { return *acquire_->outcome(); }
  [[nodiscard]] const lock::Ticket& ticket() const {
    return std::get<lock::Acquired>(outcome()).ticket;
  }
  [[nodiscard]] zookeeper::Session& session() { return session_; }
  [[nodiscard]] lock::Hold& hold() { return *hold_; }

  /// Waits until it holds the lock; from then on, it sends heartbeats.
  void Hold() {
    RunUntil(loop_, [&] { return is_decided(); });
    REQUIRE(has_acquired());
    hold_.emplace(session_, clock_, std::vector<lock::Ticket>{ticket()}, 1s, *this);
    loop_.Remove(*acquire_);
    loop_.Add(*hold_);
  }
  void Leave() {
    session_.BeginClose();
    RunUntil(loop_, [&] { return session_.IsClosed(); });
  }

  std::string queued;
  std::string predecessor;
  int times_waiting = 0;
  int leases = 0;
  TimePoint lease_end{};
  std::vector<std::string> doubts;

  void OnQueued(const lock::Ticket& ticket) override { queued = ticket.path; }
  void OnWaiting(const lock::LockName& /*lock*/, const std::string& name,
                 const lock::Ahead& /*ahead*/) override {
    predecessor = name;
    ++times_waiting;
  }
  void OnLease(TimePoint end, Duration /*grace*/) override {
    lease_end = end;
    ++leases;
  }
  void OnSuspect() override { doubts.emplace_back("suspect"); }
  void OnConfirmed() override { doubts.emplace_back("confirmed"); }

 private:
  process::EventLoop& loop_;
  const SystemClock clock_;
  zookeeper::Session session_;
  std::optional<lock::Acquire> acquire_;
  std::optional<lock::Hold> hold_;
};

/// A contender that holds the lock.
struct Holder final : Contender {
  Holder(process::EventLoop& loop, const std::string& lock, const Start& start = {})
      : Contender(loop, lock, start) {
    Hold();
  }
};

/// A contender that waits for the lock.
struct Waiter final : Contender {
  Waiter(process::EventLoop& loop, const std::string& lock, const Start& start = {})
      : Contender(loop, lock, start) {
    RunUntil(loop, [&] { return !predecessor.empty() || is_decided(); });
    REQUIRE_FALSE(is_decided());
  }
};

std::string Base(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

TEST_CASE("holder, blocked, next: the lock is handed over in the order of arrival") {
  const std::string lock = NewLock("hands");
  process::EventLoop loop;
  Holder holder(loop, lock);
  Waiter blocked(loop, lock);
  CHECK(blocked.predecessor == Base(holder.queued));
  Waiter next(loop, lock);
  CHECK(next.predecessor == Base(blocked.queued));

  holder.Leave();
  blocked.Hold();
  CHECK(blocked.ticket().token > holder.ticket().token);
  CHECK_FALSE(next.is_decided());
  CHECK(next.times_waiting == 1);  // the first release woke only the second contender
  blocked.Leave();
  next.Hold();
  CHECK(next.ticket().token > blocked.ticket().token);
  next.Leave();
  Tree tree;
  CHECK(tree.Children(lock).empty());
}

TEST_CASE("a waiter that leaves does not let the next one pass the holder") {
  const std::string lock = NewLock("leaves");
  process::EventLoop loop;
  Holder holder(loop, lock);
  Waiter blocked(loop, lock);
  Waiter next(loop, lock);
  blocked.Leave();
  RunUntil(loop, [&] { return next.times_waiting == 2; });
  CHECK(next.predecessor == Base(holder.queued));
  CHECK_FALSE(next.is_decided());
  holder.Leave();
  next.Hold();
}

TEST_CASE("readers hold the lock together, and a writer waits for the last of them") {
  const std::string lock = NewLock("readers");
  process::EventLoop loop;
  Holder first(loop, lock, {.mode = Mode::kRead});
  Holder second(loop, lock, {.mode = Mode::kRead});
  Waiter writer(loop, lock, {.mode = Mode::kWrite});
  second.Leave();
  RunUntil(loop, [&] { return writer.times_waiting == 2; });
  CHECK(writer.predecessor == Base(first.queued));
  CHECK_FALSE(writer.is_decided());
  first.Leave();
  writer.Hold();
}

TEST_CASE("a reader does not pass a waiting writer") {
  const std::string lock = NewLock("fair");
  process::EventLoop loop;
  Holder holder(loop, lock, {.mode = Mode::kRead});
  Waiter writer(loop, lock, {.mode = Mode::kWrite});
  Waiter reader(loop, lock, {.mode = Mode::kRead});
  CHECK(reader.predecessor == Base(writer.queued));
  holder.Leave();
  writer.Hold();
  CHECK_FALSE(reader.is_decided());
  writer.Leave();
  reader.Hold();
}

TEST_CASE("an exclusive contender conflicts with readers as a writer does") {
  const std::string lock = NewLock("meet");
  process::EventLoop loop;
  Holder reader(loop, lock, {.mode = Mode::kRead});
  Waiter exclusive(loop, lock);
  Waiter writer(loop, lock, {.mode = Mode::kWrite});
  CHECK(writer.predecessor == Base(exclusive.queued));
}

TEST_CASE("a try that finds the lock taken leaves without creating anything") {
  const std::string lock = NewLock("try");
  process::EventLoop loop;
  Holder holder(loop, lock);
  Tree tree;
  const auto children = tree.Children(lock);
  Contender busy(loop, lock, {.try_only = true});
  RunUntil(loop, [&] { return busy.is_decided(); });
  const auto* why = std::get_if<lock::Busy>(&busy.outcome());
  REQUIRE(why != nullptr);
  CHECK(why->why == lock::Busy::Why::kTaken);
  CHECK(why->blocker == Base(holder.queued));
  CHECK(busy.queued.empty());
  CHECK(tree.Children(lock) == children);
  holder.Leave();
  Holder free(loop, lock, {.try_only = true});
}

TEST_CASE("a wait ends when its time is over") {
  const std::string lock = NewLock("wait");
  process::EventLoop loop;
  Holder holder(loop, lock);
  const TimePoint before = BootClock::now();
  Contender blocked(loop, lock, {.wait = 300ms});
  RunUntil(loop, [&] { return blocked.is_decided(); });
  CHECK(BootClock::now() - before >= 300ms);
  const auto* why = std::get_if<lock::Busy>(&blocked.outcome());
  REQUIRE(why != nullptr);
  CHECK(why->why == lock::Busy::Why::kWaitOver);
  blocked.Leave();
  Tree tree;
  CHECK(tree.Children(lock).size() == 1);
}

TEST_CASE("a waiter whose contender is deleted leaves at once") {
  const std::string lock = NewLock("removed");
  process::EventLoop loop;
  Holder holder(loop, lock);
  Waiter blocked(loop, lock, {.session_timeout = 40s});
  Tree tree;
  const TimePoint before = BootClock::now();
  tree.Delete(blocked.queued);
  RunUntil(loop, [&] { return blocked.is_decided(); });
  CHECK(BootClock::now() - before < 5s);  // i.e. before its next read was due
  const auto* why = std::get_if<lock::Busy>(&blocked.outcome());
  REQUIRE(why != nullptr);
  CHECK(why->why == lock::Busy::Why::kRemoved);
}

TEST_CASE("a holder whose contender is deleted loses the lock at once") {
  const std::string lock = NewLock("removed");
  process::EventLoop loop;
  Holder holder(loop, lock, {.session_timeout = 40s});
  Tree tree;
  const TimePoint before = BootClock::now();
  tree.Delete(holder.queued);
  RunUntil(loop, [&] { return holder.hold().loss().has_value(); });
  CHECK(holder.hold().loss() == EndCause::kRemoved);
  CHECK(BootClock::now() - before < 5s);  // i.e. before the next heartbeat was due
}

TEST_CASE("a holder keeps its lock over a connection that is cut") {
  const std::string lock = NewLock("cut");
  Proxy proxy(TestServers());
  process::EventLoop loop;
  Holder holder(loop, lock, {.servers = {proxy.address()}});
  for (int i = 1; i <= 3; ++i) {
    proxy.Cut();
    RunUntil(loop, [&] { return holder.doubts.size() == 2u * static_cast<unsigned>(i); });
    CHECK(holder.doubts.back() == "confirmed");
  }
  CHECK_FALSE(holder.hold().loss());
}

TEST_CASE("a holder leaves a server that hangs, and continues with another") {
  const std::string lock = NewLock("hang");
  Proxy first(TestServers());
  Proxy second(TestServers());
  process::EventLoop loop;
  Holder holder(loop, lock,
                {.servers = {first.address(), second.address()}, .session_timeout = 24s});
  Proxy& used = holder.session().connected_server() == first.address() ? first : second;
  const TimePoint before = BootClock::now();
  used.Freeze();
  RunUntil(loop, [&] { return holder.doubts.size() == 2 || holder.hold().loss(); });
  CHECK(holder.doubts == std::vector<std::string>{"suspect", "confirmed"});
  CHECK_FALSE(holder.hold().loss());
  CHECK(BootClock::now() - before < 15s);  // the client library would have waited for 16 s
}

TEST_CASE("a holder without servers gives up before the next contender can take the lock") {
  const std::string lock = NewLock("lease");
  Proxy proxy(TestServers());
  process::EventLoop loop;
  std::optional<Contender> holder;
  holder.emplace(loop, lock, Start{.servers = {proxy.address()}, .session_timeout = 4s});
  holder->Hold();
  Waiter next(loop, lock);

  SECTION("when nothing gets through") { proxy.Freeze(); }
  SECTION("when requests get through, but no answers") { proxy.FreezeReplies(); }
  TimePoint last_undecided{};
  RunUntil(loop, [&] {
    const bool is_over = holder->hold().loss() || next.is_decided();
    if (!is_over) last_undecided = BootClock::now();
    return is_over;
  });
  REQUIRE(holder->hold().loss());
  CHECK(holder->hold().loss() == EndCause::kUnproven);
  const TimePoint lease_end = holder->lease_end;
  // If this process was stalled at the lease's end, one round of the loop may serve both.
  CHECK((!next.is_decided() || last_undecided < lease_end));
  holder.reset();
  next.Hold();
  CHECK(BootClock::now() > lease_end);
}

TEST_CASE("a create whose reply is lost leaves one contender, which is adopted") {
  auto [tree, lock] = MadeLock("adopt");
  Proxy proxy(TestServers());
  process::EventLoop loop;
  Contender contender(loop, lock, {.servers = {proxy.address()}});
  RunUntil(loop, [&] { return contender.session().IsConnected(); });
  proxy.FreezeReplies();
  std::vector<std::string> children;
  RunUntil(loop, [&] { return !(children = tree.Children(lock)).empty(); });
  proxy.Cut();
  proxy.Thaw();
  contender.Hold();
  CHECK(Base(contender.ticket().path) == children.front());
  CHECK(tree.Children(lock) == children);
}

TEST_CASE("'localhost' is looked up, and the server is reached") {
  const std::string server = TestServers();
  process::EventLoop loop;
  process::NameLookup lookup({{"localhost", server.substr(server.rfind(':') + 1)}});
  loop.Add(lookup);
  RunUntil(loop, [&] { return lookup.result().has_value(); });
  loop.Remove(lookup);
  CHECK(lookup.result()->failures.empty());
  REQUIRE_FALSE(lookup.result()->endpoints.empty());

  const SystemClock clock;
  zookeeper::Session session(lookup.result()->endpoints, 10s, clock);
  loop.Add(session);
  RunUntil(loop, [&] { return session.IsConnected(); });
  CHECK(session.connected_server() == "localhost" + server.substr(server.rfind(':')));
  loop.Remove(session);
}

}  // namespace zklock::test
