#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lock/data/ticket.h"
#include "simulation/ensemble.h"
#include "simulation/process.h"

namespace zklock::simulation {

/// The DURATION of every --once-per.
inline constexpr std::chrono::milliseconds kOncePer{4'000};

/// The number of every --permits.
inline constexpr std::size_t kPermits = 4;

/// A command that runs under locks, from its start until it ends by itself or, at the latest, until
/// the end of the lease that its zklock announced last. The guard is assumed to use up all of that
/// time.
struct Command {
  std::string name;
  std::vector<lock::Ticket> tickets;
  std::optional<std::size_t> permits;
  Time own_end;
  Time lease_end;
  Process* process = nullptr;  ///< woken at the end
  bool is_foreign = false;     ///< belongs to another program, which has no lease
  std::optional<Duration> min_interval{};
  bool once_per = false;
  bool is_over = false;
  bool is_nested = false;  ///< runs under another command's lock
  bool is_ending = false;  ///< its zklock accepts no more nested runs
  std::vector<std::shared_ptr<Command>> nested{};
  /// Its contender was deleted by force, so the next contender may hold before this command has
  /// ended.
  bool is_excused = false;

  /// Schedules its end; call it again when its times have changed.
  static void Watch(const std::shared_ptr<Command>& command);
  /// Extends the lease: the command and those nested below it may run until `end`.
  static void Extend(const std::shared_ptr<Command>& command, Time end);
  /// Makes the command and those nested below it end by `end`. Returns the time by which all have
  /// ended.
  static Time EndBy(const std::shared_ptr<Command>& command, Time end);
  [[nodiscard]] bool IsOverWithNested() const;
};

/// zklock's promises, checked at every commit and whenever a command starts.
class Checks {
 public:
  explicit Checks(Ensemble& servers);

  /// Starts a command, which ends by itself. Throws Violation.
  std::shared_ptr<Command> Begin(Command its_values);
  /// Notes that a client with the permission deletes this contender by force, or only asks it to
  /// leave.
  void Excuse(const std::string& path, bool only_asked = false);
  [[nodiscard]] bool WasAsked(const std::string& path) const { return asked_.contains(path); }
  /// Allows the release of this reservation from now on.
  void Allow(const std::string& path);
  /// Notes, for --min-interval, that the success of a run that began at `began` is recorded.
  void Record(const std::string& lock, Time began) { successes_[lock] = began; }
  /// Notes that a start at `moment` may be recorded in the LOCK, or in its last-start: later runs
  /// may be refused as too recent.
  void MayRefuse(const std::string& path, Time moment) {
    refusing_[path] = std::max(refusing_[path], moment);
  }
  /// Checks, for a run that was refused as too recent, that such a start was at most `interval`
  /// ago.
  void RequireRecent(const std::string& name, const std::string& path, Time interval) const;
  struct Reservation {
    std::string lock;
    std::string id;
    std::optional<std::int64_t> until_ms;
    std::int64_t session;  ///< its maker's
    bool may_go = false;
    /// It was renewed after its end, by a slow run that had read the time before the end.
    bool had_ended = false;
    std::shared_ptr<Command> held;
  };
  /// Returns the reservations by path.
  [[nodiscard]] const std::map<std::string, Reservation>& reservations() const {
    return reservations_;
  }
  [[nodiscard]] bool WasReleased(const std::string& path) const { return released_.contains(path); }
  /// Returns whether its end has passed by some server's clock, or had passed before it was
  /// renewed.
  [[nodiscard]] bool MayHaveEnded(const std::string& path) const {
    const auto found = reservations_.find(path);
    return found == reservations_.end() || found->second.had_ended ||
           (found->second.until_ms && latest_ms_ >= *found->second.until_ms);
  }
  [[nodiscard]] bool HasEnded(const Reservation& reservation) const {
    return reservation.until_ms && latest_ms_ > *reservation.until_ms + 1'000 && !clocks_jump;
  }
  bool clocks_jump = false;
  [[nodiscard]] bool IsExcused(const std::string& path) const { return excused_.contains(path); }
  /// Returns whether a contender of any of a run's sessions was deleted by force. The run may never
  /// have known the znode, if the reply to the create was lost.
  [[nodiscard]] bool WasRobbed(const std::set<std::int64_t>& sessions) const;

 private:
  void BeforeCommit(const Txn& txn);
  void OnDeleted(const std::string& path, const Txn& txn);
  void OnConverted(const Change& change, const Txn& txn);
  void OnRenewed(const Change& change);
  bool IsRequest(const Change& change);
  void OnHistory(const Change& change) const;
  void OnStart(const Change& change, const Txn& txn);
  void CheckOverlap(const Command& command, const lock::Ticket& ticket) const;
  void CheckQueue(const Command& command, const lock::Ticket& ticket) const;
  void CheckStart(const Command& command, const lock::Ticket& ticket) const;
  void CheckToken(const lock::Ticket& ticket, bool is_permit);
  void CheckPermits(const Txn& txn) const;

  Ensemble& servers_;
  std::vector<std::shared_ptr<Command>> commands_;
  std::set<std::string> excused_;
  std::set<std::string> asked_;
  std::set<std::int64_t> robbed_;
  // For each deleted contender, by path and czxid: the time by which its run must have noticed.
  std::map<std::pair<std::string, std::int64_t>, Time> noticed_by_;
  std::map<std::string, Reservation> reservations_;
  std::set<std::string> released_;      // reservations that were released
  std::set<std::int64_t> broken_sets_;  // the sessions that made those deleted
  std::map<std::string, Time> successes_;
  std::map<std::string, Time> refusing_;        // the newest start that may be recorded
  std::map<std::string, std::int64_t> starts_;  // the newest in each last-start, in ms
  std::int64_t latest_ms_ = 0;                  // the latest time on any server's clock
  struct Tokens {
    std::int64_t excluding = 0;
    std::int64_t all = 0;
  };
  std::map<std::string, Tokens> tokens_;
};

}  // namespace zklock::simulation
