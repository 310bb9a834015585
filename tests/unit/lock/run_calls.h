#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <stdexcept>

#include "lock/operations/calls.h"
#include "support/fake_store.h"

namespace zklock::lock {

/// Runs `work`, which gets the Calls, over the store, which connects again after each fault.
/// Returns the result of `work`.
template <typename F>
auto RunCalls(test::FakeStore& store, const test::FakeClock& clock, F work) {
  const auto serve = [&](EventSource& /*source*/, const std::function<bool()>& is_done) {
    store.Run();
    if (!is_done()) throw std::logic_error("nothing happens any more");
  };
  Calls calls(store, clock, std::chrono::seconds(15), serve);
  return work(calls);
}

/// Runs `work`, which must fail, in the same way. Returns its failure.
template <typename F>
OperationFailure RunFailingCalls(test::FakeStore& store, const test::FakeClock& clock, F work) {
  try {
    (void)RunCalls(store, clock, [&](Calls& calls) {
      (void)work(calls);
      return true;
    });
  } catch (const OperationFailed& failed) {
    return failed.failure();
  }
  FAIL("it does not fail");
  return {};
}

}  // namespace zklock::lock
