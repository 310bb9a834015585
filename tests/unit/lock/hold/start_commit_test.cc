#include "lock/hold/start_commit.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "support/fake_store.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeServers;
using test::Fault;

constexpr std::int64_t kNow = 1'000'000'000;  // by the servers' clock, in ms
constexpr std::int64_t kHour = 3'600'000;

/// A holder of LOCKs on db1 with token 7, whose contenders have just been created.
struct Holder : test::FakeBench {
  explicit Holder(std::vector<std::string> paths = {"/l"}) : locks(std::move(paths)) {
    servers.now_ms = kNow;
    for (const std::string& lock : locks) servers.Put(lock, 0, false, "zklock/1");
    store.Connect();
  }

  /// `uncertainty`: how long the create of the contender took.
  void Begin(Duration uncertainty = 0s) {
    std::vector<Ticket> tickets;
    for (const std::string& lock : locks) {
      tickets.push_back({.lock = {lock, ""},
                         .path = lock + "/x-lock-0000000000",
                         .token = 7,
                         .created = std::chrono::milliseconds(kNow),
                         .created_after = clock.Now() - uncertainty,
                         .created_before = clock.Now()});
    }
    start.emplace(store, clock, tickets, "db1", 1h);
    do {
      store.Run();
      start->OnReady(0);
    } while (start->GetInterest().wake <= clock.Now() || store.Step());
  }
  /// Tries to begin, and returns why that is refused.
  template <typename T>
  T RefusalOf() {
    Begin();
    REQUIRE(start->refusal());
    CHECK_FALSE(start->IsCommitted());
    if constexpr (std::is_same_v<T, StartCommit::TooRecent>) {
      return std::get<T>(*start->refusal());
    } else {
      const auto& failure = std::get<RecordFailure>(*start->refusal());
      if constexpr (std::is_same_v<T, Unusable>)
        return std::get<T>(failure);
      else
        return std::get<T>(std::get<OperationFailure>(failure));
    }
  }
  void PutStart(const std::string& data, std::int64_t ms, const std::string& lock = "/l") {
    servers.Put(lock + "/last-start", 0, false, data);
    servers.nodes.at(lock + "/last-start").modified_ms = ms;
  }
  [[nodiscard]] const FakeServers::Node& Last(const std::string& lock = "/l") const {
    return servers.nodes.at(lock + "/last-start");
  }

  std::vector<std::string> locks;
  std::optional<StartCommit> start;
};

TEST_CASE(
    "A record from an earlier LOCK at the same path is not taken for ours despite our token") {
  Holder holder;
  SECTION("a recent one") {
    holder.PutStart("zklock/1 7 db9", kNow - kHour / 2);
    CHECK(holder.RefusalOf<StartCommit::TooRecent>().host == "db9");
  }
  SECTION("an old one") {
    holder.PutStart("zklock/1 7 db9", kNow - 2 * kHour);
    holder.Begin();
    CHECK(holder.start->IsCommitted());
    CHECK(holder.Last().data == "zklock/1 7 db1");
  }
}

TEST_CASE("The first start under a LOCK is committed in a persistent znode") {
  Holder holder;
  holder.Begin();
  CHECK(holder.start->IsCommitted());
  CHECK_FALSE(holder.start->refusal());
  CHECK(holder.Last().data == "zklock/1 7 db1");
  CHECK(holder.Last().owner == 0);
  CHECK(holder.store.log() ==
        std::vector<std::string>{"get /l/last-start", "create /l/last-start"});
}

TEST_CASE("A start prevents others for its duration, by the servers' clock, and no longer") {
  for (const std::int64_t ago : {kHour, kHour - 1, std::int64_t{1}, std::int64_t{0}, -kHour}) {
    CAPTURE(ago);
    Holder holder;
    holder.PutStart("zklock/1 5 db0", kNow - ago);
    if (ago == kHour) {
      holder.Begin();
      CHECK(holder.start->IsCommitted());
      CHECK(holder.Last().data == "zklock/1 7 db1");
      CHECK(holder.Last().modified_ms == kNow);
      continue;
    }
    const auto recent = holder.RefusalOf<StartCommit::TooRecent>();
    CHECK(recent.lock == "/l");
    CHECK(recent.host == "db0");
    CHECK(recent.ago == std::chrono::milliseconds(ago));
    CHECK(holder.Last().data == "zklock/1 5 db0");
    CHECK(holder.Last().version == 0);
  }
}

