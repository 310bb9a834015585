#include "commands/event_broadcaster.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <variant>
#include <vector>

#include "support/fake_clock.h"

namespace zklock::commands {
namespace {

struct Recorder final : cli::EventListener {
  void OnEvent(const cli::Event& event) override { events.push_back(event); }
  std::vector<cli::Event> events;
};

}  // namespace

TEST_CASE("A contender that queues after the session expired is published as requeued") {
  test::FakeClock clock;
  zookeeper::Session session({}, std::chrono::seconds(30), clock, {});
  Recorder recorder;
  EventBroadcaster broadcaster({&recorder});
  QueueEvents queue(broadcaster, session, {}, false);
  const lock::Ticket ticket = {.lock = {"/l", ""}, .path = "/l/own-uuid-lock-0000000000"};
  const lock::Ticket other = {.lock = {"/m", ""}, .path = "/m/own-uuid-lock-0000000000"};
  queue.OnQueued(ticket);
  queue.OnPlaceLost(ticket.lock);
  queue.OnQueued(ticket);
  queue.OnQueued(other);
  REQUIRE(recorder.events.size() == 4);
  CHECK_FALSE(std::get<cli::QueuedEvent>(recorder.events[0]).is_requeued);
  CHECK(std::get<cli::PlaceLostEvent>(recorder.events[1]).lock == "/l");
  CHECK(std::get<cli::QueuedEvent>(recorder.events[2]).is_requeued);
  CHECK_FALSE(std::get<cli::QueuedEvent>(recorder.events[3]).is_requeued);
}

TEST_CASE("A short session time-out is warned of, an ordinary one is not") {
  Recorder recorder;
  EventBroadcaster broadcaster({&recorder});
  broadcaster.WarnOfShortSession(std::chrono::seconds(30));
  CHECK(recorder.events.empty());
  broadcaster.WarnOfShortSession(std::chrono::seconds(5));
  REQUIRE(recorder.events.size() == 1);
  CHECK(std::get<cli::ShortSessionEvent>(recorder.events[0]).timeout == std::chrono::seconds(5));
}

}  // namespace zklock::commands
