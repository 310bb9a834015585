#include "zookeeper/word_query.h"

#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "support/fake_clock.h"

namespace zklock::zookeeper {
namespace {

using namespace std::chrono_literals;
using State = WordQuery::State;

class SilentHelper final : public Helper {
 public:
  const std::string& ErrorTail() override { return words_; }
  void ForgetWords() override {}

 private:
  std::string words_;
};

/// A transport that keeps the server's end of each connection for the test.
class HeldTransport final : public Transport {
 public:
  std::unique_ptr<Helper> Start(const Endpoint& /*endpoint*/, UniqueFd socket) override {
    server = std::move(socket);
    return std::make_unique<SilentHelper>();
  }
  void Say(const std::string& text) const {
    REQUIRE(write(server.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  UniqueFd server;
};

struct Bench {
  /// Serves the query as a loop would, until it waits.
  void Serve() {
    while (!query.IsOver()) {
      const EventSource::Interest interest = query.GetInterest();
      pollfd ready{.fd = interest.fd, .events = interest.events, .revents = 0};
      if (poll(&ready, 1, 0) == 0) {
        if (clock.Now() >= interest.wake) query.OnReady(0);
        return;
      }
      query.OnReady(ready.revents);
    }
  }
  test::FakeClock clock;
  HeldTransport transport;
  WordQuery query{{"127.0.0.1:1", "zk1:1"}, "srvr", 100, clock.Now() + 3s, clock, &transport};
};

}  // namespace

TEST_CASE("A word is sent, and the answer ends when the server closes the connection") {
  Bench bench;
  bench.Serve();
  std::string word(8, '\0');
  CHECK(read(bench.transport.server.get(), word.data(), word.size()) == 4);
  CHECK(word.substr(0, 4) == "srvr");
  bench.transport.Say("one ");
  bench.Serve();
  CHECK(bench.query.state() == State::kReading);
  bench.transport.Say("two\n");
  bench.transport.server.Reset();
  bench.Serve();
  CHECK(bench.query.state() == State::kAnswered);
  CHECK(bench.query.answer() == "one two\n");
  CHECK(bench.query.own_address().empty());
}

TEST_CASE("An answer that is too long is not read to its end, and is discarded") {
  Bench bench;
  bench.Serve();
  bench.transport.Say(std::string(100, 'x'));
  bench.Serve();
  CHECK(bench.query.state() == State::kReading);
  bench.transport.Say("x");
  bench.Serve();
  CHECK(bench.query.state() == State::kTooLong);
  CHECK(bench.query.answer().empty());
}

TEST_CASE("A server that does not answer, or closes without an answer, ends the query") {
  Bench silent;
  silent.Serve();
  silent.transport.Say("half of an");
  silent.Serve();
  silent.clock.Advance(3s);
  silent.Serve();
  CHECK(silent.query.state() == State::kFailed);
  CHECK(silent.query.answer().empty());
  Bench closing;
  closing.Serve();
  closing.transport.server.Reset();
  closing.Serve();
  CHECK(closing.query.state() == State::kFailed);
}

}  // namespace zklock::zookeeper
