#include "cli/queue_view.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace zklock::cli {
namespace {

const std::string kUuid = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
constexpr std::int64_t kNoon = 1709294400000;  // 2024-03-01 12:00:00 UTC

void UseUtc() {
  setenv("TZ", "UTC0", 1);
  tzset();
}

lock::QueueEntry Contender(const std::string& name, std::int64_t token,
                           const std::string& data = "") {
  return {.name = protocol::ParseContenderName(name).value(),
          .readable = true,
          .stat = {.created_zxid = token,
                   .created_ms = kNoon + token * 1000,
                   .modified_ms = 0,
                   .ephemeral_owner = 7},
          .data = data};
}

std::string Says(const std::string& host, int pid, const std::string& command,
                 const std::string& label = "") {
  return FormatContenderData(
      {.host = host, .user = "ci", .pid = pid, .command = command, .label = label});
}

lock::LockSurvey Busy() {
  return {.path = "/jobs/backup",
          .entries = {Contender("b7-" + kUuid + "-lock-0000000003", 17, Says("b7", 4242, "dump")),
                      Contender("_c_x-lock-0000000004", 18),
                      Contender("b9-" + kUuid + "-lock-0000000005", 20, Says("b9", 7, "dump"))},
          .waits_for = {std::nullopt, 0, 1}};
}

}  // namespace

TEST_CASE("A lock that is not there is shown as free") {
  CHECK(LockText({.path = "/jobs/backup", .exists = false}, {}) ==
        "/jobs/backup: free (nobody has ever queued here, or it was cleaned up)\n");
}

TEST_CASE("An empty lock is shown as free") {
  CHECK(LockText({.path = "/jobs/backup"}, {}) == "/jobs/backup: free\n");
}

TEST_CASE("A queue is shown with its holder first, and who waits for whom") {
  UseUtc();
  CHECK(LockText(Busy(), {}) ==
        "/jobs/backup: held by 1, 2 waiting\n"
        "\n"
        "POS  STATE    MODE       HOST  USER   PID                  SINCE  TOKEN  WAITS FOR"
        "  COMMAND\n"
        "  1  held     exclusive  b7    ci    4242  ≥ 2024-03-01 12:00:17     17          -"
        "  dump\n"
        "  2  waiting  exclusive  -     -        -    2024-03-01 12:00:18     18          1"
        "  (Curator)\n"
        "  3  waiting  exclusive  b9    ci       7    2024-03-01 12:00:20     20          2"
        "  dump\n");
}

TEST_CASE("The grant of a lock's very first contender is known") {
  UseUtc();
  const lock::LockSurvey lock{
      .path = "/l", .entries = {Contender("_c_x-lock-0000000000", 1)}, .waits_for = {std::nullopt}};
  CHECK(
      LockText(lock, {}) ==
      "/l: held by 1, 0 waiting\n"
      "\n"
      "POS  STATE  MODE       HOST  USER  PID                SINCE  TOKEN  WAITS FOR  COMMAND\n"
      "  1  held   exclusive  -     -       -  2024-03-01 12:00:01      1          -  (Curator)\n");
}

TEST_CASE("Labels get a column when somebody has one") {
  UseUtc();
  lock::LockSurvey lock = Busy();
  lock.entries[0].data = Says("b7", 4242, "dump", "nightly");
  CHECK(LockText(lock, {}) ==
        "/jobs/backup: held by 1, 2 waiting\n"
        "\n"
        "POS  STATE    MODE       HOST  USER   PID                  SINCE  TOKEN  WAITS FOR"
        "  COMMAND    LABEL\n"
        "  1  held     exclusive  b7    ci    4242  ≥ 2024-03-01 12:00:17     17          -"
        "  dump       nightly\n"
        "  2  waiting  exclusive  -     -        -    2024-03-01 12:00:18     18          1"
        "  (Curator)\n"
        "  3  waiting  exclusive  b9    ci       7    2024-03-01 12:00:20     20          2"
        "  dump\n");
}

TEST_CASE("Contenders are shown with their names when asked for") {
  const std::string text = LockText(Busy(), {.width = 80, .with_names = true});
  CHECK(text.find("  CONTENDER\n") != std::string::npos);
  CHECK(text.find("  b7-" + kUuid + "-lock-0000000003\n") != std::string::npos);
}

TEST_CASE("The command gives way to the terminal's width") {
  UseUtc();
  lock::LockSurvey lock = Busy();
  lock.entries[0].data = Says("b7", 4242, "dump --everything --to /somewhere");
  const std::string text = LockText(lock, {.width = 100});
  CHECK(text.find("17          -  dump --everythi…\n") != std::string::npos);
}

