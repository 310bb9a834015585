#include "cli/views/history_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "cli/text/table.h"
#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

// Keeps the order of the manual page.
using nlohmann::ordered_json;

using enum Column::Align;

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string OrDash(const std::optional<std::chrono::milliseconds>& span) {
  return span ? FormatDuration(*span) : "-";
}

Cell StatusCell(const RunView& view) {
  switch (view.state) {
    case RunState::kRunning:
    case RunState::kReserved:
      return {std::string(RunStateName(view.state)), Tone::kHeld};
    case RunState::kLost:
      return {std::string(RunStateName(view.state)), Tone::kBad};
    case RunState::kEnded:
      break;
  }
  return {view.run.status ? std::to_string(*view.run.status) : "-",
          view.IsBad() ? Tone::kBad : Tone::kPlain};
}

ordered_json OrNull(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json Seconds(const std::optional<std::chrono::milliseconds>& span) {
  if (!span) return nullptr;
  return std::chrono::duration<double>(*span).count();
}

ordered_json Moment(protocol::ServerTime time) {
  const auto text = FormatUtc(time.count());
  return text ? ordered_json(*text) : ordered_json(nullptr);
}

ordered_json RunJson(const RunView& view) {
  const lock::RunRecord& run = view.run;
  ordered_json object;
  object["state"] = RunStateName(view.state);
  object["began"] = Moment(run.began);
  object["waited"] = Seconds(run.waited);
  object["duration"] = Seconds(run.duration);
  object["status"] = run.status ? ordered_json(*run.status) : ordered_json(nullptr);
  object["host"] = OrNull(run.host);
  object["user"] = OrNull(run.user);
  object["label"] = OrNull(run.label);
  object["mode"] = protocol::ModeName(run.mode);
  // A string: a token has 64 bits, too many for a number in most JSON parsers.
  object["token"] = std::to_string(run.token);
  object["id"] = OrNull(run.id);
  object["reason"] = OrNull(run.reason);
  object["cause"] = OrNull(run.cause);
  object["takenBy"] = OrNull(run.taken_by);
  object["takenReason"] = OrNull(run.taken_reason);
  return object;
}

/// Returns the commands that show the histories of the children instead, one per line.
std::string BelowText(const std::string& path, const std::vector<std::string>& below,
                      const ViewStyle& style) {
  constexpr std::size_t kMostBelow = 10;
  const std::size_t width = style.width == 0 ? std::string::npos : style.width;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostBelow, below.size()); ++i) {
    const std::string lock = protocol::ChildPath(path, below[i]);
    text += Printable("zklock inspect --history " + lock, width) + "\n";
  }
  if (below.size() > kMostBelow) {
    text += fmt::format("... and {} more\n", below.size() - kMostBelow);
  }
  return text;
}

}  // namespace

void HistoryPrinter::OnLockEnd(const lock::LockSurvey& lock) {
  const auto view = DescribeHistory(lock);
  if (!view) {
    fault_ = lock.last_run_refused ? Fault::kRefused : Fault::kForeign;
  } else if (options_.form == InspectOptions::Form::kJson) {
    out_(HistoryJson(lock.path, *view, options_.most_runs));
  } else {
    out_(HistoryText(lock.path, *view, options_.most_runs, style_));
    const std::optional<protocol::LastRelease> last = QueueDescriber(lock).last_release();
    // Later runs have larger tokens.
    if (!last || (!view->runs.empty() && last->record.token <= view->runs[0].run.token)) return;
    const std::size_t width = style_.width == 0 ? std::string::npos : style_.width;
    const std::string later = Printable(ReleaseText("not in its history", *last), width);
    const Tone tone = last->record.status == 0 ? Tone::kPlain : Tone::kBad;
    out_("\n" + Paint(tone, later, style_.colours) + "\n");
  }
}

std::string HistoryText(const std::string& path, const HistoryView& view, std::size_t most_runs,
                        const ViewStyle& style) {
  const std::size_t width = style.width == 0 ? std::string::npos : style.width;
  const std::size_t shown = std::min(most_runs, view.runs.size());
  const std::string what =
      !view.exists          ? "no run in its history (it does not exist)"
      : !view.below.empty() ? "no lock, but there may be locks below it"
      : view.runs.empty()   ? "no run in its history"
      : shown < view.runs.size()
          ? fmt::format("the last {} of {} recorded runs", shown, view.runs.size())
      : shown == 1 ? std::string("the last recorded run")
                   : fmt::format("the last {} recorded runs", shown);
  std::string text =
      Paint(Tone::kTitle, Printable(path + ": " + what, width), style.colours) + "\n";
  if (!view.below.empty()) return text + "\n" + BelowText(path, view.below, style);
  if (view.runs.empty()) return text;
  const auto begin = view.runs.begin();
  const bool has_notes = std::any_of(begin, begin + static_cast<std::ptrdiff_t>(shown),
                                     [](const RunView& one) { return !NoteText(one.run).empty(); });
  std::vector<Column> columns = {
      {.title = "BEGAN"},
      {.title = "WAITED", .align = kRight, .dispensable = 4},
      {.title = "DURATION", .align = kRight, .dispensable = 2},
      {.title = "STATUS", .align = kRight},
      {.title = "HOST", .most = kWidestName, .least = 8, .dispensable = 3},
      {.title = "USER", .most = kWidestName, .least = 6, .dispensable = 5},
      {.title = "LABEL", .least = 8, .dispensable = 6},
      {.title = "TOKEN", .align = kRight, .dispensable = 7}};
  if (has_notes) columns.push_back({.title = "NOTE", .least = 24});
  Table table(std::move(columns), style.width, style.colours);
  const bool with_year = style.width == 0 || style.width >= kWideEnoughForYears;
  for (std::size_t i = 0; i < shown; ++i) {
    const lock::RunRecord& run = view.runs[i].run;
    std::vector<Cell> row = {FormatTime(run.began.count(), with_year),
                             OrDash(run.waited),
                             OrDash(run.duration),
                             StatusCell(view.runs[i]),
                             OrDash(run.host),
                             OrDash(run.user),
                             OrDash(run.label),
                             std::to_string(run.token)};
    if (has_notes) row.emplace_back(OrDash(NoteText(run)));
    table.AddRow(std::move(row));
  }
  return text + "\n" + table.TakePage();
}

std::string HistoryJson(const std::string& path, const HistoryView& view, std::size_t most_runs) {
  ordered_json object;
  object["lock"] = path;
  object["exists"] = view.exists;
  object["lastSuccess"] = nullptr;
  if (view.success) {
    object["lastSuccess"] = {{"began", Moment(view.success->began)}, {"host", view.success->host}};
  }
  ordered_json runs = ordered_json::array();
  for (const RunView& run : view.runs) {
    if (runs.size() == most_runs) break;
    runs.push_back(RunJson(run));
  }
  object["runs"] = std::move(runs);
  // As in the other forms of --json: an array of LOCKs.
  return "[\n" +
         object.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace) +
         "\n]\n";
}

}  // namespace zklock::cli
