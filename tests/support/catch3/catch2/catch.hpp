#pragma once
// Catch2 3 by the names of Catch2 2.13, with which the tests are written: Debian 12 has 2, Debian
// 13 has 3. cmake/Tests.cmake puts this in the way of <catch2/catch.hpp>, which Catch2 3 no longer
// has.

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
