// inspect --mine: does this process still hold the lock?

#include <catch2/catch.hpp>
#include <string>

#include "cli/zklock.h"

namespace zklock::test {
namespace {

/// A shell command line in which $Z is zklock and $L a LOCK.
ChildOptions Line(const std::string& lock, const std::string& text) {
  return {.argv = {"/bin/sh", "-c", text},
          .also_environment = {"Z=" + Binary(), "L=" + lock, "ZKLOCK_SERVERS=" + TestServers(),
                               "ZKLOCK_CONFIG=/dev/null"}};
}

}  // namespace

TEST_CASE("a command under a lock sees its locks as held, by name or all together") {
  const std::string lock = NewLock("mine");
  CHECK(Run(Line(lock, "$Z exclusive $L -- $Z inspect --mine")).exit == Exited(0));
  CHECK(Run(Line(lock, "$Z exclusive $L -- $Z inspect --mine $L")).exit == Exited(0));
  CHECK(Run(Line(lock, "$Z exclusive $L $L-b -- $Z inspect --mine")).exit == Exited(0));
  CHECK(Run(Line(lock, "$Z exclusive --permits 2 $L-c -- $Z inspect --mine $L-c")).exit ==
        Exited(0));
}

TEST_CASE("a lock that is not held is not reported as ours") {
  const std::string lock = NewLock("mine");
  const Finished nothing = Run(Line(lock, "$Z inspect --mine"));
  CHECK(nothing.exit == Exited(76));
  CHECK_THAT(nothing.err, Catch::Contains("nothing") || Catch::Contains("no outer zklock"));
  CHECK(Run(Line(lock, "$Z inspect --mine -q $L")).exit == Exited(76));
  CHECK(Run(Line(lock, "$Z inspect --mine -q $L")).err.empty());
  Child other = StartHolder(lock);
  CHECK(Run(Line(lock, "$Z inspect --mine $L")).exit == Exited(76));
  CHECK(Run(Line(lock, "$Z exclusive $L-b -- $Z inspect --mine $L")).exit == Exited(76));
}

TEST_CASE("a deleted lock is not reported as ours, even before zklock has ended the command") {
  const std::string lock = NewLock("mine");
  Child run = Child::Start([&] {
    auto options = Line(lock,
                        "exec $Z exclusive --on-lost warn $L -- sh -c "
                        "'echo $ZKLOCK_NODE; read go; $Z inspect --mine; echo $?'");
    options.keep_stdin = true;
    return options;
  }());
  const std::string node = run.ReadLine();
  Tree().Delete(node);
  run.Write("go\n");
  CHECK(run.ReadLine() == "76");
  CHECK(run.Wait() == Exited(76));
}

TEST_CASE("a shell that holds by --hold can ask by the LOCK's name") {
  const std::string lock = NewLock("mine");
  const Finished finished =
      Run(Line(lock,
               "$Z exclusive --hold $L || exit 9; $Z inspect --mine $L; echo $?; $Z release $L; "
               "$Z inspect -q --mine $L; echo $?"));
  CAPTURE(finished.err);
  CHECK(finished.out == "0\n76\n");
}

}  // namespace zklock::test
