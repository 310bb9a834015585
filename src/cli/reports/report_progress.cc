#include "cli/reports/report_progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "cli/text/duration.h"
#include "cli/text/history_view.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "cli/text/run_messages.h"
#include "lock/data/contender_data.h"

namespace zklock::cli {
namespace {

// A LOCK is not cut to fewer columns than this to make room for its holder.
constexpr std::size_t kLeastLock = 16;
// If the holder would get fewer columns, the queue position is left out: the holder matters more.
constexpr std::size_t kLeastHolder = 24;
// The width of LOCK in such a short line.
constexpr std::size_t kShortLock = 12;

std::string WholeSeconds(Duration span) {
  return FormatDuration(std::chrono::floor<std::chrono::seconds>(span));
}

/// Returns "; held by backup.sh (pid 3185 on web1) for 12m", for a semaphore with ", and 2 more";
/// or "; reserved for freeze until 2024-03-01 16:00:00: incident 4711".
std::string HolderText(const ProgressView& view) {
  if (!view.connected) return message::kNoAnswer;
  if (view.is_first) return message::kConfirming;
  if (view.holder.empty()) return "";
  std::string text;
  if (view.reserved) {
    const std::string what = ReservationText(*view.reserved, /*overdue=*/false);
    text = fmt::format(message::kReservedFor, Printable(what, 2 * kWidestForeign));
  } else {
    text = fmt::format(message::kHeldBy, ProcessText(view.holder, view.holder_data));
    if (view.held_for) text += fmt::format(message::kHeldFor, WholeSeconds(*view.held_for));
  }
  if (view.more_holders > 0) text += fmt::format(message::kMoreHold, view.more_holders);
  return text;
}

std::string LineFor(const ProgressView& view, const std::string& lock) {
  const std::string runs = view.connected ? RunsTakeText(view.last_run) : "";
  return fmt::format(message::kProgress, lock, PlaceInLine(view.ahead), WholeSeconds(view.waited),
                     HolderText(view), runs.empty() ? "" : "; " + runs);
}

/// Returns "…jobs/backup: 12s; held by backup.sh (pid 3185 on web1)".
std::string ShortLine(const ProgressView& view, std::size_t columns) {
  const std::string rest = ": " + WholeSeconds(view.waited) + HolderText(view);
  const std::size_t room = std::max(columns - std::min(columns, DisplayWidth(rest)), kShortLock);
  return Printable(PrintableEnd(view.lock, room) + rest, columns);
}

}  // namespace

std::string PlaceInLine(const std::optional<std::size_t>& ahead) {
  if (!ahead) return "";
  return *ahead == 0 ? message::kNextInLine : fmt::format(message::kWaitingAhead, *ahead);
}

std::string ProgressLine(const ProgressView& view) { return LineFor(view, view.lock); }

std::string LiveProgress(const ProgressView& view, std::size_t columns) {
  const auto left_by = [columns](std::size_t width) {
    return columns > width ? columns - width : 0;
  };
  ProgressView without_holder = view;
  without_holder.holder.clear();
  without_holder.last_run.clear();
  without_holder.is_first = false;
  without_holder.connected = true;
  // One column more, for the ellipsis in place of the holder.
  const std::size_t position = DisplayWidth(LineFor(without_holder, "")) + 1;
  const std::size_t wanted = std::min(DisplayWidth(HolderText(view)), kLeastHolder);
  const std::size_t lock = std::min(DisplayWidth(Printable(view.lock)), kLeastLock);
  if (left_by(position + lock) < wanted) return ShortLine(view, columns);
  const std::string named = "zklock: ";
  const std::string prefix = left_by(position + named.size()) < kLeastLock ? "" : named;
  const std::size_t with_all = left_by(prefix.size() + DisplayWidth(LineFor(view, "")));
  const std::size_t with_position = left_by(prefix.size() + position);
  const std::size_t room = std::max(with_all, std::min(kLeastLock, with_position));
  return Printable(prefix + LineFor(view, PrintableEnd(view.lock, room)), columns);
}

std::string AcquiredLine(const std::string& locks, Duration waited) {
  return fmt::format(message::kAcquiredAfter, locks, WholeSeconds(waited));
}

std::string LiveSearch(Duration since, std::size_t columns) {
  return Printable(fmt::format(message::kLooking, WholeSeconds(since)), columns);
}

std::string ProcessText(const std::string& name, const std::string& data) {
  const auto known = lock::ParseContenderData(data);
  if (!known || !known->host || !known->pid) return Printable(name, kWidestForeign);
  const std::string command =
      Printable(known->command.value_or(message::kSomeCommand), kWidestForeign);
  const std::string host = Printable(*known->host, kWidestForeign);
  return known->label ? fmt::format(message::kLabelledProcess, command, *known->pid, host,
                                    PrintableEnd(*known->label, kWidestForeign))
                      : fmt::format(message::kProcess, command, *known->pid, host);
}

}  // namespace zklock::cli
