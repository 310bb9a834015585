#include <catch2/catch.hpp>
#include <string>

#include "cli/zklock.h"

// A binary built with sanitizers cannot run under valgrind, and does not need to.
#ifndef ZKLOCK_SANITIZED

namespace zklock::test {
namespace {

/// Runs `zklock ARGUMENTS` under valgrind, which exits with 99 if it finds an error. Covers zklock
/// and the processes that it forks, but not the programs they execute.
Finished RunUnderValgrind(const Words& arguments) {
  ChildOptions options = Zklock(arguments);
  const Words valgrind = {"valgrind",
                          "-q",
                          "--leak-check=full",
                          "--show-leak-kinds=definite",
                          "--errors-for-leak-kinds=definite",
                          "--error-exitcode=99"};
  options.argv.insert(options.argv.begin(), valgrind.begin(), valgrind.end());
  return Run(std::move(options));
}

TEST_CASE("valgrind finds no error in a run, a conflict, an inspect and a usage error") {
  const std::string lock = NewLock("valgrind");
  CHECK(RunUnderValgrind({"exclusive", lock, "--", "sh", "-c", "exit 7"}).exit == Exited(7));
  {
    Child holder = StartHolder(lock);
    CHECK(RunUnderValgrind({"try", lock, "--", "true"}).exit == Exited(75));
    CHECK(RunUnderValgrind({"read", "-w", "1ms", lock, "--", "true"}).exit == Exited(75));
    CHECK(RunUnderValgrind({"inspect", lock}).exit == Exited(0));
    CHECK(Finish(holder) == Exited(0));
  }
  CHECK(RunUnderValgrind({"exclusive", lock, "--", "/no/such/command"}).exit == Exited(127));
  CHECK(RunUnderValgrind({"exclusive", lock}).exit == Exited(64));
  CHECK(RunUnderValgrind(
            {"exclusive", "-z", "127.0.0.1:1", "--connect-timeout", "100ms", lock, "--", "true"})
            .exit == Exited(69));
}

}  // namespace
}  // namespace zklock::test

#endif
