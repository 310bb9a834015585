#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/contender_name.h"

namespace zklock::lock {

/// The most that a contender's data takes on the servers, and the most that is read of anybody's.
inline constexpr std::size_t kMostContenderData = 4096;

/// The most that is kept of somebody's reason for a revocation.
inline constexpr std::size_t kMostReason = 400;

/// The process that a contender of --hold holds for, on the contender's host.
struct OwnerData {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;  ///< in clock ticks since boot
  std::string socket;            ///< where the keeper answers what runs below the owner
  friend bool operator==(const OwnerData&, const OwnerData&) = default;
};

/// A request to the contender to release its lock or to leave the queue.
struct ReleaseRequest {
  std::string by{};      ///< as the requester calls itself: "root on web1"; may be empty
  std::string reason{};  ///< may be empty
  /// kCurator: in Curator's form, which says neither.
  protocol::Program program = protocol::Program::kZklock;
  friend bool operator==(const ReleaseRequest&, const ReleaseRequest&) = default;
};

/// What a contender's znode says of the one who queues: for people who look, never needed for
/// correctness. Read from the servers it is somebody else's word: anyone may have written it.
struct ContenderData {
  std::optional<std::int64_t> version = 1;
  std::optional<protocol::Mode> mode{};
  std::optional<std::string> host{};
  std::optional<std::string> user{};
  std::optional<std::int64_t> pid{};
  std::optional<std::string> boot_id{};
  std::optional<std::uint64_t> start_time{};  ///< of the process, in clock ticks since boot
  std::optional<std::string> command{};  ///< its program's name, or the whole line if published
  std::optional<std::string> label{};
  std::optional<std::uint64_t> pid_namespace{};  ///< in which pids are meant
  std::optional<OwnerData> owner{};              ///< with --hold
  std::optional<ReleaseRequest> release_request{};

  /// The contenders, by their paths on the servers, that hold other locks for it: it runs under
  /// them. The innermost last.
  std::vector<std::string> under{};

  friend bool operator==(const ContenderData&, const ContenderData&) = default;
};

/// One JSON object of at most kMostContenderData bytes. What is not known or empty is left out,
/// invalid UTF-8 is replaced, and a command or label that is too long is cut.
[[nodiscard]] std::string FormatContenderData(const ContenderData& data);

/// Reads what FormatContenderData wrote, or anything else that somebody put there: never throws. A
/// field of a wrong type or an impossible value is not known; none when it is no JSON object, or
/// longer than kMostContenderData.
[[nodiscard]] std::optional<ContenderData> ParseContenderData(std::string_view text);

/// `data`, which may be anything, with `request` added to it. The rest of a contender's data is
/// kept.
[[nodiscard]] std::string AddReleaseRequest(std::string_view data, const ReleaseRequest& request);

/// The data of a Curator contender that is asked to release. It does so if its program made the
/// lock revocable (Curator's LockInternals.REVOKE_MESSAGE).
inline constexpr std::string_view kCuratorRevoke = "__REVOKE__";

/// The request in the data of our own contender, if there is one, in zklock's form or in Curator's.
[[nodiscard]] std::optional<ReleaseRequest> FindReleaseRequest(std::string_view data);

}  // namespace zklock::lock
