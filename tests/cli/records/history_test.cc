// --history and `inspect --history`: what ran under a LOCK, where, and how it ended.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/hold/hold_script.h"
#include "cli/records/history.h"
#include "cli/zklock.h"
#include "lock/data/run_history.h"
#include "support/peer.h"
#include "support/temporary.h"
#include "support/wait.h"

namespace zklock::test {
namespace {

using nlohmann::json;

/// Runs `zklock exclusive --history 32 MORE LOCK -- sh -c 'exit STATUS'`.
Finished RunKept(const std::string& lock, const Words& more = {}, const std::string& status = "0") {
  Words words = {"exclusive", "--history", "32", lock, "--", "sh", "-c", "exit " + status};
  words.insert(words.begin() + 3, more.begin(), more.end());
  return RunZklock(words);
}

/// Polls until the history has `count` runs: nothing announces the start of a run.
void WaitForRuns(const std::string& lock, std::size_t count) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (StatesOf(lock).size() < count) REQUIRE(std::chrono::steady_clock::now() < deadline);
}

}  // namespace

TEST_CASE("a run is kept with its times, status, host, user, label, token and mode") {
  const std::string lock = NewLock("history");
  Child holder = StartHolder(lock);
  ChildOptions options =
      HolderOptions({"write", "--verbose", "--history", "5", "-l", "night\tly"}, lock);
  Child waiter = Child::Start(std::move(options));
  waiter.ReadErrUntil("waiting for " + lock);
  holder.CloseInput();
  CHECK(holder.Wait() == Exited(0));
  REQUIRE(waiter.ReadLine() == "held");
  waiter.Write("7\n");
  CHECK(waiter.Wait() == Exited(7));

  const json history = HistoryOf(lock);
  CHECK(history["lastSuccess"] == nullptr);
  REQUIRE(history["runs"].size() == 1);
  const json& run = history["runs"][0];
  char host[256] = {};
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  CHECK(run["state"] == "ended");
  CHECK(run["status"] == 7);
  CHECK(run["host"] == host);
  CHECK_FALSE(run["user"].is_null());
  CHECK(run["label"] == "night\tly");
  CHECK(run["mode"] == "write");
  CHECK(run["waited"] > 0);
  CHECK(run["duration"] > 0);
  // The record in LOCK describes the same run.
  const json last = json::parse(RunZklock({"inspect", "--json", lock}).out)[0]["lastRun"];
  CHECK(last["token"] == run["token"]);
  CHECK(last["duration"] == run["duration"]);
}

TEST_CASE("a history begins with the newest run, and drops the oldest runs") {
  const std::string lock = NewLock("history");
  for (const std::string status : {"1", "2", "3"}) {
    CHECK(RunZklock({"try", "--history", "2", lock, "--", "sh", "-c", "exit " + status}).err == "");
  }
  const json runs = HistoryOf(lock)["runs"];
  REQUIRE(runs.size() == 2);
  CHECK(runs[0]["status"] == 3);
  CHECK(runs[1]["status"] == 2);
  CHECK(
      json::parse(RunZklock({"inspect", "--history", "--runs", "1", "--json", lock}).out)[0]["runs"]
          .size() == 1);
}

TEST_CASE("a hundred runs are kept, within 16 KiB") {
  const std::string lock = NewLock("history");
  constexpr std::int64_t kFirstToken = 1'000'000'000'000;  // larger than any real token
  Tree tree;
  lock::RunHistory history;
  for (int i = 1; i <= 100; ++i) {
    history.Enter({.end = lock::RunRecord::End::kEnded,
                   .began = protocol::ServerTime(1'700'000'000'000 + i),
                   .waited = std::chrono::milliseconds(12),
                   .duration = std::chrono::milliseconds(3456),
                   .status = 0,
                   .host = "db1",
                   .user = "ci",
                   .token = kFirstToken + i});
  }
  tree.Create(lock + "/last-run", ZnodeKind::kPersistent, history.Format(100));
  CHECK(RunZklock({"exclusive", "--history", "100", lock, "--", "true"}).exit == Exited(0));
  const json runs = HistoryOf(lock)["runs"];
  CHECK(runs.size() == 100);
  CHECK(runs.back()["token"] == std::to_string(kFirstToken + 2));
  CHECK(tree.Get(lock + "/last-run")->data.size() <= lock::kMostHistoryData);
}

