#include "cli/text/screen.h"

namespace zklock::cli {
namespace {

constexpr std::string_view kBeginUpdate = "\x1b[?2026h";
constexpr std::string_view kEndUpdate = "\x1b[?2026l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEraseLine = "\x1b[K";
constexpr std::string_view kEraseBelow = "\x1b[J";

}  // namespace

std::string Frame(std::string_view text, std::size_t rows) {
  std::string frame(kBeginUpdate);
  frame += kHome;
  for (std::size_t row = 0; !text.empty() && (rows == 0 || row < rows); ++row) {
    const std::size_t end = text.find('\n');
    // No newline after the last line: that would scroll.
    if (row > 0) frame += "\r\n";
    frame.append(text.substr(0, end)).append(kEraseLine);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return frame.append(kEraseBelow).append(kEndUpdate);
}

}  // namespace zklock::cli
