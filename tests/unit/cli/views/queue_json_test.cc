#include "cli/views/queue_json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unit/cli/fake_survey.h"

namespace zklock::cli {
namespace {

using nlohmann::json;
using test::Contender;
using test::Found;

std::string JsonOf(const std::vector<lock::LockSurvey>& locks) {
  std::string text;
  QueueJson view(QueueJson::Form::kArray, [&text](const std::string& more) { text += more; });
  test::Report(view, locks);
  return text;
}

lock::LockSurvey Alone(const std::string& path, const std::string& data = "") {
  return Found({.path = path, .entries = {Contender("job0000000000", 1, data)}});
}

}  // namespace

TEST_CASE("An object has the fields listed in the manual page, in the same order") {
  CHECK(
      JsonOf({{.path = "/l", .exists = false}}) ==
      "[\n"
      R"({"lock":"/l","kind":null,"permits":null,"lastRun":null,"lastStart":null,"contenders":[],)"
      R"("held":false,"reserved":false,"used":null,"free":null,"exists":false})"
      "\n]\n");
  CHECK(
      JsonOf({Alone("/l")}) ==
      "[\n"
      R"({"lock":"/l","kind":"mutex","permits":null,"lastRun":null,"lastStart":null,"contenders":[)"
      R"({"name":"job0000000000","program":"unknown","position":1,"state":"held",)"
      R"("mode":"exclusive","take":null,"host":null,"user":null,"pid":null,)"
      R"("since":"2024-03-01T12:00:01.000Z","sinceExact":true,"command":null,"label":null,)"
      R"("contained":null,)"
      R"("token":"1","session":"0x10000001","waitsFor":null,"any":null,"reservation":null,)"
      R"("reserve":null,"asked":null}],)"
      R"("held":true,"reserved":false,"used":null,"free":null,"exists":true})"
      "\n]\n");
}

TEST_CASE("Without locks the array is empty") { CHECK(json::parse(JsonOf({})) == json::array()); }

TEST_CASE("A busy lock is printed in full") {
  const json locks = json::parse(JsonOf(test::Tree()));
  REQUIRE(locks.size() == 4);
  const json& lock = locks[0];
  CHECK(lock["kind"] == "readwrite");
  CHECK(lock["held"] == true);
  CHECK(lock["reserved"] == false);
  CHECK(lock["lastRun"] == json::parse(R"({"host":"build5.example","mode":"write",
      "token":"8589934700","ended":"2024-03-01T12:02:10.000Z","duration":837.25,"status":1})"));
  // Stray znodes are not printed.
  REQUIRE(lock["contenders"].size() == 5);
  CHECK(lock["contenders"][0]["sinceExact"] == true);
  CHECK(lock["contenders"][0]["pid"] == 2104242);
  CHECK(lock["contenders"][1]["waitsFor"] == lock["contenders"][0]["name"]);
  CHECK(lock["contenders"][1]["program"] == "Curator");
  CHECK(lock["contenders"][2]["user"] == "日本語");
  CHECK(lock["contenders"][4]["label"] == "nightly");
  CHECK(locks[1]["contenders"][1]["state"] == "held");
}

TEST_CASE("A waiter for any of several locks names the others by the paths that the user knows") {
  const std::string data =
      lock::FormatContenderData({.any = {"/c/gpu/1", "/c/gpu/2", "/other/gpu", "/c"}});
  std::string text;
  QueueJson view(
      QueueJson::Form::kArray, [&text](const std::string& more) { text += more; }, "/c");
  test::Report(view, {Found({.path = "/gpu/0",
                             .entries = {Contender(test::OurName("b7", "lock-", 1), 1, data),
                                         Contender(test::OurName("b7", "lock-", 2), 2, data)}})});
  const json contenders = json::parse(text)[0]["contenders"];
  REQUIRE(contenders.size() == 2);
  CHECK(contenders[0]["any"] == nullptr);
  CHECK(contenders[1]["any"] == json({"/gpu/1", "/gpu/2", "/other/gpu", "/c"}));
}

TEST_CASE("A contender that was asked to leave shows who asked, and why") {
  const auto asked = [](const lock::ReleaseRequest& request) {
    return json::parse(
        JsonOf({Alone("/l", lock::FormatContenderData(
                                {.release_request = request}))}))[0]["contenders"][0]["asked"];
  };
  CHECK(asked({.by = "root on db1", .reason = "incident 4711", .only_waiting = true}) ==
        json::parse(R"({"by":"root on db1","reason":"incident 4711","onlyWaiting":true})"));
  CHECK(asked({}) == json::parse(R"({"by":null,"reason":null,"onlyWaiting":false})"));
  CHECK(asked({.by = "root on db1", .forced = true}) == nullptr);
}

TEST_CASE("A reservation has its ID, its reason, its end and its token, and no session") {
  const auto lock = [](const std::optional<std::int64_t>& until_ms) {
    const std::string name = test::OurName("web1", "reserve-lock-", 3);
    return json::parse(
        JsonOf({Found({.path = "/l", .entries = {test::Reservation(name, 17, until_ms)}})}))[0];
  };
  const auto contender = [&lock](const std::optional<std::int64_t>& until_ms) {
    return lock(until_ms)["contenders"][0];
  };
  CHECK(lock({})["held"] == false);
  CHECK(lock({})["reserved"] == true);
  const json reserved = contender(test::kNoon);
  CHECK(reserved["state"] == "reserved");
  CHECK(reserved["since"] == "2024-03-01T12:01:00.000Z");
  CHECK(reserved["sinceExact"] == true);
  CHECK(reserved["token"] == "17");
  CHECK(reserved["session"] == nullptr);
  CHECK(reserved["reservation"] == json::parse(R"({"id":"freeze","reason":"incident 4711",
            "until":"2024-03-01T12:00:00.000Z","overdue":true})"));
  CHECK(contender(test::kIn2099)["reservation"]["overdue"] == false);
  CHECK(contender({})["reservation"]["until"] == nullptr);
}

TEST_CASE("A LOCK whose last holder was a reservation has no last run") {
  lock::LockSurvey lock{.path = "/l"};
  test::SetLastRun(lock,
                   {.contender = test::OurName("b7", "reserve-lock-", 3),
                    .token = 17,
                    .host = "b7",
                    .is_reservation = true},
                   test::kNoon);
  CHECK(json::parse(JsonOf({lock}))[0]["lastRun"] == nullptr);
}

TEST_CASE("A semaphore has its number of permits, and how many are used and free") {
  const json lock = json::parse(JsonOf({test::Semaphore(true)}))[0];
  CHECK(lock["kind"] == "semaphore");
  CHECK(lock["permits"] == 3);
  CHECK(lock["used"] == 3);
  CHECK(lock["free"] == 0);
  REQUIRE(lock["contenders"].size() == 5);
  const json& contenders = lock["contenders"];
  CHECK(contenders[2]["state"] == "held");
  CHECK(contenders[3]["waitsFor"] == contenders[0]["name"]);
  CHECK(contenders[4]["state"] == "waiting");
  CHECK(contenders[4]["waitsFor"] == contenders[3]["name"]);
  CHECK(json::parse(JsonOf({test::Semaphore(false)}))[0]["free"] == 1);
  lock::LockSurvey foreign = test::Semaphore(false);
  foreign.permit_limit.reset();
  const json unknown = json::parse(JsonOf({foreign}))[0];
  CHECK(unknown["permits"] == nullptr);
  CHECK(unknown["used"] == 2);
  CHECK(unknown["free"] == nullptr);
}

TEST_CASE("The JSON is ASCII without control characters, whatever a znode contains") {
  const std::string deep(4096, '[');
  for (const std::string& data :
       {std::string("{\"host\":\"\x1b[2J\\u0000\\u202e\",\"command\":\"\\u001b]0;x\\u0007\"}"),
        std::string("\xff\xfe\x00", 3), deep, std::string("{\"host\":\"\xc3\x28\"}"),
        std::string("{\"label\":\"\\ud800\"}"), std::string("{\"pid\":1e400}"),
        std::string("{\"pid\":\"1\",\"label\":{\"a\":[]},\"user\":null}")}) {
    CAPTURE(data);
    lock::LockSurvey lock = Alone("/l", data);
    lock.data = data;
    lock.entries[0].name.full = "e\x1b[2Jvil\xff-0000000000";
    const std::string text = JsonOf({lock});
    const json parsed = json::parse(text);  // throws for invalid UTF-8
    CHECK(parsed[0]["contenders"].size() == 1);
    for (const char c : text) CHECK(((c >= 0x20 && c < 0x7f) || c == '\n'));
  }
}

TEST_CASE("An impossible time is null") {
  lock::LockSurvey lock = Alone("/l");
  for (const std::int64_t moment : {std::int64_t{-1}, std::int64_t{INT64_MAX}}) {
    lock.entries[0].stat.created_ms = moment;
    CHECK(json::parse(JsonOf({lock}))[0]["contenders"][0]["since"] == nullptr);
  }
}

TEST_CASE("A token is printed with all its digits") {
  lock::LockSurvey lock = Alone("/l");
  lock.entries[0].stat.created_zxid = INT64_MAX;
  CHECK(json::parse(JsonOf({lock}))[0]["contenders"][0]["token"] == "9223372036854775807");
}

TEST_CASE("Each contender is printed when it is reported") {
  std::vector<std::string> parts;
  QueueJson view(QueueJson::Form::kArray,
                 [&parts](const std::string& part) { parts.push_back(part); });
  const lock::LockSurvey lock = Alone("/l");
  view.OnLock(lock);
  view.OnEntry(lock.entries[0]);
  CHECK(parts.size() == 2);
}

TEST_CASE("In watch mode, a line is printed for each lock, and again when the lock changes") {
  std::vector<std::string> lines;
  QueueJson view(QueueJson::Form::kLines,
                 [&lines](const std::string& line) { lines.push_back(line); });
  test::Report(view, {Alone("/a"), Alone("/b")});
  REQUIRE(lines.size() == 2);
  CHECK(json::parse(lines[0])["lock"] == "/a");
  CHECK(lines[0].back() == '\n');
  test::Report(view, {Alone("/a"), Alone("/b")});
  CHECK(lines.size() == 2);
  test::Report(view, {Alone("/a"), Alone("/b", "{\"host\":\"x\"}")});
  REQUIRE(lines.size() == 3);
  CHECK(json::parse(lines[2])["contenders"][0]["host"] == "x");
}

TEST_CASE("In watch mode, a lock that is no longer reported is printed as free, once") {
  std::vector<std::string> lines;
  QueueJson view(QueueJson::Form::kLines,
                 [&lines](const std::string& line) { lines.push_back(line); });
  test::Report(view, {Alone("/a")});
  test::Report(view, {});
  test::Report(view, {});
  REQUIRE(lines.size() == 2);
  CHECK(json::parse(lines[1])["lock"] == "/a");
  CHECK(json::parse(lines[1])["held"] == false);
  test::Report(view, {Alone("/a")});
  CHECK(lines.size() == 3);
}

}  // namespace zklock::cli
