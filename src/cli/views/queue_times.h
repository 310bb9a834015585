#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/text/history_view.h"
#include "cli/text/queue_view.h"
#include "lock/survey/lock_survey.h"

namespace zklock::cli {

/// The last success under a LOCK, as far as we can read it.
struct KnownSuccess {
  std::optional<std::int64_t> began_ms;  ///< when it got the lock, by the servers' clock
  bool is_certain = true;  ///< false: something was not readable, and there may be a newer one
};

/// `last`: the LOCK's release record. The survey must have read the LOCK's last-run.
[[nodiscard]] KnownSuccess LastSuccessOf(const lock::LockSurvey& lock,
                                         const std::optional<protocol::LastRelease>& last);

/// The runs under a LOCK that are over, according to its history and its release record.
struct KnownRuns {
  /// The newest run that has a status or was lost. (A reservation never has a status, nor
  /// does a --hold that --max-run did not end.)
  std::optional<RunView> last;
  std::size_t lost = 0;    ///< how many runs in the history were lost
  bool is_certain = true;  ///< false: something was not readable, and there may be a newer one
};

/// Like LastSuccessOf(), but call it after the LOCK's last entry, when `lock.running` is known.
[[nodiscard]] KnownRuns RunsOf(const lock::LockSurvey& lock,
                               const std::optional<protocol::LastRelease>& last);

/// Finds out how long a LOCK has been held, reserved and waited for. Receives the entries of one
/// LOCK, in the survey's order.
class QueueTimes {
 public:
  explicit QueueTimes(const lock::LockSurvey& lock) : describer_(lock) {}

  /// The time of the contender that has been in its state for the longest.
  struct Oldest {
    std::optional<std::int64_t> since_ms;  ///< none: no contender whose time is known
    std::string contender;                 ///< "pid 4242 on web1"; a reservation's ID; printable
    bool is_unknown = false;               ///< the time of some contender is not known
  };

  ContenderView Add(const lock::QueueEntry& entry);
  /// Does not count reservations, although they hold too.
  [[nodiscard]] const Oldest& holder() const { return holder_; }
  [[nodiscard]] const Oldest& reservation() const { return reservation_; }
  /// Returns how many of the holders are reservations.
  [[nodiscard]] std::size_t reservations() const { return reservations_; }
  [[nodiscard]] const Oldest& waiter() const { return waiter_; }
  [[nodiscard]] const std::optional<protocol::LastRelease>& last_release() const {
    return describer_.last_release();
  }

 private:
  QueueDescriber describer_;
  Oldest holder_;
  Oldest reservation_;
  std::size_t reservations_ = 0;
  Oldest waiter_;
};

/// Formats the time in seconds, with three decimals if they are not whole: "7200", "1.250".
[[nodiscard]] std::string SecondsText(std::int64_t milliseconds);

}  // namespace zklock::cli
