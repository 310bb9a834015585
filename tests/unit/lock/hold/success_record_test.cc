#include "lock/hold/success_record.h"

#include <catch2/catch.hpp>
#include <string>
#include <variant>

#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;
using test::Fault;

/// A holder of /l whose contender was created at 1,000,000 ms by the servers' clock.
struct Holder {
  Holder() : store(servers, clock), success_record(store, {Made()}) { store.Connect(); }

  Ticket Made() {
    servers.Put("/l", 0, false, "zklock/1");
    return {.lock = {"/l", ""},
            .path = "/l/x-lock-0000000000",
            .token = 1,
            .created = 1'000'000ms,
            .created_after = clock.Now()};
  }
  void Run() {
    for (;;) {
      store.Run();
      if (success_record.GetInterest().wake > clock.Now()) return;
      success_record.OnReady(0);
    }
  }

  FakeClock clock;
  FakeServers servers;
  FakeStore store;
  SuccessRecord success_record;
};

const Refused& RefusedIn(const RecordFailure& failure) {
  return std::get<Refused>(std::get<OperationFailure>(failure));
}

TEST_CASE("Without a recorded success there is none") {
  Holder holder;
  holder.Run();
  CHECK(holder.success_record.IsDone());
  CHECK_FALSE(holder.success_record.newest());
}

TEST_CASE("A success is recorded by the servers' clock and read again") {
  Holder holder;
  holder.Run();
  holder.success_record.Record(holder.clock.Now() + 5s, "db1");
  CHECK_FALSE(holder.success_record.IsDone());
  holder.Run();
  REQUIRE(holder.success_record.IsDone());
  CHECK(holder.success_record.refused().empty());
  CHECK(holder.servers.nodes.at("/l/last-run").data == "zklock/1 1005000 db1");
  CHECK(holder.servers.nodes.at("/l/last-run").owner == 0);

  holder.success_record.Record(holder.clock.Now() + 9s, "db2");
  holder.Run();
  CHECK(holder.servers.nodes.at("/l/last-run").data == "zklock/1 1009000 db2");

  SuccessRecord next(holder.store, {holder.Made()});
  while (!next.IsDone()) {
    next.OnReady(0);
    holder.store.Run();
  }
  REQUIRE(next.newest());
  CHECK(next.newest()->lock == "/l");
  CHECK(next.newest()->success == protocol::LastSuccess{protocol::ServerTime(1'009'000), "db2"});
}

TEST_CASE("A success replaces the first line, and keeps the lines below it") {
  for (const std::string first : {"", "zklock/1 900000 db0"}) {
    Holder holder;
    holder.servers.Put("/l/last-run", 0, false, first + "\n{\"began\":5}\n");
    holder.Run();
    REQUIRE(holder.success_record.IsDone());
    CHECK_FALSE(holder.success_record.unknown());
    CHECK(holder.success_record.newest().has_value() == !first.empty());
    holder.success_record.Record(holder.clock.Now(), "db1");
    holder.Run();
    CHECK(holder.servers.nodes.at("/l/last-run").data == "zklock/1 1000000 db1\n{\"began\":5}\n");
  }
}

TEST_CASE("A lost request or reply does no harm") {
  for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost}) {
    for (std::size_t at = 0; at < 6; ++at) {
      CAPTURE(static_cast<int>(fault), at);
      Holder holder;
      holder.store.PlaceFault(at, fault);
      holder.Run();
      REQUIRE(holder.success_record.IsDone());
      holder.success_record.Record(holder.clock.Now(), "db1");
      holder.Run();
      REQUIRE(holder.success_record.IsDone());
      CHECK(holder.servers.nodes.at("/l/last-run").data == "zklock/1 1000000 db1");
    }
  }
}

TEST_CASE("A last run that cannot be read is unknown, not absent") {
  Holder holder;
  SECTION("because of its ACL") {
    holder.servers.Put("/l/last-run", 0, false, "zklock/1 999000 db1");
    holder.servers.nodes.at("/l/last-run").readable = false;
    holder.Run();
    REQUIRE(holder.success_record.unknown());
    CHECK(RefusedIn(*holder.success_record.unknown()).right_path == "/l/last-run");
  }
  SECTION("because the LOCK cannot be read") {
    holder.servers.nodes.at("/l").readable = false;
    holder.Run();
    REQUIRE(holder.success_record.unknown());
    CHECK(RefusedIn(*holder.success_record.unknown()).right_path == "/l");
  }
  SECTION("because of an unexpected answer") {
    holder.store.Refuse(GENERATE(0, 1), zookeeper::Error::kOther);
    holder.Run();
    REQUIRE(holder.success_record.unknown());
    CHECK(std::holds_alternative<Defect>(
        std::get<OperationFailure>(*holder.success_record.unknown())));
  }
  SECTION("because zklock did not write it") {
    holder.servers.Put("/l/last-run", 0, false, "yesterday");
    holder.Run();
    REQUIRE(holder.success_record.unknown());
    CHECK(std::get<Unusable>(*holder.success_record.unknown()).why ==
          Unusable::Why::kRecordUnknown);
  }
  CHECK(holder.success_record.IsDone());
  CHECK_FALSE(holder.success_record.newest());
}

TEST_CASE("A refused write is reported") {
  Holder holder;
  holder.servers.nodes.at("/l").writable = false;
  holder.Run();
  holder.success_record.Record(holder.clock.Now(), "db1");
  holder.Run();
  CHECK(holder.success_record.IsDone());
  CHECK(holder.success_record.refused() == std::vector<std::string>{"/l"});
}

}  // namespace
}  // namespace zklock::lock
