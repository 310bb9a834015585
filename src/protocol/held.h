#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/contender_name.h"

namespace zklock::protocol {

/// One lock that a command runs under, as listed in $ZKLOCK_HELD: a nested zklock need not queue
/// for a lock that an ancestor already holds.
struct HeldLock {
  Mode mode = Mode::kExclusive;
  std::int64_t pid = 0;             ///< of the zklock that holds the lock
  std::uint64_t pid_namespace = 0;  ///< the namespace of that pid
  std::uint64_t start_time = 0;     ///< of that process, since its pid may have been reused
  std::int64_t token = 0;           ///< its contender's czxid, since the name may have been reused
  std::string socket;               ///< where that process answers nested runs, or kNoSocket
  std::string node;                 ///< its contender's path, chroot included
  friend bool operator==(const HeldLock&, const HeldLock&) = default;
};

/// Replaces the socket of a process that holds nothing, but runs its command under a reservation.
inline constexpr std::string_view kNoSocket = "-";

/// Returns `MODE:PID:NAMESPACE:START:TOKEN:SOCKET:NODE` for each lock, the outermost first,
/// separated by spaces. Blanks and '%' in NODE are percent-encoded.
[[nodiscard]] std::string FormatHeld(const std::vector<HeldLock>& held);
/// Skips entries that it cannot parse: anyone can set the variable.
[[nodiscard]] std::vector<HeldLock> ParseHeld(std::string_view text);

/// Returns the innermost entry in `held` for the LOCK at `path`.
[[nodiscard]] std::optional<HeldLock> FindHeld(const std::vector<HeldLock>& held,
                                               std::string_view path);

/// Returns whether a process that runs under `outer` may be granted `inner` on the same LOCK
/// without waiting. If not, the wait would never end: a reader that asks to write would wait for
/// itself.
[[nodiscard]] bool Covers(Mode outer, Mode inner);

}  // namespace zklock::protocol
