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

/// Makes `view` a holder of, or waiter for, `take` of the ten permits of the semaphore /s.
ContenderView Taking(std::size_t take, ContenderView view) {
  view.for_permit = true;
  view.permit_limit = 10;
  view.take = take;
  if (view.waits_for) view.waits_for->any_holder = true;
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

/// Makes `view` a contender of the run with this session, which takes any one of several LOCKs.
ContenderView AnyOf(ContenderView view, std::int64_t session,
                    const std::vector<std::string>& others) {
  view.session = session;
  view.data.any = others;
  return view;
}

WaitGraph Graph(const std::vector<ContenderView>& views) {
  std::vector<const ContenderView*> contenders;
  for (const ContenderView& view : views) contenders.push_back(&view);
  return FindWaits(contenders);
}

std::vector<WaitEdge> Waits(const std::vector<ContenderView>& views) { return Graph(views).edges; }

using Edges = std::vector<WaitEdge>;
using Circles = std::vector<std::size_t>;

Circles CirclesOf(std::size_t nodes, const Edges& edges) {
  return FindCycles({.nodes = nodes, .edges = edges});
}

/// Returns the result of FindCycles() for the contenders only, without the graph's other nodes.
Circles CirclesOf(const std::vector<ContenderView>& views) {
  Circles circles = FindCycles(Graph(views));
  circles.resize(views.size());
  return circles;
}

}  // namespace

TEST_CASE("A waiter waits for its predecessor in the same lock") {
  CHECK(Waits({Holder("/a/1"), Waiter("/a/2", "1"), Waiter("/b/2", "1")}) ==
        Edges{{1, 0, Reason::kQueue}});
  CHECK(Waits({Holder("/1"), Waiter("/2", "1")}) == Edges{{1, 0, Reason::kQueue}});
}

TEST_CASE("A holder waits for the runs that its command starts") {
  CHECK(Waits({Holder("/a/1"), Under(Holder("/b/1"), {"/a/1"})}) == Edges{{0, 1, Reason::kNested}});
}

TEST_CASE("A claim to run under a waiter or under oneself is ignored") {
  CHECK(Waits({Holder("/a/1"), Waiter("/a/2", "1"),
               Under(Holder("/b/1"), {"/a/2", "/b/1", "/x"})}) == Edges{{1, 0, Reason::kQueue}});
}

TEST_CASE("A set's held locks wait for the one that it has requested") {
  CHECK(Waits({Of(Holder("/a/1"), 7), Of(Holder("/b/1"), 8), Of(Waiter("/b/2", "1"), 7)}) ==
        Edges{{2, 1, Reason::kQueue}, {0, 2, Reason::kSet}});
}

TEST_CASE("Two nested callers in opposite orders are a cycle") {
  // 0 holds a and runs 2, which waits in b for 3; 3 holds b and runs 1, which waits in a for 0.
  const std::vector<ContenderView> views{Holder("/a/1"), Under(Waiter("/a/2", "1"), {"/b/1"}),
                                         Under(Waiter("/b/2", "1"), {"/a/1"}), Holder("/b/1"),
                                         Waiter("/b/3", "2")};
  CHECK(CirclesOf(views) == Circles{1, 1, 1, 1, 0});
}

TEST_CASE("Cycles are numbered, and chains are not cycles") {
  CHECK(CirclesOf(6, {{0, 1, Reason::kQueue},
                      {1, 0, Reason::kNested},
                      {2, 0, Reason::kQueue},
                      {3, 4, Reason::kQueue},
                      {4, 5, Reason::kNested},
                      {5, 3, Reason::kQueue}}) == Circles{1, 1, 0, 2, 2, 2});
  CHECK(CirclesOf(0, {}).empty());
}

