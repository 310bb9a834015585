#include "cli/views/queue_text.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/text/printable.h"
#include "lock/data/run_history.h"
#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using test::Contender;
using test::Found;
using test::kIn2099;
using test::kNoon;
using test::kUuid;
using test::OurName;
using test::Reservation;

std::string TextOf(const std::vector<lock::LockSurvey>& locks, ViewStyle style = {}) {
  test::UseUtc();
  if (!style.now_ms) style.now_ms = kNoon + 75700;
  std::string text;
  QueueText view("/jobs", style, [&text](const std::string& more) { text += more; });
  test::Report(view, locks);
  return text;
}

std::string Says(const std::string& host, int pid, const std::string& command,
                 const std::string& label = "") {
  return lock::FormatContenderData(
      {.host = host, .user = "ci", .pid = pid, .command = command, .label = label});
}

lock::LockSurvey Busy() {
  return Found(
      {.path = "/jobs/backup",
       .entries = {Contender(OurName("b7", "lock-", 3), 17, Says("b7", 4242, "dump", "nightly")),
                   Contender("_c_x-lock-0000000004", 18),
                   Contender(OurName("b9", "lock-", 5), 20, Says("b9", 7, "dump"))}});
}

/// Returns a queue of `count` contenders whose names have `marks` in turn.
lock::LockSurvey Long(std::size_t count, const std::vector<std::string>& marks) {
  lock::LockSurvey lock{.path = "/l"};
  for (std::size_t i = 0; i < count; ++i) {
    lock.entries.push_back(Contender(OurName("b", marks[i % marks.size()], static_cast<int>(i)),
                                     static_cast<std::int64_t>(i)));
  }
  return Found(lock);
}

}  // namespace

TEST_CASE("A lock that does not exist is shown as free") {
  CHECK(TextOf({{.path = "/jobs/backup", .exists = false}}) ==
        "/jobs/backup: free (it does not exist)\n");
}

TEST_CASE("An empty lock is shown as free, with its last run") {
  lock::LockSurvey lock{.path = "/jobs/backup"};
  CHECK(TextOf({lock}) == "/jobs/backup: free\n");
  test::SetLastRun(lock,
                   {.contender = OurName("b7", "lock-", 3),
                    .mode = protocol::Mode::kExclusive,
                    .token = 17,
                    .duration = std::chrono::milliseconds(95500),
                    .status = 0,
                    .host = "b7"},
                   test::kNoon);
  CHECK(
      TextOf({lock}) ==
      "/jobs/backup: free\n"
      "\n"
      "last recorded run: status 0 after 1m36s, ended 2024-03-01 12:00:00 on b7 (exclusive, token "
      "17)\n");
}

TEST_CASE("A run that is not in the history is listed in order among those that are") {
  const auto shown = [](std::int64_t token, std::size_t kept) {
    lock::RunHistory history;
    for (std::size_t i = 0; i < kept; ++i) {
      history.Enter({.end = lock::RunRecord::End::kLost,
                     .began = protocol::ServerTime(test::kNoon),
                     .host = "b8",
                     .token = static_cast<std::int64_t>(10 * (i + 1))});
    }
    lock::LockSurvey lock{.path = "/l"};
    lock.last_run = history.Format(8);
    test::SetLastRun(lock,
                     {.contender = OurName("b7", "lock-", 3),
                      .mode = protocol::Mode::kExclusive,
                      .token = token,
                      .status = 3,
                      .host = "b7"},
                     test::kNoon);
    return TextOf({lock});
  };
  const std::string lost = "run: lost, began 2024-03-01 12:00:00 on b8\n";
  const auto record = [](const std::string& name, int token) {
    return name + ": status 3 after 0s, ended 2024-03-01 12:00:00 on b7 (exclusive, token " +
           std::to_string(token) + ")\n";
  };
  CHECK(shown(25, 0) == "/l: free\n\n" + record("last recorded run", 25));
  CHECK(shown(25, 2) == "/l: free\n\n" + record("run", 25) + lost + lost);
  CHECK(shown(15, 2) == "/l: free\n\n" + lost + record("run", 15) + lost);
  CHECK(shown(5, 2) == "/l: free\n\n" + lost + lost + record("run", 5));
  CHECK(shown(5, 4) == "/l: free\n\n" + lost + lost + lost);
}

