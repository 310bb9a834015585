#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/child.h"

namespace zklock::test {

/// Waits for a condition that no event announces. Throws if `condition` does not become true; the
/// error says that `what` is missing.
inline void WaitUntil(const std::function<bool()>& condition,
                      const std::string& what = "the condition") {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("waited in vain for " + what);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Waits in the same way until `find` finds something, and returns that.
template <typename F>
auto WaitFor(F find, const std::string& what = "a result") {
  decltype(find()) found{};
  WaitUntil([&] { return bool(found = find()); }, what);
  return *found;
}

}  // namespace zklock::test
