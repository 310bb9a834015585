#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cli/queue_text.h"
#include "cli/queue_view.h"
#include "lock/survey.h"

namespace zklock::cli {

/// What `inspect --json` prints: an array with one object a LOCK (zklock-inspect(1), JSON). Each
/// contender is printed as it is told. All of it is ASCII, one line a LOCK.
class QueueJson final : public lock::SurveySink {
 public:
  enum class Form {
    kArray,
    /// `--watch`: no array; after the first survey the LOCKs that have changed.
    kLines,
  };
  QueueJson(Form form, TextOutput out);

  void OnLock(const lock::LockSurvey& lock) override;
  void OnEntry(const lock::QueueEntry& entry) override;
  void OnLockEnd(const lock::LockSurvey& lock) override;
  void OnEnd() override;

 private:
  /// The line of a LOCK, as it was printed last.
  struct Known {
    std::size_t hash = 0;
    bool seen = false;  ///< in the survey that is being told
  };

  const Form form_;
  const TextOutput out_;
  std::optional<QueueDescriber> describer_;
  bool has_locks_ = false;
  bool has_contenders_ = false;
  std::string line_;                    // with kLines: as much of it as was told
  std::map<std::string, Known> known_;  // with kLines: by LOCK
};

}  // namespace zklock::cli
