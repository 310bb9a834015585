#include "cli/reports/event_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/stalled_pipe.h"

namespace zklock::cli {
namespace {

using nlohmann::json;
using test::StalledPipe;

lock::Ticket SomeTicket() {
  return {.lock = {"/app/l", "/app"},
          .mode = protocol::Mode::kRead,
          .path = "/app/l/host-uuid-__READ__0000000007",
          .token = 9007199254740993};
}

/// Returns everything that is in the pipe now.
std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t size; (size = read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return text;
}

std::vector<json> Events(const std::string& text) {
  std::vector<json> events;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);  // never a partial line
    events.push_back(json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return events;
}

UniqueFd Duplicate(const UniqueFd& fd) { return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

TEST_CASE("An event is one line of JSON that begins with the common members in a fixed order") {
  EventContext context{.time = "T", .ticket = SomeTicket()};
  EventText waiting = Describe(lock::WaitingEvent{"/l", "other-lock-0000000003", {4}});
  CHECK(EventLine(waiting, context) ==
        R"({"time":"T","event":"waiting","lock":"/l","contender":"host-uuid-__READ__0000000007",)"
        R"("token":"9007199254740993","position":5,"waitsFor":"other-lock-0000000003"})");
  context.ticket.reset();
  EventText connected =
      Describe(ConnectedEvent{"zk1:2181", std::chrono::seconds(30), std::chrono::milliseconds(4500),
                              std::chrono::seconds(30)});
  connected.lock = "/l";
  CHECK(EventLine(connected, context) ==
        R"({"time":"T","event":"connected","lock":"/l","contender":null,"token":null,)"
        R"("position":null,"server":"zk1:2181","sessionTimeout":30.0,"effectiveTimeout":4.5})");
}

TEST_CASE("Arbitrary bytes in an event become valid JSON") {
  const std::string line =
      EventLine(Describe(lock::WaitingEvent{"/l", "\xff\x1b[2J\n\"-lock-0000000003", {1}}), {});
  CHECK(line.find('\n') == std::string::npos);
  CHECK(line.find('\x1b') == std::string::npos);
  CHECK(json::parse(line)["waitsFor"] == "\xef\xbf\xbd\x1b[2J\n\"-lock-0000000003");
}

TEST_CASE("The event of a reservation contains its ID, its end, and whether it is new") {
  const lock::Ticket ticket = SomeTicket();
  const auto fields = [&](const ReservedEvent& event) {
    return json::parse(EventLine(Describe(event), {.ticket = ticket}));
  };
  const json made = fields({.ticket = ticket, .id = "freeze", .until_ms = 1709294400000});
  CHECK(made["event"] == "reserved");
  CHECK(made["mode"] == "read");
  CHECK(made["id"] == "freeze");
  CHECK(made["until"] == "2024-03-01T12:00:00.000Z");
  CHECK(made["new"] == true);
  const json found = fields({.ticket = ticket, .id = "freeze", .since_ms = 1709294400000});
  CHECK(found["until"].is_null());
  CHECK(found["new"] == false);
}

TEST_CASE("The event of a killed command names the signal") {
  const json killed = json::parse(EventLine(Describe(ExitedEvent{9}), {}));
  CHECK(killed["status"] == 137);
  CHECK(killed["signal"] == "SIGKILL");
  const json ended = json::parse(EventLine(Describe(ExitedEvent{75 << 8}), {}));
  CHECK(ended["status"] == 75);
  CHECK(ended["signal"].is_null());
}

TEST_CASE("The event of a contender that replaces one lost with its session says so") {
  StalledPipe pipe;
  ReadAll(pipe.read.get());
  EventWriter writer(Duplicate(pipe.write), {"/l"});
  writer.OnEvent(lock::QueuedEvent{SomeTicket()});
  writer.OnEvent(lock::PlaceLostEvent{"/l"});
  writer.OnEvent(
      ConnectedEvent{"zk1:2181", std::chrono::seconds(30), std::chrono::seconds(30), {}});
  writer.OnEvent(lock::QueuedEvent{.ticket = SomeTicket(), .is_requeued = true});
  const auto events = Events(ReadAll(pipe.read.get()));
  REQUIRE(events.size() == 3);
  CHECK_FALSE(events[0].contains("reason"));
  CHECK(events[1]["contender"].is_null());
  CHECK(events[2]["reason"] == "expired");
}

TEST_CASE("Events that do not fit are dropped whole, and counted in the next one") {
  StalledPipe pipe;
  EventWriter writer(Duplicate(pipe.write), {"/l"});
  constexpr std::size_t kTold = 2000;  // more than 64 KiB
  for (std::size_t i = 0; i < kTold; ++i) writer.OnEvent(lock::WaitingEvent{"/l", "p", {i}});
  const std::string stalled = ReadAll(pipe.read.get());
  CHECK(stalled.find_first_not_of('x') == std::string::npos);
  std::string text;
  while (writer.GetInterest().fd >= 0) {
    writer.OnReady(POLLOUT);
    text += ReadAll(pipe.read.get());
  }
  writer.OnEvent(SuspectEvent{"/l"});
  text += ReadAll(pipe.read.get());
  const auto events = Events(text);
  REQUIRE(events.size() > 100);
  const auto& last = events.back();
  CHECK(last["event"] == "suspect");
  CHECK(last["dropped"] == kTold - (events.size() - 1));
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    CHECK(events[i]["position"] == i + 1);
    CHECK_FALSE(events[i].contains("dropped"));
  }
  writer.OnEvent(ConfirmedEvent{"/l"});
  CHECK_FALSE(Events(ReadAll(pipe.read.get())).at(0).contains("dropped"));
}

TEST_CASE("The file status flags of a shared descriptor do not change") {
  StalledPipe pipe;
  EventWriter writer(Duplicate(pipe.write), {"/l"});
  writer.OnEvent(SuspectEvent{"/l"});
  CHECK((fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK) == 0);
}

}  // namespace
}  // namespace zklock::cli
