// The largest option values: each must work, not merely be accepted.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/zklock.h"
#include "support/own_server.h"

namespace zklock::test {

TEST_CASE("servers that allow it grant the longest session timeout") {
  const OwnServer server({"maxSessionTimeout=2147483647"});
  Words words = {"exclusive", "-v",    "-z", server.address(), "--session-timeout",
                 "12d",       "/lock", "--", "echo",           "ran"};
  Finished finished = RunZklock(words);
  CAPTURE(finished.err);
  CHECK(finished.exit == Exited(0));
  CHECK(finished.out == "ran\n");
  CHECK_THAT(finished.err, Catch::Contains("session timeout 12d\n"));

  words[5] = "12d1ms";
  finished = RunZklock(words);
  CHECK(finished.exit == Exited(64));
  CHECK(Lines(finished.err).front() ==
        "zklock: --session-timeout: '12d1ms' is too long; the maximum is 12d");
}

TEST_CASE("the largest numbers and durations work in a run, with a free LOCK and a held one") {
  const std::string longest = "106751d23h";  // what fits into 64 bits of nanoseconds
  const std::vector<Words> options = {{"--wait", longest},         {"--connect-timeout", longest},
                                      {"--kill-after", longest},   {"--min-interval", longest},
                                      {"--once-per", longest},     {"--max-queue", "2147483647"},
                                      {"--permits", "2147483647"}, {"--max-run", longest}};
  for (const Words& option : options) {
    CAPTURE(option);
    const std::string lock = NewLock("limits");
    Words words = {"exclusive", lock, "--", "echo", "ran"};
    words.insert(words.begin() + 1, option.begin(), option.end());
    CHECK(RunZklock(words, Exited(0)).out == "ran\n");
    if (option.front() == "--permits" || option.front() == "--min-interval" ||
        option.front() == "--once-per") {
      continue;
    }
    Child holder = StartHolder(lock);
    Words waits = Words{"exclusive"} + option;
    Child waiter = StartWaiter(waits, lock);
    holder.CloseInput();
    CHECK(waiter.ReadLine() == "held");
    CHECK(Finish(waiter) == Exited(0));
  }
}

}  // namespace zklock::test
