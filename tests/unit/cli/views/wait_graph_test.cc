#include "cli/views/wait_graph.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace zklock::cli {
namespace {

using Reason = WaitEdge::Reason;

ContenderView Holder(const std::string& path) {
  ContenderView view;
  view.path = path;
  return view;
}

ContenderView Waiter(const std::string& path, const std::string& predecessor) {
  ContenderView view;
  view.path = path;
  view.state = ContenderState::kWaiting;
  view.waits_for = {1, predecessor, path.substr(0, path.rfind('/') + 1) + predecessor};
  return view;
}

ContenderView Under(ContenderView view, const std::vector<std::string>& outer) {
  view.data.under = outer;
  return view;
}

ContenderView Of(ContenderView view, int pid) {
  view.data.host = "b7";
  view.data.boot_id = "boot";
  view.data.pid = pid;
  view.data.start_time = 1;
  return view;
}

std::vector<WaitEdge> Waits(const std::vector<ContenderView>& views) {
  std::vector<const ContenderView*> contenders;
  for (const ContenderView& view : views) contenders.push_back(&view);
  return FindWaits(contenders);
}

using Edges = std::vector<WaitEdge>;
using Circles = std::vector<std::size_t>;

}  // namespace

TEST_CASE("A waiter waits for its predecessor in the same lock") {
  CHECK(Waits({Holder("/a/1"), Waiter("/a/2", "1"), Waiter("/b/2", "1")}) ==
        Edges{{1, 0, Reason::kQueue}});
  CHECK(Waits({Holder("/1"), Waiter("/2", "1")}) == Edges{{1, 0, Reason::kQueue}});
}

TEST_CASE("A holder waits for what its command runs") {
  CHECK(Waits({Holder("/a/1"), Under(Holder("/b/1"), {"/a/1"})}) == Edges{{0, 1, Reason::kNested}});
}

TEST_CASE("A claim to run under a waiter or under oneself is ignored") {
  CHECK(Waits({Holder("/a/1"), Waiter("/a/2", "1"),
               Under(Holder("/b/1"), {"/a/2", "/b/1", "/x"})}) == Edges{{1, 0, Reason::kQueue}});
}

TEST_CASE("The held locks of a set wait with the requested one") {
  CHECK(Waits({Of(Holder("/a/1"), 7), Of(Holder("/b/1"), 8), Of(Waiter("/b/2", "1"), 7)}) ==
        Edges{{2, 1, Reason::kQueue}, {0, 2, Reason::kSet}});
}

TEST_CASE("Two nested callers in opposite orders are a cycle") {
  // 0 holds a and runs 2, which waits in b for 3; 3 holds b and runs 1, which waits in a for 0.
  const std::vector<ContenderView> views{Holder("/a/1"), Under(Waiter("/a/2", "1"), {"/b/1"}),
                                         Under(Waiter("/b/2", "1"), {"/a/1"}), Holder("/b/1"),
                                         Waiter("/b/3", "2")};
  CHECK(FindCycles(views.size(), Waits(views)) == Circles{1, 1, 1, 1, 0});
}

TEST_CASE("Cycles are numbered, and chains are not cycles") {
  CHECK(FindCycles(6, {{0, 1, Reason::kQueue},
                       {1, 0, Reason::kNested},
                       {2, 0, Reason::kQueue},
                       {3, 4, Reason::kQueue},
                       {4, 5, Reason::kNested},
                       {5, 3, Reason::kQueue}}) == Circles{1, 1, 0, 2, 2, 2});
  CHECK(FindCycles(0, {}).empty());
}

TEST_CASE("A waiter for any of several is stuck if all of them are") {
  // 0 waits for 1 or 2; 1 waits for 0.
  const Edges one{{0, 1, Reason::kPermit}, {0, 2, Reason::kPermit}, {1, 0, Reason::kNested}};
  CHECK(FindCycles(3, one) == Circles{0, 0, 0});
  Edges both = one;
  both.push_back({2, 0, Reason::kNested});
  CHECK(FindCycles(3, both) == Circles{1, 1, 1});
  // 2 is in another cycle and will never continue. A waiter for a stuck contender is in no cycle.
  Edges two = one;
  two.insert(two.end(), {{2, 3, Reason::kQueue}, {3, 2, Reason::kNested}, {4, 0, Reason::kQueue}});
  const Circles circles = FindCycles(5, two);
  CHECK(circles[0] == circles[1]);
  CHECK(circles[2] == circles[3]);
  CHECK(circles[0] != 0);
  CHECK(circles[2] != 0);
  CHECK(circles[0] != circles[2]);
  CHECK(circles[4] == 0);
}

TEST_CASE("A deadlock is named by those who hold, and counted by lock") {
  DeadlockSearch search;
  const auto add = [&](const std::string& lock, const std::vector<ContenderView>& contenders) {
    search.BeginLock(lock);
    for (const ContenderView& contender : contenders) search.Add(contender);
  };
  const auto on = [](ContenderView view, const std::string& host, int pid) {
    view.data.host = host;
    view.data.pid = pid;
    return view;
  };
  ContenderView stray = Holder("/a/0");
  stray.state = ContenderState::kNoContender;
  add("/a", {stray, on(Holder("/a/1"), "web1", 42), Waiter("/a/2", "1"),
             Under(Waiter("/a/3", "2"), {"/b/1"}), Waiter("/a/4", "3")});
  add("/b", {on(Holder("/b/1"), "web2", 77), Under(Waiter("/b/2", "1"), {"/a/1"})});
  add("/c", {on(Holder("/c/1"), "web3", 8), Waiter("/c/2", "1")});
  const auto deadlocks = search.Find();
  REQUIRE(deadlocks.size() == 1);
  const std::string text = "web1:42 holds /a, web2:77 holds /b; each waits for the other";
  CHECK(deadlocks[0].Text() == text);
  CHECK(deadlocks[0].contenders == std::map<std::string, std::size_t>{{"/a", 3}, {"/b", 2}});
  // A lock that was surveyed twice is named once.
  add("/b", {on(Holder("/b/1"), "web2", 77), Under(Waiter("/b/2", "1"), {"/a/1"})});
  REQUIRE(search.Find().size() == 1);
  CHECK(search.Find()[0].Text() == text);
}

TEST_CASE("The text of a deadlock names four holders at most") {
  CHECK(Deadlock{.holders = {{"w:1", "/s"}}, .contenders = {}}.Text() ==
        "w:1 holds /s and waits for itself");
  CHECK(
      Deadlock{
          .holders = {{"a:1", "/a"}, {"b:1", "/b"}, {"c:1", "/c"}, {"d:1", "/d"}, {"e:1", "/e"}},
          .contenders = {}}
          .Text() ==
      "a:1 holds /a, b:1 holds /b, c:1 holds /c, d:1 holds /d, and 1 more; each waits for another");
}

TEST_CASE("A long queue is handled") {
  Edges edges;
  constexpr std::size_t kLong = 100000;
  for (std::size_t i = 1; i < kLong; ++i) edges.push_back({i, i - 1, Reason::kQueue});
  edges.push_back({0, kLong - 1, Reason::kNested});
  const Circles circles = FindCycles(kLong, edges);
  CHECK(circles.front() == 1);
  CHECK(circles.back() == 1);
}

}  // namespace zklock::cli
