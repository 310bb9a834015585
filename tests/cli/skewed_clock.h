#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "cli/zklock.h"

namespace zklock::test {

/// Returns `options` with a time of day that is `seconds` ahead.
inline ChildOptions WithSkewedClock(const ChildOptions& options, const std::string& seconds) {
  const char* const clock = std::getenv("ZKLOCK_TEST_CLOCK");
  if (clock == nullptr) throw std::runtime_error("ZKLOCK_TEST_CLOCK is not set: run it by ctest");
  return With(options, {std::string("LD_PRELOAD=") + clock, "SKEW_SECONDS=" + seconds});
}

}  // namespace zklock::test