TEST_CASE("A queue is shown as a table, followed by who waits for whom") {
  CHECK(TextOf({Busy()}) ==
        "/jobs/backup: held by 1, 2 waiting\n"
        "\n"
        "POS  STATE    MODE       HOST    FOR  LABEL    USER   PID                  SINCE  TOKEN  "
        "COMMAND\n"
        "  1  held     exclusive  b7    ≤ 58s  nightly  ci    4242  ≥ 2024-03-01 12:00:17     17  "
        "dump\n"
        "  2  waiting  exclusive  -       57s  -        -        -    2024-03-01 12:00:18     18  "
        "(Curator)\n"
        "  3  waiting  exclusive  b9      55s  -        ci       7    2024-03-01 12:00:20     20  "
        "dump\n"
        "\n"
        "2 to 3 wait, each for the one before it\n");
}

TEST_CASE("The text of a held lock with a history shows how long runs take") {
  lock::RunHistory history;
  history.Enter({.end = lock::RunRecord::End::kEnded,
                 .duration = std::chrono::minutes(4),
                 .status = 0,
                 .host = "b7",
                 .token = 1});
  lock::LockSurvey lock = Busy();
  lock.last_run = history.Format(10);
  CHECK_THAT(TextOf({lock}), Catch::Contains("\n\nruns take 4m\nrun: status 0 after 4m, "));
  CHECK_THAT(TextOf({{.path = "/l", .last_run = lock.last_run}}), !Catch::Contains("runs take"));
}

TEST_CASE("Durations are shown in two units, and are never negative") {
  const auto shown = [](std::int64_t after_noon_ms) {
    const std::string text =
        TextOf({Found({.path = "/l", .entries = {Contender("_c_x-lock-0000000000", 0)}})},
               {.now_ms = kNoon + after_noon_ms});
    const std::size_t end = text.find("  -");  // HOST
    return text.substr(text.find_first_not_of(" -", end), 5);
  };
  constexpr std::int64_t kMinute = 60000;
  CHECK(shown(-5000) == "0s  -");
  CHECK(shown(999) == "0s  -");
  CHECK(shown(837900) == "13m57");
  CHECK(shown(133 * kMinute) == "2h13m");
  CHECK(shown((3 * 24 + 4) * 60 * kMinute) == "3d4h ");
}

TEST_CASE("A reservation is shown with its ID, its end and its reason") {
  const auto screen = [](std::optional<std::int64_t> until_ms) {
    return TextOf(
        {Found({.path = "/ci/deploy",
                .entries = {Reservation(OurName("web1", "reserve-lock-", 3), 17, until_ms),
                            Contender(OurName("b9", "lock-", 5), 20, Says("b9", 7, "deploy"))}})});
  };
  CHECK(screen(kIn2099) ==
        "/ci/deploy: reserved, 1 waiting\n"
        "\n"
        "POS  STATE     MODE       HOST  FOR  LABEL  USER   PID                SINCE  TOKEN  "
        "COMMAND\n"
        "  1  reserved  exclusive  web1  15s  -      ops   4242  2024-03-01 12:01:00     17  "
        "freeze until 2099-01-01 00:00:00: incident 4711\n"
        "  2  waiting   exclusive  b9    55s  -      ci       7  2024-03-01 12:00:20     20  "
        "deploy\n"
        "\n"
        "2 waits for 1\n");
  CHECK_THAT(screen(kNoon + 120000),
             Catch::Contains("freeze (overdue since 2024-03-01 12:02:00): incident 4711\n"));
  CHECK_THAT(screen(std::nullopt), Catch::Contains("  freeze: incident 4711\n"));
}

TEST_CASE("A waiter that will reserve the lock shows the ID and the reason") {
  const auto shown = [](const std::string& command, const std::string& reason) {
    const std::string data = lock::FormatContenderData(
        {.command = command, .reserve = "freeze", .reserve_reason = reason});
    return TextOf({Found({.path = "/l",
                          .entries = {Contender("_c_x-lock-0000000001", 1),
                                      Contender(OurName("b", "lock-", 2), 2, data)}})});
  };
  CHECK_THAT(shown("", "incident 4711"),
             Catch::Contains("  to reserve for freeze: incident 4711\n"));
  CHECK_THAT(shown("make", ""), Catch::Contains("  to reserve for freeze (make)\n"));
}

