#include "lock/data/contender_data.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zklock::lock {
namespace {

ContenderData Nothing() {
  ContenderData data;
  data.version.reset();
  return data;
}

}  // namespace

TEST_CASE("A contender's data is one JSON object") {
  CHECK(FormatContenderData({.mode = protocol::Mode::kWrite,
                             .host = "build7",
                             .user = "ci",
                             .pid = 4242,
                             .boot_id = "0e7c1a9e-3d9b-4a4e-9c39-0a4a2f6d1c52",
                             .start_time = 8123456,
                             .command = "backup.sh",
                             .label = "https://ci.example/job/17"}) ==
        R"({"bootId":"0e7c1a9e-3d9b-4a4e-9c39-0a4a2f6d1c52","command":"backup.sh",)"
        R"("host":"build7","label":"https://ci.example/job/17","mode":"write","pid":4242,)"
        R"("startTime":8123456,"user":"ci","version":1})");
}

TEST_CASE("Unknown and empty fields are left out") {
  CHECK(FormatContenderData({.host = "build7", .label = ""}) == R"({"host":"build7","version":1})");
}

TEST_CASE("Fields that are cut to nothing are left out") {
  const std::string no_text(66, '\x82');
  CHECK(FormatContenderData({.host = no_text}).find("host") == std::string::npos);
}

TEST_CASE("Data is parsed as it was formatted") {
  const ContenderData data{
      .mode = protocol::Mode::kRead,
      .host = "h",
      .user = "u",
      .pid = 1,
      .boot_id = "b",
      .start_time = 0,
      .command = "grep \"a\\b\"\n\x1b[31m",
      .label = "caf\xc3\xa9",
      .pid_namespace = 4026531836,
      .owner = OwnerData{17, 42, "zklock-1"},
      .contained = false,
      .release_request = ReleaseRequest{.by = "root on web1", .reason = "for a restart"},
      .under = {"/a/h-1-lock-0000000000", "/b/h-2-lock-0000000007"},
      .any = {"/gpu/1", "/gpu/2"}};
  CHECK(ParseContenderData(FormatContenderData(data)) == data);
}

TEST_CASE("The data of a reservation contains its purpose, its duration and its token") {
  ContenderData data{
      .host = "h", .label = "l", .reserve = "freeze", .reserve_reason = "incident 4711"};
  CHECK(ParseContenderData(FormatContenderData(data)) == data);
  data.reserve.clear();
  data.reserve_reason.clear();
  data.reservation = {.id = "ci:4711@main",
                      .reason = "incident \"4711\"",
                      .lasts = std::chrono::hours(4),
                      .token = 4294967342};
  CHECK(ParseContenderData(FormatContenderData(data)) == data);
  data.reservation = {.id = "x", .token = 1};
  CHECK(FormatContenderData(data) ==
        R"({"host":"h","label":"l","reservation":{"id":"x","token":1},"version":1})");
}

TEST_CASE("A reservation with an impossible value does not count") {
  for (const char* const text :
       {R"({})", R"({"id":"x"})", R"({"token":7})", R"({"id":"","token":7})",
        R"({"id":"a b","token":7})", R"({"id":7,"token":7})", R"({"id":"x","token":0})",
        R"({"id":"x","token":-1})", R"({"id":"x","token":"7"})",
        R"({"id":"x","token":9223372036854775808})", R"({"id":"x","token":7,"for":0})",
        R"({"id":"x","token":7,"for":-1})", R"({"id":"x","token":7,"for":"1h"})",
        R"({"id":"x","token":7,"for":null})", R"({"id":"x","token":7,"for":34560000001})", "[]",
        "null", "\"x\""}) {
    CAPTURE(text);
    CHECK_FALSE(ParseContenderData(std::string(R"({"reservation":)") + text + "}")->reservation);
  }
  CHECK(
      ParseContenderData(R"({"reservation":{"id":"x","token":7,"for":34560000000}})")->reservation);
  CHECK(ParseContenderData(R"({"reserve":"not an id"})")->reserve.empty());
}

TEST_CASE("Data that is not a JSON object is rejected") {
  for (const char* const text : {"", "127.0.0.1", "42", "null", "[]", "\"x\"", "{", "{}x",
                                 R"({"pid":1e999})", "{\"host\":}", "\x12\x34", "\xff\xfe"}) {
    CAPTURE(text);
    CHECK(ParseContenderData(text) == std::nullopt);
  }
}

TEST_CASE("Another program's object has no known fields") {
  CHECK(ParseContenderData("{}") == Nothing());
  CHECK(ParseContenderData(R"({"jobs":[{"host":"x"}]})") == Nothing());
}