TEST_CASE("A waiter for any of several contenders is stuck if all of them are") {
  // 0 waits for 1 or 2; 1 waits for 0.
  const Edges one{{0, 1, Reason::kPermit}, {0, 2, Reason::kPermit}, {1, 0, Reason::kNested}};
  CHECK(CirclesOf(3, one) == Circles{0, 0, 0});
  Edges both = one;
  both.push_back({2, 0, Reason::kNested});
  CHECK(CirclesOf(3, both) == Circles{1, 1, 1});
  // 2 is in another cycle and will never continue. 4 waits for a stuck contender, but is in no
  // cycle.
  Edges two = one;
  two.insert(two.end(), {{2, 3, Reason::kQueue}, {3, 2, Reason::kNested}, {4, 0, Reason::kQueue}});
  const Circles circles = CirclesOf(5, two);
  CHECK(circles[0] == circles[1]);
  CHECK(circles[2] == circles[3]);
  CHECK(circles[0] != 0);
  CHECK(circles[2] != 0);
  CHECK(circles[0] != circles[2]);
  CHECK(circles[4] == 0);
}

/// Returns contenders: 0 holds six of ten permits, and its command waits for /b. 1 holds two, and
/// will end. 2 holds /b, and its command waits for `take` permits.
std::vector<ContenderView> WaitingForPermits(std::size_t take) {
  return {Taking(6, Holder("/s/leases/1")), Taking(2, Holder("/s/leases/7")), Holder("/b/1"),
          Under(Waiter("/b/2", "1"), {"/s/leases/1"}),
          Under(Taking(take, Waiter("/s/leases/9", "1")), {"/b/1"})};
}

TEST_CASE("A waiter for several permits is stuck if the stuck holders leave too few") {
  CHECK(CirclesOf(WaitingForPermits(8)) == Circles{1, 0, 1, 1, 1});
  CHECK(CirclesOf(WaitingForPermits(5)) == Circles{1, 0, 1, 1, 1});
  CHECK(CirclesOf(WaitingForPermits(4)) == Circles(5));
  // No holder is stuck: a waiter may want all permits, or claim to want more.
  for (const std::size_t take : {10U, 20U}) {
    auto views = WaitingForPermits(take);
    views[3].waits_for.reset();
    CHECK(CirclesOf(views) == Circles(5));
  }
}

TEST_CASE("If the number of permits is unknown, the end of any holder may be enough") {
  auto views = WaitingForPermits(8);
  for (ContenderView& view : views) view.permit_limit.reset();
  CHECK(CirclesOf(views) == Circles(5));
  views.push_back(Under(Waiter("/b/3", "2"), {"/s/leases/7"}));
  CHECK(CirclesOf(views) == Circles(6, 1));
}

TEST_CASE("The permits of a semaphore that was surveyed twice count once") {
  // The holders of three permits each want /b, and so do their copies.
  std::vector<ContenderView> views{Of(Taking(3, Holder("/s/leases/1")), 7),
                                   Of(Taking(3, Holder("/s/leases/1")), 7), Holder("/b/1"),
                                   Of(Waiter("/b/2", "1"), 7),
                                   Under(Taking(6, Waiter("/s/leases/9", "1")), {"/b/1"})};
  CHECK(CirclesOf(views) == Circles(5));
  views[4].take = 8;
  CHECK(CirclesOf(views) == Circles{1, 0, 1, 1, 1});
}

TEST_CASE("A run that takes any of several locks is one node, which leads to its contenders") {
  const std::vector<ContenderView> views{
      Holder("/a/1"),
      Holder("/b/1"),
      Holder("/c/1"),
      Under(AnyOf(Waiter("/a/2", "1"), 7, {"/b"}), {"/c/1"}),
      Under(AnyOf(Waiter("/b/2", "1"), 7, {"/a"}), {"/c/1"}),
  };
  const WaitGraph graph = Graph(views);
  CHECK(graph.not_found == 5);
  CHECK(graph.nodes == 7);
  CHECK(graph.edges == Edges{{6, 3, Reason::kAny},
                             {6, 4, Reason::kAny},
                             {3, 0, Reason::kQueue},
                             {2, 6, Reason::kNested},
                             {4, 1, Reason::kQueue}});
}