TEST_CASE("A waiter for any of several locks shows their number, but a holder does not") {
  const auto says = [](const std::string& host, const std::string& reserve) {
    return lock::FormatContenderData({.host = host,
                                      .user = "ci",
                                      .pid = 7,
                                      .command = "train.sh",
                                      .reserve = reserve,
                                      .any = {"/gpu/1", "/gpu/2"}});
  };
  const lock::LockSurvey lock =
      Found({.path = "/gpu/0",
             .entries = {Contender(OurName("gpu-host-7", "lock-", 3), 17, says("gpu-host-7", "")),
                         Contender(OurName("gpu-host-8", "lock-", 4), 18, says("gpu-host-8", "")),
                         Contender(OurName("b9", "lock-", 5), 20, says("b9", "ci-4711"))}});
  CHECK(TextOf({lock}, {.width = 40}) ==
        "/gpu/0: held by 1, 2 waiting\n"
        "\n"
        "STATE    HOST        COMMAND\n"
        "held     gpu-host-7  train.sh\n"
        "waiting  gpu-host-8  any of 3: train.sh\n"
        "waiting  b9          any of 3: to reser…\n"
        "\n"
        "2 to 3 wait, each for the one before it\n");
  CHECK_THAT(TextOf({lock}),
             Catch::Contains("  train.sh\n") && Catch::Contains("  any of 3: train.sh\n") &&
                 Catch::Contains("  any of 3: to reserve for ci-4711 (train.sh)\n"));
}

TEST_CASE("On a narrow terminal other columns are dropped before the reason of a reservation") {
  const lock::LockSurvey lock =
      Found({.path = "/ci/deploy",
             .entries = {Reservation(OurName("web1", "reserve-lock-", 3), 17, kIn2099),
                         Contender(OurName("b9", "lock-", 5), 20, Says("b9", 7, "deploy"))}});
  CHECK(TextOf({lock}, {.width = 40}) ==
        "/ci/deploy: reserved, 1 waiting\n"
        "\n"
        "STATE     COMMAND\n"
        "reserved  freeze until 01-01 00:00:00: …\n"
        "waiting   deploy\n"
        "\n"
        "2 waits for 1\n");
  CHECK_THAT(
      TextOf({lock}, {.width = 64}),
      Catch::Contains("\nreserved  web1  15s  freeze until 01-01 00:00:00: incident 4711\n"));
}

TEST_CASE("A headline that is too long for the terminal has two lines") {
  lock::LockSurvey lock = Busy();
  lock.path = "/ci/deploy-production";
  CHECK_THAT(TextOf({lock}, {.width = 40}),
             Catch::StartsWith("/ci/depl…roduction: held by 1, 2 waiting\n\n"));
  lock = test::Semaphore(false);
  lock.path = "/ci/deploy-production";
  CHECK_THAT(TextOf({lock}, {.width = 40}), Catch::StartsWith("/ci/deploy-production:\n"));
}

TEST_CASE("Reservations are not counted as holders in the headline") {
  const std::string holder = "_c_x-__READ__0000000003";
  const auto headline = [](std::vector<lock::QueueEntry> entries) {
    const std::string text = TextOf({Found({.path = "/l", .entries = std::move(entries)})});
    return text.substr(0, text.find('\n'));
  };
  const lock::QueueEntry one = Reservation(OurName("w", "__READ__", 1), 1, std::nullopt);
  const lock::QueueEntry other = Reservation(OurName("w", "__READ__", 2), 2, std::nullopt);
  CHECK(headline({one}) == "/l: reserved, 0 waiting");
  CHECK(headline({one, other}) == "/l: reserved by 2, 0 waiting");
  CHECK(headline({one, Contender(holder, 3)}) == "/l: held by 1, reserved by 1, 0 waiting");
}

