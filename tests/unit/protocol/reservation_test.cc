#include "protocol/reservation.h"

#include <catch2/catch.hpp>
#include <string>

namespace zklock::protocol {

TEST_CASE("The ID of a reservation is 1 to 64 letters, digits and some other characters") {
  for (const char* const id : {"x", "4711", "ci-pipeline:42@main", "A.b_c", "-", "@"}) {
    CAPTURE(id);
    CHECK(IsReservationId(id));
  }
  CHECK(IsReservationId(std::string(64, 'x')));
  CHECK_FALSE(IsReservationId(std::string(65, 'x')));
  for (const char* const id : {"", " ", "a b", "a/b", "a,b", "a\n", "caf\xc3\xa9", "a\x7f"}) {
    CAPTURE(id);
    CHECK_FALSE(IsReservationId(id));
  }
  CHECK_FALSE(IsReservationId(std::string("a\0b", 3)));
}

}  // namespace zklock::protocol
