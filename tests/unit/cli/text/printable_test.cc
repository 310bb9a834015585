#include "cli/text/printable.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

namespace zklock::cli {
namespace {

void CheckShown(const std::vector<std::pair<std::string, std::string>>& cases) {
  for (const auto& [foreign, shown] : cases) {
    CAPTURE(foreign);
    CHECK(Printable(foreign) == shown);
  }
}

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

}  // namespace

TEST_CASE("Plain text is unchanged") {
  CheckShown({{"", ""},
              {"backup.sh --all", "backup.sh --all"},
              {"C:\\new", "C:\\new"},
              {"café", "café"},
              {"日本語", "日本語"},
              {"🚀", "🚀"},
              {"❤️", "❤️"}});
}

TEST_CASE("Control characters are escaped") {
  CheckShown({{"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"},
              {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
              {"a\nb\r\tc", "a\\nb\\r\\tc"},
              {std::string(1, '\0'), "\\x00"},
              {"\x7f", "\\x7f"},
              {"\xc2\x9b[31m", "\\u009b[31m"},
              {"\xc2\x85", "\\u0085"}});
}

TEST_CASE("Characters that reorder or hide the text around them are escaped") {
  CheckShown({{"a\u202eb", "a\\u202eb"},
              {"\u2066x\u2069", "\\u2066x\\u2069"},
              {"\u200b", "\\u200b"},
              {"x\u200dy", "x\\u200dy"},
              {"\u200f\u061c", "\\u200f\\u061c"},
              {"\ufeff", "\\ufeff"},
              {"\u2028\u2029", "\\u2028\\u2029"},
              {"soft\u00adhyphen", "soft\\u00adhyphen"},
              {"\U000e0041", "\\U000e0041"}});
}

TEST_CASE("Bytes that are not UTF-8 are escaped one by one") {
  CheckShown({{Bytes({'a', 0xff, 'b'}), "a\\xffb"},
              {Bytes({0xe9}), "\\xe9"},
              {Bytes({0xc3}), "\\xc3"},                        // cut short
              {Bytes({0xe2, 0x82}), "\\xe2\\x82"},             // cut short
              {Bytes({0xe2, 0x82, 'x'}), "\\xe2\\x82x"},       // cut short
              {Bytes({0xc0, 0x9b}), "\\xc0\\x9b"},             // overlong encoding of ESC
              {Bytes({0xe0, 0x80, 0x9b}), "\\xe0\\x80\\x9b"},  // likewise
              {Bytes({0xed, 0xa0, 0x80}), "\\xed\\xa0\\x80"},  // a surrogate
              {Bytes({0xf4, 0x90, 0x80, 0x80}), "\\xf4\\x90\\x80\\x80"},
              {Bytes({0xf8, 0x88, 0x80, 0x80, 0x80}), "\\xf8\\x88\\x80\\x80\\x80"},
              {Bytes({0x80}), "\\x80"}});
}

TEST_CASE("Unassigned characters are escaped") {
  CHECK(Printable("\uffff") == "\\uffff");
  CHECK(Printable("\U000e1234").substr(0, 2) == "\\U");
}

TEST_CASE("Marks stay on their letter, up to a limit") {
  CHECK(Printable("e\u0301") == "e\u0301");
  CHECK(Printable("e\u0301\u0301\u0301\u0301\u0301") == "e\u0301\u0301\u0301\u0301\\u0301");
  CHECK(Printable("\u0301x") == "\\u0301x");
  CHECK(Printable("\x1b\u0301").substr(0, 4) == "\\x1b");
}

TEST_CASE("Width is counted in columns") {
  const std::vector<std::pair<std::string, std::size_t>> cases{
      {"", 0},     {"abc", 3},  {"café", 4}, {"cafe\u0301", 4}, {"日本", 4}, {"🚀", 2},
      {"\x1b", 4}, {"\xff", 4}, {"\n", 2},   {"…", 1},          {"≥", 1},
  };
  for (const auto& [text, width] : cases) {
    CAPTURE(text);
    CHECK(DisplayWidth(text) == width);
    CHECK(DisplayWidth(Printable(text)) == width);
  }
}

TEST_CASE("Text that is too wide is cut, with an ellipsis") {
  CHECK(Printable("abcdef", 6) == "abcdef");
  CHECK(Printable("abcdefg", 6) == "abcde…");
  CHECK(Printable("abc", 1) == "…");
  CHECK(Printable("a", 1) == "a");
  CHECK(Printable("abc", 0).empty());
  CHECK(Printable("", 0).empty());
}

TEST_CASE("A cut does not split a character or an escape") {
  CHECK(Printable("日本語", 6) == "日本語");
  CHECK(Printable("日本語", 5) == "日本…");
  CHECK(Printable("日本語", 4) == "日…");
  CHECK(Printable("a\x1b[m", 5) == "a…");
  CHECK(Printable("a\x1b[m", 6) == "a\\x1b…");
  CHECK(Printable("日", 1) == "…");
  CHECK(Printable("abe\u0301fg", 4) == "abe\u0301…");
}

TEST_CASE("Whatever the bytes, the result is one line that fits") {
  // Every pair of bytes, at several widths.
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      for (const std::size_t columns : {1U, 5U, 40U}) {
        const std::string shown = Printable(Bytes({first, second, 'x'}), columns);
        const bool fits = DisplayWidth(shown) <= columns;
        const bool is_clean = shown.find_first_of("\x1b\n\r\x7f") == std::string::npos;
        if (!fits || !is_clean) FAIL("bytes " << first << ' ' << second << ": " << shown);
      }
    }
  }
}

TEST_CASE("PrintableShort cuts a URL or a path in the middle, and other text at its end") {
  CHECK(PrintableShort("https://ci.example/job/4711", 27) == "https://ci.example/job/4711");
  CHECK(PrintableShort("https://ci.example/job/4711", 26) == "https://ci.e…mple/job/4711");
  CHECK(PrintableShort("/jobs/nightly/backup", 9) == "/job…ckup");
  CHECK(PrintableShort("/jobs/nightly/backup", 4) == "/jo…");
  CHECK(PrintableShort("tar -c /srv", 9) == "tar -c /…");
  CHECK(PrintableShort("zk1.example.org:2181", 12) == "zk1.e…g:2181");
  CHECK(PrintableShort("1234567", 5) == "1234…");
  CHECK(PrintableShort("nightly", 6) == "night…");
  // Each character is two columns wide; an escaped ESC is four.
  CHECK(PrintableShort("/\xe5\x8f\xb0\xe5\x8c\x97\xe5\x8f\xb0\xe5\x8c\x97", 7) ==
        "/\xe5\x8f\xb0…\xe5\x8c\x97");
  CHECK(DisplayWidth(PrintableShort("/\x1b/\x1b/\x1b/\x1b", 11)) <= 11);
}

TEST_CASE("PrintableEnd cuts the beginning") {
  CHECK(PrintableEnd("/jobs/backup", 12) == "/jobs/backup");
  CHECK(PrintableEnd("/jobs/backup", 8) == "…/backup");
  CHECK(PrintableEnd("/jobs/backup", 1) == "…");
  CHECK(PrintableEnd("/jobs/backup", 0).empty());
  // Each character is two columns wide.
  CHECK(PrintableEnd("\xe5\x8f\xb0\xe5\x8c\x97", 3) == "…\xe5\x8c\x97");
  CHECK(PrintableEnd("\xe5\x8f\xb0\xe5\x8c\x97", 2) == "…");
  // A mark is dropped with its letter.
  CHECK(PrintableEnd("ae\xcc\x81x", 2) == "…x");
}

}  // namespace zklock::cli