/// Returns contenders: the holder of c waits for a or b. The holder of a waits for c; if `both`, so
/// does the holder of b.
std::vector<ContenderView> WaitingForAny(bool both) {
  std::vector<ContenderView> views{
      Holder("/a/1"), Under(AnyOf(Waiter("/a/2", "1"), 7, {"/b"}), {"/c/1"}),
      Holder("/b/1"), Under(AnyOf(Waiter("/b/2", "1"), 7, {"/a"}), {"/c/1"}),
      Holder("/c/1"), Under(Waiter("/c/2", "1"), {"/a/1"}),
  };
  if (both) views.push_back(Under(Waiter("/c/3", "2"), {"/b/1"}));
  return views;
}

TEST_CASE("A run that takes any of several locks is stuck if all its queues are") {
  CHECK(CirclesOf(WaitingForAny(false)) == Circles(6));
  CHECK(CirclesOf(WaitingForAny(true)) == Circles(7, 1));
}

TEST_CASE("A run is not stuck if one of its contenders was not found") {
  auto views = WaitingForAny(true);
  views[1].data.any = views[3].data.any = {"/a", "/d"};
  CHECK(CirclesOf(views) == Circles(7));
}

TEST_CASE("Another session's contender does not resolve a deadlock, whatever it claims") {
  // A stranger waits in a queue without a deadlock, and claims to belong to the run that waits for
  // a or b.
  auto views = WaitingForAny(true);
  ContenderView stranger = Under(Waiter("/d/2", "1"), {"/c/1"});
  views.insert(views.end(), {Holder("/d/1"), AnyOf(Of(stranger, 7), 666, {"/a", "/b"})});
  Circles expected(7, 1);
  expected.resize(9);
  CHECK(CirclesOf(views) == expected);
}

TEST_CASE("A run that may take another lock does not hide a deadlock after it in a queue") {
  // 0 holds a and waits in b for 3; 3 holds b and waits in a, after a run that can take c instead.
  const std::vector<ContenderView> views{Holder("/a/1"),
                                         AnyOf(Waiter("/a/2", "1"), 7, {"/c"}),
                                         Under(Waiter("/a/3", "2"), {"/b/1"}),
                                         Holder("/b/1"),
                                         Under(Waiter("/b/2", "1"), {"/a/1"}),
                                         Holder("/c/1"),
                                         AnyOf(Waiter("/c/2", "1"), 7, {"/a"})};
  // The run itself is not deadlocked.
  CHECK(CirclesOf(views) == Circles{1, 0, 1, 1, 1, 0, 0});
}

TEST_CASE("A run that holds one of its locks waits for no other") {
  // The run holds a. Its contender in b is left over, and the holder of b waits for a.
  const auto of_run = [](ContenderView view, const std::string& other) {
    return Under(AnyOf(Of(std::move(view), 7), 7, {other}), {"/c/1"});
  };
  const std::vector<ContenderView> views{of_run(Holder("/a/1"), "/b"),
                                         Under(Waiter("/a/2", "1"), {"/b/1"}), Holder("/b/1"),
                                         of_run(Waiter("/b/2", "1"), "/a"), Holder("/c/1")};
  CHECK(CirclesOf(views) == Circles(5));
  CHECK(Waits(views) == Edges{{4, 0, Reason::kNested},
                              {1, 0, Reason::kQueue},
                              {2, 1, Reason::kNested},
                              {3, 2, Reason::kQueue}});
}

TEST_CASE("A deadlock is named by the holders, and counted by lock") {
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

TEST_CASE("A search for deadlocks takes the number of permits into account") {
  const auto found = [](std::size_t take) {
    DeadlockSearch search;
    search.BeginLock("/s");
    for (const ContenderView& contender : WaitingForPermits(take)) search.Add(contender);
    return search.Find().size();
  };
  CHECK(found(8) == 1);
  CHECK(found(4) == 0);
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
  const Circles circles = CirclesOf(kLong, edges);
  CHECK(circles.front() == 1);
  CHECK(circles.back() == 1);
}

}  // namespace zklock::cli
