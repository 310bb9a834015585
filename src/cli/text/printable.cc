#include "cli/text/printable.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace zklock::cli {
namespace {

constexpr std::string_view kEllipsis = "…";

// No script stacks more marks on one letter; higher stacks would cover the lines around them.
constexpr std::size_t kMostMarks = 4;

struct Range {
  char32_t first;
  char32_t last;
};

// Characters that are Default_Ignorable_Code_Point in Unicode 15 (invisible, or affecting the text
// around them) except the variation selectors that follow emoji; the line and paragraph separators;
// interlinear annotations.
constexpr std::array kHidden{
    Range{0x00AD, 0x00AD},   Range{0x034F, 0x034F},   Range{0x061C, 0x061C},
    Range{0x115F, 0x1160},   Range{0x17B4, 0x17B5},   Range{0x180B, 0x180F},
    Range{0x200B, 0x200F},   Range{0x2028, 0x202E},   Range{0x2060, 0x206F},
    Range{0x3164, 0x3164},   Range{0xFEFF, 0xFEFF},   Range{0xFFA0, 0xFFA0},
    Range{0xFFF0, 0xFFFB},   Range{0x1BCA0, 0x1BCA3}, Range{0x1D173, 0x1D17A},
    Range{0xE0000, 0xE0FFF},
};

/// Returns whether `character` is printable ASCII.
bool IsPlain(char32_t character) { return character >= 0x20 && character < 0x7F; }

bool IsHidden(char32_t character) {
  return std::any_of(kHidden.begin(), kHidden.end(), [character](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

/// Looks up the width of characters in the C library's Unicode tables, whatever the user's locale
/// is; the destructor restores the locale. Most text is ASCII, which needs no tables.
class WidthTable {
 public:
  WidthTable() = default;
  ~WidthTable() {
    if (previous_ != nullptr) uselocale(previous_);
  }
  WidthTable(const WidthTable&) = delete;
  WidthTable& operator=(const WidthTable&) = delete;

  /// Returns the width; none for a character that cannot be shown.
  [[nodiscard]] std::optional<std::size_t> Of(char32_t character) {
    if (IsPlain(character)) return 1;
    if (character < 0xA0 || IsHidden(character)) return std::nullopt;
    // Created only once, since this reads a file.
    static const locale_t kUnicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (kUnicode == nullptr) return 1;  // without tables, columns may be misaligned
    if (previous_ == nullptr) previous_ = uselocale(kUnicode);
    const int width = wcwidth(static_cast<wchar_t>(character));
    if (width < 0) return std::nullopt;
    return static_cast<std::size_t>(width);
  }

 private:
  locale_t previous_ = nullptr;  // set while the tables are in use
};

std::string Escape(char32_t character) {
  if (character == '\n') return "\\n";
  if (character == '\r') return "\\r";
  if (character == '\t') return "\\t";
  const auto value = static_cast<unsigned>(character);
  if (value < 0x80) return fmt::format("\\x{:02x}", value);
  if (value < 0x10000) return fmt::format("\\u{:04x}", value);
  return fmt::format("\\U{:08x}", value);
}

/// One character as shown.
struct Piece {
  std::string text;
  std::size_t width;
};

/// Splits arbitrary bytes into characters.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : rest_(text) {}

  /// Returns none at the end.
  std::optional<Piece> Next() {
    if (rest_.empty()) return std::nullopt;
    const std::optional<Utf8Character> character = DecodeUtf8(rest_);
    if (!character) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      return Escaped(fmt::format("\\x{:02x}", byte));
    }
    const std::string_view bytes = rest_.substr(0, character->size);
    rest_.remove_prefix(character->size);
    const std::optional<std::size_t> width = widths_.Of(character->value);
    if (!width) return Escaped(Escape(character->value));
    if (*width == 0 && ++marks_ > kMostMarks) return Escaped(Escape(character->value));
    if (*width > 0) marks_ = 0;
    return Piece{std::string(bytes), *width};
  }

 private:
  Piece Escaped(std::string text) {
    const std::size_t width = text.size();
    marks_ = 0;
    return {std::move(text), width};
  }

  std::string_view rest_;
  WidthTable widths_;
  // Marks since the last letter. At first this is the maximum: a mark at the beginning of the text
  // has no letter, and would land on whatever precedes the text.
  std::size_t marks_ = kMostMarks;
};

}  // namespace

std::string Printable(std::string_view foreign, std::size_t columns) {
  if (columns == 0) return "";
  if (foreign.size() <= columns && std::all_of(foreign.begin(), foreign.end(), [](char byte) {
        return IsPlain(static_cast<unsigned char>(byte));
      })) {
    return std::string(foreign);
  }
  std::string shown;
  std::size_t width = 0;
  std::size_t before_ellipsis = 0;  // the size of `shown` that leaves room for '…'
  Pieces pieces(foreign);
  while (const std::optional<Piece> piece = pieces.Next()) {
    if (piece->width > columns - width) {
      return shown.substr(0, before_ellipsis).append(kEllipsis);
    }
    shown += piece->text;
    width += piece->width;
    if (width < columns) before_ellipsis = shown.size();
  }
  return shown;
}

std::string PrintableEnd(std::string_view foreign, std::size_t columns) {
  if (columns == 0) return "";
  std::vector<Piece> pieces;
  std::size_t width = 0;
  Pieces source(foreign);
  while (std::optional<Piece> piece = source.Next()) {
    width += piece->width;
    pieces.push_back(*std::move(piece));
  }
  std::string shown;
  auto piece = pieces.begin();
  if (width > columns) {
    shown = kEllipsis;
    // A mark on a dropped letter is also dropped.
    for (; piece != pieces.end() && (width > columns - 1 || piece->width == 0); ++piece) {
      width -= piece->width;
    }
  }
  for (; piece != pieces.end(); ++piece) shown += piece->text;
  return shown;
}

std::string PrintableShort(std::string_view foreign, std::size_t columns) {
  constexpr std::size_t kLeast = 5;
  const bool has_blanks = foreign.find_first_of(" \t") != std::string_view::npos;
  const bool is_path = !has_blanks && foreign.find('/') != std::string_view::npos;
  const std::size_t colon = foreign.find_last_not_of("0123456789");
  const bool has_port = !has_blanks && colon != std::string_view::npos && foreign[colon] == ':';
  if ((!is_path && !has_port) || columns < kLeast || DisplayWidth(foreign) <= columns) {
    return Printable(foreign, columns);
  }
  const std::size_t half = columns / 2;
  const std::string end = PrintableEnd(foreign, half + 1);
  return Printable(foreign, columns - half) + end.substr(kEllipsis.size());
}

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  Pieces pieces(text);
  while (const std::optional<Piece> piece = pieces.Next()) width += piece->width;
  return width;
}

}  // namespace zklock::cli
