// A byte that says how many columns there are, and what is to be shown in them.

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <string>

#include "cli/printable.h"
#include "fuzz/fuzz.h"
#include "fuzz/text.h"

namespace zklock::fuzz {
namespace {

constexpr std::string_view kEllipsis = "…";

/// As a terminal would count, by the C library's tables.
std::size_t Columns(std::string_view text) {
  static const locale_t kUnicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  Require(kUnicode != nullptr, "there is a locale C.UTF-8");
  const locale_t previous = uselocale(kUnicode);
  std::size_t columns = 0;
  std::size_t marks = 4;  // nothing stands before the first
  for (const char32_t character : DecodeUtf8(text).value_or(U"")) {
    const int width = wcwidth(static_cast<wchar_t>(character));
    Require(width >= 0, "what is shown is assigned");
    columns += static_cast<std::size_t>(width);
    marks = width > 0 ? 0 : marks + 1;
    Require(marks <= 4, "no more than four marks are piled up, each on a letter");
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
  Require(cli::Printable(shown) == shown, "what can be shown is shown as it is");
  Require(!IsPlain(foreign) || shown == foreign, "plain text is shown as it is");
  Require(shown.empty() == foreign.empty(), "nothing is swallowed");
  const std::size_t width = Columns(shown);
  Require(cli::DisplayWidth(shown) == width, "the width is the terminal's");
  Require(cli::DisplayWidth(foreign) == width, "the width is that of what is shown");

  const std::string cut = cli::Printable(foreign, columns);
  RequireHarmless(cut, /*lines=*/false);
  Require(Columns(cut) <= columns, "what is cut fits");
  Require(cli::Printable(cut, columns) == cut, "what was cut is shown as it is");
  if (width <= columns) {
    Require(cut == shown || columns == 0, "what fits is not cut");
  } else if (columns == 0) {
    Require(cut.empty(), "no column, no text");
  } else {
    Require(cut.ends_with(kEllipsis), "what is cut says so");
    Require(shown.starts_with(cut.substr(0, cut.size() - kEllipsis.size())),
            "the beginning is kept");
    // An escape of ten columns is the widest that may not be taken apart.
    Require(Columns(cut) + 10 > columns, "no more is cut than has to be");
  }
}

}  // namespace zklock::fuzz