TEST_CASE(
    "a run whose zklock is killed is shown as running, then lost; the next run records that") {
  const std::string lock = NewLock("history");
  Child holder = StartHolder({"exclusive", "--history", "32"}, lock);
  Tree tree;
  tree.WaitForChildren(lock, 2);
  CHECK(StatesOf(lock) == States{"running"});
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("run: running since "));
  holder.Signal(SIGKILL);
  (void)holder.Wait();
  tree.WaitForChildren(lock, 1);  // its guard closes the session
  CHECK(StatesOf(lock) == States{"lost"});
  CHECK(tree.Get(lock + "/last-run")->data.find("lost") == std::string::npos);
  CHECK(RunKept(lock).exit == Exited(0));
  CHECK(StatesOf(lock) == States{"ended", "lost"});
  CHECK(tree.Get(lock + "/last-run")->data.find("\"ended\":\"lost\"") != std::string::npos);
}

TEST_CASE("a run that lost its lock is recorded as lost") {
  const std::string lock = NewLock("history");
  Child holder = StartHolder({"exclusive", "--history", "32"}, lock);
  Tree tree;
  for (const std::string& child : tree.WaitForChildren(lock, 2)) {
    if (child != "last-run") tree.Delete(lock + "/" + child);
  }
  CHECK(holder.Wait() == Exited(76));
  CHECK(StatesOf(lock) == States{"lost"});
}

TEST_CASE("a run that was forced out is recorded with the reason if last-run can be written") {
  const std::string lock = NewLock("history");
  const bool may_write = GENERATE(true, false);
  Child holder = StartHolder({"exclusive", "--history", "32"}, lock);
  WaitForRuns(lock, 1);
  Tree tree;
  if (!may_write) tree.SetAcl(lock + "/last-run", kRead);
  const Words force = {"release", "--force", "--holders", "--yes", "--reason", "stuck", lock};
  CHECK_THAT(RunZklock(force, Exited(0)).err, !Catch::Contains("the history of"));
  CHECK(holder.Wait() == Exited(76));
  const json run = HistoryOf(lock)["runs"][0];
  CHECK(run["state"] == "lost");
  CHECK(run["takenReason"] == (may_write ? json("stuck") : json(nullptr)));
  if (!may_write) return;
  const std::string by = run["takenBy"];
  const std::string text = RunZklock({"inspect", "--history", lock}, Exited(0)).out;
  CHECK_THAT(text, Catch::Contains("TOKEN") && Catch::Contains("NOTE"));
  CHECK_THAT(text, Catch::EndsWith("taken away by " + by + " ('stuck')\n"));
  CHECK_THAT(RunZklock({"inspect", lock}, Exited(0)).out,
             Catch::Contains(", taken away by " + by + " ('stuck'), began "));
}

TEST_CASE("a run that is asked to release has ended, with status 76 and a release record") {
  const bool is_shared = GENERATE(false, true);
  CAPTURE(is_shared);
  const std::string lock = NewLock("history");
  // The command exits with 0 on the release request, although it has not done its work.
  Words words = {"exclusive", "--history", "32"};
  if (is_shared) words.insert(words.end(), {"--permits", "2"});
  words.insert(words.end(), {lock, "--", "sh", "-c", "trap 'exit 0' TERM; echo held; read _"});
  ChildOptions options = Zklock(words);
  options.keep_stdin = true;
  Child holder = Child::Start(std::move(options));
  REQUIRE(holder.ReadLine() == "held");
  CHECK(RunZklock({"release", "--holders", "--yes", "--wait-released", lock}).exit == Exited(0));
  CHECK(holder.Wait() == Exited(76));
  const json history = HistoryOf(lock);
  CHECK(history["lastSuccess"] == nullptr);
  REQUIRE(history["runs"].size() == 1);
  CHECK(history["runs"][0]["state"] == "ended");
  CHECK(history["runs"][0]["status"] == 76);
  CHECK(history["runs"][0]["duration"] > 0);
  if (is_shared) return;
  const json last = json::parse(RunZklock({"inspect", "--json", lock}).out)[0]["lastRun"];
  CHECK(last["token"] == history["runs"][0]["token"]);
  CHECK(last["status"] == 76);
}

