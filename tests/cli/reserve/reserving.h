#pragma once

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/zklock.h"

namespace zklock::test {

/// Returns `zklock exclusive --reserve ID MORE LOCK`.
inline Words ReserveWords(const std::string& id, const std::string& lock, const Words& more = {}) {
  return Words{"exclusive", "--reserve", id} + more + Words{lock};
}

/// Makes a reservation, or finds the existing one.
inline void Reserve(const std::string& id, const std::string& lock, const Words& more = {}) {
  const Finished finished = RunZklock(ReserveWords(id, lock, more));
  CAPTURE(finished.err);
  REQUIRE(finished.exit == Exited(0));
  CHECK(finished.out.empty());
  CHECK(finished.err.empty());
}

inline Exit Unreserve(const std::string& id, const std::string& lock) {
  return RunZklock({"release", "--reserve", id, lock}).exit;
}

/// Starts a zklock that waits to reserve `lock`.
inline Child WaitToReserve(const std::string& id, const std::string& lock, const Words& more = {}) {
  Child waiter = Child::Start(Zklock(ReserveWords(id, lock, more + Words{"--verbose"})));
  waiter.ReadErrUntil("waiting for " + lock);
  return waiter;
}

/// Returns the first contender, as inspect shows it.
inline nlohmann::json FirstOf(const std::string& lock) {
  const Finished finished = RunZklock({"inspect", "--json", lock});
  REQUIRE(finished.exit == Exited(0));
  return nlohmann::json::parse(finished.out)[0]["contenders"].at(0);
}

}  // namespace zklock::test
