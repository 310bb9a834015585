#include "lock/hold/run_recorder.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using End = RunRecord::End;

/// Servers with the LOCK /l, whose znodes are created at 1,000,000 ms.
struct Bench {
  explicit Bench(bool semaphore = false) : is_semaphore(semaphore) {
    servers.now_ms = 1'000'000;
    servers.Put("/l", 0, false, "zklock/1");
    if (is_semaphore) servers.Put("/l/leases", 0, false, "2");
  }
  [[nodiscard]] bool HasHistory() const { return servers.Has("/l/last-run"); }
  [[nodiscard]] RunHistory History() const {
    auto history = RunHistory::Parse(servers.nodes.at("/l/last-run").data);
    REQUIRE(history);
    return *std::move(history);
  }

  /// Returns the entry of the run with this token.
  [[nodiscard]] RunRecord RunOf(std::int64_t token) const {
    const RunHistory history = History();
    REQUIRE(history.Find(token) != nullptr);
    return *history.Find(token);
  }
  /// Writes the same data again, as another holder might: only the version changes.
  void Touch() { servers.Write("/l/last-run", servers.nodes.at("/l/last-run").data); }

  const bool is_semaphore;
  FakeClock clock;
  FakeServers servers;
};

/// A run that holds /l, or a permit of it.
struct Runner {
  explicit Runner(Bench& its_bench, std::size_t most_runs = 32)
      : bench(its_bench), store(bench.servers, bench.clock) {
    store.Connect();
    const std::string queue = bench.is_semaphore ? "/l/leases/x-lease-" : "/l/x-lock-";
    store.Create(queue, "", zookeeper::NodeKind::kEphemeralSequential,
                 [this](const zookeeper::CreateReply& reply) {
                   ticket = {.lock = {"/l", ""},
                             .path = reply.path,
                             .session = store.session_id(),
                             .token = reply.stat.created_zxid,
                             .created = 1'000'000ms,
                             .created_after = bench.clock.Now(),
                             .lock_version = bench.is_semaphore
                                                 ? std::optional<std::int32_t>()
                                                 : bench.servers.nodes.at("/l").version};
                 });
    store.Run();
    hold = std::make_unique<Hold>(store, bench.clock, std::vector<Ticket>{ticket}, 5s, Ignore);
    recorder = std::make_unique<RunRecorder>(store, std::vector<Ticket>{ticket},
                                             HistoryRequest{.most_runs = most_runs,
                                                            .is_shared = bench.is_semaphore,
                                                            .host = "db1",
                                                            .user = "ci",
                                                            .label = "nightly"});
    first_request = store.requests_sent();
  }

  void Serve() {
    for (;;) {
      store.Run();
      if (recorder->GetInterest().wake > bench.clock.Now()) return;
      recorder->OnReady(0);
    }
  }
  void Begin() {
    bench.clock.Set(bench.clock.Now() + 2s);
    recorder->Begin(bench.clock.Now());
  }
  /// Records the end, releases the lock, and closes the session, as a run does.
  void Finish(int status = 0) {
    bench.clock.Set(bench.clock.Now() + 3s);
    const FinishedRun run{.duration = 3s, .status = status, .host = "db1"};
    while (!bench.is_semaphore && !recorder->IsSettled()) Serve();
    recorder->Release(*hold, run);
    Serve();
    CHECK(recorder->IsDone());
    hold->Release(run);
    store.Run();
    Vanish();
  }
  /// Acts as a run with --min-interval does before its command. (RecordSuccess(): after its
  /// success.)
  void FindLastSuccess() {
    recorder->FindLastSuccess();
    Serve();
  }
  void RecordSuccess() {
    const TimePoint began = bench.clock.Now();
    bench.clock.Set(began + 3s);
    recorder->RecordSuccess(began, {.duration = 3s, .status = 0, .host = "db1"});
    Serve();
  }
  void Vanish() { bench.servers.EndSession(ticket.session); }
  [[nodiscard]] std::vector<std::string> Sent() const { return store.SentSince(first_request); }

  Bench& bench;
  FakeStore store;
  Ticket ticket;
  std::unique_ptr<Hold> hold;
  std::unique_ptr<RunRecorder> recorder;
  std::size_t first_request = 0;
};

/// A Runner whose start has been recorded.
struct Begun : Runner {
  explicit Begun(Bench& its_bench) : Runner(its_bench) {
    Begin();
    Serve();
  }
};

TEST_CASE("A run whose contender was deleted by force does not record the next one as lost") {
  Bench bench;
  Runner removed(bench);
  removed.Begin();  // its requests are not answered yet
  bench.servers.Remove(removed.ticket.path);
  Begun next(bench);
  const std::int32_t version = bench.servers.nodes.at("/l/last-run").version;
  removed.Serve();
  CHECK(bench.RunOf(next.ticket.token).end == End::kNone);
  // The next run's release names this version.
  CHECK(bench.servers.nodes.at("/l/last-run").version == version);
  next.Finish();
  CHECK(bench.RunOf(next.ticket.token).end == End::kEnded);
}