TEST_CASE("a run that ends because an outer zklock releases is recorded as ended") {
  const std::string outer = NewLock("history");
  const std::string own = NewLock("history");
  Child run = StartHolder({"exclusive", outer, "--", Binary(), "exclusive", "-z", TestServers(),
                           "--history", "32", outer},
                          own);
  CHECK(RunZklock({"release", "--holders", "--yes", outer}).exit == Exited(0));
  CHECK(run.Wait() == Exited(76));
  const json runs = HistoryOf(own)["runs"];
  REQUIRE(runs.size() == 1);
  CHECK(runs[0]["state"] == "ended");
  CHECK(runs[0]["status"] == 76);
  CHECK(json::parse(RunZklock({"inspect", "--json", own}).out)[0]["lastRun"]["status"] == 76);
}

TEST_CASE("the history says what has ended a run, if it did not end by itself") {
  const std::string lock = NewLock("history");
  const Words kept = {"exclusive", "--history", "5"};
  const auto run = [&](const Words& more) { return RunZklock(kept + more); };
  CHECK(run({lock, "--", "sh", "-c", "exit 124"}).exit == Exited(124));
  CHECK(run({"--max-run", "100ms", lock, "--", "sleep", "1000"}).exit == Exited(124));
  Child holder = StartHolder(kept, lock);
  RunZklock({"release", "--holders", "--yes", "--reason", "a freeze", lock}, Exited(0));
  CHECK(holder.Wait() == Exited(76));
  const json runs = HistoryOf(lock)["runs"];
  REQUIRE(runs.size() == 3);
  CHECK(runs[0]["cause"] == "requested");
  CHECK(runs[0]["takenReason"] == "a freeze");
  CHECK(runs[1]["cause"] == "max-run");
  CHECK(runs[1]["takenBy"].is_null());
  CHECK(runs[2]["cause"].is_null());
  CHECK(runs[2]["status"] == runs[1]["status"]);
  for (const Words& words : {Words{"inspect", lock}, Words{"inspect", "--history", lock}}) {
    const Words lines = Lines(RunZklock(words).out);
    const auto count = [&](const std::string& text) {
      return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.find(text) != std::string::npos;
      });
    };
    CHECK(count("ended by --max-run") == 1);
    CHECK(count("asked to release by ") == 1);
    CHECK(count(" ('a freeze')") == 1);
  }
}

TEST_CASE("the history of a lock that a shell has held says what ended the hold") {
  const std::string lock = NewLock("history");
  Child shell = Child::Start(
      Script(lock, "$Z exclusive --hold --history 5 --max-run 100ms $L; exec sleep 1000"));
  CHECK(shell.Wait() == Killed(SIGTERM));
  WaitUntil([&] { return StatesOf(lock) == States{"ended"}; }, "the release");
  CHECK(HistoryOf(lock)["runs"][0]["cause"] == "max-run");
}

TEST_CASE("without --history the LOCK records that --max-run ended the hold of a shell") {
  const std::string lock = NewLock("history");
  Child shell =
      Child::Start(Script(lock, "$Z exclusive --hold --max-run 100ms $L; exec sleep 1000"));
  CHECK(shell.Wait() == Killed(SIGTERM));
  const auto last_run = [&] {
    return json::parse(RunZklock({"inspect", "--json", lock}).out)[0]["lastRun"];
  };
  WaitUntil([&] { return !last_run().is_null(); }, "the record");
  CHECK(last_run()["status"] == 124);
}

TEST_CASE("the history shows a command that a signal ended or that could not be executed") {
  const std::string lock = NewLock("history");
  CHECK(RunZklock({"exclusive", "--history", "32", lock, "--", "sh", "-c", "kill -9 $$"}).exit ==
        Exited(137));
  TemporaryDirectory files;
  const std::string script = files.WriteProgram("script", "#!/no/such/interpreter\n");
  CHECK(RunZklock({"exclusive", "--history", "32", lock, "--", script}).exit == Exited(127));
  const json runs = HistoryOf(lock)["runs"];
  REQUIRE(runs.size() == 1);
  CHECK(runs[0]["status"] == 137);
}

