#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::protocol {

/// How long the ID of a reservation may be.
inline constexpr std::size_t kLongestReservationId = 64;
/// How long a reservation with an end may last.
inline constexpr std::chrono::milliseconds kLongestReservation = std::chrono::days(400);

/// 1 to 64 of `A-Z a-z 0-9 . _ : @ -`.
[[nodiscard]] bool IsReservationId(std::string_view text);

/// What --reserve asks for.
struct ReservationRequest {
  std::string id;
  std::string reason{};                              ///< may be empty
  std::optional<std::chrono::milliseconds> lasts{};  ///< none: until it is released
  friend bool operator==(const ReservationRequest&, const ReservationRequest&) = default;
};

/// A lock that belongs to an ID instead of a session, from the conversion of a contender to a
/// persistent znode until somebody releases it, or until it has lasted long enough.
struct Reservation {
  std::string id;
  std::string reason{};                              ///< may be empty
  std::optional<std::chrono::milliseconds> lasts{};  ///< from its creation; none: no end
  /// The fencing token: the czxid of the contender that was converted. The czxid of the
  /// reservation's own znode is later than those of contenders that joined the queue in between.
  std::int64_t token = 0;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

}  // namespace zklock::protocol