TEST_CASE("A run lists the queue only if another entry has no end") {
  Bench bench;
  Begun first(bench);
  const auto lists = [](const Runner& run) {
    const auto sent = run.Sent();
    return std::count(sent.begin(), sent.end(), "list /l");
  };
  CHECK(lists(first) == 0);
  first.Finish();
  Begun second(bench);
  CHECK(lists(second) == 0);
  second.Vanish();
  Begun third(bench);
  CHECK(lists(third) == 1);
  CHECK(bench.RunOf(second.ticket.token).end == End::kLost);
}

TEST_CASE("A run records its start, and its end together with the release") {
  Bench bench;
  Begun run(bench);
  REQUIRE(bench.HasHistory());
  CHECK(bench.servers.nodes.at("/l/last-run").owner == 0);
  const RunHistory begun = bench.History();
  REQUIRE(begun.entries().size() == 1);
  CHECK(begun.entries().front().run == RunRecord{.began = protocol::ServerTime(1'002'000),
                                                 .waited = 2s,
                                                 .host = "db1",
                                                 .user = "ci",
                                                 .label = "nightly",
                                                 .token = run.ticket.token,
                                                 .contender = run.ticket.path.substr(3)});
  run.Finish(3);
  CHECK(run.Sent() ==
        std::vector<std::string>{"get /l/last-run", "create /l/last-run",
                                 "write /l, write /l/last-run, delete " + run.ticket.path});
  const RunHistory ended = bench.History();
  REQUIRE(ended.entries().size() == 1);
  CHECK(ended.entries().front().run.end == End::kEnded);
  CHECK(ended.entries().front().run.duration == 3s);
  CHECK(ended.entries().front().run.status == 3);
  CHECK_FALSE(ended.success());
  CHECK(bench.servers.nodes.at("/l").data.find(" 3.000 3 db1") != std::string::npos);
}

TEST_CASE("A success becomes the last success, and a failure does not change it") {
  Bench bench;
  for (const int status : {0, 1}) {
    Begun run(bench);
    run.Finish(status);
    REQUIRE(bench.History().success());
    CHECK(bench.History().success()->began == protocol::ServerTime(1'002'000));
  }
  CHECK(bench.History().entries().size() == 2);
  CHECK(bench.History().entries().front().run.status == 1);
}

TEST_CASE("A run that is shorter than the first read is still recorded") {
  Bench bench;
  Runner run(bench);
  run.Begin();
  CHECK_FALSE(run.recorder->IsSettled());
  run.Finish();
  REQUIRE(bench.HasHistory());
  CHECK(bench.RunOf(run.ticket.token).end == End::kEnded);
}

TEST_CASE("A run that no server could record before it ended is reported as not kept") {
  const bool has_asked = GENERATE(false, true);
  Bench bench;
  Runner run(bench);
  run.Begin();
  if (has_asked) run.recorder->OnReady(0);  // no answer arrives
  run.store.Disconnect();
  CHECK(run.recorder->IsSettled());
  run.recorder->Release(*run.hold, {.duration = 3s, .host = "db1"});
  CHECK(run.recorder->IsDone());
  REQUIRE(run.recorder->unkept().size() == 1);
  CHECK(run.recorder->unkept().front().lock == "/l");
  CHECK(run.recorder->unkept().front().error == zookeeper::Error::kConnectionLoss);
}

TEST_CASE("The end waits for the write of the start, and a refusal does not cost LOCK's record") {
  const bool is_refused = GENERATE(false, true);
  Bench bench;
  Runner run(bench);
  run.Begin();
  run.store.Step();  // the answer to the read; the write is pending
  CHECK_FALSE(run.recorder->IsSettled());
  bench.servers.nodes.at("/l").full = is_refused;  // nothing may be created below it
  run.Finish();
  CHECK(bench.HasHistory() == !is_refused);
  if (!is_refused) CHECK(bench.RunOf(run.ticket.token).end == End::kEnded);
  CHECK(run.recorder->unkept().size() == (is_refused ? 1 : 0));
  CHECK(bench.servers.nodes.at("/l").data.find(" 3.000 0 db1") != std::string::npos);
}

TEST_CASE("A run that vanished is recorded as lost by the next one") {
  Bench bench;
  Begun lost(bench);
  lost.Vanish();
  Begun next(bench);
  CHECK(bench.RunOf(lost.ticket.token).end == End::kLost);
  next.Finish();
  REQUIRE(bench.History().entries().size() == 2);
  CHECK(bench.RunOf(lost.ticket.token).end == End::kLost);
  CHECK(bench.RunOf(next.ticket.token).end == End::kEnded);
}

TEST_CASE("A lost request or reply records no run twice and loses no lock") {
  for (const bool semaphore : {false, true}) {
    for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost}) {
      for (std::size_t at = 0; at < 8; ++at) {
        CAPTURE(semaphore, static_cast<int>(fault), at);
        Bench bench(semaphore);
        Runner run(bench);
        run.store.PlaceFault(run.first_request + at, fault);
        run.Begin();
        run.Serve();
        CHECK_FALSE(run.hold->loss());
        run.Finish();
        CHECK_FALSE(bench.servers.Has(run.ticket.path));
        Begun next(bench);
        next.Finish();
        const RunHistory history = bench.History();
        REQUIRE(history.entries().size() == 2);
        REQUIRE(history.Find(run.ticket.token) != nullptr);
        CHECK(history.Find(run.ticket.token)->end != End::kNone);
        CHECK(history.Find(next.ticket.token)->end == End::kEnded);
      }
    }
  }
}

