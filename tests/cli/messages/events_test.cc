// The output of --events, read as a program would.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/reports/event_writer.h"
#include "cli/zklock.h"
#include "support/peer.h"
#include "support/source.h"
#include "support/stalled_pipe.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using nlohmann::json;

std::vector<json> Events(const std::string& text) {
  std::vector<json> events;
  for (const std::string& line : Lines(text)) events.push_back(json::parse(line));
  return events;
}

/// Returns each event with its reason and status, if it has them: "released lost 76".
Words NamesOf(const std::vector<json>& events) {
  Words names;
  for (const json& event : events) {
    std::string name = event["event"];
    if (event.contains("reason")) name += " " + event["reason"].get<std::string>();
    if (event.contains("status")) name += " " + std::to_string(event["status"].get<int>());
    names.push_back(name);
  }
  return names;
}

/// Runs `zklock WORDS --events FILE LOCK -- COMMAND`.
std::vector<json> EventsOf(Words words, const std::string& lock, const Words& command) {
  const TemporaryDirectory directory;
  words = words + Words{"--events", directory.Path("events"), lock, "--"} + command;
  RunZklock(words);
  return Events(directory.Read("events"));
}

/// A pipe whose write end zklock inherits; number() names it.
struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  [[nodiscard]] std::string number() const { return std::to_string(write.get()); }
  UniqueFd read;
  UniqueFd write;
};

/// Returns the members that the EVENTS section of the manual page documents for each event, and
/// under "", the members that all events have.
std::map<std::string, std::set<std::string>> Documented() {
  std::ifstream file(SourcePath("man/zklock.1"));
  REQUIRE(file);
  std::map<std::string, std::set<std::string>> events;
  std::string line;
  std::string event;
  while (std::getline(file, line) && line != ".Sh EVENTS") {
  }
  while (std::getline(file, line) && !line.starts_with(".Sh ")) {
    std::smatch match;
    if (std::regex_match(line, match, std::regex(R"(\.It Va (\w+))"))) events[""].insert(match[1]);
    if (std::regex_match(line, match, std::regex(R"(\.It Cm (\w+))"))) events[event = match[1]];
    if (line == ".El") event.clear();
    if (!event.empty() && std::regex_match(line, match, std::regex(R"(\.Va (\w+)( .*)?)"))) {
      events[event].insert(match[1]);
    }
  }
  return events;
}

void CheckDocumented(const std::vector<json>& events) {
  const auto documented = Documented();
  for (const json& event : events) {
    CAPTURE(event.dump());
    const std::string event_name = event["event"];
    REQUIRE(documented.count(event_name) == 1);
    std::set<std::string> known = documented.at("");
    for (const std::string& name : known) CHECK(event.contains(name));
    known.insert(documented.at(event_name).begin(), documented.at(event_name).end());
    for (const auto& [name, value] : event.items()) {
      CAPTURE(name);
      CHECK(known.count(name) == 1);
    }
  }
}

}  // namespace

TEST_CASE("the events of a run whose command exits with 75") {
  const auto events = EventsOf({"exclusive"}, NewLock("events"), {"sh", "-c", "exit 75"});
  CHECK(NamesOf(events) ==
        Words{"connected", "queued", "acquired", "exited 75", "released ended 75"});
  CheckDocumented(events);
  for (std::size_t i = 1; i < events.size(); ++i) {
    CHECK(events[i - 1]["time"].get<std::string>() <= events[i]["time"].get<std::string>());
    CHECK_FALSE(events[i]["token"].is_null());
  }
  CHECK(events.back()["confirmed"] == true);
}

TEST_CASE("a connection is one event, however many contenders there are") {
  const std::string lock = NewLock("events");
  const auto two = EventsOf({"exclusive", lock + "-b"}, lock, {"true"});
  CHECK(NamesOf(two) == Words{"connected", "queued", "queued", "acquired", "acquired", "exited 0",
                              "released ended 0"});
  const auto permit = EventsOf({"exclusive", "--permits", "2"}, NewLock("events"), {"true"});
  CHECK(NamesOf(permit) ==
        Words{"connected", "queued", "queued", "acquired", "exited 0", "released ended 0"});
  CHECK(permit[1]["contender"].get<std::string>().find("-lock-") != std::string::npos);
  CHECK(permit[2]["contender"].get<std::string>().find("-lease-") != std::string::npos);
  CheckDocumented(permit);
}

