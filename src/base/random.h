#pragma once

#include <cstddef>
#include <span>

namespace zklock {

/// Fills `bytes` with random bytes from getrandom(2). (std::random_device first queries the
/// processor's features, which is slow in a virtual machine.) Throws std::system_error.
void FillRandomly(std::span<std::byte> bytes);

}  // namespace zklock
