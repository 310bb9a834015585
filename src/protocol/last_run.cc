#include "protocol/last_run.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace zklock::protocol {
namespace {

constexpr std::string_view kSuccessMarker = "zklock/1 ";
constexpr std::size_t kLongestSuccess = 512;

/// Accepts exactly what FormatLastSuccess writes.
std::optional<LastSuccess> ParseLastSuccess(std::string_view text) {
  if (text.size() > kLongestSuccess || !text.starts_with(kSuccessMarker)) return std::nullopt;
  const std::string_view words = text.substr(kSuccessMarker.size());
  const std::size_t blank = words.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  std::int64_t began = 0;
  const auto [end, error] = std::from_chars(words.data(), words.data() + blank, began);
  if (error != std::errc() || end != words.data() + blank || began < 0) return std::nullopt;
  LastSuccess success{ServerTime(began), std::string(words.substr(blank + 1))};
  if (FormatLastSuccess(success) != text) return std::nullopt;
  return success;
}

}  // namespace

std::string FormatLastSuccess(const LastSuccess& success) {
  return std::string(kSuccessMarker) + std::to_string(success.began.count()) + ' ' +
         RecordWord(success.host);
}

std::optional<LastRunData> ParseLastRunData(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  LastRunData data{.success = ParseLastSuccess(text.substr(0, end)), .below = text.substr(end)};
  if (!data.success && end != 0) return std::nullopt;
  return data;
}

std::optional<LastSuccess> NewestSuccess(const std::optional<LastSuccess>& kept,
                                         const std::optional<ReleaseRecord>& record,
                                         ServerTime released) {
  // A reader uses the results of a run, and under a reservation nothing need have run. Neither must
  // keep the next run from happening.
  if (!record || record->is_reservation || record->status != 0 || record->mode == Mode::kRead) {
    return kept;
  }
  const LastSuccess recorded{released - record->ran, record->host};
  return kept && kept->began >= recorded.began ? kept : recorded;
}

}  // namespace zklock::protocol
