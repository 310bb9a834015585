#include "process/tree/identity.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "support/skip.h"

namespace zklock::process {

TEST_CASE("This process is identified") {
  const Identity identity = ThisProcess();
  CHECK(identity.pid == getpid());
  CHECK_FALSE(identity.host.empty());
  CHECK_FALSE(identity.user.empty());
  CHECK(identity.boot_id.size() == 36);
  CHECK(identity.start_time > 0);
}

TEST_CASE("The identity of a process stays the same") {
  CHECK(ThisProcess().start_time == ThisProcess().start_time);
  CHECK(ThisProcess().boot_id == ThisProcess().boot_id);
}

TEST_CASE("The environment does not override the user's name") {
  if (geteuid() != 0) return test::Skip("root");
  REQUIRE(setenv("USER", "daemon", 1) == 0);
  CHECK(ThisProcess().user == "root");
}

TEST_CASE("A UUID is random, of version 4, in lower case") {
  const std::string uuid = MakeUuid();
  CAPTURE(uuid);
  REQUIRE(uuid.size() == 36);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    CHECK((is_dash ? uuid[i] == '-'
                   : std::string("0123456789abcdef").find(uuid[i]) != std::string::npos));
  }
  CHECK(uuid[14] == '4');
  CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
}

TEST_CASE("UUIDs do not repeat") {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) CHECK(seen.insert(MakeUuid()).second);
}

}  // namespace zklock::process
