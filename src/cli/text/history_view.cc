#include "cli/text/history_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "cli/text/run_messages.h"
#include "cli/text/table.h"

namespace zklock::cli {
namespace {

RunState StateOf(const lock::RunRecord& run, const std::vector<std::string>& running) {
  using End = lock::RunRecord::End;
  if (run.end == End::kEnded) return RunState::kEnded;
  const bool exists = std::find(running.begin(), running.end(), run.contender) != running.end();
  if (run.end == End::kLost || !exists) return RunState::kLost;
  const auto name = protocol::ParseContenderName(run.contender);
  return name && name->reserves ? RunState::kReserved : RunState::kRunning;
}

/// Returns a note on the cause; empty if there is no note, or for a release request, which
/// NoteText() describes.
std::string CauseNote(const std::string& cause) {
  using Note = std::pair<std::string_view, std::string_view>;
  static constexpr Note kNotes[] = {{"", ""},
                                    {"requested", ""},
                                    {"max-run", "ended by --max-run"},
                                    {"signal", "ended by a signal to zklock"},
                                    {"guard-failed", "ended because its guard was killed or hung"},
                                    {"unproven", "ended because no server confirmed the lock"},
                                    {"outer", "ended with the outer zklock's lock"}};
  for (const auto& [name, note] : kNotes) {
    if (cause == name) return std::string(note);
  }
  return "ended: " + Printable(cause);  // from a later version
}

}  // namespace

std::optional<HistoryView> DescribeHistory(const lock::LockSurvey& lock) {
  if (lock.last_run_refused) return std::nullopt;
  const auto history = lock::RunHistory::Parse(lock.last_run.value_or(""));
  if (!history) return std::nullopt;
  HistoryView view{.success = history->success(), .runs = {}, .exists = lock.exists};
  for (const auto& entry : history->entries()) {
    view.runs.push_back({entry.run, StateOf(entry.run, lock.running)});
  }
  const bool is_lock = !view.runs.empty() || view.success || lock.held + lock.waiting > 0 ||
                       lock.kind || protocol::ParseLockData(lock.data);
  if (!is_lock) {
    std::copy_if(lock.ignored_children.begin(), lock.ignored_children.end(),
                 std::back_inserter(view.below),
                 [](const std::string& child) { return !protocol::IsRecordChild(child); });
  }
  return view;
}

std::string RunsTakeText(std::string_view last_run) {
  const auto history = lock::RunHistory::Parse(last_run);
  if (!history) return "";
  std::vector<std::chrono::milliseconds> spans;
  for (const auto& [run, line] : history->entries()) {
    if (run.status == 0 && run.duration) spans.push_back(*run.duration);
  }
  if (spans.empty()) return "";
  const auto [shortest, longest] = std::minmax_element(spans.begin(), spans.end());
  const std::string least = FormatDuration(*shortest);
  const std::string most = FormatDuration(*longest);
  return least == most ? fmt::format(message::kRunsTake, most)
                       : fmt::format(message::kRunsTakeBetween, least, most);
}

std::string ReleaseText(std::string_view name, const protocol::LastRelease& last) {
  const protocol::ReleaseRecord& record = last.record;
  const std::string host = Printable(record.host, kWidestName);
  const std::string time = FormatTime(last.written_ms);
  const std::string_view mode = protocol::ModeName(record.mode);
  if (record.is_reservation) {
    return fmt::format("last reserved on {}, until {} ({}, token {})", host, time, mode,
                       record.token);
  }
  return fmt::format("{}: status {} after {}, ended {} on {} ({}, token {})", name, record.status,
                     FormatDuration(record.duration), time, host, mode, record.token);
}

std::string NoteText(const lock::RunRecord& run) {
  const auto note = [](const char* what, const std::string& who, const std::string& why) {
    if (who.empty()) return std::string();
    return fmt::format("{} {}{}", what, Printable(who),
                       why.empty() ? "" : fmt::format(" ('{}')", Printable(why)));
  };
  const std::string reserved = note("reserved for", run.id, run.reason);
  const bool was_asked = run.cause == "requested";
  const std::string taken =
      was_asked ? note("asked to release by", run.taken_by.empty() ? "someone" : run.taken_by,
                       run.taken_reason)
                : note("taken away by", run.taken_by, run.taken_reason);
  std::string text;
  for (const std::string& one : {reserved, CauseNote(run.cause), taken}) {
    if (!one.empty()) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

std::string_view RunStateName(RunState state) {
  switch (state) {
    case RunState::kEnded:
      return "ended";
    case RunState::kRunning:
      return "running";
    case RunState::kReserved:
      return "reserved";
    case RunState::kLost:
      break;
  }
  return "lost";
}

std::string RunText(const RunView& view, bool with_year) {
  const lock::RunRecord& run = view.run;
  const std::string began = FormatTime(run.began.count(), with_year);
  std::string text = "run: ";
  const bool stands = view.state == RunState::kRunning || view.state == RunState::kReserved;
  if (stands || view.state == RunState::kLost || !run.duration) {
    text += RunStateName(view.state);
  } else if (run.status) {
    text += fmt::format("status {} after {}", *run.status, FormatDuration(*run.duration));
  } else {
    text += fmt::format("held for {}", FormatDuration(*run.duration));
  }
  const std::string where = began + (run.host.empty() ? "" : " on " + run.host);
  if (stands) text += " since " + where;
  // The note comes early, because a narrow terminal cuts the end.
  if (const std::string note = NoteText(run); !note.empty()) text += ", " + note;
  if (!stands) text += ", began " + where;
  if (!run.label.empty()) text += " [" + run.label + "]";
  if (run.waited) text += ", waited " + FormatDuration(*run.waited);
  return text;
}

}  // namespace zklock::cli
