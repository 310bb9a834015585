#include "lock/hold/history_writer.h"

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

  /// The entry of the run with this token.
  [[nodiscard]] RunRecord RunOf(std::int64_t token) const {
    const RunHistory history = History();
    REQUIRE(history.Find(token) != nullptr);
    return *history.Find(token);
  }
  /// As another holder does who writes what is there already.
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
    hold = std::make_unique<Hold>(store, bench.clock, std::vector<Ticket>{ticket}, 5s, observer);
    writer = std::make_unique<HistoryWriter>(store, std::vector<Ticket>{ticket},
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
      if (writer->GetInterest().wake > bench.clock.Now()) return;
      writer->OnReady(0);
    }
  }
  void Begin() {
    bench.clock.Set(bench.clock.Now() + 2s);
    writer->Begin(bench.clock.Now());
  }
  /// As a run does it: enters the end, releases, and closes the session.
  void Finish(int status = 0) {
    bench.clock.Set(bench.clock.Now() + 3s);
    const FinishedRun run{.duration = 3s, .status = status, .host = "db1"};
    while (!bench.is_semaphore && !writer->IsSettled()) Serve();
    writer->Release(*hold, run);
    store.Run();
    CHECK(writer->IsReleaseOver());
    hold->Release(run);
    store.Run();
    Vanish();
  }
  void Vanish() { bench.servers.EndSession(ticket.session); }
  [[nodiscard]] std::vector<std::string> Sent() const { return store.SentSince(first_request); }

  Bench& bench;
  FakeStore store;
  NobodyTold observer;
  Ticket ticket;
  std::unique_ptr<Hold> hold;
  std::unique_ptr<HistoryWriter> writer;
  std::size_t first_request = 0;
};

/// One whose beginning has been entered.
struct Begun : Runner {
  explicit Begun(Bench& its_bench) : Runner(its_bench) {
    Begin();
    Serve();
  }
};

