// Reservations in the history: each is one run, which lasts until its release.

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/records/history.h"
#include "cli/reserve/reserving.h"
#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using nlohmann::json;

const Words kKept = {"--history", "32"};
const Words kPermits = {"--permits", "4", "--history", "32"};

void ReserveKept(const std::string& id, const std::string& lock, const Words& more = kKept) {
  Reserve(id, lock, more);
}

void ReleaseQuietly(const std::string& id, const std::string& lock) {
  const Finished finished = RunZklock({"release", "--reserve", id, lock});
  REQUIRE(finished.exit == Exited(0));
  CHECK(finished.err.empty());
}

/// Runs a command with --history, which also adds the missing entries of earlier runs.
void RunKept(const std::string& lock, const Words& more = kKept) {
  Words words = Words{"exclusive"} + more + Words{lock, "--", "true"};
  REQUIRE(RunZklock(words).exit == Exited(0));
}

std::optional<Znode> LastRun(const std::string& lock) { return Tree().Get(lock + "/last-run"); }

/// Returns whether last-run still has the data of `before` and has not been written since.
bool IsUntouched(const std::string& lock, const std::optional<Znode>& before) {
  const auto now = LastRun(lock);
  if (!now || !before) return !now && !before;
  return now->data == before->data && now->data_zxid == before->data_zxid;
}

}  // namespace

TEST_CASE("the history has a reservation while it exists, and its end after its release") {
  const Words words =
      GENERATE(Words{"exclusive"}, Words{"write"}, Words{"try"},
               Words{"exclusive", "--permits", "2"}, Words{"write", "--dialect", "kazoo"});
  CAPTURE(words);
  const std::string lock = NewLock("kept");
  Words reserve = words + Words{"--history", "5", "-l", "release 7", "--reserve", "ci", lock};
  REQUIRE(RunZklock(reserve).exit == Exited(0));

  REQUIRE(StatesOf(lock) == States{"reserved"});
  const json standing = HistoryOf(lock)["runs"][0];
  CHECK(standing["duration"].is_null());
  CHECK(standing["waited"] >= 0);
  CHECK(standing["label"] == "release 7");
  CHECK_FALSE(standing["host"].is_null());
  CHECK_FALSE(standing["user"].is_null());
  CHECK(standing["mode"] == (words[0] == "write" ? "write" : "exclusive"));
  const json contender = FirstOf(lock);
  CHECK(standing["token"] == contender["token"]);
  CHECK(standing["began"] == contender["since"]);
  CHECK_THAT(RunZklock({"inspect", "--history", lock}).out, Catch::Contains(" reserved "));
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("run: reserved since "));

  ReleaseQuietly("ci", lock);
  REQUIRE(StatesOf(lock) == States{"ended"});
  const json ended = HistoryOf(lock)["runs"][0];
  CHECK(ended["duration"] > 0);
  CHECK(ended["status"].is_null());
  for (const char* const key : {"began", "waited", "host", "user", "label", "mode", "token"}) {
    CHECK(ended[key] == standing[key]);
  }
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("run: held for "));
}

TEST_CASE("the wait for a reservation is recorded") {
  const std::string lock = NewLock("kept");
  const bool semaphore = GENERATE(false, true);
  const Words more = semaphore ? Words{"--permits", "1", "--history", "5"} : kKept;
  ReserveKept("first", lock, more);
  Child waiter = WaitToReserve("second", lock, more);
  const std::string token = HistoryOf(lock)["runs"][0]["token"];
  ReleaseQuietly("first", lock);
  CHECK(waiter.Wait() == Exited(0));
  REQUIRE(StatesOf(lock) == States{"reserved", "ended"});
  const json runs = HistoryOf(lock)["runs"];
  CHECK(runs[1]["token"] == token);
  CHECK(runs[0]["waited"] > 0);
  CHECK(runs[0]["waited"] < 3600);
}

TEST_CASE("each LOCK of a set gets the reservation, but none that is reserved for reading") {
  const std::string first = NewLock("kept");
  const std::string second = NewLock("kept");
  const std::string third = NewLock("kept");
  const auto reserve = [&] {
    REQUIRE(RunZklock({"exclusive", "--reserve", "ci", "--history", "32", first, second,
                       "--also-read", third})
                .exit == Exited(0));
  };
  const auto release = [&](const Words& locks) {
    Words words = Words{"release", "--reserve", "ci"} + locks;
    RunZklock(words, Exited(0));
  };
  reserve();
  CHECK(StatesOf(first) == States{"reserved"});
  CHECK(StatesOf(second) == States{"reserved"});
  release({second});
  CHECK(StatesOf(second) == States{"ended"});
  reserve();  // makes a new second reservation; the first and the third still exist
  CHECK(StatesOf(first) == States{"reserved"});
  CHECK(StatesOf(second) == States{"reserved", "ended"});
  release({first, second, third});
  CHECK(StatesOf(first) == States{"ended"});
  CHECK(StatesOf(second) == States{"ended", "ended"});
  CHECK_FALSE(LastRun(third));
}

