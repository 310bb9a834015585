#include "protocol/held.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "protocol/lock_path.h"

namespace zklock::protocol {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

std::string Encode(std::string_view text) {
  std::string encoded;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte > 0x20 && letter != '%') {
      encoded += letter;
    } else {
      encoded += {'%', kHexDigits[byte >> 4U], kHexDigits[byte & 0xfU]};
    }
  }
  return encoded;
}

std::optional<std::string> Decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const std::size_t high = kHexDigits.find(text[i + 1]);
    const std::size_t low = kHexDigits.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

/// Removes and returns the part up to the next ':'.
std::string_view TakeField(std::string_view& text) {
  const std::size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  text.remove_prefix(colon == std::string_view::npos ? text.size() : colon + 1);
  return field;
}

template <typename Number>
bool ReadNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

/// The name of a zklock socket needs no encoding: letters, digits, dots and dashes.
bool IsSocketName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '.';
  });
}

std::optional<HeldLock> ParseOne(std::string_view text) {
  HeldLock held;
  const auto mode = ParseMode(TakeField(text));
  const bool numbers =
      ReadNumber(TakeField(text), held.pid) && ReadNumber(TakeField(text), held.pid_namespace) &&
      ReadNumber(TakeField(text), held.start_time) && ReadNumber(TakeField(text), held.token);
  held.socket = TakeField(text);
  const auto node = Decode(text);
  if (!mode || !numbers || !IsSocketName(held.socket)) return std::nullopt;
  if (!node || node->empty() || node->front() != '/') return std::nullopt;
  held.mode = *mode;
  held.node = *node;
  return held;
}

}  // namespace

std::string FormatHeld(const std::vector<HeldLock>& held) {
  std::string text;
  for (const HeldLock& one : held) {
    if (!text.empty()) text += ' ';
    text += std::string(ModeName(one.mode)) + ':' + std::to_string(one.pid) + ':' +
            std::to_string(one.pid_namespace) + ':' + std::to_string(one.start_time) + ':' +
            std::to_string(one.token) + ':' + one.socket + ':' + Encode(one.node);
  }
  return text;
}

std::vector<HeldLock> ParseHeld(std::string_view text) {
  std::vector<HeldLock> held;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    if (const auto one = ParseOne(text.substr(0, blank))) held.push_back(*one);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return held;
}

std::optional<HeldLock> FindHeld(const std::vector<HeldLock>& held, std::string_view path) {
  for (auto one = held.rbegin(); one != held.rend(); ++one) {
    if (ParentOf(one->node) == path) return *one;
  }
  return std::nullopt;
}

bool Covers(Mode outer, Mode inner) { return outer != Mode::kRead || inner == Mode::kRead; }

}  // namespace zklock::protocol