TEST_CASE("Another program's data is left alone, and the lock is released with its record") {
  Bench bench;
  const std::string data = GENERATE(std::string("yesterday"), std::string("zklock/2 5 h\n{}"),
                                    std::string("\xff\0\n", 3), std::string(20000, '\n'));
  bench.servers.Put("/l/last-run", 0, false, data);
  Begun run(bench);
  REQUIRE(run.recorder->unkept().size() == 1);
  CHECK(run.recorder->unkept().front().lock == "/l");
  CHECK_FALSE(run.recorder->unkept().front().error);
  run.Finish();
  CHECK(bench.servers.nodes.at("/l/last-run").data == data);
  CHECK(run.Sent().back() == "write /l, delete " + run.ticket.path);
  CHECK(run.recorder->unkept().size() == 1);
}

TEST_CASE("An empty last-run that an administrator has created is used") {
  Bench bench;
  bench.servers.Put("/l/last-run", 0);
  Begun run(bench);
  run.Finish();
  CHECK(bench.History().entries().size() == 1);
}

TEST_CASE("Without a permission the lock works, but no history is kept") {
  Bench bench;
  SECTION("to create last-run") { bench.servers.nodes.at("/l").writable = false; }
  SECTION("to read it") {
    bench.servers.Put("/l/last-run", 0);
    bench.servers.nodes.at("/l/last-run").readable = false;
  }
  SECTION("to write to it") {
    bench.servers.Put("/l/last-run", 0);
    bench.servers.nodes.at("/l/last-run").writable = false;
  }
  bench.servers.nodes.at("/l").writable = true;
  Runner run(bench);
  bench.servers.nodes.at("/l").writable = bench.HasHistory();
  run.Begin();
  run.Serve();
  REQUIRE(run.recorder->unkept().size() == 1);
  REQUIRE(run.recorder->unkept().front().error);
  CHECK(zookeeper::IsRefusal(*run.recorder->unkept().front().error));
  run.Finish();
  CHECK_FALSE(bench.servers.Has(run.ticket.path));
}

TEST_CASE("If another client writes at the last moment, the lock is released without the history") {
  const bool semaphore = GENERATE(false, true);
  Bench bench(semaphore);
  Begun run(bench);
  bench.servers.Write("/l/last-run", "mine");
  run.Finish();
  CHECK(bench.servers.nodes.at("/l/last-run").data == "mine");
  CHECK_FALSE(bench.servers.Has(run.ticket.path));
  REQUIRE(run.recorder->unkept().size() == 1);
  // The holder of a permit has read last-run again, and so has no error to report.
  CHECK(run.recorder->unkept().front().error.has_value() == !semaphore);
  if (semaphore) return;
  CHECK(run.recorder->unkept().front().error == zookeeper::Error::kBadVersion);
  CHECK(bench.servers.nodes.at("/l").data.find(" 3.000 0 db1") != std::string::npos);
}

TEST_CASE("If the release is refused the end is recorded by itself, whatever else goes wrong") {
  const bool semaphore = GENERATE(false, true);
  for (const bool is_changed : {false, true}) {
    for (std::size_t at = 0; at < 4; ++at) {
      CAPTURE(semaphore, is_changed, at);
      Bench bench(semaphore);
      Begun run(bench);
      const std::string release = semaphore ? "write /l/last-run, delete " : "write /l, write ";
      if (is_changed && !semaphore) {
        bench.servers.Write("/l", "mine");
      } else {
        run.store.Refuse(release, zookeeper::Error::kNoAuth);
      }
      // Another holder of a permit writes last-run just before this one does.
      if (is_changed && semaphore) {
        run.store.Before("set /l/last-run", [&] { bench.Touch(); });
      }
      const std::size_t before = run.store.requests_sent();
      if (at > 0) run.store.PlaceFault(before + at - 1, Fault::kReplyLost);
      run.Finish(4);
      if (at > 0) run.store.DropPlans();  // the lost request may be the one they were planned for
      CHECK_FALSE(bench.servers.Has(run.ticket.path));
      const RunHistory history = bench.History();
      REQUIRE(history.entries().size() == 1);
      const RunRecord& kept = history.entries().front().run;
      // A request that is lost with the connection is not sent again.
      if (at == 0) CHECK(kept.status == 4);
      if (kept.end == End::kEnded) CHECK(kept.status == 4);
      // After the release, the end is written in a request of its own. The holder of a permit reads
      // last-run before each of these two requests.
      const bool loses_end = semaphore ? at % 2 == 1 : at == 2;
      CHECK(run.recorder->unkept().size() == (loses_end ? 1 : 0));
    }
  }
}

TEST_CASE("An end that was not written in time after a refused release is reported as not kept") {
  Bench bench;
  Begun run(bench);
  bench.servers.Write("/l/last-run", "mine");
  run.recorder->Release(*run.hold, {.duration = 3s, .status = 0, .host = "db1"});
  run.store.Step();  // the release is refused, and the write has no answer yet
  REQUIRE_FALSE(run.recorder->IsDone());
  run.recorder->GiveUpRest();
  REQUIRE(run.recorder->unkept().size() == 1);
  CHECK(run.recorder->unkept().front().error == zookeeper::Error::kConnectionLoss);
}