TEST_CASE("In a list of LOCKs the oldest of several reservations is named") {
  std::vector<lock::LockSurvey> tree;
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    tree.push_back(Found({.path = "/ci/" + number,
                          .entries = {Reservation(OurName("web1", "reserve-lock-", i), 17, {})},
                          .in_tree = true}));
    tree.back().entries.front().reserved->since -= std::chrono::seconds(i % 2);
  }
  CHECK(TextOf(tree) ==
        "LOCK   HELD BY                          WAITING                SINCE\n"
        "/ci/0  reserved: freeze: incident 4711        0  2024-03-01 12:01:00\n"
        "/ci/1  reserved: freeze: incident 4711        0  2024-03-01 12:00:59\n"
        "/ci/2  reserved: freeze: incident 4711        0  2024-03-01 12:01:00\n"
        "\n"
        "/ci/1: reserved longest, since 2024-03-01 12:00:59\n"
        "\n"
        "3 locks in use below /jobs\n");
  tree.resize(1);
  CHECK_THAT(TextOf(tree), !Catch::Contains("reserved longest"));
}

TEST_CASE("The last reservation is shown in place of a run") {
  lock::LockSurvey lock{.path = "/l"};
  test::SetLastRun(lock,
                   {.contender = OurName("b7", "reserve-lock-", 3),
                    .mode = protocol::Mode::kExclusive,
                    .token = 17,
                    .host = "b7",
                    .is_reservation = true},
                   kNoon);
  CHECK(TextOf({lock}) ==
        "/l: free\n"
        "\n"
        "last reserved on b7, until 2024-03-01 12:00:00 (exclusive, token 17)\n");
}

TEST_CASE("The waits among contenders are summed up in a few lines") {
  const auto waits = [](const lock::LockSurvey& lock) {
    const std::string text = TextOf({lock});
    return text.substr(text.rfind("\n\n") + 2);
  };
  CHECK(waits(Long(2, {"lock-"})) == "2 waits for 1\n");
  CHECK(waits(Long(5000, {"lock-"})) == "2 to 5000 wait, each for the one before it\n");
  CHECK(waits(Long(6, {"__WRIT__", "__READ__", "__READ__"})) ==
        "2 to 3 wait for 1\n"
        "4 waits for 3\n"
        "5 to 6 wait for 4\n");
  const std::string many = waits(Long(5000, {"__WRIT__", "__READ__", "__READ__"}));
  CHECK(std::count(many.begin(), many.end(), '\n') == 9);
  CHECK_THAT(many, Catch::EndsWith("and so on, 3324 times more; --json lists everyone\n"));
}

TEST_CASE("A contender that was asked to leave is shown, with who asked and why") {
  const std::vector<std::string> by = {"", "root on db1", "root on db1", "", "al", "root on db1"};
  lock::LockSurvey lock{.path = "/l"};
  for (std::size_t i = 0; i < by.size(); ++i) {
    lock::ContenderData data{.host = "b"};
    if (!by[i].empty()) data.release_request = {.by = by[i], .reason = "incident 4711"};
    lock.entries.push_back(Contender(OurName("b", "lock-", static_cast<int>(i)),
                                     static_cast<std::int64_t>(i),
                                     lock::FormatContenderData(data)));
  }
  CHECK_THAT(TextOf({Found(lock)}),
             Catch::EndsWith("\n\n2 to 3 were asked to leave by root on db1 ('incident 4711')\n"
                             "5 was asked to leave by al ('incident 4711')\n"
                             "6 was asked to leave by root on db1 ('incident 4711')\n"));
  CHECK_THAT(TextOf({Long(3, {"lock-"})}), !Catch::Contains("asked"));
}

TEST_CASE("A long queue is printed page by page") {
  std::vector<std::string> pages;
  QueueText view("/l", {}, [&pages](const std::string& page) { pages.push_back(page); });
  lock::LockSurvey lock = Long(1000, {"lock-"});
  lock::LockSurvey head = lock;
  head.entries.clear();
  view.OnLock(head);
  for (std::size_t i = 0; i < 64; ++i) view.OnEntry(lock.entries[i]);
  REQUIRE(pages.size() == 1);
  CHECK_THAT(pages[0], Catch::StartsWith("/l: held by 1, 999 waiting\n\n POS  STATE"));
  CHECK(std::count(pages[0].begin(), pages[0].end(), '\n') == 3 + 64);
}

TEST_CASE("Contenders that are not read are counted") {
  lock::LockSurvey lock = Busy();
  lock.entries.resize(2);
  CHECK_THAT(TextOf({lock}), Catch::Contains("(Curator)\n... and 1 more\n\n2 waits for 1\n"));
}