TEST_CASE("Fields with a wrong type or an impossible value are treated as unknown") {
  for (const char* const text : {
           R"({"version":"1","mode":7,"host":1,"user":null,"pid":"4","bootId":[],"startTime":{}})",
           R"({"mode":"EXCLUSIVE","pid":0,"owner":-1,"startTime":-1,"version":-1})",
           R"({"pid":1.5,"owner":true,"startTime":1e3,"command":{},"label":false})",
           R"({"contained":1,"under":true,"any":"/gpu/1"})",
           R"({"pid":2147483648,"owner":18446744073709551615,"startTime":18446744073709551615})",
           R"({"pid":1e99,"owner":99999999999999999999999999})",
       }) {
    CAPTURE(text);
    CHECK(ParseContenderData(text).value_or(ContenderData{}) == Nothing());
  }
}

TEST_CASE("One bad field does not hide the others") {
  auto expected = Nothing();
  expected.host = "build7";
  CHECK(ParseContenderData(R"({"host":"build7","pid":"x"})") == expected);
}

TEST_CASE("Invalid UTF-8 in untrusted data is replaced, and the rest is read") {
  const auto data = ParseContenderData("{\"host\":\"caf\xe9\",\"user\":\"ci\"}");
  REQUIRE(data);
  CHECK(data->host == "caf\xef\xbf\xbd");
  CHECK(data->user == "ci");
}

TEST_CASE("Invalid UTF-8 in our own label and command is replaced") {
  CHECK(FormatContenderData({.command = "\xff", .label = "caf\xe9"}) ==
        "{\"command\":\"\xef\xbf\xbd\",\"label\":\"caf\xef\xbf\xbd\",\"version\":1}");
}

TEST_CASE("Our own data never exceeds the maximum size") {
  const std::string long_text(1000000, 'x');
  const std::string escapes(100000, '\x01');
  for (const std::string& text : {long_text, escapes}) {
    const std::string data = FormatContenderData(
        {.host = text, .user = text, .pid = 1, .boot_id = text, .command = text, .label = text});
    CHECK(data.size() <= kMostContenderData);
    const auto parsed = ParseContenderData(data);
    REQUIRE(parsed);
    CHECK(parsed->pid == 1);
    CHECK(text.starts_with(parsed->command.value_or("?")));
    CHECK(parsed->command->size() > 100);
  }
}

TEST_CASE("Text is cut between characters") {
  std::string text = "x";
  while (text.size() < 5000) text += "\xe2\x82\xac";
  const auto parsed = ParseContenderData(FormatContenderData({.label = text}));
  REQUIRE(parsed);
  CHECK(text.starts_with(parsed->label.value_or("?")));
}

TEST_CASE("Data above the maximum size is rejected") {
  CHECK(ParseContenderData(R"({"label":")" + std::string(kMostContenderData, 'x') + "\"}") ==
        std::nullopt);
}

TEST_CASE("Deep nesting is harmless") {
  CHECK(ParseContenderData(std::string(kMostContenderData, '[')) == std::nullopt);
  const std::size_t depth = 2000;
  CHECK(ParseContenderData(R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}") ==
        Nothing());
}

TEST_CASE("Of the contenders under which a run is nested, the innermost are written") {
  std::vector<std::string> under;
  for (int i = 0; i < 20; ++i) under.push_back("/lock" + std::to_string(i));
  const auto read = ParseContenderData(FormatContenderData({.under = under}));
  REQUIRE(read);
  CHECK(read->under == std::vector<std::string>(under.end() - 8, under.end()));
  const std::string long_path = "/" + std::string(900, 'x');
  CHECK(ParseContenderData(FormatContenderData({.under = {long_path, "/a", "/b"}}))->under ==
        std::vector<std::string>{long_path, "/a", "/b"});
  CHECK(ParseContenderData(FormatContenderData({.under = {long_path, long_path, "/b"}}))->under ==
        std::vector<std::string>{long_path, "/b"});
  CHECK(FormatContenderData({.under = {std::string(3000, '\x01')}}) == R"({"version":1})");
}

TEST_CASE("The alternative locks of a run are all written, or none of them") {
  const auto locks = [](std::size_t count, std::size_t length) {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < count; ++i) {
      paths.push_back("/" + std::to_string(i) + std::string(length, 'x'));
    }
    return paths;
  };
  const auto read = [](const std::vector<std::string>& any) {
    const std::string text = FormatContenderData(
        {.command = std::string(3000, 'c'), .label = std::string(64, 'l'), .any = any});
    CHECK(text.size() <= kMostContenderData);
    return ParseContenderData(text).value();
  };
  CHECK(read(locks(63, 30)).any == locks(63, 30));
  CHECK(read(locks(63, 30)).label->size() == 64);
  CHECK(read(locks(64, 1)).any.empty());
  // Without the list there is room for the command.
  CHECK(read(locks(63, 60)).any.empty());
  CHECK(read(locks(63, 60)).command->size() == 2048);
  CHECK(read({std::string(4000, '\x01')}).any.empty());
}

