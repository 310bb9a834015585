#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lock/contender_data.h"
#include "lock/survey.h"
#include "protocol/contender_name.h"
#include "protocol/grant_time.h"

namespace zklock::cli {

enum class ContenderState {
  kHeld,
  kWaiting,
  kNoContender,  ///< a znode that ends with no session: nobody's
};

/// One contender as people are shown it: what the servers know, and what it says of itself.
struct ContenderView {
  std::string name;                     ///< the child of the LOCK
  std::string path;                     ///< on the servers
  std::optional<std::size_t> position;  ///< from 1; none: no contender
  ContenderState state = ContenderState::kHeld;
  protocol::Mode mode = protocol::Mode::kExclusive;  ///< what its name asks for
  protocol::Program program = protocol::Program::kUnknown;
  bool readable = true;
  bool for_permit = false;     ///< the LOCK is a semaphore
  std::string turnstile_name;  ///< its other znode's, while it has two (lock::QueueEntry)
  /// What it says of itself, never believed; of other programs' contenders what they are known to
  /// write.
  lock::ContenderData data;
  /// Since when it is in its state, by the servers' clock, in ms since 1970.
  std::optional<std::int64_t> since_ms;
  bool since_exact = true;  ///< false: the earliest it can have been
  std::optional<std::int64_t> token;
  std::optional<std::int64_t> session;
  std::optional<lock::Predecessor> waits_for;
};

/// Describes one LOCK's entries, in the order in which a survey tells them.
class QueueDescriber {
 public:
  explicit QueueDescriber(const lock::LockSurvey& lock);
  [[nodiscard]] ContenderView Describe(const lock::QueueEntry& entry);

  /// The last run under the LOCK, where a zklock that we may read has left its record.
  [[nodiscard]] const std::optional<protocol::LastRelease>& last_release() const { return last_; }

 private:
  const bool is_semaphore_;
  const std::optional<std::size_t> permit_limit_;
  std::optional<protocol::LastRelease> last_;
  std::optional<protocol::HolderBefore> before_;
};

/// The queue in order, the holders first; after it what is no contender.
[[nodiscard]] std::vector<ContenderView> DescribeQueue(const lock::LockSurvey& lock);

/// "2 of 3 permits used", of a semaphore; "2 permits used" where it does not say how many it has.
[[nodiscard]] std::string PermitsInUse(const lock::LockSurvey& lock);

/// "zklock", "Curator", "go-zookeeper", "kazoo", "C recipe", "unknown".
[[nodiscard]] std::string_view ProgramName(const ContenderView& contender);
/// "held", "waiting", "stray".
[[nodiscard]] std::string_view StateName(ContenderState state);

/// Local time, "2024-03-01 14:03:11", or without the year.
[[nodiscard]] std::string FormatTime(std::int64_t ms_since_1970, bool with_year = true);

}  // namespace zklock::cli
