#include "protocol/held.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace zklock::protocol {
namespace {

TEST_CASE("Held locks are parsed as they were formatted") {
  const std::vector<HeldLock> held = {
      {Mode::kExclusive, 12, 5, 3456, 78, "s-1", "/a/h-lock-0000000001"},
      {Mode::kRead, 7, 5, 1, 9, "s-2", "/with blank/50%/x-__READ__0000000002"}};
  const std::string text = FormatHeld(held);
  CHECK(text ==
        "exclusive:12:5:3456:78:s-1:/a/h-lock-0000000001 "
        "read:7:5:1:9:s-2:/with%20blank/50%25/x-__READ__0000000002");
  CHECK(ParseHeld(text) == held);
}

TEST_CASE("Invalid entries in the variable are skipped") {
  for (const char* text : {"",
                           " ",
                           "x",
                           "exclusive",
                           "exclusive:1",
                           "exclusive:1:5",
                           "exclusive:1:5:2",
                           "exclusive:1:5:2:3",
                           "exclusive:1:5:2:3:",
                           "exclusive:1:5:2:3:s:",
                           "exclusive:1:5:2:3::/a",
                           "exclusive:1:5:2:3:s\n:/a",
                           "exclusive:1:5:2:3:s/t:/a",
                           "exclusive:1:5:2:3:/a",
                           "exclusive:1:5:2:3:s:relative",
                           "exclusive:-1:5:2:3:s:/a",
                           "exclusive:0:5:2:3:s:/a",
                           "exclusive:1x:5:2:3:s:/a",
                           "sometimes:1:5:2:3:s:/a",
                           "exclusive:1:5:2:3:s:/a%2",
                           "exclusive:1:5:2:3:s:/a%zz",
                           "exclusive:1:5:2:/a",
                           "exclusive:1:5:2:0:s:/a",
                           "exclusive:1:2:3:s:/a",
                           "exclusive:99999999999999999999:5:2:3:s:/a"}) {
    CAPTURE(text);
    CHECK(ParseHeld(text).empty());
  }
  CHECK(ParseHeld("nonsense write:1:5:2:3:s:/a/b more").size() == 1);
}

TEST_CASE("The innermost hold on a LOCK counts") {
  const std::vector<HeldLock> held = {{Mode::kRead, 1, 5, 1, 1, "s", "/a/x"},
                                      {Mode::kWrite, 2, 5, 2, 2, "s", "/b/x"},
                                      {Mode::kRead, 3, 5, 3, 3, "s", "/a/y"}};
  CHECK(FindHeld(held, "/a")->pid == 3);
  CHECK(FindHeld(held, "/b")->pid == 2);
  CHECK_FALSE(FindHeld(held, "/a/x"));
  CHECK_FALSE(FindHeld(held, "/c"));
}

TEST_CASE("An exclusive holder or a writer covers every mode, a reader only reading") {
  for (const Mode inner : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    CHECK(Covers(Mode::kExclusive, inner));
    CHECK(Covers(Mode::kWrite, inner));
    CHECK(Covers(Mode::kRead, inner) == (inner == Mode::kRead));
  }
}

}  // namespace
}  // namespace zklock::protocol