TEST_CASE("Contenders' whole names are shown on request, even on a narrow terminal") {
  const std::string name = OurName("b7", "lock-", 3);
  for (const std::size_t width : {0, 200}) {
    const std::string text = TextOf({Busy()}, {.width = width, .with_names = true});
    CHECK_THAT(text, Catch::Contains("  CONTENDER\n") && Catch::Contains("  " + name + "\n"));
  }
  // Each name is on a line below its row; the rows themselves do not change.
  for (const std::size_t width : {40, 60, 80}) {
    const std::string text = TextOf({Busy()}, {.width = width, .with_names = true});
    CHECK_THAT(text, !Catch::Contains("CONTENDER") && Catch::Contains("\n    " + name + "\n"));
    std::istringstream rows(TextOf({Busy()}, {.width = width}));
    for (std::string line; std::getline(rows, line);)
      CHECK_THAT(text, Catch::Contains(line + "\n"));
  }
  // On a screen with a limited number of rows, the names stay in the table, and are cut.
  const ViewStyle wide{.width = 200, .with_names = true, .rows = 20};
  CHECK_THAT(TextOf({Busy()}, wide), Catch::Contains("  " + name + "\n"));
  for (const std::size_t width : {40, 60, 80}) {
    lock::LockSurvey queue = Long(8, {"lock-"});
    for (lock::QueueEntry& entry : queue.entries) entry.name.full.insert(0, 30, 'h');
    const ViewStyle screen{.width = width, .with_names = true, .rows = 20};
    std::istringstream lines(TextOf({queue}, screen));
    for (std::string line; std::getline(lines, line);) CHECK(DisplayWidth(line) <= width);
  }
}

TEST_CASE("With names, the text also shows which commands run in a cgroup") {
  lock::LockSurvey lock{.path = "/l"};
  const auto data = [](std::optional<bool> contained) {
    return lock::FormatContenderData({.host = "b7", .contained = contained});
  };
  lock.entries = {Contender(OurName("b7", "lock-", 1), 1, data(true)),
                  Contender(OurName("b7", "lock-", 2), 2, data(false)),
                  Contender(OurName("b7", "lock-", 3), 3, data(std::nullopt))};
  const std::string text = TextOf({Found(lock)}, {.with_names = true});
  CHECK_THAT(text, Catch::Contains("  CONTAINED  CONTENDER\n") &&
                       Catch::Contains("  yes        " + OurName("b7", "lock-", 1) + "\n") &&
                       Catch::Contains("  no         " + OurName("b7", "lock-", 2) + "\n") &&
                       Catch::Contains("  -          " + OurName("b7", "lock-", 3) + "\n"));
  CHECK_THAT(TextOf({Found(lock)}), !Catch::Contains("CONTAINED"));
}

TEST_CASE("A stray znode is shown last and without a position") {
  lock::LockSurvey lock = Busy();
  lock.entries.push_back(Contender("build-2024010203", 5));
  lock.entries.back().stat.ephemeral_owner = 0;
  CHECK_THAT(TextOf({lock}),
             Catch::Contains("\n  -  stray    -          -     1m10s  -        -        -    "
                             "2024-03-01 12:00:05      -\n\n2 to 3 wait") &&
                 !Catch::Contains("refused"));
  lock.entries.back().blocking = "locks/build-2024010203";
  CHECK_THAT(TextOf({lock}),
             Catch::Contains(
                 "\n\nruns are refused: its child locks/build-2024010203 is not a contender\n"));
}

TEST_CASE("In a tree, a free lock that a stray znode blocks says so") {
  lock::LockSurvey lock{.path = "/l", .in_tree = true};
  lock.entries.push_back(Contender("build-2024010203", 5));
  lock.entries.back().stat.ephemeral_owner = 0;
  lock.entries.back().blocking = "build-2024010203";
  CHECK_THAT(
      TextOf({lock}),
      Catch::Contains("\n/l    nobody; runs are refused: its child build-2024010203 is not a "
                      "contender        0  "));
}

TEST_CASE("A contender that cannot be read is described by its name") {
  lock::LockSurvey lock{.path = "/l"};
  lock.entries.push_back({.name = *protocol::ParseContenderName("_c_x-__WRIT__0000000000")});
  CHECK_THAT(TextOf({Found(lock)}), Catch::Contains("(Curator; no permission to read)\n"));
}