TEST_CASE("the previous version reads and keeps the last success of a history") {
  const std::string lock = NewLock("history");
  CHECK(RunKept(lock).exit == Exited(0));
  CHECK(RunKept(lock, {}, "3").exit == Exited(3));
  const std::string data = Tree().Get(lock + "/last-run")->data;
  const auto read = protocol::ParseLastRunData(data);
  REQUIRE(read);
  REQUIRE(read->success);
  // With --min-interval but without --history.
  CHECK(RunZklock({"try", "--min-interval", "1h", lock, "--", "true"}).exit == Exited(75));
  CHECK(RunZklock({"try", "--min-interval", "1ms", lock, "--", "true"}).exit == Exited(0));
  CHECK(StatesOf(lock) == States{"ended", "ended"});
  const auto again = protocol::ParseLastRunData(Tree().Get(lock + "/last-run")->data);
  REQUIRE(again);
  CHECK(again->success->began > read->success->began);
}

TEST_CASE("with --min-interval the success and the history are one write") {
  const std::string lock = NewLock("history");
  const Words interval = {"--min-interval", "1h"};
  CHECK(RunKept(lock, interval, "2").exit == Exited(2));
  CHECK(RunKept(lock, interval).exit == Exited(0));
  CHECK(RunKept(lock, interval).exit == Exited(75));
  const json history = HistoryOf(lock);
  REQUIRE(history["runs"].size() == 2);
  CHECK(history["runs"][0]["status"] == 0);
  CHECK(history["runs"][1]["status"] == 2);
  CHECK(history["lastSuccess"]["began"] == history["runs"][0]["began"]);
}

TEST_CASE("another program's data is shown as unreadable and never overwritten") {
  const std::string lock = NewLock("history");
  const std::string data = GENERATE(std::string("yesterday"), std::string("\xff\0\x1b[2J", 6),
                                    std::string("zklock/2 5 h\n{}"), std::string(20000, 'x'));
  Tree tree;
  tree.Create(lock + "/last-run", ZnodeKind::kPersistent, data);
  const Finished run = RunKept(lock, {"--verbose"});
  CHECK(run.exit == Exited(0));
  CHECK_THAT(run.err, Catch::Contains("the history of " + lock + " is not kept"));
  CHECK(RunKept(lock).err.empty());
  CHECK(tree.Get(lock + "/last-run")->data == data);
  const Finished shown = RunZklock({"inspect", "--history", lock});
  CHECK(shown.exit == Exited(78));
  CHECK(shown.out.empty());
  CHECK_THAT(shown.err, Catch::Contains("cannot read the history of " + lock));
  CHECK(RunZklock({"inspect", lock}).exit == Exited(0));
}

TEST_CASE("without permission to write last-run the lock works and no history is kept") {
  const std::string lock = NewLock("history");
  Tree tree;
  tree.Create(lock, ZnodeKind::kPersistent, "zklock/1");
  tree.Create(lock + "/last-run");
  tree.SetAcl(lock + "/last-run", kRead | kAdmin);
  const Finished run = RunKept(lock, {"--verbose"});
  CHECK(run.exit == Exited(0));
  CHECK_THAT(run.err, Catch::Contains("not authorised to write " + lock + "/last-run"));
  CHECK(tree.Children(lock) == std::vector<std::string>{"last-run"});
  CHECK(json::parse(RunZklock({"inspect", "--json", lock}).out)[0]["lastRun"] != nullptr);
  tree.SetAcl(lock + "/last-run", kWrite | kAdmin);
  CHECK(RunZklock({"inspect", "--history", lock}).exit == Exited(77));
}

TEST_CASE("without permission to write to LOCK or delete from it, a run is kept with its end") {
  const std::string lock = NewLock("history");
  Tree tree;
  tree.Create(lock, ZnodeKind::kPersistent, "zklock/1");
  SECTION("of a lock") {
    // The first case is the ACL that zklock-protocol(7), Access, recommends for several users.
    const int missing = GENERATE(kWrite | kDelete, kWrite, kDelete);
    tree.SetAcl(lock, (kRead | kWrite | kCreate | kDelete | kAdmin) & ~missing);
    CHECK(RunKept(lock, {"--verbose"}).err.find("last-run") == std::string::npos);
  }
  SECTION("of a semaphore") {
    CHECK(RunZklock({"exclusive", "--permits", "2", lock, "--", "true"}).exit == Exited(0));
    for (const std::string& one : {lock, lock + "/leases"}) {
      tree.SetAcl(one, kRead | kCreate | kAdmin);
    }
    CHECK(RunKept(lock, {"--permits", "2"}).exit == Exited(0));
  }
  const json history = HistoryOf(lock);
  REQUIRE(history["runs"].size() == 1);
  CHECK(history["runs"][0]["state"] == "ended");
  CHECK(history["runs"][0]["status"] == 0);
  CHECK(history["lastSuccess"]["began"] == history["runs"][0]["began"]);
  CHECK(RunZklock({"inspect", "--check", "--max-age", "1h", lock}).exit == Exited(0));
}

