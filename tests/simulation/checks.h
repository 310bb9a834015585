#pragma once

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

/// A command that runs under locks: from its start to its own end or, at the latest, to the end of
/// the lease that its zklock has announced last. The guard is assumed to use up all of that time.
struct Command {
  std::string name;
  std::vector<lock::Ticket> tickets;
  std::optional<std::size_t> permits;
  Time own_end;
  Time lease_end;
  Process* process = nullptr;  ///< to be woken at the end
  bool is_foreign = false;     ///< another program's, which has no lease
  std::optional<Duration> min_interval{};
  bool once_per = false;
  bool is_over = false;
  bool is_nested = false;  ///< under the lock of another one
  bool is_ending = false;  ///< its zklock lets nothing more run under the lock
  std::vector<std::shared_ptr<Command>> nested{};
  /// Its contender was deleted by force. The next one may hold before this command has ended.
  bool is_excused = false;

  /// Plans its end, or plans it anew after a change of the times.
  static void Watch(const std::shared_ptr<Command>& command);
  /// The lease was renewed: it and those nested below it may run until `end`.
  static void Extend(const std::shared_ptr<Command>& command, Time end);
  /// It and those nested below it end, at `end` at the latest. Returns when all have ended.
  static Time EndBy(const std::shared_ptr<Command>& command, Time end);
  [[nodiscard]] bool IsOverWithNested() const;
};

/// The promises, checked whenever something is committed and whenever a command starts.
class Checks {
 public:
  explicit Checks(Ensemble& servers);

  /// A command starts, and ends by itself. Throws Violation.
  std::shared_ptr<Command> Begin(Command its_values);
  /// Somebody who may delete contenders does so, or only asks to leave.
  void Excuse(const std::string& path, bool only_asked = false);
  [[nodiscard]] bool WasAsked(const std::string& path) const { return asked_.contains(path); }
  /// A reservation may be released from now on.
  void Allow(const std::string& path);
  /// --min-interval: a run that began at `began` has succeeded, and this is recorded.
  void Record(const std::string& lock, Time began) { successes_[lock] = began; }
  struct Reservation {
    std::string lock;
    std::string id;
    std::optional<std::int64_t> until_ms;
    std::int64_t session;  ///< of its maker
    bool may_go = false;
    /// It was renewed after its end: by a run that had asked for the time before, and was slow.
    bool had_ended = false;
    std::shared_ptr<Command> held;
  };
  /// By path.
  [[nodiscard]] const std::map<std::string, Reservation>& reservations() const {
    return reservations_;
  }
  [[nodiscard]] bool WasReleased(const std::string& path) const { return released_.contains(path); }
  /// It has an end, which is over by all servers' clocks, or was once.
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
  /// A contender of this session was deleted by force. Its run may never have known the znode: the
  /// reply to the create was lost.
  [[nodiscard]] bool WasRobbed(std::int64_t session) const { return robbed_.contains(session); }

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
  // Of contenders that were deleted, by path and czxid: until when their runs may not know of it.
  std::map<std::pair<std::string, std::int64_t>, Time> noticed_by_;
  std::map<std::string, Reservation> reservations_;
  std::set<std::string> released_;      // reservations that were
  std::set<std::int64_t> broken_sets_;  // the makers of these
  std::map<std::string, Time> successes_;
  std::map<std::string, std::int64_t> starts_;  // the newest in each last-start, in ms
  std::int64_t latest_ms_ = 0;                  // that a server's clock has shown
  struct Tokens {
    std::int64_t excluding = 0;
    std::int64_t all = 0;
  };
  std::map<std::string, Tokens> tokens_;
};

}  // namespace zklock::simulation
