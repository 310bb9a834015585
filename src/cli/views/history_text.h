#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "cli/options/options.h"
#include "cli/text/history_view.h"
#include "cli/views/queue_text.h"

namespace zklock::cli {

/// Prints the history of the only LOCK of a survey with_last_run.
class HistoryPrinter final : public lock::SurveySink {
 public:
  enum class Fault {
    kForeign,  ///< it is not a history that we understand
    kRefused,  ///< we lack permission to read it
  };
  HistoryPrinter(const InspectOptions& options, ViewStyle style, TextOutput out)
      : options_(options), style_(style), out_(std::move(out)) {}
  /// Returns why there was nothing to print.
  [[nodiscard]] const std::optional<Fault>& fault() const { return fault_; }

  void OnLockEnd(const lock::LockSurvey& lock) override;

 private:
  const InspectOptions& options_;
  const ViewStyle style_;
  const TextOutput out_;
  std::optional<Fault> fault_;
};

/// Returns the history of the LOCK `path` as a table, the newest run first, at most `most_runs`.
[[nodiscard]] std::string HistoryText(const std::string& path, const HistoryView& view,
                                      std::size_t most_runs, const ViewStyle& style);

/// Returns that history as JSON.
[[nodiscard]] std::string HistoryJson(const std::string& path, const HistoryView& view,
                                      std::size_t most_runs);

}  // namespace zklock::cli
