#include "cli/views/queue_dot.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using test::Contender;
using test::Found;
using test::OurName;

std::string DotOf(const std::vector<lock::LockSurvey>& locks) {
  std::string text;
  QueueDot view([&text](const std::string& more) { text += more; });
  test::Report(view, locks);
  return text;
}

std::string Says(const std::string& command, const std::vector<std::string>& under = {}) {
  return lock::FormatContenderData({.host = "b7", .pid = 7, .command = command, .under = under});
}

}  // namespace

TEST_CASE("The graph has a box for each contender, in the frame of its lock") {
  CHECK(DotOf({Found({.path = "/a",
                      .entries = {Contender(OurName("b7", "lock-", 0), 1, Says("make")),
                                  Contender("_c_x-lock-0000000001", 2)}})}) ==
        "digraph zklock {\n"
        "  rankdir=LR;\n"
        "  node [shape=box];\n"
        "  subgraph cluster_0 {\n"
        "    label=\"/a\";\n"
        "    fontcolor=black;\n"
        "    n0 [label=\"1 held exclusive\\nb7:7 make\", style=bold];\n"
        "    n1 [label=\"2 waiting exclusive\\n(Curator)\"];\n"
        "  }\n"
        "  n1 -> n0 [label=\"waits for\"];\n"
        "}\n");
}

TEST_CASE("A deadlock of two nested callers is marked") {
  const std::string a1 = OurName("b7", "lock-", 1);
  const std::string a2 = OurName("b7", "lock-", 2);
  const std::string text =
      DotOf({Found({.path = "/a",
                    .entries = {Contender(a1, 1, Says("one")),
                                Contender(a2, 4, Says("two", {"/b/" + a1}))}}),
             Found({.path = "/b",
                    .entries = {Contender(a1, 2, Says("two")),
                                Contender(a2, 3, Says("one", {"/a/" + a1}))}})});
  CHECK_THAT(text, Catch::Contains("label=\"1 deadlock, in red\""));
  for (const char* const edge :
       {"n1 -> n0 [label=\"waits for\", color=red", "n3 -> n2 [label=\"waits for\", color=red",
        "n2 -> n1 [label=\"runs\", style=dashed, color=red",
        "n0 -> n3 [label=\"runs\", style=dashed, color=red"}) {
    CHECK_THAT(text, Catch::Contains(edge));
  }
}

TEST_CASE("A waiter for a permit waits for any holder, and is stuck only if all of them are") {
  const std::string outer = OurName("b7", "lock-", 0);
  const std::string first = OurName("b7", "lease-", 0);
  const auto graph = [&](bool both_stuck) {
    // The holder of /a wants a permit; one permit holder, or both of them, want /a.
    lock::LockSurvey semaphore{.path = "/s", .permit_limit = 2};
    semaphore.entries = {Contender(first, 1, Says("one")),
                         Contender(OurName("b8", "lease-", 1), 2, Says("two")),
                         Contender(OurName("b7", "lease-", 2), 6, Says("three", {"/a/" + outer}))};
    lock::LockSurvey lock{.path = "/a"};
    lock.entries = {Contender(outer, 3, Says("three")),
                    Contender(OurName("b7", "lock-", 1), 4, Says("one", {"/s/leases/" + first}))};
    if (both_stuck) {
      lock.entries.push_back(
          Contender(OurName("b8", "lock-", 2), 5,
                    Says("two", {"/s/leases/" + semaphore.entries[1].name.full})));
    }
    return DotOf({Found(lock), test::FoundPermits(semaphore, 2)});
  };
  const std::string one = graph(false);
  CHECK_THAT(one, Catch::Contains("label=\"/s: 2 of 2 permits used\";"));
  CHECK_THAT(one, Catch::Contains("n4 -> n2 [label=\"waits for one of\"];") &&
                      Catch::Contains("n4 -> n3 [label=\"waits for one of\"];"));
  CHECK_THAT(one, !Catch::Contains("red"));
  const std::string both = graph(true);
  CHECK_THAT(both, Catch::Contains("label=\"1 deadlock, in red\"") &&
                       Catch::Contains("n5 -> n3 [label=\"waits for one of\", color=red") &&
                       Catch::Contains("n5 -> n4 [label=\"waits for one of\", color=red"));
}

