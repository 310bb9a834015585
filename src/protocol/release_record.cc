#include "protocol/release_record.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace zklock::protocol {
namespace {

constexpr std::string_view kMarker = "zklock/1";
// For the name of a contender or a host; longer names do not occur.
constexpr std::size_t kLongestWord = 255;
constexpr std::size_t kLongestText = 1024;
// More milliseconds than any run has taken, but far from overflow.
constexpr std::int64_t kLongestRun = 1'000'000'000'000'000;

std::string Seconds(std::chrono::milliseconds duration) {
  const std::int64_t count = std::clamp<std::int64_t>(duration.count(), 0, kLongestRun);
  const std::string fraction = std::to_string(1000 + count % 1000).substr(1);
  return std::to_string(count / 1000) + '.' + fraction;
}

/// Returns false if `text` cannot be parsed. Lenient: the caller compares the result with what
/// FormatLockData() writes.
bool ReadSeconds(std::string_view text, std::chrono::milliseconds& duration) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return false;
  const auto whole = ParseWhole<std::int64_t>(text.substr(0, point)).value_or(-1);
  const auto fraction = ParseWhole<std::int64_t>(text.substr(point + 1)).value_or(-1);
  if (whole < 0 || whole > kLongestRun / 1000 || fraction < 0 || fraction > 999) return false;
  duration = std::chrono::milliseconds(whole * 1000 + fraction);
  return true;
}

/// Parses the words after the marker.
std::optional<ReleaseRecord> ParseRecord(std::string_view text) {
  std::array<std::string_view, 6> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t blank = text.find(' ');
    const bool is_last = i + 1 == words.size();
    if (is_last != (blank == std::string_view::npos)) return std::nullopt;
    words.at(i) = text.substr(0, blank);
    text.remove_prefix(is_last ? text.size() : blank + 1);
  }
  const auto& [contender, mode_word, token, duration, status, host] = words;
  const auto mode = ParseMode(mode_word);
  ReleaseRecord record;
  record.is_reservation = duration == "-" && status == "-";
  record.token = ParseWhole<std::int64_t>(token).value_or(0);
  if (!record.is_reservation) {
    if (!ReadSeconds(duration, record.duration)) return std::nullopt;
    record.status = ParseWhole<int>(status).value_or(-1);
  }
  if (!mode || record.token <= 0 || record.status < 0 || record.status > 255 ||
      contender.find('/') != std::string_view::npos) {
    return std::nullopt;
  }
  record.mode = *mode;
  record.contender = contender;
  record.host = host;
  return record;
}

}  // namespace

std::string RecordWord(std::string_view text) {
  std::string word(text.substr(0, kLongestWord));
  for (char& letter : word) {
    if (letter < '!' || letter > '~') letter = '-';
  }
  return word.empty() ? "-" : word;
}

std::string FormatLockData(const LockData& data) {
  std::string text(kMarker);
  if (data.last_release) {
    const ReleaseRecord& record = *data.last_release;
    text +=
        ' ' + RecordWord(record.contender) + ' ' + std::string(ModeName(record.mode)) + ' ' +
        std::to_string(record.token) + ' ' +
        (record.is_reservation ? std::string("- -")
                               : Seconds(record.duration) + ' ' + std::to_string(record.status)) +
        ' ' + RecordWord(record.host);
  }
  return text;
}

std::optional<LockData> ParseLockData(std::string_view text) {
  if (text == kMarker) return LockData{};
  if (text.size() > kLongestText || !text.starts_with(kMarker)) return std::nullopt;
  text.remove_prefix(kMarker.size());
  if (!text.starts_with(' ')) return std::nullopt;
  LockData data{ParseRecord(text.substr(1))};
  // Accepts only our own format of each number and word.
  if (!data.last_release || FormatLockData(data) != std::string(kMarker) + std::string(text)) {
    return std::nullopt;
  }
  return data;
}

}  // namespace zklock::protocol
