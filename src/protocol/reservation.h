#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::protocol {

/// The maximum length of a reservation's ID.
inline constexpr std::size_t kLongestReservationId = 64;
/// The maximum duration of a reservation that has an end.
inline constexpr std::chrono::milliseconds kLongestReservation = std::chrono::days(400);

/// Returns whether `text` is 1 to 64 of `A-Z a-z 0-9 . _ : @ -`.
[[nodiscard]] bool IsReservationId(std::string_view text);

/// The reservation that --reserve requests.
struct ReservationRequest {
  std::string id;
  std::string reason{};                              ///< may be empty
  std::optional<std::chrono::milliseconds> lasts{};  ///< none: until it is released
  friend bool operator==(const ReservationRequest&, const ReservationRequest&) = default;
};

/// A lock that belongs to an ID instead of a session, from the conversion of a contender into a
/// persistent znode until someone releases it or its time is over.
struct Reservation {
  std::string id;
  std::string reason{};                              ///< may be empty
  std::optional<std::chrono::milliseconds> lasts{};  ///< counted from its creation; none: no end
  /// The fencing token: the czxid of the contender that was converted. The czxid of the
  /// reservation's own znode is higher than those of contenders that joined the queue in between.
  std::int64_t token = 0;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

}  // namespace zklock::protocol
