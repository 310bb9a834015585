#include "commands/run/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "cli/text/printable.h"
#include "lock/data/run_history.h"
#include "support/fake_store.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;
using cli::ProgressStyle;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;

constexpr const char* kErased = "\r\x1b[K";

/// A waiter after `ahead` contenders, the first of which has data.
struct Waiter {
  explicit Waiter(ProgressStyle style, std::size_t ahead = 1) : store(servers, clock) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    read_end.Reset(ends[0]);
    write_end.Reset(ends[1]);
    sink = std::make_unique<process::MessageSink>("dropped", write_end.get());
    servers.Put("/l", 0);
    for (std::size_t i = 0; i < ahead; ++i) {
      first.push_back(servers.Put("/l/web-uuid-lock-", 1, true,
                                  R"({"version":1,"host":"web1","pid":42,"command":"backup.sh"})"));
    }
    own = servers.Put("/l/own-uuid-lock-", 2, true);
    servers.nodes[own].created_ms = 100'000;
    servers.nodes[first[0]].created_ms = 40'000;
    store.Connect();
    progress =
        std::make_unique<Progress>(style, *sink,
                                   TerminalInfo{.width = [this] { return width; },
                                                .is_in_foreground = [this] { return foreground; }},
                                   store, clock);
    progress->OnEvent(lock::QueuedEvent{{.lock = {"/l", ""}, .path = own}});
    progress->OnEvent(lock::WaitingEvent{"/l", "web", {ahead, ahead - 1}});
  }

  /// Advances the clock, and wakes Progress at each time that it asked for.
  void Pass(Duration span, bool servers_answer = true) {
    const TimePoint end = clock.Now() + span;
    for (;;) {
      if (servers_answer) store.Run();
      const TimePoint wake = progress->GetInterest().wake;
      if (wake > end) break;
      clock.Set(std::max(wake, clock.Now()));
      progress->OnReady(0);
    }
    clock.Set(end);
  }
  /// Returns everything written since the last call.
  std::string Said() {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t size; (size = read(read_end.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return text;
  }
  std::size_t Requests() { return store.requests_sent(); }
  /// Returns the last drawing of the live line.
  std::string Shown() {
    const std::string said = Said();
    const std::size_t begin = said.rfind('\r') + 1;
    return said.substr(begin, said.rfind("\x1b[K") - begin);
  }

  FakeClock clock;
  FakeServers servers;
  FakeStore store;
  UniqueFd read_end;
  UniqueFd write_end;
  std::unique_ptr<process::MessageSink> sink;
  std::vector<std::string> first;
  std::string own;
  std::size_t width = 200;
  bool foreground = true;
  std::unique_ptr<Progress> progress;
};

}  // namespace

TEST_CASE("Without a terminal a line is printed after a second, and then each minute") {
  Waiter waiter(ProgressStyle::kPlain);
  waiter.Pass(999ms);
  CHECK(waiter.Said().empty());
  CHECK(waiter.Requests() == 0);
  waiter.Pass(1ms);
  CHECK(waiter.Said() ==
        "zklock: waiting for /l: next in line, 1s; held by backup.sh (pid 42 on web1) for 1m1s\n");
  waiter.Pass(59s);
  CHECK(waiter.Said().empty());
  waiter.Pass(1s);
  CHECK(
      waiter.Said() ==
      "zklock: waiting for /l: next in line, 1m1s; held by backup.sh (pid 42 on web1) for 2m1s\n");
  waiter.Pass(10min);
  const std::string said = waiter.Said();
  CHECK(std::count(said.begin(), said.end(), '\n') == 10);
  // Each line takes a list and a read of the holder. The run's own contender is read once.
  CHECK(waiter.Requests() == 12 * 2 + 1);
}

TEST_CASE("After a wait that was shown, a line says how long it was") {
  Waiter waiter(ProgressStyle::kPlain);
  waiter.Pass(900ms);
  waiter.progress->OnAcquired("/l");
  CHECK(waiter.Said().empty());
  waiter.Pass(372s);
  waiter.Said();
  waiter.progress->OnAcquired("/l, /m");
  CHECK(waiter.Said() == "zklock: acquired /l, /m after 6m12s\n");
}

