#include "cli/text/screen.h"

#include <catch2/catch.hpp>

namespace zklock::cli {

TEST_CASE("A frame replaces all of the previous one") {
  CHECK(Frame("one\ntwo\n", 0) == "\x1b[?2026h\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\x1b[?2026l");
  CHECK(Frame("", 0) == "\x1b[?2026h\x1b[H\x1b[J\x1b[?2026l");
}

TEST_CASE("A frame does not scroll") {
  CHECK(Frame("one\ntwo\nthree\n", 2) ==
        "\x1b[?2026h\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\x1b[?2026l");
}

}  // namespace zklock::cli