TEST_CASE("If the list of alternative locks is left out, so are the outer locks") {
  const auto under = [](const std::string& other) {
    return ParseContenderData(FormatContenderData({.under = {"/a"}, .any = {other}}))->under;
  };
  CHECK(under("/b") == std::vector<std::string>{"/a"});
  CHECK(under(std::string(5000, 'b')).empty());
}

TEST_CASE("A list of more other locks than a run may have is ignored") {
  const auto parsed = [](std::size_t count) {
    std::string text = R"({"host":"h","any":["/0")";
    for (std::size_t i = 1; i < count; ++i) text += ",\"/" + std::to_string(i) + "\"";
    const auto data = ParseContenderData(text + "]}");
    REQUIRE(data);
    CHECK(data->host == "h");
    return data->any.size();
  };
  CHECK(parsed(63) == 63);
  CHECK(parsed(64) == 0);
}

TEST_CASE("Entries of `under` that are not strings are skipped") {
  CHECK(ParseContenderData(R"({"under":"/a"})")->under.empty());
  CHECK(ParseContenderData(R"({"under":[1,null,{},"/a"]})")->under ==
        std::vector<std::string>{"/a"});
}

TEST_CASE("A release request is added to the existing data") {
  const ReleaseRequest request{.by = "root on web1", .reason = "for a restart", .forced = true};
  const std::string data = FormatContenderData({.host = "build7", .pid = 17});
  CHECK(ParseContenderData(AddReleaseRequest(data, request)) ==
        ContenderData{.host = "build7", .pid = 17, .release_request = request});
  CHECK(FindReleaseRequest(AddReleaseRequest("no JSON", request)) == request);
}

TEST_CASE("The mark of a forced release replaces no request, and a request replaces the mark") {
  const ReleaseRequest request{.by = "root on web1"};
  const ReleaseRequest mark{.by = "al on web2", .forced = true};
  const auto after = [](const ReleaseRequest& first, const ReleaseRequest& second) {
    return FindReleaseRequest(AddReleaseRequest(AddReleaseRequest("{}", first), second));
  };
  CHECK(after(request, mark) == request);
  CHECK(after(mark, request) == request);
  CHECK(after(mark, {.by = "op", .forced = true})->by == "op");
}

TEST_CASE("A release request fits into the data, however long the text in any field is") {
  const std::string data = FormatContenderData(
      {.host = "h",
       .user = "u",
       .boot_id = "b",
       .command = "c",
       .label = "l",
       .owner = OwnerData{1, 2, "socket"},
       .release_request = ReleaseRequest{.by = "by", .reason = "reason"},
       .reserve = "id",
       .reserve_reason = "why",
       .reservation = protocol::Reservation{.id = "id", .reason = "why", .token = 3},
       .under = {"/under"},
       .any = {"/any"}});
  const nlohmann::json all = nlohmann::json::parse(data).flatten();
  for (const auto& [field, value] : all.items()) {
    if (!value.is_string()) continue;
    for (const std::string unit : {"a", "\"", "\\u0001", "\xff"}) {
      CAPTURE(field, unit);
      nlohmann::json hostile = all;
      hostile[field] = "@";
      std::string text = hostile.unflatten().dump();
      const std::size_t at = text.find('@');
      std::string filler;
      const std::string escaped = unit == "\"" ? "\\\"" : unit;
      while (text.size() + filler.size() + escaped.size() <= kMostContenderData) filler += escaped;
      text.replace(at, 1, filler);
      const std::string asked = AddReleaseRequest(text, {.by = "b on h"});
      CHECK(asked.size() <= kMostContenderData);
      REQUIRE(ParseContenderData(asked));
      CHECK(ParseContenderData(asked)->release_request->by == "b on h");
    }
  }
}

TEST_CASE("A release request is found in zklock's form and in Curator's") {
  CHECK(FindReleaseRequest("") == std::nullopt);
  CHECK(FindReleaseRequest(FormatContenderData({.command = "revoke"})) == std::nullopt);
  CHECK(FindReleaseRequest(R"({"revoke":{}})") == ReleaseRequest{});
  CHECK(FindReleaseRequest(R"({"\u0072evoke":{"by":"me"}})") == ReleaseRequest{.by = "me"});
  CHECK(FindReleaseRequest(kCuratorRevoke) ==
        ReleaseRequest{.program = protocol::Program::kCurator});
}

}  // namespace zklock::lock