TEST_CASE("events name the lock, the contender and the token like the command's environment") {
  const TemporaryDirectory directory;
  const std::string lock = NewLock("events");
  const Finished finished =
      RunZklock({"write", "--events", directory.Path("events"), lock, "--", "sh", "-c",
                 "echo $ZKLOCK_LOCK $ZKLOCK_NODE $ZKLOCK_TOKEN $ZKLOCK_MODE"});
  const json acquired = Events(directory.Read("events")).at(2);
  CHECK(finished.out == lock + " " + lock + "/" + acquired["contender"].get<std::string>() + " " +
                            acquired["token"].get<std::string>() + " " +
                            acquired["mode"].get<std::string>() + "\n");
  CHECK(acquired["lock"] == lock);
}

TEST_CASE("the events of runs that do not get the lock include neither acquired nor exited") {
  auto [lock, holder] = HoldNewLock("events");
  const std::string held = Tree().Children(lock).front();
  const auto busy = EventsOf({"try"}, lock, {"true"});
  CHECK(NamesOf(busy) == Words{"connected", "released held 75"});
  CheckDocumented(busy);
  const auto over = EventsOf({"exclusive", "-w", "2s", "-E", "3"}, lock, {"true"});
  CHECK(NamesOf(over) == Words{"connected", "queued", "waiting", "released wait-over 3"});
  CHECK(over[2]["position"] == 2);
  CHECK(over[2]["waitsFor"] == held);
  CheckDocumented(over);

  const TemporaryDirectory directory;
  Child waiter = StartWaiter({"exclusive", "--events", directory.Path("events")}, lock);
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(143));
  CHECK(NamesOf(Events(directory.Read("events"))) ==
        Words{"connected", "queued", "waiting", "released interrupted 143"});
}

TEST_CASE(
    "if the session of several LOCKs expires, all are queued again, and one message says so") {
  const std::string root = NewLock("events");
  const std::string one = root + "/1";
  const std::string two = root + "/2";
  const Child holder = StartHolder(two);
  const TemporaryDirectory directory;
  Proxy proxy(TestServers());
  Child waiter = StartWaiter({"exclusive", "--events", directory.Path("events"), "-z",
                              proxy.address(), "--session-timeout", "4s", one},
                             two);
  proxy.Freeze();
  Tree().WaitForChildren(one, 0);
  proxy.Thaw();
  waiter.ReadErrUntil("while waiting for " + two + ": queued again, at the tail");
  waiter.ReadErrUntil("waiting for " + two);
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(143));
  CHECK_THAT(waiter.err(), !Catch::Contains("expired while waiting for " + one));
  Words again;
  for (const json& event : Events(directory.Read("events"))) {
    if (event.value("reason", "") == "expired") again.push_back(event["lock"]);
  }
  CHECK(again == Words{one, two});
}

TEST_CASE("the events of a run that leaves one of several queues") {
  auto [lock, holder] = HoldNewLock("events");
  auto [other, holder_of_other] = HoldNewLock("events");
  const TemporaryDirectory directory;
  Child waiter =
      StartWaiter({"exclusive", "--events", directory.Path("events"), "--any", other}, lock);
  Tree tree;
  tree.WaitForChildren(other, 2);
  const Words names = tree.WaitForChildren(lock, 2);
  const bool is_first = names[0].ends_with("-0000000001");  // the holder's name ends with 0
  RunZklock({"release", lock, "--yes", "--reason", "test", "--contender", names[is_first ? 0 : 1]},
            Exited(0));
  waiter.ReadErrUntil("still waiting for");
  CHECK(Finish(holder_of_other) == Exited(0));
  CHECK(Finish(waiter) == Exited(0));
  const auto events = Events(directory.Read("events"));
  const auto left = std::find_if(events.begin(), events.end(),
                                 [](const json& one) { return one["event"] == "left"; });
  REQUIRE(left != events.end());
  CHECK((*left)["lock"] == lock);
  CHECK((*left)["contender"] == names[is_first ? 0 : 1]);
  CHECK((*left)["reason"] == "requested");
  CHECK_THAT((*left)["by"].get<std::string>(), Catch::EndsWith("('test')"));
  CheckDocumented(events);
}