TEST_CASE("Other children are named, but not zklock's records of runs") {
  CHECK(TextOf({{.path = "/l", .ignored_children = {"last-run", "last-start"}}}) == "/l: free\n");
  CHECK(TextOf({{.path = "/l", .ignored_children = {"config", "evil\x1b[2J"}}}) ==
        "/l: free\n"
        "\n"
        "not in the queue: config, evil\\x1b[2J\n");
  CHECK_THAT(TextOf({{.path = "/l", .ignored_children = std::vector<std::string>(12, "x")}}),
             Catch::EndsWith("not in the queue: x, x, x, x, x, x, x, x and 4 more\n"));
}

TEST_CASE("A tree is shown with one line per lock") {
  lock::LockSurvey busy = Busy();
  lock::LockSurvey readers = Found({.path = "/jobs/index",
                                    .entries = {Contender("_c_x-__READ__0000000000", 1),
                                                Contender("_c_y-__READ__0000000001", 2)}});
  busy.in_tree = readers.in_tree = true;
  CHECK(TextOf({busy, readers}) ==
        "LOCK          HELD BY                 WAITING                  SINCE\n"
        "/jobs/backup  b7:4242 dump [nightly]        2  ≥ 2024-03-01 12:00:17\n"
        "/jobs/index   (Curator) and 1 more          0    2024-03-01 12:00:01\n"
        "\n"
        "2 locks in use below /jobs\n");
  CHECK(TextOf({busy, readers}, {.width = 40}) ==
        "LOCK          HELD BY            WAITING\n"
        "/jobs/backup  b7:4242 dump [ni…        2\n"
        "/jobs/index   (Curator) and 1 …        0\n"
        "\n"
        "2 locks in use below /jobs\n");
}

