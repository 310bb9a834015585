#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lock/ticket.h"
#include "simulation/ensemble.h"
#include "simulation/process.h"

namespace zklock::simulation {

/// A command that runs under locks: from its start to its own end or, at the latest, to the end of
/// the lease that its zklock has announced last. The guard is assumed to use up all of that time.
struct Command {
  std::string name;
  std::vector<lock::Ticket> tickets;
  std::optional<std::size_t> permits;
  Time own_end;
  Time lease_end;
  Process* process;  ///< to be woken at the end
  bool is_over = false;
  /// Its contender was deleted by force. The next one may hold before this command has ended.
  bool is_excused = false;

  /// Plans its end anew after a change of the times.
  static void Watch(const std::shared_ptr<Command>& command);
};

/// The promises, checked whenever something is committed and whenever a command starts.
class Checks {
 public:
  explicit Checks(Ensemble& servers);

  /// A command starts. Throws Violation.
  void Begin(const std::shared_ptr<Command>& command);
  /// Somebody who may delete contenders does so now, or writes what zklock has to believe.
  void Excuse(const std::string& path);
  [[nodiscard]] bool IsExcused(const std::string& path) const { return excused_.contains(path); }
  /// Contenders of running commands.
  [[nodiscard]] std::vector<std::string> HeldPaths() const;

 private:
  void BeforeCommit(const Txn& txn);
  void CheckQueue(const Command& command, const lock::Ticket& ticket) const;
  void CheckToken(const lock::Ticket& ticket, bool is_permit);

  Ensemble& servers_;
  std::vector<std::shared_ptr<Command>> commands_;
  std::set<std::string> excused_;
  struct Tokens {
    std::int64_t excluding = 0;
    std::int64_t all = 0;
  };
  std::map<std::string, Tokens> tokens_;
};

}  // namespace zklock::simulation
