#include "cli/text/table.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace zklock::cli {
namespace {

constexpr auto kRight = Column::Align::kRight;

std::string Render(std::vector<Column> columns, const std::vector<std::vector<Cell>>& rows,
                   std::size_t width = 0) {
  Table table(std::move(columns), width);
  for (const auto& row : rows) table.AddRow(row);
  return table.TakePage();
}

const std::vector<Column> kProcesses{{.title = "PID", .align = kRight},
                                     {.title = "COMMAND", .least = 7}};
const std::vector<std::vector<Cell>> kBackup{{"12", "backup.sh --everything"}};

}  // namespace

TEST_CASE("A table is as wide as its content") {
  CHECK(Render({{.title = "NAME"}, {.title = "N", .align = kRight}, {.title = "WHAT"}},
               {{"a", "7", "seven"}, {"longer", "1234", "x"}}) ==
        "NAME       N  WHAT\n"
        "a          7  seven\n"
        "longer  1234  x\n");
}

TEST_CASE("A table without rows still has its titles") {
  CHECK(Render({{.title = "A"}, {.title = "B"}}, {}) == "A  B\n");
}

TEST_CASE("Lines do not end in spaces") {
  CHECK(Render({{.title = "A"}, {.title = "B", .align = kRight}, {.title = "LAST"}},
               {{"x", "", ""}, {"", "1", ""}}) ==
        "A  B  LAST\n"
        "x\n"
        "   1\n");
}

TEST_CASE("Columns that may be cut shrink to fit the terminal") {
  for (const std::size_t width : {80, 27}) {
    CHECK(Render(kProcesses, kBackup, width) ==
          "PID  COMMAND\n"
          " 12  backup.sh --everything\n");
  }
  CHECK(Render(kProcesses, kBackup, 26) ==
        "PID  COMMAND\n"
        " 12  backup.sh --everythi…\n");
  CHECK(Render(kProcesses, kBackup, 15) ==
        "PID  COMMAND\n"
        " 12  backup.sh…\n");
}

TEST_CASE("No line is wider than the terminal, however narrow") {
  CHECK(Render(kProcesses, kBackup, 10) ==
        "PID  COMM…\n"
        " 12  back…\n");
}

TEST_CASE("The widest column that may be cut shrinks first") {
  CHECK(Render({{.title = "A", .least = 2}, {.title = "B", .least = 2}, {.title = "C"}},
               {{"abcdefgh", "abcd", "x"}}, 13) ==
        "A     B     C\n"
        "abc…  abcd  x\n");
}

TEST_CASE("If cutting is not enough, columns are dropped, the most dispensable first") {
  const std::vector<Column> columns{{.title = "FIRST", .dispensable = 1},
                                    {.title = "SECOND", .dispensable = 3},
                                    {.title = "THIRD", .dispensable = 2},
                                    {.title = "FOURTH"}};
  const std::vector<std::vector<Cell>> rows{{"1", "2", "3", "4"}};
  CHECK(Render(columns, rows, 28) ==
        "FIRST  SECOND  THIRD  FOURTH\n"
        "1      2       3      4\n");
  CHECK(Render(columns, rows, 27) ==
        "FIRST  THIRD  FOURTH\n"
        "1      3      4\n");
  CHECK(Render(columns, rows, 13) ==
        "FIRST  FOURTH\n"
        "1      4\n");
  CHECK(Render(columns, rows, 7) ==
        "FOURTH\n"
        "4\n");
}

TEST_CASE("Columns that are empty in all rows are dropped before anything is cut") {
  const std::vector<Column> columns{{.title = "HOST", .dispensable = 9},
                                    {.title = "LABEL", .dispensable = 1},
                                    {.title = "PID", .dispensable = 2},
                                    {.title = "WHAT", .least = 4}};
  const auto titles = [&](const std::vector<std::vector<Cell>>& shown, std::size_t width) {
    const std::string text = Render(columns, shown, width);
    return text.substr(0, text.find('\n'));
  };
  // Even if there is only one row.
  const std::vector<Cell> row{"web1", "-", "", "until 16:00"};
  CHECK(titles({row}, 29) == "HOST  LABEL  PID  WHAT");
  CHECK(titles({row}, 28) == "HOST  LABEL  WHAT");
  CHECK(titles({row}, 23) == "HOST  WHAT");
  CHECK(titles({row}, 10) == "HOST  WHAT");
  // A column that is empty in only some rows is kept.
  CHECK(titles({row, {"web2", "x", "", "make"}}, 23) == "HOST  LABEL  WHAT");
}