TEST_CASE("A line that is due does not wait long for silent servers") {
  Waiter waiter(ProgressStyle::kPlain);
  waiter.Pass(3s, false);
  CHECK(waiter.Said() == "zklock: waiting for /l: next in line, 2s\n");
  waiter.store.Disconnect();
  waiter.Pass(1min, false);
  CHECK(waiter.Said() == "zklock: waiting for /l: next in line, 1m3s; no server answers\n");
}

TEST_CASE("Without a progress style nothing is printed, and the servers are not asked") {
  Waiter waiter(ProgressStyle::kNone);
  CHECK(waiter.progress->GetInterest().wake == kNever);
  waiter.Pass(1h);
  CHECK(waiter.Said().empty());
  CHECK(waiter.Requests() == 0);
}

TEST_CASE("The live line is drawn each second, and reads the queue every other second") {
  Waiter waiter(ProgressStyle::kBar);
  waiter.Pass(0s);
  CHECK(waiter.Shown() ==
        "zklock: waiting for /l: next in line, 0s; held by backup.sh (pid 42 on web1) for 1m");
  const std::size_t requests = waiter.Requests();
  waiter.Pass(1s);
  CHECK_THAT(waiter.Shown(), Catch::StartsWith("zklock: waiting for /l: next in line, 1s; "));
  CHECK(waiter.Requests() == requests);
  waiter.Pass(59s);
  CHECK_THAT(waiter.Shown(), Catch::StartsWith("zklock: waiting for /l: next in line, 1m; "));
  CHECK(waiter.Requests() == requests + 30 * 2);
}

TEST_CASE("On a terminal a line is shown while no server has been found") {
  Waiter waiter(ProgressStyle::kBar);
  waiter.store.Disconnect();
  waiter.progress = std::make_unique<Progress>(
      ProgressStyle::kBar, *waiter.sink,
      TerminalInfo{.width = [] { return 80; }, .is_in_foreground = [] { return true; }},
      waiter.store, waiter.clock);
  waiter.Said();
  waiter.Pass(0s, false);
  CHECK(waiter.Said().empty());
  waiter.Pass(3s, false);
  CHECK(waiter.Shown() == "zklock: looking for a server, 3s");
  waiter.progress->OnEvent(cli::ConnectedEvent{.server = "zk1:2181"});
  CHECK(waiter.Said() == kErased);
  waiter.store.Connect();
  waiter.Pass(3s);
  CHECK(waiter.Said().empty());
}

TEST_CASE("A long queue is read less often") {
  Waiter waiter(ProgressStyle::kBar, 1000);
  waiter.Pass(0s);
  const std::size_t requests = waiter.Requests();
  waiter.Pass(49s);
  CHECK(waiter.Requests() == requests);
  waiter.Pass(1s);
  CHECK(waiter.Requests() == requests + 2);
}

TEST_CASE("A job in the background draws nothing and sends no requests") {
  Waiter waiter(ProgressStyle::kBar);
  waiter.foreground = false;
  waiter.Pass(1min);
  CHECK(waiter.Said().empty());
  CHECK(waiter.Requests() == 0);
  waiter.foreground = true;
  waiter.Pass(1s);
  CHECK_THAT(waiter.Shown(), Catch::StartsWith("zklock: waiting for /l: next in line, 1m1s"));
}

TEST_CASE("The live line is erased before a message, before a suspension and at the end") {
  Waiter waiter(ProgressStyle::kBar);
  waiter.Pass(1s);
  waiter.Said();
  SECTION("a message") {
    waiter.sink->WriteLine("zklock: a message");
    CHECK(waiter.Said() == std::string(kErased) + "zklock: a message\n");
    waiter.sink->WriteLine("zklock: another");
    CHECK(waiter.Said() == "zklock: another\n");
  }
  SECTION("a suspension, after which it is drawn at once") {
    waiter.progress->Pause();
    CHECK(waiter.Said() == kErased);
    waiter.Pass(0s);
    CHECK_FALSE(waiter.Shown().empty());
  }
  SECTION("the end") {
    waiter.progress.reset();
    CHECK(waiter.Said() == kErased);
    waiter.sink->WriteLine("zklock: a message");
    CHECK(waiter.Said() == "zklock: a message\n");
  }
  SECTION("the end by a key, which the terminal echoes after it") {
    waiter.progress->Interrupt();
    waiter.progress.reset();
    CHECK(waiter.Said() == kErased);
    waiter.sink->WriteLine("zklock: a message");
    CHECK(waiter.Said() == std::string(kErased) + "zklock: a message\n");
    waiter.sink->WriteLine("zklock: another");
    CHECK(waiter.Said() == "zklock: another\n");
  }
}