TEST_CASE("A run whose contender was deleted by force does not enter the next one as lost") {
  Bench bench;
  Runner removed(bench);
  removed.Begin();  // its requests are not answered yet
  bench.servers.Remove(removed.ticket.path);
  Begun next(bench);
  const std::int32_t version = bench.servers.nodes.at("/l/last-run").version;
  removed.Serve();
  CHECK(bench.RunOf(next.ticket.token).end == End::kNone);
  // The release of the next one names this version.
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

TEST_CASE("A run enters its beginning, and its end together with the release") {
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

TEST_CASE("A success is the last success, and a failure keeps it") {
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

TEST_CASE("A run that is shorter than the first read is entered all the same") {
  Bench bench;
  Runner run(bench);
  run.Begin();
  CHECK_FALSE(run.writer->IsSettled());
  run.Finish();
  REQUIRE(bench.HasHistory());
  CHECK(bench.RunOf(run.ticket.token).end == End::kEnded);
}

TEST_CASE("A run that no server could enter before it ended is reported as not kept") {
  const bool has_asked = GENERATE(false, true);
  Bench bench;
  Runner run(bench);
  run.Begin();
  if (has_asked) run.writer->OnReady(0);  // no answer arrives
  run.store.Disconnect();
  const auto writes = run.writer->End({.duration = 3s, .host = "db1"});
  CHECK_FALSE(writes.at(0));
  REQUIRE(run.writer->unkept().size() == 1);
  CHECK(run.writer->unkept().front().lock == "/l");
  CHECK(run.writer->unkept().front().error == zookeeper::Error::kConnectionLoss);
}

TEST_CASE("The end waits until the beginning is written, and a refusal costs no record of LOCK") {
  const bool is_refused = GENERATE(false, true);
  Bench bench;
  Runner run(bench);
  run.Begin();
  run.store.Step();  // the answer to the read; the write is pending
  CHECK_FALSE(run.writer->IsSettled());
  bench.servers.nodes.at("/l").full = is_refused;  // nothing may be created below it
  run.Finish();
  CHECK(bench.HasHistory() == !is_refused);
  if (!is_refused) CHECK(bench.RunOf(run.ticket.token).end == End::kEnded);
  CHECK(run.writer->unkept().size() == (is_refused ? 1 : 0));
  CHECK(bench.servers.nodes.at("/l").data.find(" 3.000 0 db1") != std::string::npos);
}

TEST_CASE("A run that vanished is entered as lost by the next one") {
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

TEST_CASE("A lost request or reply enters no run twice and loses no lock") {
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

TEST_CASE("Data of another program is left alone, and the lock is released with its record") {
  Bench bench;
  const std::string data = GENERATE(std::string("yesterday"), std::string("zklock/2 5 h\n{}"),
                                    std::string("\xff\0\n", 3), std::string(20000, '\n'));
  bench.servers.Put("/l/last-run", 0, false, data);
  Begun run(bench);
  REQUIRE(run.writer->unkept().size() == 1);
  CHECK(run.writer->unkept().front().lock == "/l");
  CHECK_FALSE(run.writer->unkept().front().error);
  run.Finish();
  CHECK(bench.servers.nodes.at("/l/last-run").data == data);
  CHECK(run.Sent().back() == "write /l, delete " + run.ticket.path);
  CHECK(run.writer->unkept().size() == 1);
}

TEST_CASE("An empty last-run of an administrator is used") {
  Bench bench;
  bench.servers.Put("/l/last-run", 0);
  Begun run(bench);
  run.Finish();
  CHECK(bench.History().entries().size() == 1);
}

TEST_CASE("Without a right the lock works, and no history is kept") {
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
  REQUIRE(run.writer->unkept().size() == 1);
  REQUIRE(run.writer->unkept().front().error);
  CHECK(zookeeper::IsRefusal(*run.writer->unkept().front().error));
  run.Finish();
  CHECK_FALSE(bench.servers.Has(run.ticket.path));
}

TEST_CASE("If somebody else writes in the last moment, the lock is released without the history") {
  Bench bench;
  Begun run(bench);
  bench.servers.Write("/l/last-run", "mine");
  run.Finish();
  CHECK(bench.servers.nodes.at("/l/last-run").data == "mine");
  CHECK_FALSE(bench.servers.Has(run.ticket.path));
  REQUIRE(run.writer->unkept().size() == 1);
  CHECK(run.writer->unkept().front().error == zookeeper::Error::kBadVersion);
  CHECK(bench.servers.nodes.at("/l").data.find(" 3.000 0 db1") != std::string::npos);
}

TEST_CASE("If the release is refused the end is entered by itself, whatever else goes wrong") {
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
      // Another holder of a permit writes between the two.
      if (is_changed && semaphore) {
        run.store.Before("set /l/last-run", [&] { bench.Touch(); });
      }
      const std::size_t before = run.store.requests_sent();
      if (at > 0) run.store.PlaceFault(before + at - 1, Fault::kReplyLost);
      run.Finish(4);
      CHECK_FALSE(bench.servers.Has(run.ticket.path));
      const RunHistory history = bench.History();
      REQUIRE(history.entries().size() == 1);
      const RunRecord& kept = history.entries().front().run;
      // What is lost with the connection is not sent again.
      if (at == 0) CHECK(kept.status == 4);
      if (kept.end == End::kEnded) CHECK(kept.status == 4);
      // After the release it is written by itself.
      const bool loses_end = at == (semaphore ? 3 : 2);
      CHECK(run.writer->unkept().size() == (loses_end ? 1 : 0));
    }
  }
}

TEST_CASE("An end that was not written in time after a refused release is reported as not kept") {
  Bench bench;
  Begun run(bench);
  bench.servers.Write("/l/last-run", "mine");
  run.writer->Release(*run.hold, {.duration = 3s, .status = 0, .host = "db1"});
  run.store.Step();  // the release is refused, and the write has no answer yet
  REQUIRE_FALSE(run.writer->IsReleaseOver());
  run.writer->EndRelease();
  REQUIRE(run.writer->unkept().size() == 1);
  CHECK(run.writer->unkept().front().error == zookeeper::Error::kConnectionLoss);
}

TEST_CASE("Writes that lose the connection again and again are given up") {
  Bench bench;
  Runner run(bench);
  run.Begin();
  for (int attempt = 0; attempt < 10; ++attempt) {
    run.store.PlaceFault("create /l/last-run", Fault::kNotDone);
    run.store.Run();
    run.writer->OnReady(0);
  }
  REQUIRE(run.writer->unkept().size() == 1);
  const std::vector<std::string> sent = run.Sent();
  CHECK(std::count(sent.begin(), sent.end(), "create /l/last-run") == 5);
  CHECK_FALSE(run.hold->loss());
}

TEST_CASE("Holders of permits enter their runs side by side") {
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

  // The second writes while the first releases.
  const std::string release = "write /l/last-run, delete " + first.ticket.path;
  first.store.Before(release, [&] { bench.Touch(); });
  first.Finish(4);
  CHECK(bench.RunOf(first.ticket.token).status == 4);
  CHECK(bench.RunOf(second.ticket.token).end == End::kNone);
  second.Finish();
  CHECK(bench.RunOf(second.ticket.token).status == 0);
  CHECK(first.writer->unkept().empty());
  CHECK(second.writer->unkept().empty());
}

TEST_CASE("The permits that are there decide which runs were lost") {
  Bench bench(true);
  Begun lost(bench);
  Begun running(bench);
  lost.Vanish();
  Begun next(bench);
  CHECK(bench.RunOf(lost.ticket.token).end == End::kLost);
  CHECK(bench.RunOf(running.ticket.token).end == End::kNone);
  CHECK(bench.RunOf(next.ticket.token).end == End::kNone);
}

TEST_CASE("A permit that is taken between two reads of another run is not lost") {
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

TEST_CASE("Data that another program writes while a permit is held is left alone") {
  Bench bench(true);
  Begun run(bench);
  bench.servers.Write("/l/last-run", "mine");
  run.Finish();
  CHECK(bench.servers.nodes.at("/l/last-run").data == "mine");
  CHECK_FALSE(bench.servers.Has(run.ticket.path));
  CHECK(run.writer->unkept().size() == 1);
}

TEST_CASE("A permit is released without its own delete counting as a loss") {
  Bench bench(true);
  Runner run(bench);
  run.hold->OnReady(0);  // watches its contender
  run.Begin();
  run.Serve();
  const std::size_t before = run.store.requests_sent();
  run.Finish();
  CHECK_FALSE(run.hold->loss());
  // A read and the release: no heartbeat, and nothing more for the close to release.
  CHECK(run.store.requests_sent() - before == 2);
}

// ---- reservations ---------------------------------------------------------------------------

/// One zklock that has made, or found, a reservation of /l or of a permit.
struct ReservationWriter {
  ReservationWriter(Bench& its_bench, const std::string& path, std::int64_t token,
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
    writer = std::make_unique<HistoryWriter>(store, std::vector{run}, 32);
  }
  void Serve() {
    for (;;) {
      store.Run();
      if (writer->GetInterest().wake > bench.clock.Now()) return;
      writer->OnReady(0);
    }
  }
  [[nodiscard]] bool IsRefusedQuietly() const {
    return writer->IsEntered() && writer->unkept().empty() && !bench.HasHistory();
  }

  Bench& bench;
  FakeStore store;
  ReservationRun run;
  std::unique_ptr<HistoryWriter> writer;
};

std::string PutReservation(Bench& bench) {
  const std::string queue =
      bench.is_semaphore ? "/l/leases/x-reserve-lease-" : "/l/x-reserve-lock-";
  return bench.servers.Put(queue, 0, true);
}

TEST_CASE("A reservation is entered without an end") {
  Bench bench(GENERATE(false, true));
  const std::string path = PutReservation(bench);
  ReservationWriter reserved(bench, path, 50);
  CHECK_FALSE(reserved.writer->IsEntered());
  reserved.Serve();
  CHECK(reserved.writer->IsEntered());
  CHECK(reserved.writer->unkept().empty());
  REQUIRE(bench.HasHistory());
  REQUIRE(bench.History().entries().size() == 1);
  CHECK(bench.History().entries().front().run == reserved.run.record);
  const std::string queue = path.substr(0, path.rfind('/'));
  CHECK(reserved.store.log() ==
        std::vector<std::string>{"get /l/last-run", "list " + queue, "create /l/last-run"});
}

TEST_CASE("A reservation that is entered already stays as it is") {
  Bench bench;
  const std::string path = PutReservation(bench);
  ReservationWriter first(bench, path, 50);
  ReservationWriter second(bench, path, 50);
  second.run.record.waited.reset();
  second.writer = std::make_unique<HistoryWriter>(second.store, std::vector{second.run}, 32);
  SECTION("one after the other") {
    first.Serve();
    second.Serve();
  }
  SECTION("both have read before either writes") {
    for (ReservationWriter* one : {&first, &second}) {
      one->writer->OnReady(0);
      one->store.Step();
      one->store.Step();
    }
    first.Serve();
    second.Serve();
  }
  CHECK(second.writer->IsEntered());
  CHECK(second.writer->unkept().empty());
  REQUIRE(bench.History().entries().size() == 1);
  CHECK(bench.History().entries().front().run.waited == 2s);
}

TEST_CASE("A reservation that was released before it was entered is not entered") {
  Bench bench;
  const std::string path = PutReservation(bench);
  ReservationWriter reserved(bench, path, 50);
  SECTION("before the data is read") { bench.servers.Remove(path); }
  SECTION("with the LOCK") {
    bench.servers.Remove(path);
    bench.servers.Remove("/l");
  }
  reserved.Serve();
  CHECK(reserved.IsRefusedQuietly());
}

TEST_CASE("The run that follows a reservation at once is not entered as lost") {
  Bench bench;
  bench.servers.Put("/l/last-run", 0);
  const std::string path = PutReservation(bench);
  ReservationWriter reserved(bench, path, 50);
  std::optional<Runner> next;
  // The reservation is released, and the next run begins, while the entry is on its way.
  reserved.store.Before("set /l/last-run", [&] {
    bench.servers.Remove(path);
    next.emplace(bench);
    next->Begin();
    next->Serve();
  });
  reserved.Serve();
  REQUIRE(next);
  CHECK(reserved.writer->IsEntered());
  CHECK(bench.History().entries().size() == 1);
  CHECK(bench.RunOf(next->ticket.token).end == End::kNone);
}

TEST_CASE("Reservations and runs side by side are not lost while they hold") {
  Bench bench(true);
  const std::string path = PutReservation(bench);
  ReservationWriter reserved(bench, path, 50);
  reserved.Serve();
  Begun lost(bench);
  Begun running(bench);
  lost.Vanish();
  CHECK(bench.RunOf(50).end == End::kNone);
  ReservationWriter other(bench, PutReservation(bench), 51);
  other.Serve();
  CHECK(bench.RunOf(50).end == End::kNone);
  CHECK(bench.RunOf(51).end == End::kNone);
  CHECK(bench.RunOf(running.ticket.token).end == End::kNone);
  CHECK(bench.RunOf(lost.ticket.token).end == End::kLost);
  // It has ended, or was taken away.
  bench.servers.Remove(path);
  running.Finish();
  Begun next(bench);
  CHECK(bench.RunOf(50).end == End::kLost);
  CHECK(bench.RunOf(51).end == End::kNone);
}

TEST_CASE("A reservation is entered once, whatever request or reply is lost") {
  for (const bool semaphore : {false, true}) {
    for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost}) {
      for (std::size_t at = 0; at < 4; ++at) {
        CAPTURE(semaphore, static_cast<int>(fault), at);
        Bench bench(semaphore);
        ReservationWriter reserved(bench, PutReservation(bench), 50);
        reserved.store.PlaceFault(at, fault);
        reserved.Serve();
        CHECK(reserved.writer->IsEntered());
        CHECK(reserved.writer->unkept().empty());
        REQUIRE(bench.HasHistory());
        CHECK(bench.History().entries().size() == 1);
      }
    }
  }
}

TEST_CASE("The entry of a reservation waits for a server, until it is given up") {
  Bench bench;
  ReservationWriter reserved(bench, PutReservation(bench), 50);
  reserved.store.Disconnect();
  reserved.writer->OnReady(0);
  CHECK_FALSE(reserved.writer->IsEntered());
  reserved.writer->GiveUpRest();
  REQUIRE(reserved.writer->unkept().size() == 1);
  CHECK(reserved.writer->unkept().front().lock == "/l");
  CHECK(reserved.writer->unkept().front().error == zookeeper::Error::kConnectionLoss);
  // A late server changes nothing.
  reserved.store.Connect();
  reserved.Serve();
  CHECK_FALSE(bench.HasHistory());
}

TEST_CASE("An answer that arrives after the entry was given up has no effect") {
  Bench bench;
  ReservationWriter reserved(bench, PutReservation(bench), 50);
  reserved.writer->OnReady(0);
  reserved.writer->GiveUpRest();
  CHECK(reserved.writer->IsEntered());
  reserved.Serve();
  CHECK_FALSE(bench.HasHistory());
}

TEST_CASE("A reservation for reading is not kept, and foreign data is left alone") {
  Bench bench;
  const std::string path = PutReservation(bench);
  ReservationWriter reads(bench, path, 50, protocol::Mode::kRead);
  reads.Serve();
  CHECK(reads.IsRefusedQuietly());
  bench.servers.Put("/l/last-run", 0, false, "yesterday");
  ReservationWriter foreign(bench, path, 51);
  foreign.Serve();
  REQUIRE(foreign.writer->unkept().size() == 1);
  CHECK_FALSE(foreign.writer->unkept().front().error);
  CHECK(bench.servers.nodes.at("/l/last-run").data == "yesterday");
}

}  // namespace
}  // namespace zklock::lock
