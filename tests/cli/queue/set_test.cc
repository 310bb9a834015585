// Several LOCKs in one call: all or none, and never a deadlock among callers.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/queue/meeting.h"
#include "cli/zklock.h"

namespace zklock::test {
namespace {

/// Two new LOCKs in the order of their paths.
struct Pair {
  std::string root = NewLock("set");
  std::string a = root + "/a";
  std::string b = root + "/b";
  std::string c = root + "/c";
};

Finished RunWith(Words words, const Words& command) {
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return RunZklock(words);
}

}  // namespace

TEST_CASE("the command of a set gets one value for each LOCK, in the order of the paths") {
  const Pair pair;
  const Finished finished = RunWith(
      {"exclusive", pair.b, "--also-read", pair.a},
      {"sh", "-c",
       "echo \"$ZKLOCK_LOCK\"; echo \"$ZKLOCK_MODE\"; echo $ZKLOCK_NODE; echo $ZKLOCK_TOKEN"});
  CAPTURE(finished.err);
  REQUIRE(finished.exit == Exited(0));
  const Words lines = Lines(finished.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == pair.a + " " + pair.b);
  CHECK(lines[1] == "read exclusive");
  const std::size_t blank = lines[2].find(' ');
  CHECK_THAT(lines[2].substr(0, blank), Catch::StartsWith(pair.a + "/"));
  CHECK_THAT(lines[2].substr(blank + 1), Catch::StartsWith(pair.b + "/"));
  const std::size_t gap = lines[3].find(' ');
  CHECK(std::stoll(lines[3].substr(0, gap)) < std::stoll(lines[3].substr(gap + 1)));
  CHECK(Tree().Children(pair.a).empty());
  CHECK(Tree().Children(pair.b).empty());
}

TEST_CASE("a set that does not wait acquires nothing if one of its LOCKs is held") {
  const Pair pair;
  Child holder = StartHolder(pair.b);
  const Finished finished = RunWith({"try", pair.a, pair.b}, {"true"});
  CHECK(finished.exit == Exited(75));
  CHECK_THAT(finished.err, Catch::Contains(pair.b + " is held"));
  CHECK_FALSE(Tree().Exists(pair.a));
  CHECK(RunWith({"exclusive", "--wait", "100ms", pair.a, pair.b}, {"true"}).exit == Exited(75));
  CHECK(Tree().Children(pair.a).empty());
}

TEST_CASE("modes may be mixed in one set") {
  const Pair pair;
  Child reader = StartHolder({"read"}, pair.a);
  CHECK(RunWith({"try", "--read", pair.a}, {"true"}).exit == Exited(0));
  CHECK(RunWith({"exclusive", "-n", "--also-read", pair.a, pair.b}, {"true"}).exit == Exited(0));
  CHECK(RunWith({"exclusive", "-n", "--also-write", pair.a, pair.b}, {"true"}).exit == Exited(75));
}

TEST_CASE("callers that name the same LOCKs in different orders never deadlock") {
  const Pair pair;
  const std::vector<Words> orders = {{pair.a, pair.b, pair.c}, {pair.c, pair.b, pair.a},
                                     {pair.b, pair.c, pair.a}, {pair.c, pair.a, pair.b},
                                     {pair.b, pair.a, pair.c}, {pair.a, pair.c, pair.b}};
  std::vector<Child> callers;
  for (const Words& order : orders) {
    // Each caller acquires and releases the set eight times, as fast as it can.
    ChildOptions options = Zklock({});
    options.argv = {"sh", "-c",     "for i in 1 2 3 4 5 6 7 8; do \"$@\" -- true || exit; done",
                    "sh", Binary(), "exclusive"};
    options.argv.insert(options.argv.end(), order.begin(), order.end());
    callers.push_back(Child::Start(std::move(options)));
  }
  for (Child& caller : callers) CHECK(caller.Wait(4 * kPatience) == Exited(0));
  CHECK(Tree().Children(pair.a).empty());
  CHECK(Tree().Children(pair.c).empty());
}

TEST_CASE("callers in opposite orders all succeed, and no LOCK is ever held twice") {
  // ZKLOCK_TEST_ROUNDS=150 takes about a minute on two idle cores.
  const char* const wanted = std::getenv("ZKLOCK_TEST_ROUNDS");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : 15;
  REQUIRE(rounds > 0);
  constexpr int kCallers = 8;
  const Pair pair;
  const Meeting at_a;
  const Meeting at_b;
  std::vector<Child> callers;
  for (int i = 0; i < kCallers; ++i) {
    const std::string name = "caller" + std::to_string(i);
    Words both = {"sh", "-c", "\"$1\" \"$2\" \"$4\" 1 && exec \"$1\" \"$3\" \"$4\" 1", "sh"};
    for (const std::string& word : {PeerProgram("visit"), at_a.path(), at_b.path(), name}) {
      both.push_back(word);
    }
    callers.push_back(StartRounds(
        rounds,
        i % 2 == 0 ? Words{"exclusive", pair.a, pair.b} : Words{"exclusive", pair.b, pair.a},
        both));
  }
  // Also start callers that want only one of the LOCKs, so that sets sometimes wait for their
  // second LOCK.
  callers.push_back(StartRounds(rounds, {"exclusive", pair.a}, at_a.Visit("one-of-a", "1")));
  callers.push_back(StartRounds(rounds, {"exclusive", pair.b}, at_b.Visit("one-of-b", "1")));
  for (Child& caller : callers) {
    const Exit exit = caller.Wait(kPatience + rounds * std::chrono::seconds(15));
    CAPTURE(caller.err());
    CHECK(exit == Exited(0));
  }
  for (const Meeting* meeting : {&at_a, &at_b}) {
    meeting->CheckApart((kCallers + 1) * rounds);
    const Words order = meeting->Order();
    for (int i = 0; i < kCallers; ++i) {
      CHECK(std::count(order.begin(), order.end(), "caller" + std::to_string(i)) == rounds);
    }
  }
}

TEST_CASE("a set is lost when one of its locks is deleted") {
  const Pair pair;
  Child run = Child::Start(
      Zklock({"exclusive", pair.a, pair.b, "--", "sh", "-c", "echo held; exec sleep 1000"}));
  REQUIRE(run.ReadLine() == "held");
  Tree tree;
  tree.Delete(pair.a + "/" + tree.Children(pair.a).front());
  CHECK(run.Wait() == Exited(76));
  CHECK_THAT(run.err(), Catch::Contains("lost " + pair.a + ", " + pair.b + ": "));
  CHECK(tree.Children(pair.b).empty());
}

TEST_CASE("deleting a lock already taken ends the wait for the rest of the set") {
  const Pair pair;
  Child holder = StartHolder(pair.b);
  Child waiter = Child::Start(Zklock({"exclusive", pair.a, pair.b, "--", "true"}));
  Tree tree;
  tree.WaitForChildren(pair.b, 2);
  tree.Delete(pair.a + "/" + tree.Children(pair.a).front());
  CHECK(waiter.Wait() == Exited(75));
  CHECK_THAT(waiter.err(),
             Catch::Contains("removed from the queue of " + pair.a + ", " + pair.b + ": "));
  CHECK(tree.Children(pair.b).size() == 1);
}

TEST_CASE("a set does not queue for a LOCK held by a zklock above") {
  const Pair pair;
  const Finished finished = RunWith({"exclusive", pair.a}, {Binary(), "exclusive", pair.a, pair.b,
                                                            "--", "sh", "-c", "echo $ZKLOCK_LOCK"});
  CAPTURE(finished.err);
  CHECK(finished.exit == Exited(0));
  CHECK(finished.out == pair.a + " " + pair.b + "\n");  // the variables name both
}

TEST_CASE("under a set each of its LOCKs is held for nested runs") {
  const Pair pair;
  const Finished finished =
      RunWith({"exclusive", pair.a, pair.b}, {Binary(), "exclusive", "-n", pair.b, "--", "true"});
  CAPTURE(finished.err);
  CHECK(finished.exit == Exited(0));
}

}  // namespace zklock::test
