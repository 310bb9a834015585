// A znode's data, as anybody may have written it; and the same bytes, two lines of them, as our own
// host, user, command and label.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/contender_data.h"
#include "fuzz/fuzz.h"
#include "fuzz/text.h"

namespace zklock::fuzz {
namespace {

using cli::ContenderData;

using Word = std::optional<std::string> ContenderData::*;
constexpr std::array<Word, 5> kWords{&ContenderData::host, &ContenderData::user,
                                     &ContenderData::boot_id, &ContenderData::command,
                                     &ContenderData::label};
// Everyone's name fits, and so do a command and a label that leave room for the rest.
constexpr std::size_t kAlwaysKept = 64;

void RequirePossible(const ContenderData& data) {
  constexpr std::int64_t kLargestPid = std::numeric_limits<std::int32_t>::max();
  for (const auto& pid : {data.pid, data.owner ? std::optional(data.owner->pid) : std::nullopt}) {
    Require(!pid || (*pid >= 1 && *pid <= kLargestPid), "a pid is one");
  }
  Require(data.version.value_or(0) >= 0, "a version is not negative");
  for (const Word word : kWords) {
    Require(DecodeUtf8((data.*word).value_or("")).has_value(), "text is UTF-8");
  }
}

/// Writes it as ours, and gives back what is then read.
ContenderData WrittenAndRead(const ContenderData& data) {
  const std::string text = cli::FormatContenderData(data);
  Require(text.size() <= cli::kMostContenderData, "our own data is not too long");
  const auto characters = DecodeUtf8(text);
  Require(characters && characters->find_first_of(U"\n\r\t\x1b") == std::u32string::npos,
          "our own data is one line of UTF-8");
  const auto read = cli::ParseContenderData(text);
  Require(read.has_value(), "what was written is read back");
  RequirePossible(*read);
  return *read;
}

void TryForeign(std::string_view text) {
  const auto data = cli::ParseContenderData(text);
  if (!data) return;
  RequirePossible(*data);
  Require(text.size() <= cli::kMostContenderData, "too much data is no data");
  // Blanks behind an object belong to nothing, until there are too many.
  std::string padded(text);
  padded.resize(cli::kMostContenderData, ' ');
  Require(cli::ParseContenderData(padded) == data, "as much as is read is read");
  Require(!cli::ParseContenderData(padded + ' '), "one byte more is no data");
  const ContenderData read = WrittenAndRead(*data);
  Require(WrittenAndRead(read) == read, "what was written once stays as it is");
  ContenderData expected = *data;
  for (const Word word : kWords) {
    // Empty is left out.
    if (((*data).*word).value_or("").empty()) (expected.*word).reset();
    Require((read.*word).has_value() == (expected.*word).has_value(), "no text is lost or made");
    if (!(read.*word)) continue;
    Require((expected.*word)->starts_with(*(read.*word)), "text is cut at most");
    if ((expected.*word)->size() <= kAlwaysKept) {
      Require(read.*word == expected.*word, "short text is kept");
    }
    (expected.*word) = (read.*word);
  }
  Require(read == expected, "the rest is kept");
}

/// Long enough to be cut, which few inputs are: the last byte says how often they are repeated.
std::vector<std::string> LongParts(std::string_view text) {
  auto parts = Split(text, '\n', 2);
  if (text.empty()) return parts;
  for (std::string& part : parts) {
    const std::string once = part;
    const int more = static_cast<unsigned char>(text.back()) % 64;
    for (int i = 0; i < more; ++i) part += once;
  }
  return parts;
}

void TryOurs(std::string_view text) {
  const auto parts = LongParts(text);
  ContenderData data{.mode = protocol::Mode::kRead,
                     .host = parts.front(),
                     .user = parts.back(),
                     .pid = 1,
                     .boot_id = parts.back(),
                     .start_time = 0,
                     .command = parts.back(),
                     .label = parts.front()};
  const ContenderData read = WrittenAndRead(data);
  Require(read.mode == data.mode && read.pid == data.pid && read.start_time == data.start_time,
          "no text hides the numbers");
  for (const Word word : kWords) {
    Require(read.*word != "", "what is empty is left out");
    const std::string& whole = *(data.*word);
    if (!DecodeUtf8(whole)) continue;
    Require((read.*word).has_value() == !whole.empty(), "no text is lost or made");
    Require(whole.starts_with((read.*word).value_or("")), "text is cut between characters");
  }
}

}  // namespace

void Try(std::string_view input) {
  TryForeign(input);
  TryOurs(input);
}

}  // namespace zklock::fuzz
