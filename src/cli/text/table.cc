#include "cli/text/table.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cli/text/printable.h"

namespace zklock::cli {
namespace {

constexpr std::size_t kGap = 2;
// Most cells are still readable when cut to this width.
constexpr std::size_t kReadable = 30;
constexpr std::size_t kNoLimit = std::string_view::npos;
// What a cell without a value shows.
constexpr std::string_view kNothing = "-";

}  // namespace

Table::Table(std::vector<Column> columns, std::size_t width, bool colours)
    : columns_(std::move(columns)), width_(width == 0 ? kNoLimit : width), colours_(colours) {}

void Table::AddRow(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a row of the wrong length");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t most = columns_[i].most == 0 ? kNoLimit : columns_[i].most;
    cells[i].text = PrintableShort(cells[i].text, most);
  }
  rows_.push_back(std::move(cells));
}

std::string Table::TakePage() {
  std::string text;
  if (widths_.empty()) {
    Fit();
    std::vector<Cell> titles;
    for (const Column& column : columns_) titles.emplace_back(column.title, Tone::kTitle);
    text = Line(titles);
  }
  for (const auto& row : rows_) {
    text += Line(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (shown_[i] || !columns_[i].own_line) continue;
      text += std::string(2 * kGap, ' ') + PrintableShort(row[i].text, kNoLimit) + '\n';
    }
  }
  rows_.clear();
  return text;
}

/// Chooses the columns to show, and their widths.
void Table::Fit() {
  const std::size_t count = columns_.size();
  shown_.assign(count, true);
  std::vector<std::size_t> least(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Column& column = columns_[i];
    std::size_t widest = std::max(DisplayWidth(column.title), column.expect);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i].text));
    widths_.push_back(widest);
    std::size_t wanted = column.least;
    for (const auto& row : rows_) wanted = std::max(wanted, row[i].least);
    least[i] = column.least == 0 ? widest : std::min(widest, wanted);
  }
  const auto total = [&](const std::vector<std::size_t>& widths) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (shown_[i]) sum += widths[i] + (sum == 0 ? 0 : kGap);
    }
    return sum;
  };
  const auto has_one_value = [&](std::size_t column) {
    return rows_.size() > 1 && std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) {
             return row[column].text == rows_.front()[column].text;
           });
  };
  const auto is_empty = [&](std::size_t column) {
    return !rows_.empty() && std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) {
      return row[column].text.empty() || row[column].text == kNothing;
    });
  };
  /// Drops columns for which `may_go` is true, until the others fit.
  const auto drop = [&](const std::vector<std::size_t>& widths, const auto& may_go) {
    while (total(widths) > width_) {
      std::size_t out = count;
      for (std::size_t i = 0; i < count; ++i) {
        const bool more = out == count || columns_[i].dispensable > columns_[out].dispensable;
        if (shown_[i] && columns_[i].dispensable > 0 && more && may_go(i)) out = i;
      }
      if (out == count) break;
      shown_[out] = false;
    }
  };
  std::vector<std::size_t> readable(count);
  for (std::size_t i = 0; i < count; ++i) {
    readable[i] = std::min(widths_[i], std::max(least[i], kReadable));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (columns_[i].own_line && total(readable) > width_) shown_[i] = false;
  }
  drop(widths_, is_empty);
  drop(readable, has_one_value);
  drop(least, [](std::size_t) { return true; });
  // The widest column shrinks first, so that one long cell does not shrink all the others.
  while (total(widths_) > width_) {
    std::size_t widest = count;
    for (std::size_t i = 0; i < count; ++i) {
      const bool can_be_cut = shown_[i] && widths_[i] > least[i];
      if (can_be_cut && (widest == count || widths_[i] >= widths_[widest])) widest = i;
    }
    if (widest == count) break;
    --widths_[widest];
  }
}

std::string Table::Line(const std::vector<Cell>& cells) const {
  std::string line;
  std::size_t at = 0;    // the terminal's column
  std::size_t owed = 0;  // spaces to write if more text follows
  std::size_t end = 0;   // where this column should end
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!shown_[i]) continue;
    end += widths_[i];
    const bool can_be_cut = columns_[i].least != 0;
    const std::size_t left = width_ > at + owed ? width_ - at - owed : 0;
    // Without a limit a cell may be wider than its column.
    const std::size_t own = can_be_cut && width_ != kNoLimit ? widths_[i] : kNoLimit;
    const std::string text =
        PrintableShort(cells[i].text, can_be_cut ? std::min(left, own) : kNoLimit);
    const std::size_t size = DisplayWidth(text);
    const std::size_t padding = end > at + owed + size ? end - at - owed - size : 0;
    const bool is_right = columns_[i].align == Column::Align::kRight;
    if (is_right) owed += padding;
    if (!text.empty()) {
      at += owed + size;
      line.append(std::exchange(owed, 0), ' ').append(Paint(cells[i].tone, text, colours_));
    }
    if (!is_right) owed += padding;
    owed += kGap;
    end += kGap;
  }
  return line + '\n';
}

}  // namespace zklock::cli
