#include "protocol/nesting.h"

#include <charconv>
#include <utility>

namespace zklock::protocol {
namespace {

constexpr std::string_view kRun = "run ";
constexpr std::string_view kRelease = "release ";
constexpr std::string_view kMayRelease = "may-release ";
constexpr std::string_view kLease = "lease ";
constexpr std::string_view kCommand = "command ";
constexpr std::string_view kReleasing = "releasing ";

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Parses two numbers with one space between them.
std::optional<std::pair<std::int64_t, std::int64_t>> TwoNumbers(std::string_view text) {
  std::pair<std::int64_t, std::int64_t> numbers;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, numbers.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, numbers.second);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  if (numbers.first < 0 || numbers.second < 0) return std::nullopt;
  return numbers;
}

std::string Join(std::string_view prefix, std::int64_t first, std::int64_t second) {
  return std::string(prefix) + std::to_string(first) + ' ' + std::to_string(second);
}

}  // namespace

std::string FormatNesting(const NestingRequest& request) {
  switch (request.kind) {
    case NestingRequest::Kind::kRun:
      return std::string(kRun) + request.node;
    case NestingRequest::Kind::kRelease:
      return std::string(kRelease) + request.node;
    case NestingRequest::Kind::kMayRelease:
      break;
  }
  return std::string(kMayRelease) + request.node;
}

std::string FormatNesting(const NestingLease& lease) {
  return Join(kLease, lease.end.time_since_epoch().count(), lease.session_timeout.count());
}

std::string FormatNesting(const NestingCommand& command) {
  return Join(kCommand, command.pid, static_cast<std::int64_t>(command.start_time));
}

std::string FormatNesting(const NestingRelease& release) {
  return Join(kReleasing, static_cast<std::int64_t>(release.runs), release.pid);
}

std::optional<NestingRequest> ParseNestingRequest(std::string_view text) {
  NestingRequest request;
  if (TakePrefix(text, kRelease)) {
    request.kind = NestingRequest::Kind::kRelease;
  } else if (TakePrefix(text, kMayRelease)) {
    request.kind = NestingRequest::Kind::kMayRelease;
  } else if (!TakePrefix(text, kRun)) {
    return std::nullopt;
  }
  if (!text.starts_with('/')) return std::nullopt;
  request.node = text;
  return request;
}

std::optional<NestingLease> ParseNestingLease(std::string_view text) {
  if (!TakePrefix(text, kLease)) return std::nullopt;
  const auto numbers = TwoNumbers(text);
  if (!numbers) return std::nullopt;
  return NestingLease{TimePoint(Duration(numbers->first)), Duration(numbers->second)};
}

std::optional<NestingCommand> ParseNestingCommand(std::string_view text) {
  if (!TakePrefix(text, kCommand)) return std::nullopt;
  const auto numbers = TwoNumbers(text);
  if (!numbers) return std::nullopt;
  return NestingCommand{numbers->first, static_cast<std::uint64_t>(numbers->second)};
}

std::optional<NestingRelease> ParseNestingRelease(std::string_view text) {
  if (!TakePrefix(text, kReleasing)) return std::nullopt;
  const auto numbers = TwoNumbers(text);
  if (!numbers) return std::nullopt;
  return NestingRelease{static_cast<std::size_t>(numbers->first), numbers->second};
}

}  // namespace zklock::protocol
