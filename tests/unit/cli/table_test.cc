#include "cli/table.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

namespace zklock::cli {
namespace {

constexpr auto kRight = Column::Align::kRight;

}  // namespace

TEST_CASE("A table is as wide as its content") {
  Table table({{.title = "NAME"}, {.title = "N", .align = kRight}, {.title = "WHAT"}});
  table.AddRow({"a", "7", "seven"});
  table.AddRow({"longer", "1234", "x"});
  CHECK(table.Format(0) ==
        "NAME       N  WHAT\n"
        "a          7  seven\n"
        "longer  1234  x\n");
}

TEST_CASE("A table without rows has its titles") {
  CHECK(Table({{.title = "A"}, {.title = "B"}}).Format(0) == "A  B\n");
}

TEST_CASE("Lines do not end in spaces") {
  Table table({{.title = "A"}, {.title = "B", .align = kRight}, {.title = "LAST"}});
  table.AddRow({"x", "", ""});
  table.AddRow({"", "1", ""});
  CHECK(table.Format(0) ==
        "A  B  LAST\n"
        "x\n"
        "   1\n");
}

TEST_CASE("The flexible column gives way to the terminal's width") {
  Table table({{.title = "PID", .align = kRight}, {.title = "COMMAND", .flexible = true}});
  table.AddRow({"12", "backup.sh --everything"});
  CHECK(table.Format(80) ==
        "PID  COMMAND\n"
        " 12  backup.sh --everything\n");
  CHECK(table.Format(27) ==
        "PID  COMMAND\n"
        " 12  backup.sh --everything\n");
  CHECK(table.Format(26) ==
        "PID  COMMAND\n"
        " 12  backup.sh --everythi…\n");
  CHECK(table.Format(15) ==
        "PID  COMMAND\n"
        " 12  backup.sh…\n");
}

TEST_CASE("The flexible column keeps its title") {
  Table table({{.title = "PID", .align = kRight}, {.title = "COMMAND", .flexible = true}});
  table.AddRow({"12", "backup.sh --everything"});
  CHECK(table.Format(1) ==
        "PID  COMMAND\n"
        " 12  backup…\n");
}

TEST_CASE("A flexible column may stand before others") {
  Table table({{.title = "C", .flexible = true}, {.title = "D"}});
  table.AddRow({"abcdef", "x"});
  CHECK(table.Format(6) ==
        "C    D\n"
        "ab…  x\n");
}

TEST_CASE("A cell is cut to its column's limit") {
  Table table({{.title = "HOST", .most = 6}, {.title = "X"}});
  table.AddRow({"abcdefgh", "1"});
  CHECK(table.Format(0) ==
        "HOST    X\n"
        "abcde…  1\n");
}

TEST_CASE("Columns stay in line under wide and combining characters") {
  Table table({{.title = "A"}, {.title = "B"}});
  table.AddRow({"日本", "1"});
  table.AddRow({"e\u0301", "2"});
  CHECK(table.Format(0) ==
        "A     B\n"
        "日本  1\n"
        "e\u0301     2\n");
}

TEST_CASE("Foreign bytes cannot break out of their cell") {
  Table table({{.title = "A"}, {.title = "B"}});
  table.AddRow({"x\n\x1b[2J", "1"});
  CHECK(table.Format(0) ==
        "A           B\n"
        "x\\n\\x1b[2J  1\n");
}

TEST_CASE("A row of the wrong length is a defect") {
  Table table({{.title = "A"}, {.title = "B"}});
  CHECK_THROWS_AS(table.AddRow({"x"}), std::logic_error);
}

}  // namespace zklock::cli
