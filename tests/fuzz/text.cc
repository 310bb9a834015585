#include "fuzz/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz.h"

namespace zklock::fuzz {
namespace {

/// A row of the ABNF in RFC 3629, section 4: the ranges of the lead byte and the second byte. Any
/// further bytes are 80..BF.
struct Form {
  std::uint8_t first_lead, last_lead;
  std::uint8_t first_second, last_second;
  std::size_t size;
  std::uint8_t lead_bits;
};
constexpr std::array kForms{
    Form{0x00, 0x7F, 0x00, 0x00, 1, 0x7F}, Form{0xC2, 0xDF, 0x80, 0xBF, 2, 0x1F},
    Form{0xE0, 0xE0, 0xA0, 0xBF, 3, 0x0F}, Form{0xE1, 0xEC, 0x80, 0xBF, 3, 0x0F},
    Form{0xED, 0xED, 0x80, 0x9F, 3, 0x0F}, Form{0xEE, 0xEF, 0x80, 0xBF, 3, 0x0F},
    Form{0xF0, 0xF0, 0x90, 0xBF, 4, 0x07}, Form{0xF1, 0xF3, 0x80, 0xBF, 4, 0x07},
    Form{0xF4, 0xF4, 0x80, 0x8F, 4, 0x07},
};

/// Removes the first character from `text` and returns it.
std::optional<char32_t> TakeCharacter(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto* const form = std::find_if(kForms.begin(), kForms.end(), [&](const Form& candidate) {
    return candidate.first_lead <= byte(0) && byte(0) <= candidate.last_lead;
  });
  if (form == kForms.end() || text.size() < form->size) return std::nullopt;
  char32_t character = byte(0) & form->lead_bits;
  for (std::size_t i = 1; i < form->size; ++i) {
    const std::uint8_t first = i == 1 ? form->first_second : 0x80;
    const std::uint8_t last = i == 1 ? form->last_second : 0xBF;
    if (byte(i) < first || byte(i) > last) return std::nullopt;
    character = character * 64 + (byte(i) - 0x80U);
  }
  text.remove_prefix(form->size);
  return character;
}

bool TurnsOrHides(char32_t c) {
  const bool marks = c == 0x061C || c == 0x200E || c == 0x200F;
  const bool turns = (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  const bool ends_line = c == 0x2028 || c == 0x2029;
  const bool zero_width = (c >= 0x200B && c <= 0x200D) || c == 0x2060 || c == 0xFEFF;
  const bool tags = c >= 0xE0000 && c <= 0xE007F;
  return marks || turns || ends_line || zero_width || tags;
}

}  // namespace

std::optional<std::u32string> DecodeUtf8(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const std::optional<char32_t> character = TakeCharacter(text);
    if (!character) return std::nullopt;
    characters += *character;
  }
  return characters;
}

bool IsControl(char32_t character) {
  return character < 0x20 || (character >= 0x7F && character < 0xA0);
}

void RequireHarmless(std::string_view text, bool lines) {
  const std::optional<std::u32string> characters = DecodeUtf8(text);
  Require(characters.has_value(), "output is UTF-8");
  for (const char32_t character : *characters) {
    if (lines && character == '\n') continue;
    Require(!IsControl(character), "output has no control characters");
    Require(!TurnsOrHides(character), "output does not reorder or hide text");
  }
}

}  // namespace zklock::fuzz
