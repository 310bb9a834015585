// The input is parsed as the data of last-run, written again, and shown.

#include <algorithm>
#include <string>

#include "cli/views/history_text.h"
#include "fuzz/fuzz.h"
#include "fuzz/text.h"
#include "lock/data/run_history.h"

namespace zklock::fuzz {
namespace {

using lock::RunHistory;

void TryData(const std::string& data) {
  auto history = RunHistory::Parse(data);
  if (!history) return;
  Require(data.size() <= lock::kMostHistoryData, "a long history is not read");
  for (const auto& entry : history->entries()) {
    Require(entry.run.token > 0 && entry.run.began.count() >= 0 &&
                entry.run.status.value_or(0) >= 0 && entry.run.status.value_or(0) <= 255,
            "a run is possible");
    Require(entry.line.find('\n') == std::string::npos, "a run is one line");
  }
  const std::size_t runs = history->entries().size();
  const bool is_new = history->Find(1) == nullptr;
  history->EnterLost({}, 1);
  history->Enter({.host = data.substr(0, 80), .label = data, .token = 1});
  const std::string written = history->Format(lock::kMostRuns);
  Require(written.size() <= lock::kMostHistoryData, "a history is short");
  const auto read = RunHistory::Parse(written);
  Require(read.has_value(), "a written history is read back");
  Require(!is_new || read->Find(1) != nullptr, "the newest run is kept");
  Require(read->entries().size() <= std::min(runs + 1, lock::kMostRuns), "no run is invented");
  Require(read->Format(lock::kMostRuns) == written, "a history is written as it was read");

  lock::LockSurvey lock{.path = "/l"};
  lock.last_run = written;
  const auto view = cli::DescribeHistory(lock);
  Require(view.has_value(), "a written history is shown");
  for (const std::size_t width : {0, 40, 80}) {
    RequireHarmless(cli::HistoryText("/l", *view, 100, {.width = width}), true);
  }
  RequireHarmless(cli::HistoryJson("/l", *view, 100), true);
}

}  // namespace

void Try(std::string_view input) {
  TryData(std::string(input));
  // Adds the first line, which the fuzzer would hardly ever find.
  TryData("zklock/1 5 h\n" + std::string(input));
  TryData("\n" + std::string(input));
}

}  // namespace zklock::fuzz