TEST_CASE("if another client overwrites LOCK, its record is lost, but not the history") {
  const std::string lock = NewLock("history");
  Child holder = StartHolder({"exclusive", "--history", "32"}, lock);
  Tree tree;
  tree.WaitForChildren(lock, 2);
  tree.SetData(lock, "mine");
  holder.CloseInput();
  CHECK(holder.Wait() == Exited(0));
  CHECK(StatesOf(lock) == States{"ended"});
  CHECK(tree.Get(lock)->data == "mine");
}

TEST_CASE("if another client overwrites last-run, the entry is lost, but the lock is released") {
  const std::string lock = NewLock("history");
  Child holder = StartHolder({"exclusive", "--verbose", "--history", "32"}, lock);
  Tree tree;
  tree.WaitForChildren(lock, 2);
  tree.SetData(lock + "/last-run", "mine");
  holder.CloseInput();
  CHECK(holder.Wait() == Exited(0));
  CHECK_THAT(holder.err(), Catch::Contains("last-run could not be written"));
  CHECK(tree.Children(lock) == std::vector<std::string>{"last-run"});
  CHECK(tree.Get(lock + "/last-run")->data == "mine");
}

TEST_CASE("holders of permits all record their runs") {
  const std::string lock = NewLock("history");
  const Words words = {"exclusive", "--permits", "4", "--history", "32"};
  std::vector<Child> holders;
  holders.reserve(4);
  for (int i = 0; i < 4; ++i) holders.push_back(StartHolder(words, lock));
  for (Child& holder : holders) holder.CloseInput();  // all release at once
  for (Child& holder : holders) CHECK(holder.Wait() == Exited(0));
  CHECK(StatesOf(lock) == States(4, "ended"));
  CHECK(Tree().Children(lock + "/leases").empty());

  Child killed = StartHolder(words, lock);
  WaitForRuns(lock, 5);  // runs at the same time are kept in the order of their first records
  Child running = StartHolder(words, lock);
  Tree tree;
  WaitForRuns(lock, 6);
  killed.Signal(SIGKILL);
  (void)killed.Wait();
  tree.WaitForChildren(lock + "/leases", 1);
  CHECK(StatesOf(lock) == States{"running", "lost", "ended", "ended", "ended", "ended"});
}

TEST_CASE("a run is recorded in each LOCK of a set except those that it only reads") {
  const std::string first = NewLock("history");
  const std::string second = NewLock("history");
  const std::string third = NewLock("history");
  CHECK(
      RunZklock({"exclusive", "--history", "32", first, second, "--also-read", third, "--", "true"})
          .exit == Exited(0));
  CHECK(StatesOf(first) == States{"ended"});
  CHECK(StatesOf(second) == States{"ended"});
  CHECK(StatesOf(third).empty());
}

TEST_CASE("a configuration file sets --history for all runs that can have one") {
  TemporaryDirectory files;
  const std::string config = files.Write("config", "history = 32\n");
  const std::string lock = NewLock("history");
  const auto run = [&](Words words) {
    words.insert(words.begin() + 1, {"--config", config});
    words.insert(words.end(), {lock, "--", "true"});
    return RunZklock(words).exit;
  };
  CHECK(run({"exclusive"}) == Exited(0));
  CHECK(run({"read"}) == Exited(0));
  CHECK(run({"try", "--read"}) == Exited(0));
  CHECK(StatesOf(lock) == States{"ended"});
}

