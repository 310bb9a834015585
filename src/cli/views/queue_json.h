#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cli/text/queue_view.h"
#include "cli/views/queue_text.h"
#include "lock/survey/survey.h"

namespace zklock::cli {

/// The output of `inspect --json`: an array with one object per LOCK (zklock-inspect(1), JSON),
/// each on one line of ASCII. With kArray, every contender is printed when it is reported.
class QueueJson final : public lock::SurveySink {
 public:
  enum class Form {
    kArray,
    /// `--watch`: no array. After the first survey, only the LOCKs that have changed.
    kLines,
  };
  /// `chroot`: the part of the paths on the servers that the user does not see.
  QueueJson(Form form, TextOutput out, std::string chroot = "");

  void OnLock(const lock::LockSurvey& lock) override;
  void OnEntry(const lock::QueueEntry& entry) override;
  void OnLockEnd(const lock::LockSurvey& lock) override;
  void OnEnd() override;

 private:
  /// The line last printed for a LOCK.
  struct Known {
    std::size_t hash = 0;
    bool seen = false;  ///< in the current survey
  };

  const Form form_;
  const TextOutput out_;
  const std::string chroot_;
  std::optional<QueueDescriber> describer_;
  bool has_locks_ = false;
  bool has_contenders_ = false;
  std::size_t reservations_ = 0;        ///< how many hold the LOCK
  std::string line_;                    // with kLines: the current LOCK's line so far
  std::map<std::string, Known> known_;  // with kLines: by LOCK
};

}  // namespace zklock::cli
