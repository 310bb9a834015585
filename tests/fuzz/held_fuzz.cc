// The input is parsed as the value of $ZKLOCK_HELD. In addition, each of its lines is exported as
// the znode of a lock.

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "protocol/held.h"
#include "protocol/lock_path.h"

namespace zklock::fuzz {
namespace {

using protocol::HeldLock;
using protocol::Mode;

constexpr std::size_t kMostLocks = 8;

void TryHeld(const std::vector<HeldLock>& held) {
  const std::string text = protocol::FormatHeld(held);
  Require(std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }),
          "a variable is one line");
  Require(protocol::ParseHeld(text) == held, "exported locks are read back");
  // Entries that an older or newer zklock, or another program, may have written.
  Require(protocol::ParseHeld("  x:1:1:1:1:s:/a " + text +
                              " read:0:1:1:1:s:/a read:1:1:1:1:s:a read:1:1:1:1:s:/%4 ") == held,
          "only unreadable entries are dropped");

  for (const HeldLock& one : held) {
    const std::string path = protocol::ParentOf(one.node);
    const auto innermost = std::find_if(held.rbegin(), held.rend(), [&](const HeldLock& other) {
      return protocol::ParentOf(other.node) == path;
    });
    Require(protocol::FindHeld(held, path) == *innermost, "the innermost lock is found");
  }
}

}  // namespace

void Try(std::string_view input) {
  const std::vector<HeldLock> held = protocol::ParseHeld(input);
  for (const HeldLock& one : held) {
    Require(one.pid > 0 && one.pid_namespace > 0 && one.start_time > 0 && one.token > 0 &&
                !one.socket.empty() && one.node.starts_with('/'),
            "a lock is possible");
  }
  TryHeld(held);

  std::vector<HeldLock> told;
  for (const std::string& line : Split(input, '\n', kMostLocks)) {
    const auto size = line.size();
    told.push_back({.mode = size % 3 == 0   ? Mode::kRead
                            : size % 3 == 1 ? Mode::kWrite
                                            : Mode::kExclusive,
                    .pid = static_cast<std::int64_t>(size) + 1,
                    .pid_namespace = static_cast<std::uint64_t>(size) + 1,
                    .start_time = ~std::uint64_t{0} - size,
                    .token = static_cast<std::int64_t>(size) + 1,
                    .socket = "s" + std::to_string(size),
                    .node = '/' + line});
  }
  TryHeld(told);
}

}  // namespace zklock::fuzz