TEST_CASE("The live line fits the terminal, whatever its text and however it is resized") {
  Waiter waiter(ProgressStyle::kBar);
  waiter.servers.nodes[waiter.first[0]].data =
      "{\"version\":1,\"host\":\"\xe5\x8f\xb0\xe5\x8c\x97\\u001b[2J\",\"pid\":42,\"command\":\""
      "\xe3\x83\x90\xe3\x83\x83\xe3\x82\xaf\xe3\x82\xa2\xe3\x83\x83\xe3\x83\x97\"}";
  for (const std::size_t width : {80U, 60U, 61U, 40U, 20U, 200U}) {
    CAPTURE(width);
    waiter.width = width;
    waiter.Pass(1s);
    const std::string shown = waiter.Shown();
    CHECK(cli::DisplayWidth(shown) < width);
    CHECK(shown.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("The next holder's time counts from when the previous one was last seen") {
  Waiter waiter(ProgressStyle::kPlain, 3);
  waiter.Pass(1s);
  CHECK_THAT(waiter.Said(),
             Catch::Contains(": 2 waiting ahead, ") && Catch::EndsWith(" for 1m1s\n"));
  waiter.Pass(10min);
  waiter.Said();
  waiter.servers.Remove(waiter.first[0]);
  waiter.Pass(1min);
  CHECK_THAT(waiter.Said(), Catch::Contains(": 1 waiting ahead, ") && Catch::EndsWith(" for 1m\n"));
}

TEST_CASE("After the place is lost, the new one is shown") {
  Waiter waiter(ProgressStyle::kPlain);
  waiter.Pass(1s);
  waiter.Said();
  waiter.progress->OnEvent(lock::PlaceLostEvent{"/l"});
  waiter.servers.Remove(waiter.own);
  waiter.servers.Put("/l/other-uuid-lock-", 3, true);
  const std::string own = waiter.servers.Put("/l/own-uuid2-lock-", 2, true);
  waiter.progress->OnEvent(lock::QueuedEvent{{.lock = {"/l", ""}, .path = own}});
  waiter.progress->OnEvent(lock::WaitingEvent{"/l", "other", {2, 1}});
  waiter.Pass(1min);
  CHECK_THAT(waiter.Said(), Catch::StartsWith("zklock: waiting for /l: 1 waiting ahead, 1m1s"));
}

TEST_CASE("A holder that is gone is not shown") {
  Waiter waiter(ProgressStyle::kPlain);
  waiter.Pass(1s);
  waiter.Said();
  waiter.servers.Remove(waiter.first[0]);
  SECTION("before it is known whose turn it is") {
    waiter.Pass(1min);
    CHECK(waiter.Said() == "zklock: waiting for /l: next in line, 1m1s\n");
  }
  SECTION("while our own session is confirmed") {
    waiter.progress->OnEvent(lock::FirstEvent{"/l"});
    waiter.Pass(1min);
    CHECK(waiter.Said() == "zklock: waiting for /l: next in line, 1m1s; confirming the session\n");
  }
}

TEST_CASE("The line shows the one of several LOCKs that zklock waits for now") {
  Waiter waiter(ProgressStyle::kBar);
  waiter.Pass(5s);
  waiter.servers.Put("/m", 0);
  waiter.servers.Put("/m/x-uuid-lock-", 9, true);
  const std::string own = waiter.servers.Put("/m/own-uuid-lock-", 2, true);
  waiter.progress->OnEvent(lock::QueuedEvent{{.lock = {"/m", ""}, .path = own}});
  waiter.progress->OnEvent(lock::WaitingEvent{"/m", "x", {1, 0}});
  waiter.Pass(2s);
  CHECK_THAT(waiter.Shown(), Catch::StartsWith("zklock: waiting for /m: next in line, 7s; held by "
                                               "x-uuid-lock-0000000000 for "));
}

TEST_CASE("Readers that hold the lock together are not counted as waiting") {
  Waiter waiter(ProgressStyle::kPlain);
  waiter.servers.Put("/r", 0);
  for (int i = 0; i < 3; ++i) waiter.servers.Put("/r/x-uuid-__READ__", 1, true);
  waiter.servers.Put("/r/y-uuid-__WRIT__", 3, true);
  const std::string own = waiter.servers.Put("/r/own-uuid-__WRIT__", 2, true);
  waiter.progress->OnEvent(lock::QueuedEvent{{.lock = {"/r", ""}, .path = own}});
  waiter.progress->OnEvent(lock::WaitingEvent{"/r", "y", {4, 1}});
  waiter.Pass(1s);
  CHECK_THAT(waiter.Said(), Catch::StartsWith("zklock: waiting for /r: 1 waiting ahead, 1s; held"));
}

TEST_CASE("The history is read once, with the holder, and shows how long runs take") {
  Waiter waiter(ProgressStyle::kPlain);
  lock::RunHistory history;
  history.Enter({.end = lock::RunRecord::End::kEnded, .duration = 4min, .status = 0, .token = 1});
  waiter.servers.Put("/l/last-run", 0, false, history.Format(10));
  waiter.Pass(1s);
  CHECK_THAT(waiter.Said(), Catch::EndsWith(" for 1m1s; runs take 4m\n"));
  waiter.Pass(1min);
  CHECK_THAT(waiter.Said(), Catch::EndsWith(" for 2m1s; runs take 4m\n"));
  // Each line takes a list and a read of the holder. The run's own contender and the history are
  // read once.
  CHECK(waiter.Requests() == 2 * 2 + 1 + 1);
}

TEST_CASE("A waiter for a permit counts all holders, and has a place among the waiters") {
  Waiter waiter(ProgressStyle::kPlain);
  waiter.servers.Put("/l/leases", 0);
  waiter.servers.Put("/l/locks", 0);
  const std::string data = R"({"version":1,"host":"web1","pid":42,"command":"backup.sh"})";
  for (int i = 0; i < 3; ++i) waiter.servers.Put("/l/leases/web-uuid-lease-", 1, true, data);
  const std::string first = waiter.servers.Put("/l/locks/web-uuid-lock-", 3, true);
  std::string own;
  std::string place;
  SECTION("in the turnstile, after the one that waits with a permit") {
    waiter.servers.Put("/l/leases/web-uuid-lease-", 3, true);
    own = waiter.servers.Put("/l/locks/own-uuid-lock-", 2, true);
    place = "1 waiting ahead";
  }
  SECTION("with a permit") {
    own = waiter.servers.Put("/l/leases/own-uuid-lease-", 3, true);
    place = "next in line";
  }
  waiter.progress->OnEvent(lock::QueuedEvent{{.lock = {"/l", ""}, .path = own}});
  waiter.progress->OnEvent(lock::WaitingEvent{"/l", "web", {1, 0}});
  waiter.Pass(1s);
  CHECK_THAT(waiter.Said(), Catch::StartsWith("zklock: waiting for /l: " + place +
                                              ", 1s; held by backup.sh (pid 42 on web1) for ") &&
                                Catch::EndsWith(", and 2 more\n"));
}

TEST_CASE("The line names a LOCK for which zklock still waits") {
  Waiter waiter(ProgressStyle::kPlain);
  for (const char* const path : {"/m", "/n"}) {
    waiter.servers.Put(path, 0);
    waiter.progress->OnEvent(lock::QueuedEvent{{.lock = {path, ""}, .path = "/own"}});
  }
  waiter.progress->SetAlternatives(3);
  waiter.progress->OnEvent(lock::WaitingEvent{"/m", "web", {4, 3}});
  waiter.progress->OnEvent(lock::WaitingEvent{"/n", "web", {2, 1}});
  waiter.progress->OnEvent(
      lock::QueueLeftEvent{.lock = "/l", .contender = waiter.own, .open = {"/m", "/n"}});
  waiter.Pass(2s, false);
  CHECK(waiter.Said() == "zklock: waiting for /n (any of 2): 1 waiting ahead, 2s\n");
  waiter.progress->OnEvent(
      lock::QueueLeftEvent{.lock = "/n", .contender = waiter.own, .open = {"/m"}});
  waiter.Pass(61s, false);
  CHECK(waiter.Said() == "zklock: waiting for /m: 3 waiting ahead, 1m3s\n");
}

}  // namespace zklock::commands