TEST_CASE("Readers hold together") {
  lock::LockSurvey lock{
      .path = "/l",
      .entries = {Contender("_c_x-__READ__0000000001", 1), Contender("_c_y-__READ__0000000002", 2),
                  Contender("_c_z-__WRIT__0000000003", 3)},
      .waits_for = {std::nullopt, std::nullopt, 1}};
  CHECK(LockText(lock, {}).starts_with("/l: held by 2, 1 waiting\n"));
  const auto queue = DescribeQueue(lock);
  CHECK(queue[1].state == ContenderState::kHeld);
  CHECK(queue[1].mode == protocol::Mode::kRead);
  CHECK(queue[2].mode == protocol::Mode::kWrite);
  CHECK(queue[2].waits_for == 2U);
}

TEST_CASE("What is no contender comes last and has no position") {
  UseUtc();
  lock::LockSurvey lock = Busy();
  lock.entries.resize(2);
  lock.entries.insert(lock.entries.begin(), Contender("build-2024010203", 5));
  lock.entries[0].stat.ephemeral_owner = 0;
  lock.waits_for = {std::nullopt, std::nullopt, 1};
  CHECK(LockText(lock, {}) ==
        "/jobs/backup: held by 1, 1 waiting\n"
        "\n"
        "POS  STATE            MODE       HOST  USER   PID                  SINCE  TOKEN"
        "  WAITS FOR  COMMAND\n"
        "  1  held             exclusive  b7    ci    4242  ≥ 2024-03-01 12:00:17     17"
        "          -  dump\n"
        "  2  waiting          exclusive  -     -        -    2024-03-01 12:00:18     18"
        "          1  (Curator)\n"
        "  -  not a contender  -          -     -        -    2024-03-01 12:00:05      -"
        "          -\n");
}

TEST_CASE("A contender that we may not read shows what its name says") {
  lock::LockSurvey lock{.path = "/l", .waits_for = {std::nullopt}};
  lock.entries.push_back({.name = *protocol::ParseContenderName("_c_x-__WRIT__0000000000")});
  CHECK(
      LockText(lock, {}) ==
      "/l: held by 1, 0 waiting\n"
      "\n"
      "POS  STATE  MODE   HOST  USER  PID  SINCE  TOKEN  WAITS FOR  COMMAND\n"
      "  1  held   write  -     -       -      -      -          -  (Curator; may not be read)\n");
}

TEST_CASE("Children that do not queue are named") {
  CHECK(LockText({.path = "/l", .ignored_children = {"config", "evil\x1b[2J"}}, {}) ==
        "/l: free\n"
        "\n"
        "not in the queue: config, evil\\x1b[2J\n");
  std::vector<std::string> many(12, "x");
  CHECK(LockText({.path = "/l", .ignored_children = many}, {}) ==
        "/l: free\n"
        "\n"
        "not in the queue: x, x, x, x, x, x, x, x and 4 more\n");
}

TEST_CASE("What somebody says of himself cannot disturb the table") {
  lock::LockSurvey lock = Busy();
  lock.entries[0].data = Says("\x1b]0;x\x07" + std::string(500, 'h'), 1, "a\nb");
  const std::string text = LockText(lock, {});
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("a\\nb") != std::string::npos);
  CHECK(text.find(std::string(100, 'h')) == std::string::npos);
  for (const char* const data : {"", "[]", "127.0.0.1", "{\"host\":[]}", "\xff\xfe", "{"}) {
    lock.entries[0].data = data;
    CHECK(DescribeQueue(lock)[0].data.host == std::nullopt);
  }
}

TEST_CASE("A tree is shown with a line for each lock") {
  UseUtc();
  const lock::LockSurvey readers{
      .path = "/jobs/index",
      .entries = {Contender("_c_x-__READ__0000000000", 1), Contender("_c_y-__READ__0000000001", 2)},
      .waits_for = {std::nullopt, std::nullopt}};
  CHECK(TreeText("/jobs", {Busy(), readers}, {}) ==
        "LOCK          HELD BY               WAITING                  SINCE\n"
        "/jobs/backup  b7:4242 dump                2  ≥ 2024-03-01 12:00:17\n"
        "/jobs/index   (Curator) and 1 more        0    2024-03-01 12:00:01\n");
}

TEST_CASE("A tree without locks says so") {
  CHECK(TreeText("/jobs", {}, {}) == "/jobs: free, and no lock below it is held\n");
}

}  // namespace zklock::cli
