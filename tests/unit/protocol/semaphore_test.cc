#include "protocol/semaphore.h"

#include <catch2/catch.hpp>

#include "protocol/grant_time.h"

namespace zklock::protocol {

TEST_CASE("The permit limit is a plain number above zero") {
  CHECK(ParsePermitLimit("1") == 1);
  CHECK(ParsePermitLimit("250") == 250);
  for (const char* const data : {"", "0", "-1", "+1", " 1", "1 ", "1.5", "10.1.2.3", "zklock/1",
                                 "99999999999999999999999", "0x2"}) {
    CAPTURE(data);
    CHECK_FALSE(ParsePermitLimit(data));
  }
}

TEST_CASE("A semaphore's turnstile and permits are two children of the lock") {
  CHECK(TurnstilePath("/jobs/backup") == "/jobs/backup/locks");
  CHECK(PermitsPath("/jobs/backup") == "/jobs/backup/leases");
}

TEST_CASE("A lock may be a semaphore if it has permits and no queue of its own") {
  CHECK(MayBeSemaphore({"leases", "locks"}));
  CHECK(MayBeSemaphore({"leases", "last-run"}));
  CHECK_FALSE(MayBeSemaphore({}));
  CHECK_FALSE(MayBeSemaphore({"locks"}));
  CHECK_FALSE(MayBeSemaphore({"leases", "lock"}));
  CHECK_FALSE(MayBeSemaphore({"leases", "locks", "_c_x-lock-0000000000"}));
}

TEST_CASE("Permits are recognised by their names or, if there are none, by the limit") {
  CHECK(ArePermits({"_c_x-lease-0000000000"}, ""));
  CHECK(ArePermits({"_c_x-lease-0000000000"}, "3"));
  CHECK(ArePermits({}, "3"));
  CHECK(ArePermits({"notes"}, "3"));
  CHECK_FALSE(ArePermits({}, ""));
  CHECK_FALSE(ArePermits({}, "zklock/1"));
  CHECK_FALSE(ArePermits({"_c_x-lock-0000000000"}, "3"));
}

TEST_CASE("The grant of the first permits, within the limit, is exact") {
  const auto granted = [](const char* name, std::optional<std::size_t> limit,
                          std::size_t take = 1) {
    return PermitTimeOf(ParseContenderName(name).value(), take, 5, limit);
  };
  CHECK(granted("_c_x-lease-0000000000", std::nullopt) == GrantTime{5, true});
  CHECK(granted("_c_x-lease-0000000001", 2) == GrantTime{5, true});
  CHECK(granted("_c_x-lease-0000000002", 2) == GrantTime{5, false});
  CHECK(granted("_c_x-lease-0000000001", std::nullopt) == GrantTime{5, false});
  // All permits of the run must have been within the limit.
  CHECK(granted("_c_x-lease-0000000008", 10, 2) == GrantTime{5, true});
  CHECK(granted("_c_x-lease-0000000008", 10, 4) == GrantTime{5, false});
}

}  // namespace zklock::protocol