TEST_CASE("commands under a reservation are not recorded as runs of their own") {
  const std::string lock = NewLock("kept");
  Words words = ReserveWords("ci", lock, kKept) + Words{"--", "sh", "-c", "exit 3"};
  RunZklock(words, Exited(3));
  const auto begun = LastRun(lock);
  RunZklock(words, Exited(3));
  CHECK(IsUntouched(lock, begun));
  CHECK(StatesOf(lock) == States{"reserved"});
  ReleaseQuietly("ci", lock);
  CHECK(StatesOf(lock) == States{"ended"});
  CHECK(HistoryOf(lock)["runs"][0]["status"].is_null());
}

TEST_CASE(
    "a reservation whose caller was killed before recording it is recorded by the next call") {
  const std::string lock = NewLock("kept");
  const Words more = GENERATE(kKept, kPermits);
  Proxy proxy(TestServers());
  const auto is_read = std::make_shared<std::promise<void>>();
  proxy.EditReplies([=, is_first = true](const std::string& request, std::string reply) mutable {
    if (request != "get " + lock + "/last-run") return std::optional(std::move(reply));
    if (std::exchange(is_first, false)) is_read->set_value();
    return std::optional<std::string>();
  });
  Words words = ReserveWords("ci", lock, more) + Words{"-z", proxy.address()};
  Child caller = Child::Start(Zklock(words));
  REQUIRE(is_read->get_future().wait_for(kPatience) == std::future_status::ready);
  caller.Signal(SIGKILL);
  (void)caller.Wait();
  CHECK(FirstOf(lock)["name"].get<std::string>().find("-reserve-") != std::string::npos);
  CHECK_FALSE(LastRun(lock));

  ReserveKept("ci", lock, more);
  REQUIRE(StatesOf(lock) == States{"reserved"});
  CHECK(HistoryOf(lock)["runs"][0]["waited"].is_null());
  CHECK_FALSE(HistoryOf(lock)["runs"][0]["user"].is_null());
  ReleaseQuietly("ci", lock);
  CHECK(StatesOf(lock) == States{"ended"});
}

TEST_CASE("a reservation is kept whatever the servers answer about its history") {
  const std::string lock = NewLock("kept");
  Proxy proxy(TestServers());
  proxy.EditReplies([lock](const std::string& request, std::string reply) {
    const bool is_silent = request == "get " + lock + "/last-run";
    return is_silent ? std::nullopt : std::optional(std::move(reply));
  });
  Words words = ReserveWords("ci", lock, kKept) + Words{"--verbose", "-z", proxy.address()};
  CHECK_THAT(RunZklock(words, Exited(0)).err,
             Catch::Contains("the history of " + lock + " is not kept: " + lock +
                             "/last-run could not be written"));
  CHECK(FirstOf(lock)["name"].get<std::string>().find("-reserve-") != std::string::npos);
}

TEST_CASE("a reservation made without a history is recorded by a later call, in its maker's name") {
  const std::string lock = NewLock("kept");
  ReserveKept("ci", lock, {"-l", "made"});
  CHECK_FALSE(LastRun(lock));
  TemporaryDirectory files;
  ReserveKept("ci", lock, {"--config", files.Write("config", "history = 32\n"), "-l", "found"});
  REQUIRE(StatesOf(lock) == States{"reserved"});
  CHECK(HistoryOf(lock)["runs"][0]["label"] == "made");
  ReleaseQuietly("ci", lock);
  CHECK(StatesOf(lock) == States{"ended"});
}

TEST_CASE("when reservations of permits are released together, the end of each is recorded") {
  const std::string lock = NewLock("kept");
  const Words ids = {"a", "b", "c", "d"};
  for (const std::string& id : ids) ReserveKept(id, lock, kPermits);
  CHECK(StatesOf(lock) == States(4, "reserved"));
  std::vector<Child> releases;
  releases.reserve(ids.size());
  for (const std::string& id : ids) {
    releases.push_back(Child::Start(Zklock({"release", "--reserve", id, lock})));
  }
  for (Child& release : releases) CHECK(release.Wait() == Exited(0));
  CHECK(StatesOf(lock) == States(4, "ended"));
  CHECK(Tree().Children(lock + "/leases").empty());
}

