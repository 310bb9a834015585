#include "cli/text/queue_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <limits>
#include <utility>

#include "cli/text/duration.h"

namespace zklock::cli {
namespace {

using protocol::Program;

constexpr std::string_view kCuratorPrefix = "_c_";
constexpr std::size_t kMostForeignText = 256;

/// Returns whether `text` looks like an address: by default, Curator's recipes write the address of
/// their host.
bool LooksLikeAddress(std::string_view text) {
  constexpr std::size_t kLongest = 45;
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_of(".:") != std::string_view::npos &&
         text.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
}

bool IsPast(std::chrono::milliseconds since_1970) {
  return since_1970.count() <= MillisecondsNow();
}

/// Returns the host in the name of a zklock contender, which is known even if we lack permission to
/// read its data.
std::optional<std::string> HostInName(const protocol::ContenderName& name) {
  constexpr std::size_t kUuidAndDash = 37;
  const std::size_t mark = name.full.rfind(name.mark == protocol::Mark::kLock     ? "-lock-"
                                           : name.mark == protocol::Mark::kPermit ? "-lease-"
                                                                                  : "-__");
  if (name.program != Program::kZklock || mark == std::string::npos) return std::nullopt;
  std::string_view before = std::string_view(name.full).substr(0, mark);
  if (name.reserves) before.remove_suffix(std::string_view("-reserve").size());
  if (name.supersedes) before.remove_suffix(std::string_view("-newest").size());
  if (before.size() <= kUuidAndDash) return std::nullopt;
  return std::string(before.substr(0, before.size() - kUuidAndDash));
}

lock::ContenderData ReadData(const lock::QueueEntry& entry) {
  lock::ContenderData data;
  data.version.reset();
  switch (entry.name.program) {
    case Program::kCurator:
      if (LooksLikeAddress(entry.data)) data.host = entry.data;
      break;
    case Program::kKazoo:
      // The data is an identifier that the program's user chose.
      if (!entry.data.empty() && entry.data.size() <= kMostForeignText) data.label = entry.data;
      break;
    case Program::kZklock:
    case Program::kCRecipe:
    case Program::kUnknown:
      data = lock::ParseContenderData(entry.data).value_or(data);
      if (!data.host) data.host = HostInName(entry.name);
      break;
  }
  const bool is_revoked = entry.data == lock::kCuratorRevoke;
  if (is_revoked && entry.name.program != Program::kKazoo) {
    data.release_request = lock::FindReleaseRequest(entry.data);
  }
  // A forced request asks for nothing; if the contender still exists, the deletion has failed.
  if (data.release_request && data.release_request->forced) data.release_request.reset();
  return data;
}

}  // namespace

QueueDescriber::QueueDescriber(const lock::LockSurvey& lock)
    : is_semaphore_(lock.IsSemaphore()), permit_limit_(lock.permit_limit) {
  const auto data = protocol::ParseLockData(lock.data);
  if (data && data->last_release) last_ = {*data->last_release, lock.stat.modified_ms};
}

ContenderView QueueDescriber::Describe(const lock::QueueEntry& entry) {
  ContenderView view;
  view.name = entry.name.full;
  view.path = entry.path;
  view.position = entry.position;
  view.mode = entry.name.mode();
  view.program = entry.name.program;
  view.readable = entry.readable;
  view.for_permit = is_semaphore_;
  view.permit_limit = permit_limit_;
  view.turnstile_name = entry.turnstile_name;
  view.data.version.reset();
  if (!entry.position) {
    view.state = ContenderState::kNoContender;
    view.blocking = entry.blocking;
    if (entry.readable) view.since_ms = entry.stat.created_ms;
    return view;
  }
  view.data = ReadData(entry);
  // In Dialect::kSimple, only the data identifies the program.
  const bool is_simple = entry.name.full == protocol::kSimpleName;
  if (is_simple && view.data.version) view.program = Program::kZklock;
  view.more = entry.more;
  view.take = entry.in_turnstile ? view.data.take : 1 + entry.more.size();
  if (entry.readable) {
    view.since_ms = entry.stat.created_ms;
    // In the turnstile, its permit does not exist yet.
    if (!entry.in_turnstile) view.token = entry.stat.created_zxid;
    view.session = entry.stat.ephemeral_owner;
  }
  if (entry.reserved) {
    view.reserved = entry.reserved;
    const auto end = entry.reserved->end();
    view.overdue = end && IsPast(*end);
    view.token = entry.reserved->reservation.token;
    view.session.reset();
  }
  if (entry.Waits()) {
    view.state = ContenderState::kWaiting;
    view.waits_for = entry.waits_for;
    if (entry.turnstile_ms) view.since_ms = entry.turnstile_ms;
  } else if (entry.reserved) {
    view.state = ContenderState::kReserved;
    view.since_ms = entry.reserved->since.count();
    before_ = {entry.name.number, {.since_ms = *view.since_ms, .exact = true}};
  } else if (entry.readable) {
    const auto granted =
        is_semaphore_
            ? protocol::PermitTimeOf(entry.name, view.take, entry.stat.created_ms, permit_limit_)
            : protocol::GrantTimeOf(entry.name, entry.stat.created_ms, last_, before_);
    view.since_ms = granted.since_ms;
    view.since_exact = granted.exact;
    before_ = {entry.name.number, granted};
  }
  return view;
}

std::vector<ContenderView> DescribeQueue(const lock::LockSurvey& lock) {
  QueueDescriber describer(lock);
  std::vector<ContenderView> queue;
  queue.reserve(lock.entries.size());
  for (const lock::QueueEntry& entry : lock.entries) queue.push_back(describer.Describe(entry));
  return queue;
}

std::string ModeText(const ContenderView& contender) {
  return contender.take > 1 ? fmt::format("{} permits", contender.take)
                            : std::string(protocol::ModeName(contender.mode));
}

std::string PermitsInUse(const lock::LockSurvey& lock) {
  const std::string of = lock.permit_limit ? fmt::format(" of {}", *lock.permit_limit) : "";
  const bool is_one = lock.permit_limit.value_or(lock.used) == 1;
  return fmt::format("{}{} permit{} used", lock.used, of, is_one ? "" : "s");
}

bool IsGoZooKeeper(std::string_view name) {
  constexpr std::size_t kDigits = 32;
  const std::string_view id = name.substr(std::min(kCuratorPrefix.size(), name.size()));
  return id.size() > kDigits && id[kDigits] == '-' &&
         id.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view ProgramName(const ContenderView& contender) {
  switch (contender.program) {
    case Program::kZklock:
      return "zklock";
    case Program::kCurator:
      return IsGoZooKeeper(contender.name) ? "go-zookeeper" : "Curator";
    case Program::kKazoo:
      return "kazoo";
    case Program::kCRecipe:
      return "C recipe";
    case Program::kUnknown:
      break;
  }
  return "unknown";
}

std::string HostAndPid(const ContenderView& contender) {
  std::string text = contender.data.host.value_or("");
  if (contender.data.pid) text += fmt::format(":{}", *contender.data.pid);
  return text;
}

// No tenths: they would change while being read.
std::string ForText(const ContenderView& contender, std::int64_t now_ms) {
  if (!contender.since_ms) return "";
  const std::chrono::milliseconds span(MillisecondsSince(*contender.since_ms, now_ms));
  return (contender.since_exact ? "" : "≤ ") +
         FormatDuration(std::chrono::floor<std::chrono::seconds>(span));
}

std::string ReservationText(const lock::Reserved& reserved, bool overdue, bool with_year) {
  const protocol::Reservation& reservation = reserved.reservation;
  std::string text = reservation.id;
  if (reserved.is_incomplete) {
    text += " (has lost a permit)";
  } else if (reserved.until) {
    const std::string until = FormatTime(reserved.until->count(), with_year);
    text += overdue ? fmt::format(" (overdue since {})", until) : " until " + until;
  }
  return text + (reservation.reason.empty() ? "" : ": " + reservation.reason);
}

std::string BlockedText(const std::string& child) {
  return fmt::format("runs are refused: its child {} is not a contender", child);
}

std::string_view StateName(ContenderState state) {
  switch (state) {
    case ContenderState::kHeld:
      return "held";
    case ContenderState::kReserved:
      return "reserved";
    case ContenderState::kWaiting:
      return "waiting";
    case ContenderState::kNoContender:
      break;
  }
  return "stray";
}

std::int64_t MillisecondsNow() {
  return std::chrono::floor<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::int64_t MillisecondsSince(std::int64_t then_ms, std::int64_t now_ms) {
  if (then_ms >= now_ms) return 0;
  std::int64_t span = 0;
  const bool overflows = __builtin_sub_overflow(now_ms, then_ms, &span);
  return overflows ? std::numeric_limits<std::int64_t>::max() : span;
}

std::string FormatTime(std::int64_t ms_since_1970, bool with_year) {
  const auto seconds = static_cast<std::time_t>(ms_since_1970 / 1000);
  std::tm local{};
  std::array<char, 64> text{};
  const char* const format = with_year ? "%Y-%m-%d %H:%M:%S" : "%m-%d %H:%M:%S";
  if (localtime_r(&seconds, &local) == nullptr ||
      std::strftime(text.data(), text.size(), format, &local) == 0) {
    return "-";
  }
  return text.data();
}

std::optional<std::string> FormatUtc(std::int64_t ms_since_1970) {
  const auto seconds = static_cast<std::time_t>(ms_since_1970 / 1000);
  std::tm utc{};
  std::array<char, 64> text{};
  if (ms_since_1970 < 0 || gmtime_r(&seconds, &utc) == nullptr || utc.tm_year + 1900 > 9999 ||
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
    return std::nullopt;
  }
  return fmt::format("{}.{:03}Z", text.data(), ms_since_1970 % 1000);
}

}  // namespace zklock::cli
