// The input is parsed as the data of a znode, which anyone may have written. The first two lines of
// the input also serve as the host, user, command and label in data that zklock writes.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "fuzz/text.h"
#include "lock/data/contender_data.h"

namespace zklock::fuzz {
namespace {

using lock::ContenderData;

using Word = std::optional<std::string> ContenderData::*;
constexpr std::array<Word, 5> kWords{&ContenderData::host, &ContenderData::user,
                                     &ContenderData::boot_id, &ContenderData::command,
                                     &ContenderData::label};
// Any name, command or label up to this length always fits.
constexpr std::size_t kAlwaysKept = 64;

void RequirePossible(const ContenderData& data) {
  constexpr std::int64_t kLargestPid = std::numeric_limits<std::int32_t>::max();
  for (const auto& pid : {data.pid, data.owner ? std::optional(data.owner->pid) : std::nullopt}) {
    Require(!pid || (*pid >= 1 && *pid <= kLargestPid), "a pid is in range");
  }
  Require(data.version.value_or(0) >= 0, "a version is not negative");
  Require(data.any.size() <= lock::kMostAny, "a run has no more LOCKs than it may");
  Require(data.reserve.empty() || protocol::IsReservationId(data.reserve), "an ID is one");
  if (data.reservation) {
    Require(protocol::IsReservationId(data.reservation->id) && data.reservation->token > 0,
            "a reservation is possible");
  }
  for (const Word word : kWords) {
    Require(DecodeUtf8((data.*word).value_or("")).has_value(), "text is UTF-8");
  }
}

/// Writes `data` as zklock does, and reads it back.
ContenderData WriteAndRead(const ContenderData& data) {
  const std::string text = lock::FormatContenderData(data);
  Require(text.size() <= lock::kMostContenderData, "our own data is not too long");
  const auto characters = DecodeUtf8(text);
  Require(characters && characters->find_first_of(U"\n\r\t\x1b") == std::u32string::npos,
          "our own data is one line of UTF-8");
  const auto read = lock::ParseContenderData(text);
  Require(read.has_value(), "written data can be read back");
  RequirePossible(*read);
  return *read;
}

void TryForeign(std::string_view text) {
  const auto data = lock::ParseContenderData(text);
  if (!data) return;
  RequirePossible(*data);
  Require(text.size() <= lock::kMostContenderData, "oversized data is rejected");
  // Trailing spaces are ignored up to the size limit.
  std::string padded(text);
  padded.resize(lock::kMostContenderData, ' ');
  Require(lock::ParseContenderData(padded) == data, "data of the maximum size is read");
  Require(!lock::ParseContenderData(padded + ' '), "data one byte longer is rejected");
  const ContenderData read = WriteAndRead(*data);
  Require(WriteAndRead(read) == read, "rewriting does not change the data");
  ContenderData expected = *data;
  for (const Word word : kWords) {
    // Empty fields are not written.
    if (((*data).*word).value_or("").empty()) (expected.*word).reset();
    Require((read.*word).has_value() == (expected.*word).has_value(),
            "no text is lost or invented");
    if (!(read.*word)) continue;
    Require((expected.*word)->starts_with(*(read.*word)), "text is only shortened");
    if ((expected.*word)->size() <= kAlwaysKept) {
      Require(read.*word == expected.*word, "short text is kept");
    }
    (expected.*word) = (read.*word);
  }
  if (expected.reservation && read.reservation) {
    std::string& reason = expected.reservation->reason;
    Require(reason.starts_with(read.reservation->reason), "a reason is only shortened");
    reason = read.reservation->reason;
  }
  if (read.any.empty() && !expected.any.empty()) {
    // There was no room for either list.
    expected.any.clear();
    expected.under.clear();
  }
  Require(read == expected, "all other fields are kept");
}

/// Repeats each part as often as the last byte says: few inputs are long enough to be cut.
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

void TryOwn(std::string_view text) {
  const auto parts = LongParts(text);
  ContenderData data{.mode = protocol::Mode::kRead,
                     .host = parts.front(),
                     .user = parts.back(),
                     .pid = 1,
                     .boot_id = parts.back(),
                     .start_time = 0,
                     .command = parts.back(),
                     .label = parts.front()};
  const ContenderData read = WriteAndRead(data);
  Require(read.mode == data.mode && read.pid == data.pid && read.start_time == data.start_time,
          "no text displaces the numbers");
  for (const Word word : kWords) {
    Require(read.*word != "", "empty text is left out");
    const std::string& whole = *(data.*word);
    if (!DecodeUtf8(whole)) continue;
    Require((read.*word).has_value() == !whole.empty(), "no text is lost or invented");
    Require(whole.starts_with((read.*word).value_or("")), "text is cut between characters");
  }
}

}  // namespace

void Try(std::string_view input) {
  TryForeign(input);
  TryOwn(input);
}

}  // namespace zklock::fuzz