TEST_CASE("a release leaves last-run alone unless last-run has an entry without an end") {
  const std::string lock = NewLock("kept");
  Tree tree;
  SECTION("there is no last-run") {}
  SECTION("last-run has only earlier runs") { RunKept(lock); }
  SECTION("last-run is from another program") {
    tree.Create(lock + "/last-run", ZnodeKind::kPersistent,
                GENERATE(std::string("yesterday"), std::string("\xff\0\x1b[2J", 6),
                         std::string("zklock/2 5 h\n{}"), std::string(20000, 'x')));
  }
  const auto before = LastRun(lock);
  ReserveKept("ci", lock, {});
  ReleaseQuietly("ci", lock);
  CHECK(IsUntouched(lock, before));
}

TEST_CASE("another program's last-run costs a reservation only its history") {
  const std::string lock = NewLock("kept");
  Tree().Create(lock + "/last-run", ZnodeKind::kPersistent, "yesterday");
  ReserveKept("ci", lock);
  CHECK_THAT(RunZklock(ReserveWords("ci", lock, {"--verbose", "--history", "5"}), Exited(0)).err,
             Catch::Contains("the history of " + lock + " is not kept"));
  ReleaseQuietly("ci", lock);
  CHECK(LastRun(lock)->data == "yesterday");
}

TEST_CASE("a reservation whose end cannot be written is released without it") {
  const std::string lock = NewLock("kept");
  ReserveKept("ci", lock);
  Tree tree;
  tree.SetAcl(lock + "/last-run", kRead | kAdmin);
  CHECK_THAT(RunZklock({"release", "--verbose", "--reserve", "ci", lock}, Exited(0)).err,
             Catch::Contains("not authorised to write " + lock + "/last-run"));
  CHECK(tree.Children(lock) == Words{"last-run"});
  // The record is kept, and shown together with the entry that has no end.
  CHECK_THAT(RunZklock({"inspect", lock}).out,
             Catch::Contains("run: lost, reserved for ") && Catch::Contains("last reserved on "));
}

TEST_CASE("the history shows a reservation that has ended or was taken away as lost") {
  const std::string lock = NewLock("kept");
  SECTION("by its end") {
    ReserveKept("ci", lock, {"--for", "1s", "--history", "32"});
    RunKept(lock);  // waits for the reservation to end
    CHECK(StatesOf(lock) == States{"ended", "lost"});
  }
  SECTION("by force") {
    ReserveKept("ci", lock);
    RunZklock({"release", "--force", "--yes", "--reason", "thaw", "--contender",
               FirstOf(lock)["name"].get<std::string>(), lock},
              Exited(0));
    CHECK(StatesOf(lock) == States{"lost"});
    RunKept(lock);
    CHECK(StatesOf(lock) == States{"ended", "lost"});
    const json lost = HistoryOf(lock)["runs"][1];
    CHECK(lost["id"] == "ci");
    CHECK_THAT(lost["takenBy"].get<std::string>(), Catch::Contains(" on "));
    CHECK(lost["takenReason"] == "thaw");
  }
  SECTION("of permits") {
    ReserveKept("a", lock, kPermits);
    ReserveKept("b", lock, kPermits);
    RunKept(lock, kPermits);
    CHECK(StatesOf(lock) == States{"ended", "reserved", "reserved"});
    Tree tree;
    const Words permits = InQueueOrder(tree.Children(lock + "/leases"));
    REQUIRE(permits.size() == 2);
    tree.Delete(lock + "/leases/" + permits[0]);
    RunKept(lock, kPermits);
    CHECK(StatesOf(lock) == States{"ended", "ended", "reserved", "lost"});
    ReleaseQuietly("b", lock);
    CHECK(StatesOf(lock) == States{"ended", "ended", "ended", "lost"});
  }
}

TEST_CASE("a release whose reply was lost records the end only once") {
  const std::string lock = NewLock("kept");
  const std::string lost = GENERATE(as<std::string>{}, "/zklock-clock-", "");
  ReserveKept("ci", lock);
  Proxy proxy(TestServers());
  const auto is_lost = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([lock, lost, is_lost](const std::string& request, std::string reply) {
    const std::string its = "multi " + lock + lost;
    const bool is_it = lost.empty() ? request == its : request.starts_with(its);
    if (!is_it || is_lost->exchange(true)) {
      return std::optional(std::move(reply));
    }
    return std::optional<std::string>();
  });
  RunZklock({"release", "--reserve", "ci", "--session-timeout", "4s", "-z", proxy.address(), lock},
            Exited(0));
  CHECK(*is_lost);
  CHECK(StatesOf(lock) == States{"ended"});
  CHECK(Tree().Children(lock) == Words{"last-run"});
}

}  // namespace zklock::test