TEST_CASE("After GiveUpRest() nothing more is written") {
  Bench bench;
  Begun run(bench);
  bench.servers.Write("/l", "mine");
  run.recorder->Release(*run.hold, {.duration = 3s, .status = 0, .host = "db1"});
  run.recorder->GiveUpRest();
  // The refusal arrives too late to be noticed. Such a late answer is usually a success.
  run.Serve();
  CHECK(run.Sent().back().starts_with("write /l, write /l/last-run"));
  CHECK(run.recorder->unkept().empty());
}

TEST_CASE("Writes that lose the connection again and again are given up") {
  Bench bench;
  Runner run(bench);
  run.Begin();
  for (int attempt = 0; attempt < 10; ++attempt) {
    run.store.PlaceFault("create /l/last-run", Fault::kNotDone);
    run.store.Run();
    run.recorder->OnReady(0);
  }
  run.store.DropPlans();  // left over from attempts never made
  REQUIRE(run.recorder->unkept().size() == 1);
  const std::vector<std::string> sent = run.Sent();
  CHECK(std::count(sent.begin(), sent.end(), "create /l/last-run") == 5);
  CHECK_FALSE(run.hold->loss());
}

TEST_CASE("Holders of permits record their runs side by side") {
  Bench bench(true);
  Runner first(bench);
  Runner second(bench);
  first.Begin();
  second.Begin();
  // Both read before either writes.
  first.store.Step();
  second.store.Step();
  first.Serve();
  second.Serve();
  CHECK(bench.History().entries().size() == 2);
  CHECK(bench.RunOf(first.ticket.token).end == End::kNone);
  CHECK(bench.RunOf(second.ticket.token).end == End::kNone);

  // A third run writes just before the first one releases its permit.
  const std::string release = "write /l/last-run, delete " + first.ticket.path;
  std::optional<Begun> third;
  first.store.Before(release, [&] { third.emplace(bench); });
  first.Finish(4);
  CHECK(bench.RunOf(third->ticket.token).end == End::kNone);
  CHECK(bench.RunOf(first.ticket.token).status == 4);
  CHECK(bench.RunOf(second.ticket.token).end == End::kNone);
  second.Finish();
  CHECK(bench.RunOf(second.ticket.token).status == 0);
  CHECK(first.recorder->unkept().empty());
  CHECK(second.recorder->unkept().empty());
}

TEST_CASE("The existing permits determine which runs were lost") {
  Bench bench(true);
  Begun lost(bench);
  Begun running(bench);
  lost.Vanish();
  Begun next(bench);
  CHECK(bench.RunOf(lost.ticket.token).end == End::kLost);
  CHECK(bench.RunOf(running.ticket.token).end == End::kNone);
  CHECK(bench.RunOf(next.ticket.token).end == End::kNone);
}

TEST_CASE("A permit taken between two reads by another run is not recorded as lost") {
  Bench bench(true);
  Begun first(bench);
  Runner reader(bench);
  reader.Begin();
  reader.store.Step();
  Begun between(bench);
  reader.Serve();
  CHECK(bench.RunOf(between.ticket.token).end == End::kNone);
  CHECK(bench.RunOf(reader.ticket.token).end == End::kNone);
  CHECK(bench.RunOf(first.ticket.token).end == End::kNone);
}

TEST_CASE("A permit is released without its own delete counting as a loss") {
  Bench bench(true);
  Runner run(bench);
  run.hold->OnReady(0);  // sets the watch on its contender
  run.Begin();
  run.Serve();
  const std::size_t before = run.store.requests_sent();
  run.Finish();
  CHECK_FALSE(run.hold->loss());
  // A read and the release: no heartbeat, and nothing is left for the close to delete.
  CHECK(run.store.requests_sent() - before == 2);
}

// ---- the last success -----------------------------------------------------------------------

const Refused& RefusedIn(const std::optional<RecordFailure>& failure) {
  REQUIRE(failure);
  return std::get<Refused>(std::get<OperationFailure>(*failure));
}

TEST_CASE("Without a recorded success no last success is known") {
  Bench bench;
  Runner run(bench, GENERATE(0, 32));
  run.FindLastSuccess();
  CHECK(run.recorder->IsDone());
  CHECK_FALSE(run.recorder->unknown());
  CHECK_FALSE(run.recorder->newest());
  CHECK(run.Sent() == std::vector<std::string>{"get /l/last-run", "get /l"});
}

TEST_CASE("A success is recorded by the servers' clock and found by the next run") {
  const std::size_t most_runs = GENERATE(0, 32);
  Bench bench;
  Runner run(bench, most_runs);
  run.FindLastSuccess();
  bench.clock.Set(bench.clock.Now() + 5s);
  run.recorder->RecordSuccess(bench.clock.Now(), {.duration = 1s, .host = "db1"});
  CHECK_FALSE(run.recorder->IsDone());
  run.Serve();
  CHECK(run.recorder->IsDone());
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(run.recorder->unkept().empty());
  const FakeServers::Node& last_run = bench.servers.nodes.at("/l/last-run");
  CHECK(last_run.data.starts_with("zklock/1 1005000 db1"));
  CHECK(last_run.owner == 0);
  CHECK(bench.History().entries().size() == (most_runs == 0 ? 0 : 1));

  Runner next(bench, most_runs);
  next.FindLastSuccess();
  REQUIRE(next.recorder->newest());
  CHECK(next.recorder->newest()->lock == "/l");
  CHECK(next.recorder->newest()->success ==
        protocol::LastSuccess{protocol::ServerTime(1'005'000), "db1"});
}