TEST_CASE("A column may move to separate lines, before anything is cut or dropped") {
  const std::vector<Column> columns{{.title = "HOST", .dispensable = 1},
                                    {.title = "WHAT", .least = 2},
                                    {.title = "NAME", .own_line = true}};
  const std::vector<std::vector<Cell>> rows{{"web1", "make", "web1-lock-1"},
                                            {"b", "ls", "b-lock-2"}};
  CHECK(Render(columns, rows, 23) ==
        "HOST  WHAT  NAME\n"
        "web1  make  web1-lock-1\n"
        "b     ls    b-lock-2\n");
  CHECK(Render(columns, rows, 22) ==
        "HOST  WHAT\n"
        "web1  make\n"
        "    web1-lock-1\n"
        "b     ls\n"
        "    b-lock-2\n");
  // Cells on lines of their own are never cut.
  CHECK(Render(columns, rows, 3) ==
        "WH…\n"
        "ma…\n"
        "    web1-lock-1\n"
        "ls\n"
        "    b-lock-2\n");
}

TEST_CASE("Columns with one value in all rows are dropped first, before much is cut") {
  const std::vector<Column> columns{{.title = "HOST", .dispensable = 1},
                                    {.title = "MODE", .dispensable = 2},
                                    {.title = "TOKEN", .dispensable = 3},
                                    {.title = "WHAT", .least = 4}};
  const std::vector<std::vector<Cell>> rows{{"a", "read", "17", std::string(40, 'x')},
                                            {"a", "read", "18", "make"}};
  const auto titles = [&](const std::vector<std::vector<Cell>>& shown, std::size_t width) {
    const std::string text = Render(columns, shown, width);
    return text.substr(0, text.find('\n'));
  };
  // 30 columns of WHAT are enough.
  CHECK(titles(rows, 49) == "HOST  MODE  TOKEN  WHAT");
  CHECK(titles(rows, 48) == "HOST  TOKEN  WHAT");
  CHECK(titles(rows, 42) == "TOKEN  WHAT");
  CHECK(titles(rows, 10) == "WHAT");
  // With a single row, there is nothing to compare.
  CHECK(titles({rows[0]}, 23) == "HOST  MODE  TOKEN  WHAT");
  CHECK(titles({rows[0]}, 22) == "HOST  MODE  WHAT");
}

TEST_CASE("URLs and paths in a table are cut in the middle") {
  CHECK(Render({{.title = "L", .least = 4}}, {{"https://ci.example/job/4711"}}, 16) ==
        "L\n"
        "https:/…job/4711\n");
}

TEST_CASE("A cell is cut to its column's limit") {
  CHECK(Render({{.title = "HOST", .most = 6}, {.title = "X"}}, {{"abcdefgh", "1"}}) ==
        "HOST    X\n"
        "abcde…  1\n");
}

TEST_CASE("Columns stay aligned with wide and combining characters") {
  CHECK(Render({{.title = "A"}, {.title = "B"}}, {{"日本", "1"}, {"e\u0301", "2"}}) ==
        "A     B\n"
        "日本  1\n"
        "e\u0301     2\n");
}

TEST_CASE("Untrusted bytes cannot break out of their cell") {
  CHECK(Render({{.title = "A"}, {.title = "B"}}, {{"x\n\x1b[2J", "1"}}) ==
        "A           B\n"
        "x\\n\\x1b[2J  1\n");
}

TEST_CASE("Later pages have the first one's columns, without titles") {
  Table table({{.title = "N", .align = kRight, .expect = 4}, {.title = "B"}}, 0);
  table.AddRow({"1", "x"});
  CHECK(table.TakePage() ==
        "   N  B\n"
        "   1  x\n");
  table.AddRow({"1000", "y"});
  CHECK(table.TakePage() == "1000  y\n");
}

TEST_CASE("A cell wider than its column moves the rest of its line to the right") {
  Table table(
      {{.title = "N", .align = kRight}, {.title = "B", .least = 1}, {.title = "C", .least = 1}},
      14);
  table.AddRow({"1", "bbbbb", "c"});
  CHECK(table.TakePage() ==
        "N  B      C\n"
        "1  bbbbb  c\n");
  table.AddRow({"12345", "bbbbbbb", "ccccc"});
  table.AddRow({"2", "b", "c"});
  CHECK(table.TakePage() ==
        "12345  bbbb…\n"
        "2  b      c\n");
}

TEST_CASE("Colours have no width") {
  Table table({{.title = "A"}, {.title = "B"}}, 0, /*colours=*/true);
  table.AddRow({{"held", Tone::kHeld}, "x"});
  CHECK(table.TakePage() ==
        "\x1b[1mA\x1b[0m     \x1b[1mB\x1b[0m\n"
        "\x1b[32mheld\x1b[0m  x\n");
}

TEST_CASE("A row of the wrong length is a defect") {
  Table table({{.title = "A"}, {.title = "B"}}, 0);
  CHECK_THROWS_AS(table.AddRow({"x"}), std::logic_error);
}

}  // namespace zklock::cli
