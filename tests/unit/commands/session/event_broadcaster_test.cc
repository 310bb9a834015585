#include "commands/session/event_broadcaster.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "lock/data/contender_data.h"
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
  EventBroadcaster broadcaster;
  broadcaster.Add(recorder);
  QueueEvents queue(broadcaster, session, {}, false);
  const lock::Ticket ticket = {.lock = {"/l", ""}, .path = "/l/own-uuid-lock-0000000000"};
  const lock::Ticket other = {.lock = {"/m", ""}, .path = "/m/own-uuid-lock-0000000000"};
  queue.OnEvent(lock::QueuedEvent{ticket});
  queue.OnEvent(lock::PlaceLostEvent{"/l"});
  queue.OnEvent(lock::QueuedEvent{ticket});
  queue.OnEvent(lock::QueuedEvent{other});
  REQUIRE(recorder.events.size() == 4);
  CHECK_FALSE(std::get<lock::QueuedEvent>(recorder.events[0]).is_requeued);
  CHECK(std::get<lock::PlaceLostEvent>(recorder.events[1]).lock == "/l");
  CHECK(std::get<lock::QueuedEvent>(recorder.events[2]).is_requeued);
  CHECK_FALSE(std::get<lock::QueuedEvent>(recorder.events[3]).is_requeued);
}

TEST_CASE("A request to leave counts though another contender of ours was not asked") {
  test::FakeClock clock;
  zookeeper::Session session({}, std::chrono::seconds(30), clock, {});
  EventBroadcaster broadcaster;
  const auto data = [](bool is_asked, bool only_waiting) {
    lock::ContenderData own;
    if (is_asked) own.release_request = lock::ReleaseRequest{.only_waiting = only_waiting};
    return lock::FormatContenderData(own);
  };
  const bool only_waiting = GENERATE(false, true);
  QueueEvents queue(broadcaster, session, {}, false);
  HoldEvents hold(broadcaster, session, "/l, /m");
  for (const bool is_asked : {false, true, false}) {
    queue.OnEvent(lock::OwnDataEvent{"/l/own", data(is_asked, only_waiting)});
    hold.OnEvent(lock::OwnDataEvent{"/l/own", data(is_asked, only_waiting)});
  }
  CHECK(queue.asked().size() == 1);
  CHECK(hold.release_request().has_value() == !only_waiting);
}

TEST_CASE("Requests to leave for two contenders of ours are both known until each has left") {
  test::FakeClock clock;
  zookeeper::Session session({}, std::chrono::seconds(30), clock, {});
  EventBroadcaster broadcaster;
  QueueEvents queue(broadcaster, session, {}, false);
  const std::string request =
      lock::FormatContenderData({.release_request = lock::ReleaseRequest{}});
  for (const char* const contender : {"/l/own", "/m/own", "/l/own"}) {
    queue.OnEvent(lock::OwnDataEvent{contender, request});
  }
  REQUIRE(queue.asked().size() == 2);
  CHECK(queue.asked().front().contender == "/m/own");
  CHECK(queue.asked().back().contender == "/l/own");
  queue.Forget("/l/own");
  REQUIRE(queue.asked().size() == 1);
  CHECK(queue.asked().front().contender == "/m/own");
}

TEST_CASE("A short session timeout causes a warning, an ordinary one does not") {
  Recorder recorder;
  EventBroadcaster broadcaster;
  broadcaster.Add(recorder);
  broadcaster.WarnOfShortSession(std::chrono::seconds(30));
  CHECK(recorder.events.empty());
  broadcaster.WarnOfShortSession(std::chrono::seconds(5));
  REQUIRE(recorder.events.size() == 1);
  CHECK(std::get<cli::ShortSessionEvent>(recorder.events[0]).timeout == std::chrono::seconds(5));
}

}  // namespace zklock::commands