TEST_CASE("the events of a run that is too soon include acquired, but not exited") {
  const std::string lock = NewLock("events");
  RunZklock({"exclusive", lock, "--", "true"}, Exited(0));
  const auto check = [&](const std::string& option) {
    const auto events = EventsOf({"exclusive", option, "1h"}, lock, {"true"});
    CHECK(NamesOf(events) == Words{"connected", "queued", "acquired", "released too-recent 75"});
    CheckDocumented(events);
  };
  check("--min-interval");
  RunZklock({"exclusive", "--once-per", "1h", lock, "--", "true"}, Exited(0));
  check("--once-per");
}

TEST_CASE("the events of a lock that is lost") {
  const TemporaryDirectory directory;
  auto [lock, holder] = HoldNewLock("events", {"exclusive", "--events", directory.Path("events")});
  Tree tree;
  tree.Delete(lock + "/" + tree.Children(lock).front());
  CHECK(holder.Wait() == Exited(76));
  const auto events = Events(directory.Read("events"));
  CHECK(NamesOf(events) ==
        Words{"connected", "queued", "acquired", "lost removed", "exited 143", "released lost 76"});
  CHECK(events[4]["signal"] == "SIGTERM");
  CheckDocumented(events);
}

TEST_CASE("the events of a run that is asked to release the lock") {
  const TemporaryDirectory directory;
  auto [lock, holder] = HoldNewLock("events", {"exclusive", "--events", directory.Path("events")});
  RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  CHECK(holder.Wait() == Exited(76));
  const auto events = Events(directory.Read("events"));
  CHECK(NamesOf(events) ==
        Words{"connected", "queued", "acquired", "exited 143", "released requested 76"});
  CheckDocumented(events);
}

TEST_CASE("the events of a connection that breaks while the command runs") {
  const TemporaryDirectory directory;
  const std::string lock = NewLock("events");
  Proxy proxy(TestServers());
  Child holder = StartHolder(
      {"exclusive", "-v", "-z", proxy.address(), "--events", directory.Path("events")}, lock);
  proxy.Cut();
  holder.ReadErrUntil("confirmed");
  CHECK(Finish(holder) == Exited(0));
  const auto events = Events(directory.Read("events"));
  CHECK(NamesOf(events) == Words{"connected", "queued", "acquired", "suspect", "connected",
                                 "confirmed", "exited 0", "released ended 0"});
  CheckDocumented(events);
}

TEST_CASE("the events under an outer lock, and without servers") {
  const std::string lock = NewLock("events");
  const TemporaryDirectory directory;
  RunZklock({"exclusive", lock, "--", Binary(), "exclusive", "-z", TestServers(), "--events",
             directory.Path("events"), lock, "--", "sh", "-c", "exit 4"},
            Exited(4));
  const auto nested = Events(directory.Read("events"));
  CHECK(NamesOf(nested) == Words{"acquired", "exited 4"});
  CHECK(nested[0]["nested"] == true);
  CheckDocumented(nested);
  const ClosedPort closed;
  CHECK(NamesOf(EventsOf({"exclusive", "-z", closed.address(), "--connect-timeout", "100ms"}, lock,
                         {"true"})) == Words{"released unreachable 69"});
}

TEST_CASE("events are appended to a file, which is created as a shell would create it") {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("events");
  ChildOptions options = Zklock({"exclusive", "--events", path, NewLock("events"), "--", "true"});
  options.prepare = [] {
    ResetSignals();
    umask(027);
  };
  Run(options, Exited(0));
  const std::string first = directory.Read("events");
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
  Run(options, Exited(0));
  CHECK_THAT(directory.Read("events"), Catch::StartsWith(first));
  CHECK(Events(directory.Read("events")).size() == 10);
}

