#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zklock::cli {

/// The role of a piece of text, on terminals with colours.
enum class Tone {
  kPlain,
  kTitle,    ///< of a line or a column
  kHeld,     ///< a holder
  kWaiting,  ///< a waiter
  kFaint,    ///< less important
  kBad,      ///< the reader may have to act
};

/// Returns `text`, which is printable, in the colour of `tone`; unchanged without `colours`.
[[nodiscard]] inline std::string Paint(Tone tone, std::string_view text, bool colours) {
  const auto code = [tone]() -> std::string_view {
    switch (tone) {
      case Tone::kPlain:
        return "";
      case Tone::kTitle:
        return "1";
      case Tone::kHeld:
        return "32";
      case Tone::kWaiting:
        return "33";
      case Tone::kFaint:
        return "2";
      case Tone::kBad:
        return "31";
    }
    return "";
  }();
  if (!colours || code.empty() || text.empty()) return std::string(text);
  return std::string("\x1b[").append(code).append("m").append(text).append("\x1b[0m");
}

/// Longer names in untrusted data are cut: they must not push the rest out of sight.
inline constexpr std::size_t kWidestName = 40;
/// Narrower terminals have no room for years.
inline constexpr std::size_t kWideEnoughForYears = 110;

/// One column of a Table.
struct Column {
  enum class Align { kLeft, kRight };
  std::string title;
  Align align = Align::kLeft;
  std::size_t most = 0;    ///< a cell is cut to this many terminal columns; 0: it is not cut
  std::size_t expect = 0;  ///< the width that cells of later pages may need, if known
  /// If the table is too wide, cells may be cut to this many columns; 0: never.
  std::size_t least = 0;
  /// If cutting is not enough, columns are dropped, starting with the highest number; 0: never.
  /// Columns that are empty or `-` in every row are dropped before any cell is cut; columns with
  /// the same value in every row are dropped before cells become hard to read.
  int dispensable = 0;
  /// If the table is too wide, each cell of this column gets its own line, below the rest of its
  /// row.
  bool own_line = false;
};

/// The text of one column in a row. It may contain arbitrary bytes; the table makes it Printable.
struct Cell {
  Cell(std::string what) : text(std::move(what)) {}  // NOLINT: implicit
  Cell(const char* what) : text(what) {}             // NOLINT
  Cell(std::string what, Tone how) : text(std::move(what)), tone(how) {}
  std::string text;
  Tone tone = Tone::kPlain;
  /// Other columns are dropped before this cell is cut to fewer columns, if its column has a
  /// Column::least.
  std::size_t least = 0;
};

/// Formats text in columns, one page at a time. The first page's content determines the widths. Two
/// spaces separate the columns, and lines have no trailing spaces. Cells are cut and columns
/// dropped to fit the terminal; only columns that must not be cut can make a line wider.
class Table {
 public:
  /// `width`: the terminal's; 0: no limit.
  Table(std::vector<Column> columns, std::size_t width, bool colours = false);

  /// Takes one cell for each column.
  void AddRow(std::vector<Cell> cells);
  /// Returns the number of rows added since the last TakePage().
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  /// Drops all but the first `count` of these rows.
  void KeepRows(std::size_t count) { rows_.resize(std::min(count, rows_.size())); }
  /// Formats the rows added since the last page, with newlines; the first page begins with the
  /// titles. A cell wider than its column moves the rest of its line to the right.
  [[nodiscard]] std::string TakePage();

 private:
  void Fit();
  [[nodiscard]] std::string Line(const std::vector<Cell>& cells) const;

  std::vector<Column> columns_;
  const std::size_t width_;
  const bool colours_;
  std::vector<std::vector<Cell>> rows_;  // printable
  std::vector<std::size_t> widths_;      // set by the first page
  std::vector<bool> shown_;
};

}  // namespace zklock::cli
