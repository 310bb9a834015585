#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/paint.h"

namespace zklock::cli {

/// One column of a Table.
struct Column {
  enum class Align { kLeft, kRight };
  std::string title;
  Align align = Align::kLeft;
  std::size_t most = 0;    ///< a cell is cut to this many terminal columns; 0: as wide as it is
  std::size_t expect = 0;  ///< how wide the cells of later pages may be, where that is known
  /// May be cut to this many columns where the table is too wide; 0: is never cut.
  std::size_t least = 0;
  /// Left out where cutting is not enough, the highest first; 0: never.
  int dispensable = 0;
};

/// What stands in a column of a row. May hold anybody's bytes: Printable shows them.
struct Cell {
  Cell(std::string what) : text(std::move(what)) {}  // NOLINT: a cell is its text
  Cell(const char* what) : text(what) {}             // NOLINT
  Cell(std::string what, Tone how) : text(std::move(what)), tone(how) {}
  std::string text;
  Tone tone = Tone::kPlain;
};

/// Text in columns, a page at a time: as wide as the first page's content, two spaces between, no
/// lines, nothing at the lines' ends. What does not fit the terminal's width is cut or left out, so
/// that no line is wider, unless what may not be cut is.
class Table {
 public:
  /// `width`: of the terminal; 0: no limit.
  Table(std::vector<Column> columns, std::size_t width, bool colours = false);

  /// As many cells as there are columns.
  void AddRow(std::vector<Cell> cells);
  /// How many rows wait for TakePage().
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  /// The rows added since the last page, each line with its end; before the first of them the
  /// titles. What is wider than all of the first page pushes the rest of its line aside.
  [[nodiscard]] std::string TakePage();

 private:
  void Fit();
  [[nodiscard]] std::string Line(const std::vector<Cell>& cells) const;

  std::vector<Column> columns_;
  const std::size_t width_;
  const bool colours_;
  std::vector<std::vector<Cell>> rows_;  // printable
  std::vector<std::size_t> widths_;      // from the first page on
  std::vector<bool> shown_;
};

}  // namespace zklock::cli
