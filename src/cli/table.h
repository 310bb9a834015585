#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zklock::cli {

/// One column of a Table.
struct Column {
  enum class Align { kLeft, kRight };
  std::string title;
  Align align = Align::kLeft;
  /// A cell is cut to this many terminal columns; 0: as wide as it is.
  std::size_t most = 0;
  /// Gives way when the table is wider than asked for, down to its title's width. One column at
  /// most.
  bool flexible = false;
};

/// Text in columns: as wide as their content, two spaces between, no lines, nothing at the lines'
/// ends. Cells may hold anybody's bytes: they are shown by Printable.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// As many cells as there are columns.
  void AddRow(const std::vector<std::string>& cells);
  /// The titles and the rows, each line with its end. `width`: of the terminal; 0: no limit.
  [[nodiscard]] std::string Format(std::size_t width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // printable
};

}  // namespace zklock::cli
