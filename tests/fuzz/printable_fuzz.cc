// The input is a byte that gives the number of columns, followed by the text to be shown.

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <string>

#include "cli/text/printable.h"
#include "fuzz/fuzz.h"
#include "fuzz/text.h"

namespace zklock::fuzz {
namespace {

constexpr std::string_view kEllipsis = "…";

/// The width on a terminal, from the C library's tables.
std::size_t Columns(std::string_view text) {
  static const locale_t kUnicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  Require(kUnicode != nullptr, "the locale C.UTF-8 exists");
  const locale_t previous = uselocale(kUnicode);
  std::size_t columns = 0;
  std::size_t marks = 4;  // no character precedes the first
  for (const char32_t character : DecodeUtf8(text).value_or(U"")) {
    const int width = wcwidth(static_cast<wchar_t>(character));
    Require(width >= 0, "characters shown are assigned");
    columns += static_cast<std::size_t>(width);
    marks = width > 0 ? 0 : marks + 1;
    Require(marks <= 4, "a letter carries at most four combining marks");
  }
  uselocale(previous);
  return columns;
}

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

void Try(std::string_view input) {
  if (input.empty()) return;
  const std::size_t columns = static_cast<unsigned char>(input.front()) % 100;
  const std::string_view foreign = input.substr(1);

  const std::string shown = cli::Printable(foreign);
  RequireHarmless(shown, /*lines=*/false);
  Require(cli::Printable(shown) == shown, "printable text is not changed");
  Require(!IsPlain(foreign) || shown == foreign, "plain ASCII is not changed");
  Require(shown.empty() == foreign.empty(), "nothing is dropped");
  const std::size_t width = Columns(shown);
  Require(cli::DisplayWidth(shown) == width, "the width is the terminal's");
  Require(cli::DisplayWidth(foreign) == width, "the width is that of the printable form");

  const std::string cut = cli::Printable(foreign, columns);
  RequireHarmless(cut, /*lines=*/false);
  Require(Columns(cut) <= columns, "cut text fits");
  Require(cli::Printable(cut, columns) == cut, "cut text is not changed again");
  if (width <= columns) {
    Require(cut == shown || columns == 0, "text that fits is not cut");
  } else if (columns == 0) {
    Require(cut.empty(), "no column, no text");
  } else {
    Require(cut.ends_with(kEllipsis), "cut text ends with an ellipsis");
    Require(shown.starts_with(cut.substr(0, cut.size() - kEllipsis.size())),
            "the beginning is kept");
    // The widest indivisible escape takes ten columns.
    Require(Columns(cut) + 10 > columns, "no more is cut than necessary");
  }
}

}  // namespace zklock::fuzz
