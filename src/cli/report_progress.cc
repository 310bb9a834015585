#include "cli/report_progress.h"

#include <fmt/core.h>

#include <chrono>

#include "cli/contender_data.h"
#include "cli/duration.h"
#include "cli/messages.h"
#include "cli/printable.h"

namespace zklock::cli {
namespace {

// Of a foreign word in a message, in columns.
constexpr std::size_t kMostShown = 60;

std::string WholeSeconds(Duration span) {
  return FormatDuration(std::chrono::floor<std::chrono::seconds>(span));
}

/// ", held by backup.sh, pid 3185 on web1, for at most 12m", and of a semaphore ", and 2 more".
std::string Holder(const ProgressView& view) {
  if (!view.connected) return message::kNoAnswer;
  if (view.holder.empty()) return "";
  std::string text = fmt::format(message::kHeldBy, WhoOf(view.holder, view.holder_data));
  if (view.held_at_most) text += fmt::format(message::kAtMost, WholeSeconds(*view.held_at_most));
  if (view.more_holders > 0) text += fmt::format(message::kMoreHold, view.more_holders);
  return text;
}

}  // namespace

std::string LiveProgress(const ProgressView& view, std::size_t columns) {
  // The LOCK last: who typed it knows it, and it is what a narrow terminal cuts off.
  return Printable(fmt::format(message::kProgress, WholeSeconds(view.waited), view.place,
                               Holder(view), view.lock),
                   columns);
}

std::string PlainProgress(const ProgressView& view, bool first) {
  if (first) {
    return fmt::format(message::kWaits, view.lock, view.place, Holder(view));
  }
  return fmt::format(message::kStillWaits, view.lock, WholeSeconds(view.waited), view.place,
                     Holder(view));
}

std::string WhoOf(const std::string& name, const std::string& data) {
  const auto known = ParseContenderData(data);
  if (!known || !known->host || !known->pid) return Printable(name, kMostShown);
  return fmt::format(message::kWhoRuns,
                     Printable(known->command.value_or(message::kSomeCommand), kMostShown),
                     *known->pid, Printable(*known->host, kMostShown));
}

}  // namespace zklock::cli
