#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace zklock::protocol {

// The messages between a nested zklock and the ancestor that holds the lock, one datagram each.

/// A message from the nested zklock.
struct NestingRequest {
  enum class Kind {
    kRun,      ///< to run under the lock; answered by a NestingLease or a refusal
    kRelease,  ///< to release, from the owner of --hold; answered by a NestingRelease or a refusal
    kMayRelease,  ///< answered like kRelease, but nothing is released (--dry-run)
  };
  Kind kind = Kind::kRun;
  std::string node;  ///< the contender's path, chroot included
  friend bool operator==(const NestingRequest&, const NestingRequest&) = default;
};

/// The lock is held. Sent as the answer to kRun, and again whenever the lease changes.
struct NestingLease {
  TimePoint end;               ///< by CLOCK_BOOTTIME, which both processes share
  Duration session_timeout{};  ///< T, which limits the command's grace
  friend bool operator==(const NestingLease&, const NestingLease&) = default;
};

/// Sent once by a nested zklock whose run was admitted, before its command is executed.
struct NestingCommand {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;  ///< clock ticks since boot
  friend bool operator==(const NestingCommand&, const NestingCommand&) = default;
};

/// The answer to kRelease: the locks will be released when these nested runs have ended.
struct NestingRelease {
  std::size_t runs = 0;
  std::int64_t pid = 0;   ///< the pid of one of them
  std::size_t locks = 0;  ///< how many LOCKs the hold consists of; all are released together
  friend bool operator==(const NestingRelease&, const NestingRelease&) = default;
};

/// The answer from a holder that lets no other process run under its lock.
inline constexpr std::string_view kNestingRefusal = "refused";
/// The answer to a process that the holder does not see below itself or the owner.
inline constexpr std::string_view kNestingStranger = "stranger";

[[nodiscard]] std::string FormatNesting(const NestingRequest& request);
[[nodiscard]] std::string FormatNesting(const NestingLease& lease);
[[nodiscard]] std::string FormatNesting(const NestingCommand& command);
[[nodiscard]] std::string FormatNesting(const NestingRelease& release);

/// Returns none for an unknown message: another version of zklock may have sent it.
[[nodiscard]] std::optional<NestingRequest> ParseNestingRequest(std::string_view text);
[[nodiscard]] std::optional<NestingLease> ParseNestingLease(std::string_view text);
[[nodiscard]] std::optional<NestingCommand> ParseNestingCommand(std::string_view text);
[[nodiscard]] std::optional<NestingRelease> ParseNestingRelease(std::string_view text);

}  // namespace zklock::protocol
