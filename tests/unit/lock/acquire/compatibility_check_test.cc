#include "lock/acquire/compatibility_check.h"

#include <catch2/catch.hpp>
#include <string>
#include <variant>
#include <vector>

#include "unit/lock/contender.h"

namespace zklock::lock {
namespace {

const std::string kKazooPermit = "0123456789abcdef0123456789abcdef";
const std::string kKazooLock = "0123456789abcdef0123456789abcdef__lock__0000000001";
const std::string kOwn = "host-00000000-0000-4000-8000-000000000000-lock-0000000000";

/// A check of /l, for a contender that may be in the queue, and the answers so far.
struct Bench {
  explicit Bench(AcquireRequest its_request = {.lock = {"/l", ""}})
      : request(std::move(its_request)) {
    store.Connect();
  }

  /// Checks a list of `children`.
  void Check(const protocol::Children& children, const std::string& own_name = kOwn) {
    const protocol::Contenders contenders(children);
    check.Check({children, contenders}, own_name,
                [this](const Compatibility& found, const QueueList& list) {
                  answers.push_back(found);
                  lists.push_back(list.children);
                });
  }
  [[nodiscard]] bool IsCompatible(std::size_t answer) const {
    return std::holds_alternative<Compatible>(answers.at(answer));
  }
  [[nodiscard]] Unusable::Why WhyUnusable(std::size_t answer) const {
    REQUIRE(std::holds_alternative<Unusable>(answers.at(answer)));
    return std::get<Unusable>(answers.at(answer)).why;
  }

  World world;
  FakeStore store{world.servers, world.clock};
  AcquireNotes notes;
  AcquireRequest request;
  const AcquireEventSink publish = notes.Sink();
  CompatibilityCheck check{store, request, publish};
  std::vector<Compatibility> answers;
  std::vector<protocol::Children> lists;
};

}  // namespace

TEST_CASE("A list whose names are conclusive is checked at once, without a request") {
  Bench bench;
  bench.Check({kOwn, "other-lock-0000000001"});
  REQUIRE(bench.answers.size() == 1);
  CHECK(bench.IsCompatible(0));
  CHECK(bench.check.has_accepted());
  bench.check.Restart();
  bench.Check({kOwn, kKazooLock});
  REQUIRE(bench.answers.size() == 2);
  CHECK(bench.WhyUnusable(1) == Unusable::Why::kIncompatible);
  CHECK(bench.store.requests_sent() == 0);
}

TEST_CASE(
    "A child whose name is inconclusive is read once, and the answer contains the whole list") {
  Bench bench;
  bench.world.servers.Put("/l/" + kKazooPermit, 0);
  const protocol::Children children{kOwn, kKazooPermit};
  bench.Check(children);
  CHECK(bench.answers.empty());
  bench.store.Run();
  REQUIRE(bench.answers.size() == 1);
  CHECK(bench.IsCompatible(0));
  CHECK(bench.lists.front() == children);
  bench.Check(children);
  REQUIRE(bench.answers.size() == 2);
  CHECK(bench.IsCompatible(1));
  CHECK(bench.store.log() == std::vector<std::string>{"get /l/" + kKazooPermit});
}

TEST_CASE("After a restart the children with inconclusive names are read again") {
  Bench bench;
  const std::string path = "/l/" + kKazooPermit;
  bench.world.servers.Put(path, 0);
  bench.Check({kKazooPermit}, "");
  bench.store.Run();
  bench.world.servers.Remove(path);
  bench.world.servers.Put(path, 7);
  bench.check.Restart();
  bench.Check({kOwn, kKazooPermit});
  bench.store.Run();
  REQUIRE(bench.answers.size() == 2);
  CHECK(bench.IsCompatible(0));
  CHECK(bench.WhyUnusable(1) == Unusable::Why::kIncompatible);
}

TEST_CASE("A check whose read is lost is not answered, and the next one reads again") {
  Bench bench;
  bench.world.servers.Put("/l/" + kKazooPermit, 7);
  bench.store.PlaceFault("get /l/", test::Fault::kReplyLost);
  bench.Check({kOwn, kKazooPermit});
  bench.store.Run();
  CHECK(bench.answers.empty());
  bench.Check({kOwn, kKazooPermit});
  bench.store.Run();
  REQUIRE(bench.answers.size() == 1);
  CHECK(bench.WhyUnusable(0) == Unusable::Why::kIncompatible);
}

TEST_CASE("Each of two checks under way is answered once") {
  Bench bench;
  const std::string other = "f" + kKazooPermit.substr(1);
  for (const std::string& child : {kKazooPermit, other}) bench.world.servers.Put("/l/" + child, 7);
  bench.Check({kOwn, kKazooPermit, other});
  bench.Check({kOwn, kKazooPermit, other});
  bench.store.Run();
  REQUIRE(bench.answers.size() == 2);
  CHECK(bench.WhyUnusable(0) == Unusable::Why::kIncompatible);
  CHECK(bench.WhyUnusable(1) == Unusable::Why::kIncompatible);
}

TEST_CASE("Incompatible contenders that arrive after an accepted list are tolerated") {
  Bench bench;
  bench.Check({kOwn});
  bench.world.servers.Put("/l/" + kKazooPermit, 7);
  bench.Check({kOwn, kKazooPermit});
  bench.store.Run();
  bench.Check({kOwn, kKazooPermit, kKazooLock});
  REQUIRE(bench.answers.size() == 3);
  CHECK(bench.IsCompatible(1));
  CHECK(bench.IsCompatible(2));
  CHECK(bench.notes.incompatible == std::vector<std::string>{kKazooPermit});
}

TEST_CASE("A list without our contender accepts nothing that arrives later") {
  Bench bench;
  bench.Check({}, "");
  CHECK(bench.IsCompatible(0));
  bench.Check({kKazooLock}, "");
  CHECK(bench.WhyUnusable(1) == Unusable::Why::kIncompatible);
}

TEST_CASE("A semaphore is refused to a contender without permits while a permit is held") {
  Bench bench;
  bench.world.servers.Put("/l/leases", 0);
  const bool held = GENERATE(true, false);
  if (held) bench.world.servers.Put("/l/leases/other-lease-", 7, true);
  bench.Check({kOwn, "leases"});
  bench.store.Run();
  REQUIRE(bench.answers.size() == 1);
  CHECK(bench.IsCompatible(0) == !held);
  if (held) CHECK(bench.WhyUnusable(0) == Unusable::Why::kHasPermits);
}

TEST_CASE("A permit is refused while LOCK itself has a contender") {
  Bench bench({.lock = {"/l", ""}, .below = "leases", .permits = 2});
  bench.world.servers.Put("/l/leases", 0);
  const std::string contender = bench.world.servers.Put("/l/other-lock-", 7, true);
  bench.check.ReadLock();
  bench.store.Run();
  bench.Check({});
  CHECK(bench.WhyUnusable(0) == Unusable::Why::kHasNoPermits);
  bench.world.servers.Remove(contender);
  bench.check.ReadLock();
  bench.store.Run();
  bench.Check({});
  CHECK(bench.IsCompatible(1));
}

TEST_CASE("A refused read ends the check, which names the znode") {
  Bench bench;
  bench.world.servers.Put("/l/lock", 7);
  bench.world.servers.nodes.at("/l/lock").readable = false;
  bench.Check({kOwn, "lock"});
  bench.store.Run();
  REQUIRE(bench.answers.size() == 1);
  REQUIRE(std::holds_alternative<CheckFailed>(bench.answers.front()));
  CHECK(std::get<CheckFailed>(bench.answers.front()).path == "/l/lock");
}

}  // namespace zklock::lock
