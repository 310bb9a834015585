#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lock/data/contender_data.h"
#include "lock/data/reserved.h"
#include "lock/survey/survey.h"
#include "protocol/contender_name.h"
#include "protocol/grant_time.h"

namespace zklock::cli {

enum class ContenderState {
  kHeld,
  kReserved,  ///< held by a reservation, which no session owns
  kWaiting,
  kNoContender,  ///< a stray znode, which no session owns
};

/// One contender as shown to people: what the servers know, and what it wrote about itself.
struct ContenderView {
  std::string name;                     ///< of the LOCK's child
  std::string path;                     ///< on the servers
  std::optional<std::size_t> position;  ///< from 1; none: not a contender
  ContenderState state = ContenderState::kHeld;
  std::string blocking{};                            ///< as in lock::QueueEntry
  protocol::Mode mode = protocol::Mode::kExclusive;  ///< what its name asks for
  protocol::Program program = protocol::Program::kUnknown;
  bool readable = true;
  bool for_permit = false;                    ///< the LOCK is a semaphore
  std::optional<std::size_t> permit_limit{};  ///< how many the semaphore has, if known
  std::string turnstile_name;                 ///< as in lock::QueueEntry
  std::vector<std::string> more{};            ///< likewise
  std::size_t take = 1;  ///< how many permits it holds or, in the turnstile, asks for
  /// What it wrote about itself, which is never trusted. If another program wrote it, what zklock
  /// understands of it.
  lock::ContenderData data;
  /// When it entered its state, by the servers' clock, in ms since 1970.
  std::optional<std::int64_t> since_ms;
  bool since_exact = true;  ///< false: the earliest possible time
  std::optional<std::int64_t> token;
  std::optional<std::int64_t> session;
  std::optional<lock::Predecessor> waits_for;
  std::optional<lock::Reserved> reserved;
  bool overdue = false;  ///< the reservation's end has passed, by this host's clock

  /// Returns whether it has the lock: as a holder or as a reservation.
  [[nodiscard]] bool Holds() const {
    return state == ContenderState::kHeld || state == ContenderState::kReserved;
  }
  /// Returns whether it waits for this LOCK or any of those in `data.any`.
  [[nodiscard]] bool IsAny() const {
    return state == ContenderState::kWaiting && !data.any.empty();
  }
};

/// Describes the entries of one LOCK. Call Describe() once for each entry, in the survey's order.
class QueueDescriber {
 public:
  explicit QueueDescriber(const lock::LockSurvey& lock);
  [[nodiscard]] ContenderView Describe(const lock::QueueEntry& entry);

  /// Returns the last run under the LOCK, if there is a release record that we can read.
  [[nodiscard]] const std::optional<protocol::LastRelease>& last_release() const { return last_; }

 private:
  const bool is_semaphore_;
  const std::optional<std::size_t> permit_limit_;
  std::optional<protocol::LastRelease> last_;
  std::optional<protocol::HolderBefore> before_;
};

/// Returns the queue in order, with the holders first, followed by stray znodes.
[[nodiscard]] std::vector<ContenderView> DescribeQueue(const lock::LockSurvey& lock);

/// Returns "exclusive"; "8 permits" with --take.
[[nodiscard]] std::string ModeText(const ContenderView& contender);
/// Returns "2 of 3 permits used", for a semaphore; "2 permits used" if its limit is unknown.
[[nodiscard]] std::string PermitsInUse(const lock::LockSurvey& lock);

/// Returns whether a contender with Curator's prefix was created by go-zookeeper, which writes the
/// UUID without dashes.
[[nodiscard]] bool IsGoZooKeeper(std::string_view name);
/// Returns "zklock", "Curator", "go-zookeeper", "kazoo", "C recipe" or "unknown".
[[nodiscard]] std::string_view ProgramName(const ContenderView& contender);
/// Returns "build7:4242"; unknown parts are left out.
[[nodiscard]] std::string HostAndPid(const ContenderView& contender);
/// Returns how long it has been in its state, in whole seconds: "2h13m"; "≤ 58s" if only a bound is
/// known. Empty if not even a bound is known.
[[nodiscard]] std::string ForText(const ContenderView& contender, std::int64_t now_ms);
/// Returns "freeze until 2024-03-01 16:00:00: incident 4711", for a reservation; "freeze (overdue
/// since ...): incident 4711" if its end has passed. The reason comes last, since it may be long
/// and may be cut.
[[nodiscard]] std::string ReservationText(const lock::Reserved& reserved, bool overdue,
                                          bool with_year = true);
/// Says why a LOCK cannot be acquired. `child`: as QueueEntry::blocking.
[[nodiscard]] std::string BlockedText(const std::string& child);
/// Returns "held", "reserved", "waiting" or "stray".
[[nodiscard]] std::string_view StateName(ContenderState state);

/// Returns the time by this host's clock, in ms since 1970.
[[nodiscard]] std::int64_t MillisecondsNow();
/// Returns the time since `then_ms`, which may be any number from a znode's data; 0 if it is in the
/// future.
[[nodiscard]] std::int64_t MillisecondsSince(std::int64_t then_ms, std::int64_t now_ms);
/// Returns the local time, "2024-03-01 14:03:11", or the same without the year.
[[nodiscard]] std::string FormatTime(std::int64_t ms_since_1970, bool with_year = true);
/// Returns the time as in RFC 3339, in UTC, with milliseconds: "2024-03-01T14:03:11.042Z". None for
/// an impossible time.
[[nodiscard]] std::optional<std::string> FormatUtc(std::int64_t ms_since_1970);

}  // namespace zklock::cli
