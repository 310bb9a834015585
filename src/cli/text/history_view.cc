#include "cli/text/history_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

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
  const std::string taken = note("taken away by", run.taken_by, run.taken_reason);
  return reserved + (reserved.empty() || taken.empty() ? "" : ", ") + taken;
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
  if (view.state == RunState::kRunning || view.state == RunState::kReserved) {
    text += fmt::format("{} since {}", RunStateName(view.state), began);
  } else if (view.state == RunState::kLost || !run.duration) {
    text += fmt::format("{}, began {}", RunStateName(view.state), began);
  } else if (run.status) {
    text += fmt::format("status {} after {}, began {}", *run.status, FormatDuration(*run.duration),
                        began);
  } else {
    text += fmt::format("held for {}, began {}", FormatDuration(*run.duration), began);
  }
  if (!run.host.empty()) text += " on " + run.host;
  if (run.waited) text += ", waited " + FormatDuration(*run.waited);
  if (!run.label.empty()) text += " [" + run.label + "]";
  if (const std::string note = NoteText(run); !note.empty()) text += ", " + note;
  return text;
}

}  // namespace zklock::cli
