#pragma once

#include <catch2/catch.hpp>
#include <random>

namespace zklock::test {

/// Calls `round` `count` times, with a generator seeded by Catch2's seed. A failure names the seed
/// and the round.
template <typename F>
void ForRandomRounds(int count, F round) {
  std::mt19937_64 random(Catch::rngSeed());
  CAPTURE(Catch::rngSeed());
  for (int number = 0; number < count; ++number) {
    CAPTURE(number);
    round(random);
  }
}

}  // namespace zklock::test
