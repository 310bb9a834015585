#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// A moment in memory that zklock and the guard share.
class SharedMoment {
 public:
  void Set(TimePoint moment) { value_ = moment.time_since_epoch().count(); }
  [[nodiscard]] TimePoint Get() const { return TimePoint(Duration(value_)); }

 private:
  std::atomic<int64_t> value_{};
  static_assert(std::atomic<int64_t>::is_always_lock_free);
};

/// A span of time, likewise.
class SharedSpan {
 public:
  void Set(Duration span) { value_ = span.count(); }
  [[nodiscard]] Duration Get() const { return Duration(value_); }

 private:
  std::atomic<int64_t> value_{};
};

/// What zklock wants of the guard. Only ever raised.
enum class Order : int {
  kGuard,  ///< keep the command
  kEnd,    ///< the stop signal, KILL after the grace
  kKill,   ///< KILL at once
};

/// The page that zklock and the guard share: what must get through though the other is stopped.
struct GuardPage {
  /// D; written by zklock, ahead of kBegin. It may move back: kWake follows then.
  SharedMoment lease_end;
  SharedSpan grace;  ///< between the stop signal and KILL; written by zklock
  /// Written by the guard: it has acknowledged D and what was ordered, and will look again (and
  /// move this) at this moment at the latest. Later than that, it hangs.
  SharedMoment guard_looks_at;
  std::atomic<Order> order{Order::kGuard};  ///< written by zklock
  std::atomic<bool> is_ending{false};       ///< written by the guard: it is ending the tree
  /// Written by zklock: it stops because the command has. The guard continues it, again and again
  /// until this is false, when the command goes on or has ended.
  std::atomic<bool> stops_likewise{false};
  std::atomic<pid_t> command{0};  ///< written when it is forked
};

/// One datagram between zklock and the guard.
struct Message {
  enum class Kind : int {
    kReady,       ///< the command is forked
    kBegin,       ///< to the guard: the command may run
    kWake,        ///< to the guard: look at the page
    kForward,     ///< to the guard: send `number` to the command
    kStarted,     ///< the command runs
    kStopped,     ///< `number`: the signal that has stopped the command
    kExecFailed,  ///< `number`: errno of execve. The guard has gone
    kFailed,      ///< `number`: errno, `name`: the operation. The guard has gone
    kSurvivor,    ///< `number`: pid, `name`. Comes before kEnded
    kLeftBehind,  ///< `number`: pid, `name`. Comes before kCommandEnded
    /// `number`: wait status of the command, which ended by itself. The guard waits: zklock
    /// dismisses it, or orders it to end what the command left behind.
    kCommandEnded,
    kTreeEnded,  ///< `number`: wait status; `by_order`. Nothing is left to guard
  };
  Kind kind{};
  int number = 0;
  int by_order = 0;
  std::array<char, 16> name{};  ///< null-terminated
};

/// Both ends are close-on-exec and do not block. Throws std::system_error.
struct GuardSocket {
  UniqueFd zklock;
  UniqueFd guard;
};
[[nodiscard]] GuardSocket MakeGuardSocket();

/// Never blocks and never raises PIPE. False when the other end has gone or reads nothing.
bool Send(int socket, const Message& message);

struct Received {
  std::optional<Message> message;  ///< none: nothing there now
  bool is_closed = false;          ///< the other end has gone
};
[[nodiscard]] Received Receive(int socket);

}  // namespace zklock::process
