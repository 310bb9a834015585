#include "protocol/contender_name.h"
#include "support/contender_names.h"
#include "support/random.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace zklock::protocol {
namespace {

using namespace std::string_literals;

using test::kUuid;

struct Known {
  std::string name;
  std::int64_t number;
  Mark mark;
  Program program;
  Mode mode;
  bool supersedes = false;
};

void CheckKnown(const std::vector<Known>& names) {
  for (const Known& known : names) {
    CAPTURE(known.name);
    const auto parsed = ParseContenderName(known.name);
    REQUIRE(parsed);
    CHECK(parsed->full == known.name);
    CHECK(parsed->number == known.number);
    CHECK(parsed->mark == known.mark);
    CHECK(parsed->program == known.program);
    CHECK(parsed->mode() == known.mode);
    CHECK(parsed->reads() == (known.mode == Mode::kRead));
    CHECK(parsed->supersedes == known.supersedes);
  }
}

void CheckIgnored(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK_FALSE(ParseContenderName(name));
  }
}

}  // namespace

TEST_CASE("Our own names are parsed") {
  CheckKnown({
      {"db1.example.org-" + kUuid + "-lock-0000000007", 7, Mark::kLock, Program::kZklock,
       Mode::kExclusive},
      {"db1-" + kUuid + "-__WRIT__0000000008", 8, Mark::kCuratorWrite, Program::kZklock,
       Mode::kWrite},
      {"db1-" + kUuid + "-__READ__0000000009", 9, Mark::kCuratorRead, Program::kZklock,
       Mode::kRead},
  });
}

TEST_CASE("Names in kazoo's dialect are parsed as zklock's or as kazoo's") {
  CheckKnown({
      {"db1-" + kUuid + "__lock__0000000007", 7, Mark::kKazooLock, Program::kZklock,
       Mode::kExclusive},
      {"db1-" + kUuid + "__rlock__0000000008", 8, Mark::kKazooRead, Program::kZklock, Mode::kRead},
      {"db1-" + kUuid + "-__lock__0000000009", 9, Mark::kKazooLock, Program::kKazoo,
       Mode::kExclusive},
      {test::kKazooReader + "0000000010", 10, Mark::kKazooRead, Program::kKazoo, Mode::kRead},
  });
  CHECK(MakeContenderPrefix("db1", kUuid, Mode::kExclusive, Dialect::kKazoo) ==
        "db1-" + kUuid + "__lock__");
  CHECK(MakeContenderPrefix("db1", kUuid, Mode::kWrite, Dialect::kKazoo) ==
        "db1-" + kUuid + "__lock__");
  CHECK(MakeContenderPrefix("db1", kUuid, Mode::kRead, Dialect::kKazoo) ==
        "db1-" + kUuid + "__rlock__");
}

