#pragma once

#include <cstddef>
#include <span>

namespace zklock {

/// From the kernel, as it gives them to cryptography. (std::random_device asks the processor first
/// what it is, which a virtual machine makes slow.) Throws std::system_error.
void FillRandomly(std::span<std::byte> bytes);

}  // namespace zklock
