#include "base/utf8.h"

namespace zklock {

std::optional<Utf8Character> DecodeUtf8(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return Utf8Character{lead, 1};
  std::size_t size = 0;
  char32_t value = 0;
  char32_t least = 0;
  if ((lead & 0xE0U) == 0xC0U) {
    size = 2, value = lead & 0x1FU, least = 0x80;
  } else if ((lead & 0xF0U) == 0xE0U) {
    size = 3, value = lead & 0x0FU, least = 0x800;
  } else if ((lead & 0xF8U) == 0xF0U) {
    size = 4, value = lead & 0x07U, least = 0x10000;
  } else {
    return std::nullopt;
  }
  if (text.size() < size) return std::nullopt;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return std::nullopt;
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < least || value > 0x10FFFF || is_surrogate) return std::nullopt;
  return Utf8Character{value, size};
}

}  // namespace zklock