TEST_CASE("With a success and a history, last-run is read once, and written once at the end") {
  Bench bench;
  Runner run(bench);
  run.FindLastSuccess();
  run.Begin();
  const bool is_short = GENERATE(false, true);  // if true, the beginning has not been written yet
  if (!is_short) run.Serve();
  run.RecordSuccess();
  CHECK(run.recorder->HasRecordedSuccess());
  run.hold->Release({.duration = 3s, .host = "db1"});
  run.store.Run();
  CHECK(run.Sent() == std::vector<std::string>{"get /l/last-run", "get /l", "create /l/last-run",
                                               "set /l/last-run",
                                               "write /l, delete " + run.ticket.path});
  CHECK(bench.RunOf(run.ticket.token).end == End::kEnded);
  CHECK(bench.RunOf(run.ticket.token).status == 0);
  CHECK(bench.History().success()->began == protocol::ServerTime(1'002'000));
}

TEST_CASE("A success of a run whose start was never recorded is written with the history") {
  Bench bench;
  Begun lost(bench);
  lost.Vanish();
  Runner run(bench);
  run.FindLastSuccess();
  run.store.Disconnect();
  run.Begin();
  run.store.Connect();
  run.RecordSuccess();
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(bench.RunOf(run.ticket.token).end == End::kEnded);
  CHECK(bench.RunOf(lost.ticket.token).end == End::kLost);
}

TEST_CASE("A success replaces the first line, and keeps lines that are not a history") {
  for (const std::size_t most_runs : {0, 32}) {
    for (const std::string first : {"", "zklock/1 900000 db0"}) {
      CAPTURE(most_runs, first);
      Bench bench;
      bench.servers.Put("/l/last-run", 0, false, first + "\n{\"began\":5}\n");
      Runner run(bench, most_runs);
      run.FindLastSuccess();
      CHECK(run.recorder->IsDone());
      CHECK_FALSE(run.recorder->unknown());
      CHECK(run.recorder->newest().has_value() == !first.empty());
      run.Begin();
      run.Serve();
      run.RecordSuccess();
      CHECK(run.recorder->HasRecordedSuccess());
      CHECK(bench.servers.nodes.at("/l/last-run").data == "zklock/1 1002000 db1\n{\"began\":5}\n");
      CHECK(run.recorder->unkept().size() == (most_runs == 0 ? 0 : 1));
    }
  }
}

TEST_CASE("A success that makes last-run too long costs the oldest lines") {
  Bench bench;
  const std::string line = "\n{\"began\":5}";
  std::string data;
  while (data.size() + line.size() <= kMostHistoryData) data += line;
  bench.servers.Put("/l/last-run", 0, false, data);
  Runner run(bench, 0);
  run.FindLastSuccess();
  run.RecordSuccess();
  CHECK(run.recorder->HasRecordedSuccess());
  const std::string& written = bench.servers.nodes.at("/l/last-run").data;
  CHECK(written.size() <= kMostHistoryData);
  CHECK(written.size() > kMostHistoryData - 2 * line.size());
  CHECK((written.size() - written.find('\n')) % line.size() == 0);
}

TEST_CASE("A list that is refused costs the history, and not the success") {
  Bench bench;
  Begun lost(bench);
  lost.Vanish();
  Runner run(bench);
  run.FindLastSuccess();
  run.store.Refuse("list /l", zookeeper::Error::kNoAuth);
  run.RecordSuccess();
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(run.recorder->unkept().size() == 1);
  CHECK(bench.servers.nodes.at("/l/last-run").data.starts_with("zklock/1 "));
}

TEST_CASE("A lost request or reply hides no earlier success and loses no new one") {
  for (const std::size_t most_runs : {0, 32}) {
    for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost}) {
      for (std::size_t at = 0; at < 8; ++at) {
        CAPTURE(most_runs, static_cast<int>(fault), at);
        Bench bench;
        const bool has_last_run = at % 2 == 0;
        // Without --min-interval, a success is only in LOCK's record.
        if (has_last_run) {
          bench.servers.Put("/l/last-run", 0, false, "zklock/1 900000 db0");
        } else {
          bench.servers.Write("/l", "zklock/1 x-lock-0000000000 write 5 1.000 0 db0");
        }
        Runner run(bench, most_runs);
        run.store.PlaceFault(run.first_request + at, fault);
        run.FindLastSuccess();
        REQUIRE(run.recorder->IsDone());
        REQUIRE(run.recorder->newest());
        CHECK(run.recorder->newest()->success.host == "db0");
        run.Begin();
        run.Serve();
        run.RecordSuccess();
        CHECK(run.recorder->HasRecordedSuccess());
        CHECK(run.recorder->unkept().empty());
        REQUIRE(bench.History().success());
        CHECK(bench.History().success()->began == protocol::ServerTime(1'002'000));
        CHECK(bench.History().entries().size() == (most_runs == 0 ? 0 : 1));
      }
    }
  }
}

