#include "protocol/reservation.h"

#include <algorithm>

namespace zklock::protocol {

bool IsReservationId(std::string_view text) {
  // Not <cctype>, which depends on the locale.
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("._:@-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kLongestReservationId &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

}  // namespace zklock::protocol
