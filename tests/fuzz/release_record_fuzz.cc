// The input is parsed as a LOCK's data. Each of its lines also serves as the names in a record to
// be written.

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "protocol/release_record.h"

namespace zklock::fuzz {
namespace {

using protocol::LockData;
using protocol::Mode;
using protocol::ReleaseRecord;

constexpr std::size_t kLongestData = 1024;

void TryText(const std::string& text) {
  const auto data = protocol::ParseLockData(text);
  if (!data) return;
  Require(protocol::FormatLockData(*data) == text, "a LOCK's data is read exactly");
  Require(text.size() <= kLongestData, "a LOCK's data is short");
  Require(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }),
          "a LOCK's data is one line of ASCII");
  if (!data->last_release) return;
  const ReleaseRecord& record = *data->last_release;
  Require(!record.contender.empty() && record.contender.find('/') == std::string::npos &&
              !record.host.empty() && record.token > 0 && record.duration.count() >= 0 &&
              record.status >= 0 && record.status <= 255,
          "a record is possible");
}

}  // namespace

void Try(std::string_view input) {
  TryText(std::string(input));
  // Adds the marker, which the fuzzer would hardly ever find.
  TryText("zklock/1" + std::string(input));
  TryText("zklock/1 x read " + std::string(input));

  const std::vector<std::string> lines = Split(input, '\n', 2);
  const auto size = static_cast<std::int64_t>(input.size());
  const ReleaseRecord told{.contender = lines.front(),
                           .mode = size % 3 == 0   ? Mode::kRead
                                   : size % 3 == 1 ? Mode::kWrite
                                                   : Mode::kExclusive,
                           .token = size + 1,
                           .duration = std::chrono::milliseconds(size * size * size),
                           .status = static_cast<int>(size % 256),
                           .host = lines.back()};
  const std::string text = protocol::FormatLockData({told});
  const auto read = protocol::ParseLockData(text);
  if (told.contender.substr(0, 255).find('/') != std::string::npos) {
    Require(!read, "a path is not accepted as a contender's name");
    return;
  }
  Require(read && read->last_release, "a written record is read back");
  Require(read->last_release->mode == told.mode && read->last_release->token == told.token &&
              read->last_release->duration == told.duration &&
              read->last_release->status == told.status,
          "a written record is read back unchanged");
}

}  // namespace zklock::fuzz
