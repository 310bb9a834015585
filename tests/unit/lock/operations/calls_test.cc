#include "lock/operations/calls.h"

#include <catch2/catch.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "lock/survey/holders.h"
#include "support/fake_store.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using zookeeper::GetReply;

struct CallsBench : test::FakeBench {
  CallsBench() {
    for (const char* path : {"/a", "/b", "/c"}) servers.Put(path, 0, false, path);
  }
};

/// Thrown in place of a signal.
struct Interruption {};

}  // namespace

TEST_CASE("Work begins again over the next connection, whichever request is lost") {
  const Fault fault = GENERATE(Fault::kNotDone, Fault::kReplyLost, Fault::kExpiredNotDone,
                               Fault::kExpiredReplyLost, Fault::kAnsweredAndClosed);
  for (std::size_t at = 0; at < 2; ++at) {
    CAPTURE(static_cast<int>(fault), at);
    CallsBench bench;
    bench.store.PlaceFault(at, fault);
    int begun = 0;
    const std::string data = RunCalls(bench.store, bench.clock, [&](Calls& calls) {
      return calls.Repeat([&] {
        ++begun;
        const std::string first = calls.Get("/a").data;
        return first + calls.Get("/b").data;
      });
    });
    CHECK(data == "/a/b");
    // Once the last request is answered, a connection is no longer needed.
    CHECK(begun == (fault == Fault::kAnsweredAndClosed && at == 1 ? 1 : 2));
  }
}

TEST_CASE("Work does not continue over a connection other than the one it began with") {
  CallsBench bench;
  int begun = 0;
  const auto serve = [&](EventSource& /*source*/, const std::function<bool()>& is_done) {
    bench.store.Run();
    REQUIRE(is_done());
    if (begun != 1) return;
    // The connection is replaced after the answer, but before the work continues.
    bench.store.Disconnect();
    bench.store.Connect();
  };
  Calls calls(bench.store, bench.clock, 15s, serve);
  calls.Repeat([&] {
    ++begun;
    (void)calls.Get("/a");
    (void)calls.Get("/b");
  });
  CHECK(bench.store.log() == std::vector<std::string>{"get /a", "get /a", "get /b"});
}

TEST_CASE("Answers that arrive after the work has ended are dropped") {
  CallsBench bench;
  bool interrupts = false;
  const auto serve = [&](EventSource& /*source*/, const std::function<bool()>& is_done) {
    if (interrupts) throw Interruption{};
    bench.store.Run();
    REQUIRE(is_done());
  };
  Calls calls(bench.store, bench.clock, 15s, serve);
  CHECK_THROWS_AS(calls.Repeat([&] {
    (void)calls.Get("/a");
    interrupts = true;
    (void)calls.GetAll({"/a", "/b", "/c"});
  }),
                  Interruption);
  SECTION("while the next work is under way") {
    interrupts = false;
    CHECK(calls.Repeat([&] { return calls.Get("/c").data; }) == "/c");
  }
  SECTION("while no work is under way") { bench.store.Run(); }
  CHECK(bench.store.requests_sent() >= 4);
}

TEST_CASE("Work whose connection breaks again and again is given up") {
  CallsBench bench;
  std::function<void()> lose = [&] {
    bench.store.PlaceFault("get /a", Fault::kReplyLost);
    bench.store.Before("get /a", lose);
  };
  lose();
  const auto failure = RunFailingCalls(bench.store, bench.clock, [](Calls& calls) {
    return calls.Repeat([&] { return calls.Get("/a").data; });
  });
  bench.store.DropPlans();  // left over from attempts never made
  CHECK(std::holds_alternative<Unreachable>(failure));
  CHECK(bench.store.requests_sent() == 8);
}

TEST_CASE("Other exceptions end the work, and the connection remains usable for the next") {
  CallsBench bench;
  const std::string data = RunCalls(bench.store, bench.clock, [&](Calls& calls) {
    CHECK_THROWS_AS(calls.Repeat([&] {
      (void)calls.Get("/a");
      throw std::runtime_error("enough");
    }),
                    std::runtime_error);
    return calls.Repeat([&] { return calls.Get("/b").data; });
  });
  CHECK(data == "/b");
}

}  // namespace zklock::lock
