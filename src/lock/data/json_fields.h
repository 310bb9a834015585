#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::lock {

// Fields of JSON objects in znodes, which anyone may have written.

/// Formats `value` on one line, with invalid UTF-8 replaced.
[[nodiscard]] std::string DumpJson(const nlohmann::json& value);

/// Returns at most `size` bytes of `text`, without splitting a character.
[[nodiscard]] std::string_view CutText(std::string_view text, std::size_t size);

/// Returns none unless the field is an integer from `least` to `most`.
[[nodiscard]] std::optional<std::int64_t> NumberField(const nlohmann::json& object,
                                                      const char* name, std::int64_t least,
                                                      std::int64_t most);

/// Returns none unless the field is a string.
[[nodiscard]] std::optional<std::string> TextField(const nlohmann::json& object, const char* name);

}  // namespace zklock::lock
