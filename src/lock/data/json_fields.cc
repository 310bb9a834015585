#include "lock/data/json_fields.h"

namespace zklock::lock {

using nlohmann::json;

std::string DumpJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view CutText(std::string_view text, std::size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  return text.substr(0, size);
}

std::optional<std::int64_t> NumberField(const json& object, const char* name, std::int64_t least,
                                        std::int64_t most) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() &&
      found->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    return std::nullopt;
  }
  const auto value = found->get<std::int64_t>();
  if (value < least || value > most) return std::nullopt;
  return value;
}

std::optional<std::string> TextField(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace zklock::lock
