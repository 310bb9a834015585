#pragma once
// Defines the names of Catch2 2.13, which the tests use, on top of Catch2 3: Debian 12 has 2,
// Debian 13 has 3. With cmake/Tests.cmake, this header stands in for <catch2/catch.hpp>, which
// Catch2 3 no longer has.

#include <catch2/catch_all.hpp>
#include <cstdint>
#include <string>

using Catch::Approx;

namespace Catch {

using Matchers::EndsWith;
using Matchers::Matches;
using Matchers::StartsWith;
using Matchers::VectorContains;

inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
inline std::uint32_t rngSeed() { return getSeed(); }

}  // namespace Catch