TEST_CASE("The earliest of the times that the servers' clock may show counts") {
  Holder holder;
  holder.PutStart("zklock/1 5 db0", kNow - kHour + 1);
  holder.Begin(10min);
  CHECK(holder.start->refusal());
}

TEST_CASE("The time that passes until the last start is read counts") {
  Holder holder;
  holder.PutStart("zklock/1 5 db0", kNow - kHour + 60'000);
  holder.store.Before("get /l/last-start", [&] { holder.clock.Advance(60s); });
  holder.Begin();
  CHECK(holder.start->IsCommitted());
}

TEST_CASE("A lost request or reply neither refuses the run nor commits its start twice") {
  for (const bool is_first : {true, false}) {
    for (const Fault fault : {Fault::kNotDone, Fault::kReplyLost}) {
      for (std::size_t at = 0; at < 2; ++at) {
        CAPTURE(is_first, static_cast<int>(fault), at);
        Holder holder;
        if (!is_first) holder.PutStart("zklock/1 5 db0", 0);
        holder.store.PlaceFault(at, fault);
        holder.Begin();
        CHECK(holder.start->IsCommitted());
        CHECK_FALSE(holder.start->refusal());
        CHECK(holder.Last().data == "zklock/1 7 db1");
        CHECK(holder.Last().version == (is_first ? 0 : 1));
      }
    }
  }
}

TEST_CASE("Only one of two runs that have read the same start may begin") {
  Holder holder;
  SECTION("when there was none") {
    holder.store.Before("create /l/last-start", [&] { holder.PutStart("zklock/1 8 db2", kNow); });
  }
  SECTION("when it was long ago") {
    holder.PutStart("zklock/1 5 db0", 0);
    holder.store.Before("set /l/last-start",
                        [&] { holder.servers.Write("/l/last-start", "zklock/1 8 db2"); });
  }
  CHECK(holder.RefusalOf<StartCommit::TooRecent>().host == "db2");
  CHECK(holder.Last().data == "zklock/1 8 db2");
}

TEST_CASE("A last start that is deleted in between does not prevent the commit") {
  Holder holder;
  holder.PutStart("zklock/1 5 db0", 0);
  holder.store.Before("set /l/last-start", [&] { holder.servers.Remove("/l/last-start"); });
  holder.Begin();
  CHECK(holder.start->IsCommitted());
  CHECK(holder.Last().data == "zklock/1 7 db1");
}

TEST_CASE("A znode without data, as created for its ACL, is not a start") {
  Holder holder;
  holder.PutStart("", kNow);
  holder.Begin();
  CHECK(holder.start->IsCommitted());
  CHECK(holder.Last().data == "zklock/1 7 db1");
}

TEST_CASE("Without permission or with an invalid record the run is refused") {
  Holder holder;
  SECTION("READ") {
    holder.PutStart("zklock/1 5 db0", 0);
    holder.servers.nodes.at("/l/last-start").readable = false;
    const auto refused = holder.RefusalOf<Refused>();
    CHECK(refused.right == "READ");
    CHECK(refused.right_path == "/l/last-start");
  }
  SECTION("WRITE") {
    holder.PutStart("zklock/1 5 db0", 0);
    holder.servers.nodes.at("/l/last-start").writable = false;
    const auto refused = holder.RefusalOf<Refused>();
    CHECK(refused.right == "WRITE");
    CHECK(refused.right_path == "/l/last-start");
  }
  SECTION("CREATE") {
    holder.servers.nodes.at("/l").writable = false;
    const auto refused = holder.RefusalOf<Refused>();
    CHECK(refused.right == "CREATE");
    CHECK(refused.right_path == "/l");
  }
  SECTION("a quota") {
    holder.servers.nodes.at("/l").full = true;
    const auto quota = holder.RefusalOf<QuotaExceeded>();
    CHECK(quota.path == "/l");
    CHECK(quota.limit.empty());  // it may be above LOCK
  }
  SECTION("an unexpected answer") {
    holder.store.Refuse(GENERATE(0, 1), zookeeper::Error::kOther);
    CHECK(holder.RefusalOf<Defect>().path == "/l");
  }
  SECTION("data that zklock did not write") {
    holder.PutStart("yesterday", 0);
    const auto unusable = holder.RefusalOf<Unusable>();
    CHECK(unusable.why == Unusable::Why::kRecordUnknown);
    CHECK(unusable.child == "last-start");
    CHECK(holder.Last().data == "yesterday");
  }
  SECTION("a znode that would vanish, and the start with it") {
    const std::string data = GENERATE("", "zklock/1 5 db0");
    holder.servers.Put("/l/last-start", 8, false, data);
    CHECK(holder.RefusalOf<Unusable>().why == Unusable::Why::kRecordUnknown);
    CHECK(holder.Last().data == data);
  }
}

TEST_CASE("If one LOCK refuses the run, no start is written to the others") {
  Holder holder({"/a", "/b", "/c"});
  SECTION("one refuses") {
    holder.PutStart("zklock/1 5 db0", kNow - 1, "/c");
    CHECK(holder.RefusalOf<StartCommit::TooRecent>().lock == "/c");
    CHECK_FALSE(holder.servers.Has("/a/last-start"));
    CHECK_FALSE(holder.servers.Has("/b/last-start"));
  }
  SECTION("none does") {
    holder.PutStart("zklock/1 5 db0", 0, "/c");
    holder.Begin();
    CHECK(holder.start->IsCommitted());
    for (const std::string& lock : holder.locks) CHECK(holder.Last(lock).data == "zklock/1 7 db1");
  }
}

TEST_CASE("If one LOCK cannot be written to, the start may count under the others") {
  Holder holder({"/a", "/b"});
  holder.PutStart("zklock/1 5 db0", 0, "/b");
  holder.servers.nodes.at("/b/last-start").writable = false;
  SECTION("as far as is known") {
    CHECK(holder.RefusalOf<Refused>().right_path == "/b/last-start");
    CHECK(holder.start->MayBeCommitted());
    CHECK(holder.servers.Has("/a/last-start"));
  }
  SECTION("unless none of them was written to") {
    holder.PutStart("zklock/1 5 db0", 0, "/a");
    holder.servers.nodes.at("/a/last-start").writable = false;
    holder.RefusalOf<Refused>();
    CHECK_FALSE(holder.start->MayBeCommitted());
  }
}

TEST_CASE("A start whose reply was lost counts, although a lagging server does not show it") {
  Holder holder;
  holder.PutStart("zklock/1 5 db0", 0);
  const FakeServers::Node old = holder.Last();
  FakeServers::Node written;
  holder.store.PlaceFault(1, Fault::kReplyLost);
  holder.store.Before(2,
                      [&] { written = std::exchange(holder.servers.nodes["/l/last-start"], old); });
  holder.store.Before(3, [&] { holder.servers.nodes["/l/last-start"] = written; });
  holder.Begin();
  CHECK(holder.store.log() == std::vector<std::string>{"get /l/last-start", "set /l/last-start",
                                                       "get /l/last-start", "set /l/last-start",
                                                       "get /l/last-start"});
  CHECK(holder.start->IsCommitted());
  CHECK(holder.start->MayBeCommitted());
}

TEST_CASE("A start that another run has overwritten since does not count") {
  Holder holder;
  holder.PutStart("zklock/1 5 db0", 0);
  holder.store.Before(1, [&] { holder.servers.Write("/l/last-start", "zklock/1 6 db0"); });
  holder.RefusalOf<StartCommit::TooRecent>();
  CHECK_FALSE(holder.start->MayBeCommitted());
}

TEST_CASE("When the LOCK is gone nothing is committed, and nothing more is sent") {
  Holder holder;
  holder.servers.Remove("/l");
  holder.Begin();
  CHECK_FALSE(holder.start->IsCommitted());
  CHECK_FALSE(holder.start->refusal());
  CHECK(holder.store.requests_sent() == 2);
}

}  // namespace
}  // namespace zklock::lock