TEST_CASE("However often the connection breaks, a success is written again") {
  Bench bench;
  Runner run(bench, 0);
  run.FindLastSuccess();
  run.recorder->RecordSuccess(bench.clock.Now(), {.duration = 3s, .host = "db1"});
  for (int attempt = 0; attempt < 20; ++attempt) {
    run.store.PlaceFault("create /l/last-run", Fault::kNotDone);
    run.store.Run();
    run.recorder->OnReady(0);
  }
  CHECK(run.store.CountSent("create /l/last-run") == 20);
  run.Serve();
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(bench.History().success());
}

TEST_CASE("A history that may be what breaks the connection is left out of a success") {
  Bench bench;
  Runner run(bench);
  run.FindLastSuccess();
  run.recorder->RecordSuccess(bench.clock.Now(), {.duration = 3s, .host = "db1"});
  for (int attempt = 0; attempt < 8; ++attempt) {
    run.store.PlaceFault("create /l/last-run", Fault::kNotDone);
    run.store.Run();
    run.recorder->OnReady(0);
  }
  run.Serve();
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(run.recorder->unkept().size() == 1);
  CHECK(bench.History().entries().empty());
}

TEST_CASE("A success does not overwrite what another run has written meanwhile") {
  // This can happen when the run has lost the lock and does not know it yet.
  const std::size_t most_runs = GENERATE(0, 32);
  Bench bench;
  bench.servers.Put("/l/last-run", 0, false, "zklock/1 900000 db0");
  Runner run(bench, most_runs);
  run.FindLastSuccess();
  run.Begin();
  run.Serve();
  std::string first = "zklock/1 900000 db0";
  SECTION("an older success") {}
  SECTION("a newer success") { first = "zklock/1 1500000 db9"; }
  run.store.Before("set /l/last-run", [&] {
    bench.servers.Write("/l/last-run", first + "\n{\"began\":5,\"token\":7,\"mode\":\"write\"}");
  });
  run.RecordSuccess();
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(bench.History().Find(7) != nullptr);
  CHECK(bench.History().success()->host == (first.ends_with("db9") ? "db9" : "db1"));
  CHECK(bench.History().entries().size() == (most_runs == 0 ? 1 : 2));
}

TEST_CASE(
    "A last-run that is deleted or created meanwhile does not keep a success from being recorded") {
  const bool exists = GENERATE(false, true);
  Bench bench;
  if (exists) bench.servers.Put("/l/last-run", 0);
  Runner run(bench, 0);
  run.FindLastSuccess();
  if (exists) {
    bench.servers.Remove("/l/last-run");
  } else {
    bench.servers.Put("/l/last-run", 0);
  }
  run.RecordSuccess();
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(bench.History().success());
}

TEST_CASE("A success that cannot be written is reported, and is not written later") {
  const std::size_t most_runs = GENERATE(0, 32);
  Bench bench;
  Runner run(bench, most_runs);
  SECTION("because another program has written meanwhile") {
    bench.servers.Put("/l/last-run", 0);
    run.FindLastSuccess();
    bench.servers.Write("/l/last-run", "mine");
    run.RecordSuccess();
    CHECK(bench.servers.nodes.at("/l/last-run").data == "mine");
  }
  SECTION("because a permission is missing") {
    bench.servers.nodes.at("/l").writable = false;
    run.FindLastSuccess();
    run.RecordSuccess();
  }
  SECTION("because no server answers in time") {
    run.FindLastSuccess();
    run.store.Disconnect();
    run.recorder->RecordSuccess(bench.clock.Now(), {.duration = 3s, .host = "db1"});
    CHECK_FALSE(run.recorder->IsDone());
    run.recorder->GiveUpRest();
    run.store.Connect();
    run.Serve();
    CHECK_FALSE(bench.HasHistory());
  }
  CHECK(run.recorder->IsDone());
  CHECK_FALSE(run.recorder->HasRecordedSuccess());
}

TEST_CASE("A last run that cannot be read is unknown, not absent") {
  Bench bench;
  Runner run(bench, 0);
  SECTION("because of its ACL") {
    bench.servers.Put("/l/last-run", 0, false, "zklock/1 999000 db1");
    bench.servers.nodes.at("/l/last-run").readable = false;
    run.FindLastSuccess();
    CHECK(RefusedIn(run.recorder->unknown()).right_path == "/l/last-run");
  }
  SECTION("because the LOCK cannot be read") {
    bench.servers.nodes.at("/l").readable = false;
    run.FindLastSuccess();
    CHECK(RefusedIn(run.recorder->unknown()).right_path == "/l");
  }
  SECTION("because of an unexpected answer") {
    run.store.Refuse(run.first_request + GENERATE(0, 1), zookeeper::Error::kOther);
    run.FindLastSuccess();
    REQUIRE(run.recorder->unknown());
    CHECK(std::holds_alternative<Defect>(std::get<OperationFailure>(*run.recorder->unknown())));
  }
  SECTION("because zklock did not write it") {
    bench.servers.Put("/l/last-run", 0, false, "yesterday");
    run.FindLastSuccess();
    REQUIRE(run.recorder->unknown());
    CHECK(std::get<Unusable>(*run.recorder->unknown()).why == Unusable::Why::kRecordUnknown);
  }
  SECTION("because it is ephemeral") {
    bench.servers.Put("/l/last-run", 8);
    run.FindLastSuccess();
    REQUIRE(run.recorder->unknown());
    CHECK(std::get<Unusable>(*run.recorder->unknown()).why == Unusable::Why::kRecordUnknown);
  }
  CHECK_FALSE(run.recorder->newest());
}

