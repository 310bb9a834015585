#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/children.h"

namespace zklock::protocol {

// A semaphore, in Curator's layout. Contenders do not queue in the LOCK itself, but in two of its
// children: the turnstile and the permits. The first in the turnstile creates a permit, waits until
// there are no more permits than the limit, and only then leaves the turnstile, so contenders do
// this one at a time.

/// The names of these two children, which are Curator's.
inline constexpr std::string_view kTurnstileChild = "locks";
inline constexpr std::string_view kPermitsChild = "leases";

/// Returns the parent of the contenders in the turnstile of `lock`.
[[nodiscard]] std::string TurnstilePath(std::string_view lock);
/// Returns the parent of the permits of `lock`.
[[nodiscard]] std::string PermitsPath(std::string_view lock);

/// Returns the maximum number of permits, according to the data of their parent, where zklock
/// writes it. Returns none if the data is not a plain number above zero: it then belongs to another
/// program.
[[nodiscard]] std::optional<std::size_t> ParsePermitLimit(std::string_view data);

/// Returns whether a LOCK with these children may be a semaphore; ArePermits() then decides.
[[nodiscard]] bool MayBeSemaphore(const Children& children);

/// Returns whether a child named kPermitsChild, with these children and data, contains a
/// semaphore's permits rather than being a LOCK of that name.
[[nodiscard]] bool ArePermits(const Children& children, std::string_view data);

}  // namespace zklock::protocol
