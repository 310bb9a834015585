#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace zklock::protocol {

// What a zklock and the one that holds a lock above it say to each other, one datagram each.

/// From the one below.
struct NestingRequest {
  enum class Kind {
    kRun,      ///< let me run under this lock; answered by a NestingLease or a refusal
    kRelease,  ///< the owner of --hold releases it; answered by a NestingRelease or a refusal
  };
  Kind kind = Kind::kRun;
  std::string node;  ///< the contender's path, chroot included
  friend bool operator==(const NestingRequest&, const NestingRequest&) = default;
};

/// The lock is held: the answer to kRun, and again whenever the lease changes.
struct NestingLease {
  TimePoint end;               ///< on CLOCK_BOOTTIME, which both share
  Duration session_timeout{};  ///< T, which limits the grace of a command that has to end
  friend bool operator==(const NestingLease&, const NestingLease&) = default;
};

/// The answer to kRelease: the lock is released once these nested runs have ended.
struct NestingRelease {
  std::size_t runs = 0;
  std::int64_t pid = 0;  ///< of one of them
  friend bool operator==(const NestingRelease&, const NestingRelease&) = default;
};

/// The answer of a holder that lets nobody else run under its lock.
inline constexpr std::string_view kNestingRefusal = "refused";

[[nodiscard]] std::string FormatNesting(const NestingRequest& request);
[[nodiscard]] std::string FormatNesting(const NestingLease& lease);
[[nodiscard]] std::string FormatNesting(const NestingRelease& release);

/// None for anything else: another version of zklock may have sent it.
[[nodiscard]] std::optional<NestingRequest> ParseNestingRequest(std::string_view text);
[[nodiscard]] std::optional<NestingLease> ParseNestingLease(std::string_view text);
[[nodiscard]] std::optional<NestingRelease> ParseNestingRelease(std::string_view text);

}  // namespace zklock::protocol
