#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "process/tree/pidfd.h"
#include "process/tree/process_tree.h"

namespace zklock::process {

/// The process for which a keeper holds a lock. Never refers to a later process with the same pid.
class Owner {
 public:
  /// Returns none if there is no such process, or it has ended. Throws std::system_error if the
  /// system cannot report when another process ends (pidfd_open(2)).
  [[nodiscard]] static std::optional<Owner> Open(pid_t pid);
  /// Returns the parent of this process; none if the parent has just ended.
  [[nodiscard]] static std::optional<Owner> Parent();

  [[nodiscard]] const ProcessId& id() const { return id_; }
  /// The name of the owner's program, at most 15 characters.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool HasEnded() const { return process_.HasEnded(); }
  /// Readable once the owner has ended.
  [[nodiscard]] int fd() const { return process_.fd(); }
  /// Returns 0 or an errno. Signal 0 only checks whether the process could be signalled.
  [[nodiscard]] int Signal(int signal_number) const { return process_.Signal(signal_number); }

 private:
  Owner(PidFd process, ProcessStat stat)
      : process_(std::move(process)), id_(stat.id), name_(std::move(stat.name)) {}

  PidFd process_;
  ProcessId id_;
  std::string name_;
};

}  // namespace zklock::process