TEST_CASE("with --hold the recorded run covers the time held and has no status") {
  const std::string lock = NewLock("history");
  Child shell =
      Child::Start(Script(lock, R"("$Z" exclusive --history 5 --hold "$L"; echo held; read _)"));
  REQUIRE(shell.ReadLine() == "held");
  Tree tree;
  tree.WaitForChildren(lock, 2);
  shell.CloseInput();
  (void)shell.Wait();
  tree.WaitForChildren(lock, 1);
  const json runs = HistoryOf(lock)["runs"];
  REQUIRE(runs.size() == 1);
  CHECK(runs[0]["state"] == "ended");
  CHECK(runs[0]["status"] == nullptr);
  CHECK(runs[0]["duration"] > 0);
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("run: held for "));
}

TEST_CASE("inspect shows the last three runs and also a last run that is not in the history") {
  const std::string lock = NewLock("history");
  for (const std::string status : {"1", "2", "3", "4"}) {
    CHECK(RunKept(lock, {}, status).err.empty());
  }
  const std::string text = RunZklock({"inspect", lock}).out;
  CHECK_THAT(text, Catch::Contains("run: status 4 after ") &&
                       Catch::Contains("run: status 2 after ") &&
                       !Catch::Contains("run: status 1 after ") && !Catch::Contains("ended "));
  CHECK(RunZklock({"exclusive", lock, "--", "true"}).exit == Exited(0));
  CHECK_THAT(RunZklock({"inspect", lock}).out, Catch::Contains("\n\nrun: status 0 after ") &&
                                                   Catch::Contains("run: status 4 after "));
  CHECK(RunZklock({"exclusive", lock, "--", "sh", "-c", "exit 7"}).exit == Exited(7));
  const std::string kept = RunZklock({"inspect", "--history", lock}).out;
  CHECK_THAT(kept, Catch::StartsWith(lock + ": the last 4 recorded runs\n") &&
                       Catch::Contains("\n\nnot in its history: status 7 after "));
  CHECK(RunKept(lock, {}, "0").err.empty());
  CHECK_THAT(RunZklock({"inspect", "--history", lock}).out, !Catch::Contains("not in its"));
}

TEST_CASE("inspect --history of a path names the LOCKs below it") {
  const std::string parent = NewLock("tree");
  for (const char* lock : {"/b", "/a"}) {
    RunZklock({"exclusive", "--history", "2", parent + lock, "--", "true"}, Exited(0));
  }
  const std::string begin = "zklock inspect --history " + parent;
  CHECK(RunZklock({"inspect", "--history", parent}, Exited(0)).out ==
        parent + ": no lock, but there may be locks below it\n\n" + begin + "/a\n" + begin +
            "/b\n");
  // A LOCK counts as a LOCK, whatever is below it.
  const std::string lock = NewLock("tree");
  RunZklock({"exclusive", lock, "--", "true"}, Exited(0));
  (void)Tree().Create(lock + "/below");
  CHECK_THAT(RunZklock({"inspect", "--history", lock}, Exited(0)).out,
             Catch::StartsWith(lock + ": no run in its history\n"));
  for (int i = 0; i < 11; ++i) (void)Tree().Create(parent + "/a/" + std::to_string(10 + i));
  CHECK(StatesOf(parent + "/a") == States{"ended"});
  (void)Tree().Create(parent + "/c");
  for (int i = 0; i < 11; ++i) (void)Tree().Create(parent + "/c/" + std::to_string(10 + i));
  CHECK_THAT(RunZklock({"inspect", "--history", parent + "/c"}, Exited(0)).out,
             Catch::EndsWith("/c/19\n... and 1 more\n"));
}

TEST_CASE("inspect --history of a LOCK that does not exist shows no run") {
  const std::string lock = NewLock("history");
  const Finished none = RunZklock({"inspect", "--history", lock});
  CHECK(none.exit == Exited(0));
  CHECK(none.out == lock + ": no run in its history (it does not exist)\n");
  CHECK(HistoryOf(lock)["runs"].empty());
  CHECK(RunZklock({"inspect", "--history"}).exit == Exited(64));
  CHECK(RunZklock({"inspect", "--runs", "5", lock}).exit == Exited(64));
  CHECK(RunZklock({"inspect", "--history", "--runs", "0", lock}).exit == Exited(64));
  CHECK(RunZklock({"inspect", "--history", "--watch", lock}).exit == Exited(64));
}

}  // namespace zklock::test