TEST_CASE("A waiter for several permits is marked as stuck if the stuck holders leave too few") {
  const std::string outer = OurName("b7", "lock-", 0);
  const std::string first = OurName("b7", "lease-", 0);
  const auto graph = [&](std::size_t more) {
    // The holder of /a wants permits; one permit holder wants /a, the other will end.
    lock::LockSurvey semaphore{.path = "/s", .permit_limit = 4};
    semaphore.entries = {Contender(first, 1, Says("one")),
                         Contender(OurName("b8", "lease-", 2), 2, Says("two")),
                         Contender(OurName("b7", "lease-", 4), 6, Says("three", {"/a/" + outer}))};
    semaphore.entries[0].more = {"1"};
    semaphore.entries[1].more = {"3"};
    semaphore.entries[2].more.resize(more);
    lock::LockSurvey lock{.path = "/a"};
    lock.entries = {Contender(outer, 3, Says("three")),
                    Contender(OurName("b7", "lock-", 1), 4, Says("one", {"/s/leases/" + first}))};
    return DotOf({Found(lock), test::FoundPermits(semaphore, 2)});
  };
  CHECK_THAT(graph(1), !Catch::Contains("red"));
  const std::string three = graph(2);
  CHECK_THAT(three,
             Catch::Contains("label=\"1 deadlock, in red\"") &&
                 Catch::Contains("n4 -> n2 [label=\"waits for one or more of\", color=red") &&
                 Catch::Contains("n4 -> n3 [label=\"waits for one or more of\"];"));
}

TEST_CASE("A run that waits for any of several locks is shown once, with edges to its contenders") {
  const auto waiter = [](std::int64_t session, const std::vector<std::string>& others) {
    lock::QueueEntry entry = Contender(
        OurName("b7", "lock-", 1), 3,
        lock::FormatContenderData({.host = "b7", .pid = 7, .command = "train.sh", .any = others}));
    entry.stat.ephemeral_owner = session;
    return entry;
  };
  const lock::QueueEntry holder = Contender(OurName("b8", "lock-", 0), 1, Says("make"));
  CHECK_THAT(DotOf({Found({.path = "/a", .entries = {holder, waiter(7, {"/b"})}}),
                    Found({.path = "/b", .entries = {holder, waiter(7, {"/a"})}})}),
             Catch::Contains("    n3 [label=\"2 waiting exclusive\\nb7:7 train.sh\"];\n"
                             "  }\n"
                             "  n5 [label=\"any of 2\\nb7:7 train.sh\", shape=ellipse];\n"
                             "  n5 -> n1 [label=\"or\", style=dotted];\n"
                             "  n5 -> n3 [label=\"or\", style=dotted];\n"
                             "  n1 -> n0 [label=\"waits for\"];\n"
                             "  n3 -> n2 [label=\"waits for\"];\n"));
  // Contenders below another path, or of another session, are not part of the run.
  CHECK_THAT(DotOf({Found({.path = "/a", .entries = {holder, waiter(7, {"/b"})}}),
                    Found({.path = "/b", .entries = {holder, waiter(8, {"/a"})}})}),
             Catch::Contains("  n5 -> n1 [label=\"or\", style=dotted];\n"
                             "  n4 [label=\"not shown\", shape=plaintext];\n"
                             "  n5 -> n4 [label=\"or\", style=dotted];\n") &&
                 Catch::Contains("  n6 -> n3 [label=\"or\", style=dotted];\n") &&
                 !Catch::Contains("n5 -> n3"));
}