TEST_CASE("On a screen the table fills the rows that the lines around it leave") {
  const auto lines = [](const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  lock::RunHistory history;
  history.Enter({.end = lock::RunRecord::End::kEnded,
                 .duration = std::chrono::minutes(4),
                 .status = 0,
                 .host = "b7",
                 .token = 1});
  lock::LockSurvey queue = Long(60, {"lock-"});
  queue.last_run = history.Format(10);
  queue.ignored_children = {"config"};
  std::vector<lock::LockSurvey> tree;
  for (int i = 0; i < 60; ++i) {
    tree.push_back(Found({.path = "/jobs/" + std::to_string(i),
                          .entries = {Reservation(OurName("h", "reserve-lock-", 1), 1, kIn2099)}}));
    tree.back().in_tree = true;
  }
  for (std::size_t rows = 14; rows < 60; ++rows) {
    const std::string shown = TextOf({queue}, {.most_waits = 2, .rows = rows});
    CAPTURE(rows, shown);
    CHECK(lines(shown) == rows);
    // The lines around the table: seven with text, and four empty ones.
    const std::string left = std::to_string(rows - 11);
    CHECK_THAT(shown, Catch::Contains("\n... and " + std::to_string(60 - (rows - 11)) + " more\n"));
    CHECK_THAT(shown, Catch::Contains("\n2 to " + left + " wait, each for the one before it\n"));
    CHECK(lines(TextOf(tree, {.rows = rows})) == rows);
  }
  // All of it fits.
  CHECK(lines(TextOf({queue}, {.rows = 70})) == 70);
  CHECK_THAT(TextOf({queue}, {.rows = 70}), !Catch::Contains("more"));
  CHECK(lines(TextOf({Busy()}, {.rows = 50})) == 8);
  // Three rows are left on the smallest screen.
  CHECK_THAT(TextOf({queue}, {.rows = 5}), Catch::Contains("\n... and 57 more\n"));
}

TEST_CASE("A tree without locks says so") {
  CHECK(TextOf({}) == "no locks in use below /jobs\n");
  const std::string hint = "zklock inspect / shows all locks\n";
  const ViewStyle root{.is_root = true};
  CHECK(TextOf({}, root) == "no locks in use below /jobs (--root)\n" + hint);
  CHECK(TextOf({{.path = "/jobs", .exists = false}}, root) ==
        "/jobs: free (it does not exist)\n\nno locks in use below /jobs (--root)\n" + hint);
  lock::LockSurvey lock =
      Found({.path = "/jobs", .entries = {Contender("_c_x-lock-0000000000", 1)}});
  CHECK_THAT(TextOf({Busy()}, root),
             Catch::EndsWith("\n\n" + hint) && !Catch::Contains("(--root)"));
  lock.in_tree = true;
  CHECK_THAT(TextOf({lock}, root),
             Catch::EndsWith("\n\n1 lock in use below /jobs (--root)\n" + hint));
}

TEST_CASE("A semaphore shows how many of its permits are used and free, and who waits for one") {
  CHECK(TextOf({test::Semaphore(false)}) ==
        "/jobs/render: 2 of 3 permits used, 1 free, 0 waiting\n"
        "\n"
        "POS  STATE  MODE       HOST        FOR  LABEL  USER   PID                  SINCE  TOKEN  "
        "COMMAND\n"
        "  1  held   exclusive  b7          58s  -      ci    4242    2024-03-01 12:00:17     17  "
        "render\n"
        "  2  held   exclusive  10.1.2.3  ≤ 57s  -      -        -  ≥ 2024-03-01 12:00:18     18  "
        "(Curator)\n");
  const std::string full = TextOf({test::Semaphore(true)});
  CHECK_THAT(full, Catch::StartsWith("/jobs/render: 3 of 3 permits used, 0 free, 2 waiting\n"));
  CHECK_THAT(full, Catch::EndsWith("\n4 waits for any of 1 to 3\n5 waits for 4\n"));
  lock::LockSurvey two = test::Semaphore(true);
  two.entries[3].more = {"another"};
  CHECK_THAT(TextOf({two}),
             Catch::EndsWith("\n4 waits for one or more of 1 to 3\n5 waits for 4\n"));
}

TEST_CASE("The headline is correct for a free semaphore, a single permit and an unknown limit") {
  const auto first_line = [](const lock::LockSurvey& lock) {
    const std::string text = TextOf({lock});
    return text.substr(0, text.find('\n'));
  };
  CHECK(first_line({.path = "/s", .kind = lock::LockKind::kSemaphore, .permit_limit = 3}) ==
        "/s: free, 3 permits");
  CHECK(first_line({.path = "/s", .kind = lock::LockKind::kSemaphore}) == "/s: free");
  lock::LockSurvey lock{
      .path = "/s",
      .entries = {Contender("_c_x-lease-0000000000", 1), Contender("_c_y-lease-0000000001", 2)}};
  CHECK(first_line(test::FoundPermits(lock, 2)) == "/s: 2 permits used, 0 waiting");
  lock.permit_limit = 1;
  const std::string one = TextOf({test::FoundPermits(lock, 1)});
  CHECK_THAT(one, Catch::StartsWith("/s: 1 of 1 permit used, 0 free, 1 waiting\n") &&
                      Catch::EndsWith("\n2 waits for 1\n"));
  lock.entries = {Contender("_c_x-lock-0000000000", 1)};
  lock.entries[0].in_turnstile = true;
  lock = test::FoundPermits(lock, 1);
  lock.entries[0].in_turnstile = true;
  lock.held = lock.used = 0;
  lock.waiting = 1;
  CHECK(first_line(lock) == "/s: 0 of 1 permit used, 1 free, 1 waiting");
  lock.in_tree = true;
  CHECK_THAT(TextOf({lock}), Catch::Contains("/s    0 of 1 permit used: nobody yet"));
}

TEST_CASE("One view shows several surveys in turn") {
  test::UseUtc();
  std::string text;
  QueueText view("/jobs", {}, [&text](const std::string& more) { text += more; });
  test::Report(view, {{.path = "/l"}});
  test::Report(view, {});
  view.SetStyle({.width = 40});
  test::Report(view, {Busy()});
  CHECK_THAT(text, Catch::StartsWith("/l: free\nno locks in use below /jobs\n"
                                     "/jobs/backup: held by 1, 2 wa"));
  CHECK_THAT(text, Catch::Contains("POS  STATE    HOST"));
}

TEST_CASE("A view of a tree does not count the locks of the previous survey") {
  std::string text;
  QueueText view("/jobs", {}, [&text](const std::string& more) { text += more; });
  lock::LockSurvey busy = Busy();
  busy.in_tree = true;
  test::Report(view, {busy});
  CHECK_THAT(text, Catch::EndsWith("1 lock in use below /jobs\n"));
  test::Report(view, {});
  CHECK_THAT(text, Catch::EndsWith("\nno locks in use below /jobs\n"));
}

}  // namespace zklock::cli
