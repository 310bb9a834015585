#include "protocol/run_records.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace zklock::protocol {
namespace {

constexpr std::string_view kVersionMark = "zklock/1 ";
constexpr std::size_t kLongestRecord = 512;

std::string FormatRecord(std::int64_t number, const std::string& host) {
  return std::string(kVersionMark) + std::to_string(number) + ' ' + RecordWord(host);
}

/// Accepts exactly what FormatRecord writes. `Record` is made from the number and the host.
template <typename Record, typename Number>
std::optional<Record> ParseRecord(std::string_view text) {
  if (text.size() > kLongestRecord || !text.starts_with(kVersionMark)) return std::nullopt;
  const std::string_view words = text.substr(kVersionMark.size());
  const std::size_t blank = words.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto number = ParseWhole<std::int64_t>(words.substr(0, blank)).value_or(-1);
  if (number < 0) return std::nullopt;
  const std::string host(words.substr(blank + 1));
  if (FormatRecord(number, host) != text) return std::nullopt;
  return Record{Number(number), host};
}

}  // namespace

std::string FormatLastSuccess(const LastSuccess& success) {
  return FormatRecord(success.began.count(), success.host);
}

std::string FormatStartRecord(const StartRecord& start) {
  return FormatRecord(start.token, start.host);
}

std::optional<StartRecord> ParseStartRecord(std::string_view text) {
  return ParseRecord<StartRecord, std::int64_t>(text);
}

std::optional<LastRunData> ParseLastRunData(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  LastRunData data{.success = ParseRecord<LastSuccess, ServerTime>(text.substr(0, end)),
                   .below = text.substr(end)};
  if (!data.success && end != 0) return std::nullopt;
  return data;
}

std::optional<LastSuccess> NewestSuccess(const std::optional<LastSuccess>& kept,
                                         const std::optional<ReleaseRecord>& record,
                                         ServerTime released) {
  // A reader only uses the results of a run, and a reservation may have ended without any run.
  // Neither must prevent the next run.
  if (!record || record->is_reservation || record->status != 0 || record->mode == Mode::kRead) {
    return kept;
  }
  const LastSuccess recorded{released - record->duration, record->host};
  return kept && kept->began >= recorded.began ? kept : recorded;
}

}  // namespace zklock::protocol
