#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/children.h"

namespace zklock::protocol {

// A LOCK that is a semaphore, in Curator's layout: nobody queues in it but in its two children, the
// turnstile and the leases. Who has passed the turnstile makes a lease, waits until there are no
// more than there are permits, and only then makes way in the turnstile: one at a time.

/// The names of these two children, which are Curator's.
inline constexpr std::string_view kTurnstileChild = "locks";
inline constexpr std::string_view kPermitsChild = "leases";

/// The parent of the contenders in the turnstile of `lock`.
[[nodiscard]] std::string TurnstilePath(std::string_view lock);
/// The parent of the permits of `lock`.
[[nodiscard]] std::string PermitsPath(std::string_view lock);

/// How many permits there are, by the data of the leases' znode, where zklock writes it; none for
/// all that is no plain number above zero: another program's.
[[nodiscard]] std::optional<std::size_t> ParsePermits(std::string_view data);

/// Whether a LOCK with these children may be one: its leases tell.
[[nodiscard]] bool MayBeSemaphore(const Children& children);

/// Whether its child for the leases, with such children and data, is that of a semaphore, and not a
/// LOCK that somebody has called so.
[[nodiscard]] bool AreLeases(const Children& children, std::string_view data);

}  // namespace zklock::protocol
