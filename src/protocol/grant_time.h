#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "protocol/contender_name.h"
#include "protocol/release_record.h"

namespace zklock::protocol {

/// When a holder got the lock, by the servers' clock, in ms since 1970. A grant writes nothing to
/// the servers; the time follows from the znodes that others left.
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

/// When `holder` got the lock. The time is exact for the first contender of a LOCK, for the one
/// whose number follows that of an exclusive holder which released last, and for a reader after a
/// reader whose time is exact. For others it is the earliest possible time.
[[nodiscard]] GrantTime GrantTimeOf(const ContenderName& holder, std::int64_t created_ms,
                                    const std::optional<LastRelease>& last,
                                    const std::optional<HolderBefore>& before);

/// When a run got its `take` permits, of which `first` is the first. Exact for the semaphore's
/// first run, and if its last permit was among the first `limit` of the semaphore: then there was
/// room for all of its permits when they were created. For others, the earliest possible time.
[[nodiscard]] GrantTime PermitTimeOf(const ContenderName& first, std::size_t take,
                                     std::int64_t created_ms,
                                     const std::optional<std::size_t>& limit);

}  // namespace zklock::protocol
