#include "commands/run/acquire_locks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "commands/session/exit.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

struct Recorder final : cli::EventListener {
  void OnEvent(const cli::Event& event) override { events.push_back(event); }
  std::vector<cli::Event> events;
};

cli::RunOptions OptionsFor(const std::string& servers) {
  cli::RunOptions options;
  options.server.servers = std::get<zookeeper::ServerList>(zookeeper::ParseServerList(servers));
  options.server.connect_timeout = 200ms;
  options.server.session_timeout = 10s;
  options.locks = {{.path = "/l"}};
  options.conflict_exit_code = 75;
  return options;
}

/// A run on /l with servers that do not grant it a session; records its messages and events.
struct Bench {
  explicit Bench(const std::string& servers) : options(OptionsFor(servers)) {
    context.events.Add(recorder);
  }

  /// Returns the exit status with which it fails.
  int Acquire(std::function<bool()> is_cancelled = {}) {
    try {
      (void)AcquireLocks(context,
                         {.beneficiary = getpid(),
                          .contender_data = [](const cli::WantedLock&) { return std::string(); },
                          .is_cancelled = std::move(is_cancelled)});
    } catch (const Exit& exit) {
      return exit.status();
    }
    FAIL("the lock was acquired");
    return 0;
  }
  [[nodiscard]] std::string Messages() const { return directory.Read("messages"); }
  [[nodiscard]] std::vector<cli::ReleasedEvent> Ends() const {
    std::vector<cli::ReleasedEvent> ends;
    for (const cli::Event& event : recorder.events) {
      if (const auto* end = std::get_if<cli::ReleasedEvent>(&event)) ends.push_back(*end);
    }
    return ends;
  }

  test::TemporaryDirectory directory;
  const UniqueFd messages{
      open(directory.Write("messages", "").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)};
  cli::RunOptions options;
  process::Signals signals;
  process::MessageSink sink{"dropped", messages.get()};
  Recorder recorder;
  RunContext context{options, signals, sink};
};

}  // namespace

TEST_CASE("Without a server no lock is acquired, and the reason is reported once") {
  const test::ClosedPort closed;
  Bench bench(closed.address());
  CHECK(bench.Acquire() == 69);
  const std::string messages = bench.Messages();
  CHECK_THAT(messages, Catch::Contains(closed.address()));
  CHECK(std::count(messages.begin(), messages.end(), '\n') == 1);
  REQUIRE(bench.Ends().size() == 1);
  CHECK(bench.Ends().front().reason == cli::EndReason::kUnreachable);
  CHECK(bench.Ends().front().status == 69);
}

TEST_CASE("A wait that is cancelled ends as a conflict, without a message") {
  const test::Peer peer(test::Peer::Manner::kClosesAtOnce);
  Bench bench(peer.address());
  bench.options.server.connect_timeout = 1h;
  CHECK(bench.Acquire([] { return true; }) == 75);
  CHECK(bench.Messages().empty());
  REQUIRE(bench.Ends().size() == 1);
  CHECK(bench.Ends().front().reason == cli::EndReason::kCancelled);
}

}  // namespace zklock::commands
