#include "cli/table.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cli/printable.h"

namespace zklock::cli {
namespace {

constexpr std::size_t kGap = 2;

std::string Line(const std::vector<Column>& columns, const std::vector<std::size_t>& widths,
                 const std::vector<std::string>& cells) {
  std::string line;
  std::size_t owed = 0;  // spaces, written only if something follows
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string cell = Printable(cells[i], widths[i]);
    const std::size_t padding = widths[i] - DisplayWidth(cell);
    const bool is_right = columns[i].align == Column::Align::kRight;
    if (is_right) owed += padding;
    if (!cell.empty()) line.append(std::exchange(owed, 0), ' ').append(cell);
    if (!is_right) owed += padding;
    owed += kGap;
  }
  return line + '\n';
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(const std::vector<std::string>& cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a row of the wrong length");
  std::vector<std::string> row;
  row.reserve(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t most = columns_[i].most == 0 ? std::string_view::npos : columns_[i].most;
    row.push_back(Printable(cells[i], most));
  }
  rows_.push_back(std::move(row));
}

std::string Table::Format(std::size_t width) const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    std::size_t widest = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i]));
    widths.push_back(widest);
  }
  const std::size_t total = std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
                            kGap * (widths.empty() ? 0 : widths.size() - 1);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].flexible || width == 0 || total <= width) continue;
    const std::size_t least = DisplayWidth(columns_[i].title);
    const std::size_t excess = total - width;
    widths[i] = widths[i] > least + excess ? widths[i] - excess : least;
  }
  std::string text = Line(columns_, widths, titles);
  for (const auto& row : rows_) text += Line(columns_, widths, row);
  return text;
}

}  // namespace zklock::cli