TEST_CASE("When the LOCK is gone nothing is known about the last success") {
  Bench bench;
  Runner run(bench, 0);
  bench.servers.Remove(run.ticket.path);
  bench.servers.Remove("/l");
  run.FindLastSuccess();
  CHECK_FALSE(run.recorder->IsDone());
  CHECK_FALSE(run.recorder->unknown());
}

TEST_CASE("A start that cannot be written keeps no success from being written") {
  Bench bench;
  bench.servers.Put("/l/last-run", 0);
  Runner run(bench);
  run.FindLastSuccess();
  run.store.Refuse("set /l/last-run", zookeeper::Error::kQuotaExceeded);
  run.Begin();
  const bool is_short = GENERATE(false, true);  // if true, it is refused while the success waits
  if (!is_short) run.Serve();
  run.RecordSuccess();
  CHECK(run.recorder->HasRecordedSuccess());
  CHECK(bench.servers.nodes.at("/l/last-run").data == "zklock/1 1002000 db1");
  CHECK(run.recorder->unkept().size() == 1);
}

TEST_CASE("The newest success under several LOCKs counts") {
  Bench bench;
  bench.servers.Put("/m", 0, false, "zklock/1");
  bench.servers.Put("/l/last-run", 0, false, "zklock/1 800000 db0");
  bench.servers.Put("/m/last-run", 0, false, "zklock/1 900000 db9");
  Runner run(bench);
  Ticket other = run.ticket;
  other.lock = {"/m", ""};
  RunRecorder recorder(run.store, {run.ticket, other}, {});
  recorder.FindLastSuccess();
  run.store.Run();
  REQUIRE(recorder.IsDone());
  CHECK(recorder.newest()->lock == "/m");
  CHECK(recorder.newest()->success.host == "db9");
  recorder.RecordSuccess(bench.clock.Now(), {.host = "db1"});
  run.store.Run();
  CHECK(recorder.HasRecordedSuccess());
  CHECK(bench.servers.nodes.at("/l/last-run").data == "zklock/1 1000000 db1");
  CHECK(bench.servers.nodes.at("/m/last-run").data == "zklock/1 1000000 db1");
}

// ---- reservations ---------------------------------------------------------------------------

/// A zklock that has made, or found, a reservation of /l or of a permit.
struct ReservationRecorder {
  ReservationRecorder(Bench& its_bench, const std::string& path, std::int64_t token,
                      protocol::Mode mode = protocol::Mode::kExclusive)
      : bench(its_bench), store(bench.servers, bench.clock), run{.lock = {"/l", ""}, .path = path} {
    store.Connect();
    run.record = {.began = protocol::ServerTime(1'002'000),
                  .waited = 2s,
                  .host = "db1",
                  .user = "ci",
                  .label = "nightly",
                  .token = token,
                  .mode = mode,
                  .contender = path.substr(path.rfind('/') + 1)};
    recorder = std::make_unique<RunRecorder>(store, std::vector{run}, 32);
  }
  void Serve() {
    for (;;) {
      store.Run();
      if (recorder->GetInterest().wake > bench.clock.Now()) return;
      recorder->OnReady(0);
    }
  }
  [[nodiscard]] bool IsRefusedQuietly() const {
    return recorder->IsDone() && recorder->unkept().empty() && !bench.HasHistory();
  }

  Bench& bench;
  FakeStore store;
  ReservationRun run;
  std::unique_ptr<RunRecorder> recorder;
};

std::string PutReservation(Bench& bench) {
  const std::string queue =
      bench.is_semaphore ? "/l/leases/x-reserve-lease-" : "/l/x-reserve-lock-";
  return bench.servers.Put(queue, 0, true);
}

TEST_CASE("A reservation is recorded without an end") {
  Bench bench(GENERATE(false, true));
  const std::string path = PutReservation(bench);
  ReservationRecorder reserved(bench, path, 50);
  CHECK_FALSE(reserved.recorder->IsDone());
  reserved.Serve();
  CHECK(reserved.recorder->IsDone());
  CHECK(reserved.recorder->unkept().empty());
  REQUIRE(bench.HasHistory());
  REQUIRE(bench.History().entries().size() == 1);
  CHECK(bench.History().entries().front().run == reserved.run.record);
  const std::string queue = path.substr(0, path.rfind('/'));
  CHECK(reserved.store.log() ==
        std::vector<std::string>{"get /l/last-run", "list " + queue, "create /l/last-run"});
}

