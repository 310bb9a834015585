#include "fuzz/fuzz.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace zklock::fuzz {

void Require(bool holds, std::string_view sentence) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
  std::abort();
}

std::vector<std::string> Split(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string> parts;
  while (parts.size() + 1 < most && text.find(separator) != std::string_view::npos) {
    parts.push_back(TakePart(text, separator));
  }
  parts.emplace_back(text);
  return parts;
}

std::string TakePart(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  std::string part(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

}  // namespace zklock::fuzz

// libFuzzer's entry point. `data` is a heap block of exactly `size` bytes, so an overread is
// detected.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // As elsewhere in the code, even an empty view has a pointer.
  zklock::fuzz::Try(size == 0 ? std::string_view("")
                              : std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
