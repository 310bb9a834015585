#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/contender_name.h"
#include "protocol/reservation.h"

namespace zklock::lock {

/// The maximum size of our own data on the servers, and of other contenders' data that is read.
inline constexpr std::size_t kMostContenderData = 4096;

/// The maximum size of the reason in a release request.
inline constexpr std::size_t kMostReason = 400;

/// The maximum number of other LOCKs that `any` names.
inline constexpr std::size_t kMostAny = 63;

/// The maximum number of permits that a run takes. Converting them to a reservation sends each path
/// and its data twice, and everything must fit in one request of 1 MiB, which leaves about 600
/// bytes for a path.
inline constexpr std::size_t kMostTake = 100;

/// The owner of a lock that --hold has acquired: a process on the contender's host.
struct OwnerData {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;  ///< in clock ticks since boot
  std::string socket;            ///< on which the keeper answers nested runs
  friend bool operator==(const OwnerData&, const OwnerData&) = default;
};

/// A request to the contender to release its lock or to leave the queue.
struct ReleaseRequest {
  std::string by{};      ///< the requester, for example "root on web1"; may be empty
  std::string reason{};  ///< may be empty
  /// For --preempt: a contender ignores the request once its command has begun, or while it holds
  /// the lock for an owner.
  bool only_waiting = false;
  /// Requests nothing, but explains why the contender is about to be deleted (release --force).
  bool forced = false;
  /// kCurator: a request in Curator's form, which gives neither requester nor reason.
  protocol::Program program = protocol::Program::kZklock;
  friend bool operator==(const ReleaseRequest&, const ReleaseRequest&) = default;
};

/// The data of a contender's znode, which tells people who is in the queue. Correctness never
/// depends on it, because anyone may have written it.
struct ContenderData {
  std::optional<std::int64_t> version = 1;
  std::optional<protocol::Mode> mode{};
  std::optional<std::string> host{};
  std::optional<std::string> user{};
  std::optional<std::int64_t> pid{};
  std::optional<std::string> boot_id{};
  std::optional<std::uint64_t> start_time{};  ///< of the process, in clock ticks since boot
  std::optional<std::string>
      command{};  ///< the program's name, or the whole command line if published
  std::optional<std::string> label{};
  std::optional<std::uint64_t> pid_namespace{};  ///< the one that `pid` belongs to
  std::optional<OwnerData> owner{};              ///< with --hold
  std::optional<bool> contained{};               ///< the command gets a cgroup of its own
  std::optional<ReleaseRequest> release_request{};
  bool preempts = false;         ///< with --preempt
  std::size_t take = 1;          ///< how many permits the run takes, or waits for
  std::string reserve{};         ///< the ID of the reservation that it will become; empty if none
  std::string reserve_reason{};  ///< only with `reserve`; may be empty
  std::optional<protocol::Reservation> reservation{};  ///< see FindReservation()

  /// The contenders that hold the locks under which it runs, as paths on the servers, the innermost
  /// last.
  std::vector<std::string> under{};

  /// With --any: the other LOCKs, as paths on the servers; the run may take any of them instead of
  /// this one. If they do not fit, neither they nor `under` is written.
  std::vector<std::string> any{};

  friend bool operator==(const ContenderData&, const ContenderData&) = default;
};

/// Returns a JSON object of at most kMostContenderData bytes. Unknown and empty fields are left
/// out, invalid UTF-8 is replaced, and a long command or label is cut.
[[nodiscard]] std::string FormatContenderData(const ContenderData& data);

/// Parses what FormatContenderData wrote, or anything else; never throws. A field with a wrong type
/// or an impossible value counts as unknown. Returns none if `text` is not a JSON object or is
/// longer than kMostContenderData.
[[nodiscard]] std::optional<ContenderData> ParseContenderData(std::string_view text);

/// Returns `data`, which may be any bytes, with `request` added. If `data` is a contender's, its
/// other known fields are kept. A forced request, which requests nothing, does not replace a
/// request that the contender may not have read yet.
[[nodiscard]] std::string AddReleaseRequest(std::string_view data, const ReleaseRequest& request);

/// The data that asks a Curator contender to release the lock. It does so if its program made the
/// lock revocable (Curator's LockInternals.REVOKE_MESSAGE).
inline constexpr std::string_view kCuratorRevoke = "__REVOKE__";

/// Returns the request in the data of our own contender, whether in zklock's form or in Curator's,
/// if there is one.
[[nodiscard]] std::optional<ReleaseRequest> FindReleaseRequest(std::string_view data);

}  // namespace zklock::lock
