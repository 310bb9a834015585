// The memory that stays allocated after a waiter has read a long queue's list.

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "cli/zklock.h"

// With sanitizers a program keeps freed memory to detect later uses.
#ifndef ZKLOCK_SANITIZED

namespace zklock::test {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Returns the private memory in KiB.
long PrivateMemory(const Child& child) {
  std::ifstream status("/proc/" + std::to_string(child.pid()) + "/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib;
  }
  throw std::runtime_error("no RssAnon");
}

TEST_CASE("a waiter in a long queue frees the memory of its list") {
  Tree tree;
  const std::string near = NewLock("near");
  const std::string far = NewLock("far");
  // Long names, so that the list is as large as that of a longer queue: 240 KB.
  const std::string contender = "/" + std::string(180, 'x') + "-lock-";
  const auto fill = [&](const std::string& lock, int count) {
    for (int i = 0; i < count; ++i) {
      tree.Create(lock + contender, ZnodeKind::kEphemeralSequential);
    }
  };
  fill(near, 10);
  fill(far, 1200);
  const Child one = StartWaiter({"exclusive", "--progress", "none"}, near);
  const Child other = StartWaiter({"exclusive", "--progress", "none"}, far);
  // Poll: a waiter reports the wait before its last request is answered.
  const auto patience = SteadyClock::now() + kPatience;
  const auto more = [&] { return PrivateMemory(other) - PrivateMemory(one); };
  while (more() >= 200 && SteadyClock::now() < patience) std::this_thread::yield();
  CHECK(more() < 200);
}

}  // namespace
}  // namespace zklock::test

#endif
