// inspect --mine: does this process still hold the lock?

#include <catch2/catch.hpp>
#include <string>

#include "cli/hold/hold_script.h"
#include "cli/zklock.h"
#include "support/peer.h"

namespace zklock::test {

TEST_CASE("a command under a lock sees its locks as held, by name or all together") {
  const std::string lock = NewLock("mine");
  CHECK(Run(Script(lock, "$Z exclusive $L -- $Z inspect --mine")).exit == Exited(0));
  CHECK(Run(Script(lock, "$Z exclusive $L -- $Z inspect --mine $L")).exit == Exited(0));
  CHECK(Run(Script(lock, "$Z exclusive $L $L-b -- $Z inspect --mine")).exit == Exited(0));
  CHECK(Run(Script(lock, "$Z exclusive --permits 2 $L-c -- $Z inspect --mine $L-c")).exit ==
        Exited(0));
}

TEST_CASE("a lock that this process does not hold is not reported as held") {
  const std::string lock = NewLock("mine");
  const Finished nothing = Run(Script(lock, "$Z inspect --mine"));
  CHECK(nothing.exit == Exited(76));
  CHECK_THAT(nothing.err, Catch::Contains("nothing") || Catch::Contains("no outer zklock"));
  CHECK(Run(Script(lock, "$Z inspect --mine -q $L")).exit == Exited(76));
  CHECK(Run(Script(lock, "$Z inspect --mine -q $L")).err.empty());
  Child other = StartHolder(lock);
  CHECK(Run(Script(lock, "$Z inspect --mine $L")).exit == Exited(76));
  CHECK(Run(Script(lock, "$Z exclusive $L-b -- $Z inspect --mine $L")).exit == Exited(76));
}

TEST_CASE("a deleted lock is not reported as held even before zklock has ended the command") {
  const std::string lock = NewLock("mine");
  Child run = Child::Start(Script(lock,
                                  "exec $Z exclusive --on-lost warn $L -- sh -c "
                                  "'echo $ZKLOCK_NODE; read go; $Z inspect --mine; echo $?'"));
  const std::string node = run.ReadLine();
  Tree().Delete(node);
  run.Write("go\n");
  CHECK(run.ReadLine() == "76");
  CHECK(run.Wait() == Exited(76));
}

TEST_CASE("a run with several permits holds as long as it has all of them") {
  const std::string lock = NewLock("mine");
  const std::string ask =
      "$Z inspect --mine " + GENERATE(as<std::string>(), "", "$L") + "; echo $?";
  Child run =
      Child::Start(Script(lock,
                          "exec $Z exclusive --permits 6 --take 3 --on-lost warn $L -- sh -c "
                          "'echo $ZKLOCK_NODE; " +
                              ask + "; read go; " + ask + "'"));
  Tree tree;
  const std::string first = run.ReadLine();
  CHECK(run.ReadLine() == "0");
  SECTION("its first one is deleted") { tree.Delete(first); }
  SECTION("its last one is deleted") {
    tree.Delete(lock + "/leases/" + InQueueOrder(tree.Children(lock + "/leases")).back());
  }
  run.Write("go\n");
  CHECK(run.ReadLine() == "76");
  CHECK(run.Wait() == Exited(76));
}

TEST_CASE("a shell that holds a lock by --hold can ask by the LOCK's name") {
  const std::string lock = NewLock("mine");
  const Finished finished =
      Run(Script(lock,
                 "$Z exclusive --hold $L || exit 9; $Z inspect --mine $L; echo $?; $Z release $L; "
                 "$Z inspect -q --mine $L; echo $?"));
  CAPTURE(finished.err);
  CHECK(finished.out == "0\n76\n");
}

}  // namespace zklock::test