TEST_CASE("A run that waits for any of several locks is red if all of them are deadlocked") {
  const std::string first = OurName("b7", "lock-", 0);
  const std::string second = OurName("b7", "lock-", 1);
  const std::string third = OurName("b7", "lock-", 2);
  // The holder of /c waits for /a or /b. The holder of /a wants /c; if `both`, so does the holder
  // of /b.
  const auto graph = [&](bool both) {
    const auto waiter = [&](const std::string& other) {
      lock::QueueEntry entry =
          Contender(second, 4,
                    lock::FormatContenderData(
                        {.host = "b9", .pid = 9, .under = {"/c/" + first}, .any = {other}}));
      entry.stat.ephemeral_owner = 9;
      return entry;
    };
    lock::LockSurvey wanted{.path = "/c", .entries = {Contender(first, 3, Says("outer"))}};
    wanted.entries.push_back(Contender(second, 5, Says("one", {"/a/" + first})));
    if (both) wanted.entries.push_back(Contender(third, 6, Says("two", {"/b/" + first})));
    return DotOf(
        {Found({.path = "/a", .entries = {Contender(first, 1, Says("one")), waiter("/b")}}),
         Found({.path = "/b", .entries = {Contender(first, 2, Says("two")), waiter("/a")}}),
         Found(wanted)});
  };
  CHECK_THAT(graph(false), !Catch::Contains("red") &&
                               Catch::Contains("n4 -> n7 [label=\"runs\", style=dashed];"));
  const std::string both = graph(true);
  CHECK_THAT(both, Catch::Contains("label=\"1 deadlock, in red\""));
  for (const char* const red : {"n8 [label=\"any of 2\\nb9:9 (zklock)\", shape=ellipse, color=red",
                                "n4 -> n8 [label=\"runs\", style=dashed, color=red",
                                "n8 -> n1 [label=\"or\", style=dotted, color=red",
                                "n8 -> n3 [label=\"or\", style=dotted, color=red"}) {
    CHECK_THAT(both, Catch::Contains(red));
  }
}

TEST_CASE("A reservation is shown as a holder, which does not wait for its maker's other locks") {
  const auto says = [] {
    return lock::FormatContenderData({.host = "web1",
                                      .user = "ops",
                                      .pid = 4242,
                                      .boot_id = "b",
                                      .start_time = 1,
                                      .command = "reboot"});
  };
  lock::QueueEntry reserved = test::Reservation(OurName("web1", "reserve-lock-", 0), 1, {});
  reserved.data = says();
  const std::string text =
      DotOf({Found({.path = "/a",
                    .entries = {reserved, Contender(OurName("b7", "lock-", 1), 2, Says("one"))}}),
             Found({.path = "/b",
                    .entries = {Contender(OurName("b7", "lock-", 0), 3, Says("one")),
                                Contender(OurName("web1", "lock-", 1), 4, says())}})});
  CHECK_THAT(text, Catch::Contains("n0 [label=\"1 reserved exclusive\\nfreeze: incident 4711\", "
                                   "style=bold]") &&
                       Catch::Contains("n1 -> n0 [label=\"waits for\"]") &&
                       !Catch::Contains("n0 ->"));
}

TEST_CASE("Without locks the graph is empty") {
  CHECK(DotOf({}) == "digraph zklock {\n  rankdir=LR;\n  node [shape=box];\n}\n");
}

TEST_CASE("Untrusted text cannot break out of its string") {
  const std::string text =
      DotOf({Found({.path = "/a\"]; evil [label=\"",
                    .entries = {Contender(OurName("b7", "lock-", 0), 1,
                                          Says("x\"]; \\N \x1b[2J\n" + std::string(500, 'y')))}})});
  CHECK_THAT(text, Catch::Contains("label=\"/a\\\"]; evil [label=\\\"\";") &&
                       Catch::Contains("x\\\"]; \\\\N \\\\x1b[2J\\\\n") &&
                       !Catch::Contains(std::string(100, 'y')));
}

}  // namespace zklock::cli