TEST_CASE("A reservation that is already recorded stays as it is") {
  Bench bench;
  const std::string path = PutReservation(bench);
  ReservationRecorder first(bench, path, 50);
  ReservationRecorder second(bench, path, 50);
  second.run.record.waited.reset();
  second.recorder = std::make_unique<RunRecorder>(second.store, std::vector{second.run}, 32);
  SECTION("one after another") {
    first.Serve();
    second.Serve();
  }
  SECTION("both have read before either writes") {
    for (ReservationRecorder* one : {&first, &second}) {
      one->recorder->OnReady(0);
      one->store.Step();
      one->store.Step();
    }
    first.Serve();
    second.Serve();
  }
  CHECK(second.recorder->IsDone());
  CHECK(second.recorder->unkept().empty());
  REQUIRE(bench.History().entries().size() == 1);
  CHECK(bench.History().entries().front().run.waited == 2s);
}

TEST_CASE("A reservation that was released before it was recorded is not recorded") {
  Bench bench;
  const std::string path = PutReservation(bench);
  ReservationRecorder reserved(bench, path, 50);
  SECTION("before the data is read") { bench.servers.Remove(path); }
  SECTION("with the LOCK") {
    bench.servers.Remove(path);
    bench.servers.Remove("/l");
  }
  reserved.Serve();
  CHECK(reserved.IsRefusedQuietly());
}

TEST_CASE("The run that immediately follows a reservation is not recorded as lost") {
  Bench bench;
  bench.servers.Put("/l/last-run", 0);
  const std::string path = PutReservation(bench);
  ReservationRecorder reserved(bench, path, 50);
  std::optional<Runner> next;
  // The reservation is released, and the next run begins, before the entry reaches the servers.
  reserved.store.Before("set /l/last-run", [&] {
    bench.servers.Remove(path);
    next.emplace(bench);
    next->Begin();
    next->Serve();
  });
  reserved.Serve();
  REQUIRE(next);
  CHECK(reserved.recorder->IsDone());
  CHECK(bench.History().entries().size() == 1);
  CHECK(bench.RunOf(next->ticket.token).end == End::kNone);
}

TEST_CASE("Reservations and runs side by side are not recorded as lost while they hold") {
  Bench bench(true);
  const std::string path = PutReservation(bench);
  ReservationRecorder reserved(bench, path, 50);
  reserved.Serve();
  Begun lost(bench);
  Begun running(bench);
  lost.Vanish();
  CHECK(bench.RunOf(50).end == End::kNone);
  ReservationRecorder other(bench, PutReservation(bench), 51);
  other.Serve();
  CHECK(bench.RunOf(50).end == End::kNone);
  CHECK(bench.RunOf(51).end == End::kNone);
  CHECK(bench.RunOf(running.ticket.token).end == End::kNone);
  CHECK(bench.RunOf(lost.ticket.token).end == End::kLost);
  // The reservation has ended, or been deleted by an operator.
  bench.servers.Remove(path);
  running.Finish();
  Begun next(bench);
  CHECK(bench.RunOf(50).end == End::kLost);
  CHECK(bench.RunOf(51).end == End::kNone);
}

TEST_CASE("A reservation is recorded once, whatever request or reply is lost") {
  for (const bool semaphore : {false, true}) {
    for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost}) {
      for (std::size_t at = 0; at < 4; ++at) {
        CAPTURE(semaphore, static_cast<int>(fault), at);
        Bench bench(semaphore);
        ReservationRecorder reserved(bench, PutReservation(bench), 50);
        reserved.store.PlaceFault(at, fault);
        reserved.Serve();
        CHECK(reserved.recorder->IsDone());
        CHECK(reserved.recorder->unkept().empty());
        REQUIRE(bench.HasHistory());
        CHECK(bench.History().entries().size() == 1);
      }
    }
  }
}

TEST_CASE("A reservation's entry waits for a server until the entry is given up") {
  const bool has_asked = GENERATE(false, true);  // if true, the answer arrives after that
  Bench bench;
  ReservationRecorder reserved(bench, PutReservation(bench), 50);
  if (!has_asked) reserved.store.Disconnect();
  reserved.recorder->OnReady(0);
  CHECK_FALSE(reserved.recorder->IsDone());
  reserved.recorder->GiveUpRest();
  CHECK(reserved.recorder->IsDone());
  REQUIRE(reserved.recorder->unkept().size() == 1);
  CHECK(reserved.recorder->unkept().front().lock == "/l");
  CHECK(reserved.recorder->unkept().front().error == zookeeper::Error::kConnectionLoss);
  // A server that is reached later changes nothing.
  if (!has_asked) reserved.store.Connect();
  reserved.Serve();
  CHECK_FALSE(bench.HasHistory());
}

TEST_CASE("A reservation for reading is not kept, and another program's data is left alone") {
  Bench bench;
  const std::string path = PutReservation(bench);
  ReservationRecorder reads(bench, path, 50, protocol::Mode::kRead);
  reads.Serve();
  CHECK(reads.IsRefusedQuietly());
  bench.servers.Put("/l/last-run", 0, false, "yesterday");
  ReservationRecorder foreign(bench, path, 51);
  foreign.Serve();
  REQUIRE(foreign.recorder->unkept().size() == 1);
  CHECK_FALSE(foreign.recorder->unkept().front().error);
  CHECK(bench.servers.nodes.at("/l/last-run").data == "yesterday");
}

}  // namespace
}  // namespace zklock::lock
