#include "protocol/nesting.h"

#include <catch2/catch.hpp>
#include <chrono>

namespace zklock::protocol {
namespace {

using std::chrono::seconds;

TEST_CASE("Messages between nested zklocks are parsed as they were formatted") {
  const NestingRequest run{NestingRequest::Kind::kRun, "/a b/c-lock-0000000001"};
  CHECK(FormatNesting(run) == "run /a b/c-lock-0000000001");
  CHECK(ParseNestingRequest(FormatNesting(run)) == run);
  for (const auto kind : {NestingRequest::Kind::kRelease, NestingRequest::Kind::kMayRelease}) {
    const NestingRequest release{kind, "/a/c"};
    CHECK(ParseNestingRequest(FormatNesting(release)) == release);
  }
  const NestingLease lease{TimePoint(seconds(12)), seconds(30)};
  CHECK(FormatNesting(lease) == "lease 12000000000 30000000000");
  CHECK(ParseNestingLease(FormatNesting(lease)) == lease);
  const NestingCommand command{4711, 123456};
  CHECK(FormatNesting(command) == "command 4711 123456");
  CHECK(ParseNestingCommand(FormatNesting(command)) == command);
  const NestingRelease waits{2, 4711, 3};
  CHECK(FormatNesting(waits) == "releasing 2 4711 3");
  CHECK(ParseNestingRelease(FormatNesting(waits)) == waits);
}

TEST_CASE("Any other message between nested zklocks is rejected") {
  for (const char* text :
       {"", "run", "run ", "run a", "walk /a", "release", "lease", "lease ", "lease 1", "lease 1 ",
        "lease  1 2", "lease 1 2 ", "lease 1 2x", "lease -1 2", "lease 1 -2", "releasing 1 2",
        "command 1", "lease 99999999999999999999 1", kNestingRefusal.data()}) {
    CAPTURE(text);
    CHECK_FALSE(ParseNestingRequest(text));
    CHECK_FALSE(ParseNestingLease(text));
    CHECK_FALSE(ParseNestingCommand(text));
    CHECK_FALSE(ParseNestingRelease(text));
  }
  for (const char* text : {"releasing 1 2 ", "releasing 1 2 -3", "releasing 1 2 3 4"}) {
    CHECK_FALSE(ParseNestingRelease(text));
  }
}

}  // namespace
}  // namespace zklock::protocol
