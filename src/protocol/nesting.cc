#include "protocol/nesting.h"

#include <array>
#include <charconv>
#include <initializer_list>
#include <system_error>

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

/// Parses N non-negative numbers with one space between them.
template <std::size_t N>
std::optional<std::array<std::int64_t, N>> Numbers(std::string_view text) {
  std::array<std::int64_t, N> numbers{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < N; ++i) {
    if (i > 0 && (at == end || *at++ != ' ')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc() || numbers[i] < 0) return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(numbers) : std::nullopt;
}

std::string Join(std::string_view prefix, std::initializer_list<std::int64_t> numbers) {
  std::string text(prefix);
  for (const std::int64_t number : numbers) text += std::to_string(number) + ' ';
  text.pop_back();
  return text;
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
  return Join(kLease, {lease.end.time_since_epoch().count(), lease.session_timeout.count()});
}

std::string FormatNesting(const NestingCommand& command) {
  return Join(kCommand, {command.pid, static_cast<std::int64_t>(command.start_time)});
}

std::string FormatNesting(const NestingRelease& release) {
  return Join(kReleasing, {static_cast<std::int64_t>(release.runs), release.pid,
                           static_cast<std::int64_t>(release.locks)});
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
  const auto numbers = Numbers<2>(text);
  if (!numbers) return std::nullopt;
  const auto [end, session_timeout] = *numbers;
  return NestingLease{TimePoint(Duration(end)), Duration(session_timeout)};
}

std::optional<NestingCommand> ParseNestingCommand(std::string_view text) {
  if (!TakePrefix(text, kCommand)) return std::nullopt;
  const auto numbers = Numbers<2>(text);
  if (!numbers) return std::nullopt;
  const auto [pid, start_time] = *numbers;
  return NestingCommand{pid, static_cast<std::uint64_t>(start_time)};
}

std::optional<NestingRelease> ParseNestingRelease(std::string_view text) {
  if (!TakePrefix(text, kReleasing)) return std::nullopt;
  const auto numbers = Numbers<3>(text);
  if (!numbers) return std::nullopt;
  const auto [runs, pid, locks] = *numbers;
  return NestingRelease{static_cast<std::size_t>(runs), pid, static_cast<std::size_t>(locks)};
}

}  // namespace zklock::protocol
