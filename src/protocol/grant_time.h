#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "protocol/contender_name.h"
#include "protocol/release_record.h"

namespace zklock::protocol {

/// When a holder acquired the lock, by the servers' clock, in ms since 1970. A grant writes nothing
/// to the servers; the time is derived from znodes that other contenders left.
struct GrantTime {
  std::int64_t since_ms = 0;
  bool exact = true;  ///< false: the lock was granted at this time or later
  friend bool operator==(const GrantTime&, const GrantTime&) = default;
};

/// The last release of a LOCK: the record in its data, and when that was written.
struct LastRelease {
  ReleaseRecord record;
  std::int64_t written_ms = 0;
};

/// The holder just before another one in the queue.
struct HolderBefore {
  std::int64_t number = 0;
  GrantTime granted;
};

/// Returns when `holder` acquired the lock. The time is exact for the first contender of a LOCK;
/// for one whose number directly follows that of the last holder to release the lock, if that
/// holder was not a reader; and for one whose number directly follows that of a holder whose time
/// is exact. For all others, it is the earliest possible time.
[[nodiscard]] GrantTime GrantTimeOf(const ContenderName& holder, std::int64_t created_ms,
                                    const std::optional<LastRelease>& last,
                                    const std::optional<HolderBefore>& before);

/// Returns when a run acquired its `take` permits, the first of which is `first`. The time is exact
/// for the semaphore's first run, and for a run whose last permit was among the first `limit`
/// permits of the semaphore: there was room for all of its permits when they were created. For all
/// others, it is the earliest possible time.
[[nodiscard]] GrantTime PermitTimeOf(const ContenderName& first, std::size_t take,
                                     std::int64_t created_ms,
                                     const std::optional<std::size_t>& limit);

}  // namespace zklock::protocol
