#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/contender_name.h"

namespace zklock::protocol {

/// One lock that a command runs under, as $ZKLOCK_HELD tells it: what a zklock below needs to know
/// that it need not queue for what is held for it already.
struct HeldLock {
  Mode mode = Mode::kExclusive;
  std::int64_t pid = 0;          ///< of the zklock that holds
  std::uint64_t start_time = 0;  ///< of that process, so that a reused pid is nobody
  std::int64_t token = 0;        ///< its contender's czxid: a later one of that name is not meant
  std::string socket;            ///< where that process lets others run under the lock
  std::string node;              ///< its contender's path, chroot included
  friend bool operator==(const HeldLock&, const HeldLock&) = default;
};

/// `MODE:PID:START:TOKEN:SOCKET:NODE`, several by a space, the outermost first; blanks and '%' in
/// NODE are percent-encoded.
[[nodiscard]] std::string FormatHeld(const std::vector<HeldLock>& held);
/// Entries that it cannot read are left out: the variable is anybody's.
[[nodiscard]] std::vector<HeldLock> ParseHeld(std::string_view text);

/// The innermost of `held` that is on the LOCK `path`.
[[nodiscard]] std::optional<HeldLock> FindHeld(const std::vector<HeldLock>& held,
                                               std::string_view path);

/// Whether who holds `outer` may have `inner` of the same LOCK at once. If not, waiting for it
/// would never end: a reader that asks to write waits for itself.
[[nodiscard]] bool Covers(Mode outer, Mode inner);

}  // namespace zklock::protocol
