#include "cli/option_values.h"

#include <cctype>
#include <charconv>
#include <csignal>
#include <cstring>

namespace zklock::cli {

std::optional<int> ParseNumber(std::string_view text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < least || number > most) return std::nullopt;
  return number;
}

std::optional<int> ParseSignal(std::string text) {
  if (const auto number = ParseNumber(text, 1, SIGRTMAX)) return number;
  for (char& letter : text) letter = static_cast<char>(std::toupper(letter));
  if (text.rfind("SIG", 0) == 0) text.erase(0, 3);
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* name = sigabbrev_np(number);
    if (name != nullptr && text == name) return number;
  }
  return std::nullopt;
}

}  // namespace zklock::cli