TEST_CASE("events can be written to a descriptor, which the command does not inherit") {
  const Pipe pipe;
  ChildOptions options = Zklock({"exclusive", "--events", pipe.number(), NewLock("events"), "--",
                                 "sh", "-c", "ls -l /proc/$$/fd"});
  options.inherit = {pipe.write.get()};
  CHECK_THAT(Run(options, Exited(0)).out, !Catch::Contains(" " + pipe.number() + " ->"));
  char buffer[4096];
  const ssize_t size = read(pipe.read.get(), buffer, sizeof buffer);
  REQUIRE(size > 0);
  CHECK(Events({buffer, static_cast<std::size_t>(size)}).size() == 5);
  CHECK((fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("with events on standard error the command keeps its own standard error") {
  CHECK_THAT(
      RunZklock({"exclusive", "--events", "2", NewLock("events"), "--", "sh", "-c", "echo E >&2"},
                Exited(0))
          .err,
      Catch::Contains("\nE\n") && Catch::Contains("\"event\":\"released\""));
}

TEST_CASE("an unwritable descriptor is a usage error, and an unwritable file is a system error") {
  const Pipe pipe;
  const UniqueFd to_read(fcntl(pipe.read.get(), F_DUPFD_CLOEXEC, 20));
  const auto run = [&](const std::string& target) {
    ChildOptions options = Zklock({"exclusive", "--events", target, "/l", "--", "true"});
    options.inherit = {to_read.get()};
    options.prepare = [] {
      ResetSignals();
      for (int fd = 3; fd < 20; ++fd) close(fd);
    };
    return Run(options);
  };
  // Descriptors from 3 up, if open at all, are zklock's own.
  for (const std::string& number :
       {std::to_string(to_read.get()), std::string("3"), std::string("4"), std::string("999"),
        std::string("99999999999999999999")}) {
    CAPTURE(number);
    const Finished finished = run(number);
    CHECK(finished.exit == Exited(64));
    CHECK_THAT(finished.err, Catch::StartsWith("zklock: --events " + number + ": descriptor "));
  }
  CHECK(run("").exit == Exited(64));
  const Finished refused = run("/nowhere/at all");
  CHECK(refused.exit == Exited(71));
  CHECK(refused.err ==
        "zklock: cannot append to --events /nowhere/at all: No such file or directory\n");
}

TEST_CASE("a descriptor from a configuration file that is not writable is an error in that line") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "\nevents = 3\n");
  const auto run = [&](const Words& more) {
    ChildOptions options = Zklock({"exclusive", "--config", file, "/l", "--", "true"});
    options.argv.insert(options.argv.begin() + 2, more.begin(), more.end());
    options.prepare = [] {
      ResetSignals();
      close(3);
    };
    return Run(options);
  };
  const Finished finished = run({});
  CHECK(finished.exit == Exited(78));
  CHECK_THAT(finished.err,
             Catch::StartsWith("zklock: " + file + ":2: --events 3: descriptor 3 is not open"));
  CHECK(Lines(finished.err).size() == 1);
  CHECK(run({"--events", "3"}).exit == Exited(64));
}

TEST_CASE("a reader of events that does not read does not delay the run") {
  const StalledPipe stalled;
  const std::string lock = NewLock("events");
  ChildOptions options =
      HolderOptions({"exclusive", "--events", std::to_string(stalled.write.get())}, lock);
  options.inherit = {stalled.write.get()};
  Child child = Child::Start(options);
  CHECK(child.ReadLine() == "held");
  Tree tree;
  child.Write("6\n");
  tree.WaitForChildren(lock, 0);  // zklock waits for the reader only after the release
  CHECK(child.Wait() == Exited(6));
}

TEST_CASE("a reader of events that is gone does not end the run") {
  Pipe pipe;
  ChildOptions options = HolderOptions({"exclusive", "--events", pipe.number()}, NewLock("events"));
  options.inherit = {pipe.write.get()};
  pipe.read.Reset();
  Child child = Child::Start(options);
  CHECK(child.ReadLine() == "held");
  child.Write("3\n");
  CHECK(child.Wait() == Exited(3));
  CHECK(child.err().empty());
}

}  // namespace zklock::test
