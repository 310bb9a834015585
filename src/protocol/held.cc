#include "protocol/held.h"

#include <algorithm>
#include <array>

#include "base/text.h"
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

std::string_view TakeField(std::string_view& text) { return TakeUntil(text, ':'); }

template <typename Number>
bool ReadNumber(std::string_view text, Number& number) {
  number = ParseWhole<Number>(text).value_or(0);
  return number > 0;
}

/// Returns whether `name` can be the name of a zklock socket: it consists of letters, digits, dots
/// and dashes, which need no encoding.
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
    if (const auto one = ParseOne(TakeUntil(text, ' '))) held.push_back(*one);
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