TEST_CASE("A name is zklock's only with a host, a UUID and the dash before the mark") {
  CheckKnown({
      {kUuid + "-lock-0000000007", 7, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"-" + kUuid + "-lock-0000000007", 7, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"db1-" + kUuid + "lock-0000000007", 7, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"db_1-" + kUuid + "-lock-0000000007", 7, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {std::string(41, 'h') + "-" + kUuid + "-lock-0000000007", 7, Mark::kLock, Program::kUnknown,
       Mode::kExclusive},
      {"db1-0f8fad5b-d9cb-469f-a165-70867728950g-lock-0000000007", 7, Mark::kLock,
       Program::kUnknown, Mode::kExclusive},
      {"db1-0f8fad5bxd9cb-469f-a165-70867728950e-__READ__0000000007", 7, Mark::kCuratorRead,
       Program::kUnknown, Mode::kRead},
  });
}

TEST_CASE("The names of Curator, go-zookeeper, kazoo and the C recipe are recognised") {
  CheckKnown({
      {test::kCuratorLock + "0000000000", 0, Mark::kLock, Program::kCurator, Mode::kExclusive},
      {"_c_" + test::kHexUuid + "-lock-0000000012", 12, Mark::kLock, Program::kCurator,
       Mode::kExclusive},
      {test::kCuratorWriter + "0000000001", 1, Mark::kCuratorWrite, Program::kCurator,
       Mode::kWrite},
      {test::kCuratorReader + "0000000002", 2, Mark::kCuratorRead, Program::kCurator, Mode::kRead},
      {test::kKazooLock + "0000000003", 3, Mark::kKazooLock, Program::kKazoo, Mode::kExclusive},
      {test::kKazooReader + "0000000004", 4, Mark::kKazooRead, Program::kKazoo, Mode::kRead},
      {"x-0100000000abcdef-0000000005", 5, Mark::kCRecipe, Program::kCRecipe, Mode::kExclusive},
      {"x-72057594037927936-0000000006", 6, Mark::kCRecipe, Program::kCRecipe, Mode::kExclusive},
      {"x--72057594037927936-0000000006", 6, Mark::kCRecipe, Program::kCRecipe, Mode::kExclusive},
  });
}

TEST_CASE("A known mark counts after any prefix") {
  CheckKnown({
      {"lock-0000000001", 1, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"__READ__0000000001", 1, Mark::kCuratorRead, Program::kUnknown, Mode::kRead},
      {"__lock__0000000001", 1, Mark::kKazooLock, Program::kKazoo, Mode::kExclusive},
      {"x-lock-0000000001", 1, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"block-0000000001", 1, Mark::kLock, Program::kUnknown, Mode::kExclusive},
  });
}

TEST_CASE("After the overflow, a dash that follows a known mark is the number's sign") {
  CheckKnown({
      {"x-lock--000000005", -5, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"x-lock--2147483648", -2147483648LL, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      // The ten digits alone would also be a valid number here.
      {"x-lock--1234567890", -1234567890, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"abc__rlock__-000000001", -1, Mark::kKazooRead, Program::kKazoo, Mode::kRead},
      {"_c_" + kUuid + "-__WRIT__-2147483647", -2147483647, Mark::kCuratorWrite, Program::kCurator,
       Mode::kWrite},
      {"x-0100000000abcdef--000000005", -5, Mark::kCRecipe, Program::kCRecipe, Mode::kExclusive},
      {"x-0100000000abcdef--1234567890", -1234567890, Mark::kCRecipe, Program::kCRecipe,
       Mode::kExclusive},
  });
}

TEST_CASE("The largest number is accepted, but numbers beyond it are not") {
  CheckKnown({
      {"x-lock-2147483647", 2147483647, Mark::kLock, Program::kUnknown, Mode::kExclusive},
  });
  CheckIgnored({
      "_c_lock-2147483649",
      "lock--2147483649",
      "lock--000000000",
      "abc9999999999",
  });
}

TEST_CASE("Unknown names that end in a server's number count as exclusive") {
  CheckKnown({
      {"build-2024010203", 2024010203, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"0000000003", 3, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"n_0000000003", 3, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"-0000000003", 3, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"n-000000003", -3, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"lock-000000003", -3, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      // A negative number has no leading 0, so the second dash belongs to the prefix.
      {"lock--0000000003", 3, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"n-2147483648", -2147483648LL, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"x--0000000001", 1, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"x-0000000001", 1, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"x-session-0000000001", 1, Mark::kNone, Program::kUnknown, Mode::kExclusive},
  });
}

TEST_CASE("The last ten of more than ten digits are the number") {
  CheckKnown({
      {"abc71234567890", 1234567890, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"lock-10000000001", 1, Mark::kNone, Program::kUnknown, Mode::kExclusive},
      {"_c_x__READ__10000000001", 1, Mark::kNone, Program::kUnknown, Mode::kExclusive},
  });
  // 2345678901 is too large for a server's number.
  CheckIgnored({"abc12345678901"});
}

TEST_CASE("Names that do not end in a server's number are ignored") {
  CheckIgnored({
      "",
      "0",
      "zzz",
      "lock",
      "lock-",
      "leases",
      "last-run",
      "lock-0000000001x",
      "lock- 000000001",
      "lock-+000000001",
      "build-3024010203",
      "__lock__12345",
      "-",
      "123456789",
      "x-0100000000abcdef-00000005",
      "\xd9\xa0\xd9\xa1\xd9\xa2\xd9\xa3\xd9\xa4\xd9\xa5\xd9\xa6\xd9\xa7\xd9\xa8\xd9\xa9",
  });
}

TEST_CASE("A prefix consists of the host, the UUID and the mode's marker") {
  CHECK(MakeContenderPrefix("db1", kUuid, Mode::kExclusive, Dialect::kCurator) ==
        "db1-" + kUuid + "-lock-");
  CHECK(MakeContenderPrefix("db1", kUuid, Mode::kWrite, Dialect::kCurator) ==
        "db1-" + kUuid + "-__WRIT__");
  CHECK(MakeContenderPrefix("db1", kUuid, Mode::kRead, Dialect::kCurator) ==
        "db1-" + kUuid + "-__READ__");
}

TEST_CASE("In the prefix, a host name is cut, and unusual characters are replaced") {
  const std::string tail = "-" + kUuid + "-lock-";
  CHECK(MakeContenderPrefix("", kUuid, Mode::kExclusive, Dialect::kCurator) == "host" + tail);
  CHECK(MakeContenderPrefix("a/b_c d\n\xc3\xa9", kUuid, Mode::kExclusive, Dialect::kCurator) ==
        "a-b-c-d---" + tail);
  CHECK(MakeContenderPrefix("A.b-9", kUuid, Mode::kExclusive, Dialect::kCurator) == "A.b-9" + tail);
  CHECK(MakeContenderPrefix(std::string(64, 'h'), kUuid, Mode::kExclusive, Dialect::kCurator) ==
        std::string(40, 'h') + tail);
}

TEST_CASE("A contender's host is recognised even if its name was cut or changed") {
  const std::string number = "0000000001";
  for (const auto& host :
       {std::string("db1"), std::string(), std::string("a/b_c"), std::string(64, 'h')}) {
    CAPTURE(host);
    for (const Dialect dialect : {Dialect::kCurator, Dialect::kKazoo}) {
      const auto own =
          ParseContenderName(MakeContenderPrefix(host, kUuid, Mode::kRead, dialect) + number);
      REQUIRE(own);
      CHECK(IsOfHost(*own, host));
      CHECK_FALSE(IsOfHost(*own, "db2"));
    }
  }
}

TEST_CASE("Every prefix that we make is parsed as zklock's, with any number") {
  test::ForRandomRounds(2000, [](std::mt19937_64& random) {
    std::string host(random() % 50, '\0');
    for (char& c : host) c = static_cast<char>(random());
    const auto number = static_cast<std::int32_t>(random());
    const Mode mode = std::vector{Mode::kExclusive, Mode::kWrite, Mode::kRead}[random() % 3];
    char digits[16];
    std::snprintf(digits, sizeof digits, "%010d", number);
    CheckKnown({{MakeContenderPrefix(host, kUuid, mode, Dialect::kCurator) + digits, number,
                 mode == Mode::kExclusive ? Mark::kLock
                 : mode == Mode::kWrite   ? Mark::kCuratorWrite
                                          : Mark::kCuratorRead,
                 Program::kZklock, mode}});
  });
}

TEST_CASE("Only a zklock name can say that its contender supersedes") {
  const std::string newest = "db1-" + kUuid + "-newest";
  CheckKnown({
      {newest + "-lock-0000000007", 7, Mark::kLock, Program::kZklock, Mode::kExclusive, true},
      {newest + "-__WRIT__0000000008", 8, Mark::kCuratorWrite, Program::kZklock, Mode::kWrite,
       true},
      {newest + "-__READ__0000000009", 9, Mark::kCuratorRead, Program::kZklock, Mode::kRead, true},
      {newest + "__lock__0000000010", 10, Mark::kKazooLock, Program::kZklock, Mode::kExclusive,
       true},
      {newest + "__rlock__0000000011", 11, Mark::kKazooRead, Program::kZklock, Mode::kRead, true},
      // Neither a host with such a name nor another program's contender supersedes.
      {"a-newest-" + kUuid + "-lock-0000000012", 12, Mark::kLock, Program::kZklock,
       Mode::kExclusive},
      {"_c_" + kUuid + "-newest-lock-0000000013", 13, Mark::kLock, Program::kCurator,
       Mode::kExclusive},
      {"the-newest-lock-0000000014", 14, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"the-newest-__lock__0000000015", 15, Mark::kKazooLock, Program::kKazoo, Mode::kExclusive},
      {newest + "-newest-lock-0000000016", 16, Mark::kLock, Program::kUnknown, Mode::kExclusive},
      {"x-newest-0000000017", 17, Mark::kNone, Program::kUnknown, Mode::kExclusive},
  });
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    for (const Dialect dialect : {Dialect::kCurator, Dialect::kKazoo}) {
      for (const bool supersedes : {false, true}) {
        const auto parsed = ParseContenderName(
            MakeContenderPrefix("db1", kUuid, mode, dialect, supersedes) + "0000000001");
        REQUIRE(parsed);
        CHECK(parsed->program == Program::kZklock);
        CHECK(parsed->supersedes == supersedes);
      }
    }
  }
}

TEST_CASE("Only a zklock name can say that its contender reserves") {
  const std::string uuid = "db1-" + kUuid;
  for (const char* const name : {"-reserve-lock-0000000001", "-reserve-__READ__0000000001",
                                 "-newest-reserve-__WRIT__0000000001", "-reserve__lock__0000000001",
                                 "-reserve-lease-0000000001"}) {
    CAPTURE(name);
    CHECK(ParseContenderName(uuid + name)->program == Program::kZklock);
    CHECK(ParseContenderName(uuid + name)->reserves);
    CHECK(ViewContenderName(uuid + name)->reserves());
  }
  for (const std::string& name :
       {uuid + "-lock-0000000001", "a-reserve-" + kUuid + "-lock-0000000001",
        "_c_" + kUuid + "-reserve-lock-0000000001", "the-reserve-lock-0000000001"s,
        uuid + "-reserve-reserve-lock-0000000001", uuid + "-reserve-newest-lock-0000000001",
        uuid + "-reserve-0000000001", "x-reserve-0000000001"s}) {
    CAPTURE(name);
    CHECK_FALSE(ParseContenderName(name)->reserves);
  }
  for (const bool supersedes : {false, true}) {
    for (const bool reserves : {false, true}) {
      for (const Dialect dialect : {Dialect::kCurator, Dialect::kKazoo}) {
        const auto parsed = ParseContenderName(
            MakeContenderPrefix("db1", kUuid, Mode::kRead, dialect, supersedes, reserves) +
            "0000000001");
        REQUIRE(parsed);
        CHECK(parsed->program == Program::kZklock);
        CHECK(parsed->supersedes == supersedes);
        CHECK(parsed->reserves == reserves);
      }
    }
  }
  CHECK(ParseContenderName(MakePermitPrefix("db1", kUuid, true) + "0000000001")->reserves);
}

TEST_CASE("A permit's name is zklock's or Curator's, and its mode is exclusive") {
  CheckKnown({
      {"db1-" + kUuid + "-lease-0000000007", 7, Mark::kPermit, Program::kZklock, Mode::kExclusive},
      {test::kCuratorPermit + "0000000008", 8, Mark::kPermit, Program::kCurator, Mode::kExclusive},
      {"lease-0000000009", 9, Mark::kPermit, Program::kUnknown, Mode::kExclusive},
  });
  CHECK(MakePermitPrefix("db1", kUuid) == "db1-" + kUuid + "-lease-");
  CHECK(MakePermitPrefix("", kUuid) == "host-" + kUuid + "-lease-");
  CHECK(MakePermitPrefix(std::string(64, '/'), kUuid) ==
        std::string(40, '-') + "-" + kUuid + "-lease-");
}

TEST_CASE("The simple dialect has one name for every mode") {
  for (const bool supersedes : {false, true}) {
    CHECK(MakeContenderPrefix("db1", kUuid, Mode::kExclusive, Dialect::kSimple, supersedes) ==
          "lock");
  }
  CheckIgnored({"lock", "locks", "leases"});
}

TEST_CASE("Modes are written as words and parsed") {
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    CHECK(ParseMode(ModeName(mode)) == mode);
  }
  CHECK(ModeName(Mode::kExclusive) == "exclusive");
  CHECK(ModeName(Mode::kWrite) == "write");
  CHECK(ModeName(Mode::kRead) == "read");
  CHECK_FALSE(ParseMode(""));
  CHECK_FALSE(ParseMode("Read"));
  CHECK_FALSE(ParseMode("reads"));
}

}  // namespace zklock::protocol
