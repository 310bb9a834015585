#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "cli/end_reason.h"
#include "cli/options.h"
#include "lock/hold.h"
#include "lock/ticket.h"
#include "protocol/queue.h"

namespace zklock::cli {

// What happens in a run, as told to messages, events and progress alike. Paths are those that the
// user knows; the name of a predecessor may be anybody's bytes.

/// A server took us on, for the first time or in another's place.
struct Connected {
  std::string server;              ///< as the user wrote it
  Duration granted;                ///< the session time-out that it grants
  Duration effective;              ///< the one that counts: the shortest granted to this session
  std::optional<Duration> before;  ///< what counted until now; none for a new session
};
/// Our contender is in the queue.
struct Queued {
  lock::Ticket ticket;
};
struct Waiting {
  std::string lock;
  std::string predecessor;
  std::size_t ahead = 0;  ///< contenders before ours, as far as the last list goes
};
/// The session expired in the queue: a new place at the tail is taken.
struct PlaceLost {
  std::string lock;
};
/// A contender that does not see ours has come later than we did; both may hold.
struct IncompatibleArrived {
  std::string lock;
  protocol::IncompatibleContender incompatible;
};
struct Acquired {
  lock::Ticket ticket;
};
/// A zklock above us holds it for us.
struct Nested {
  std::string lock;
};
struct Started {
  std::string command;
  pid_t pid = 0;
};
/// The server has gone or does not answer.
struct Suspect {
  std::string lock;
};
/// Proven again after Suspect.
struct Confirmed {
  std::string lock;
};
struct Lost {
  std::string lock;
  lock::Loss loss;
  OnLost on_lost;
};
/// The guard ended the command before the lease's end, and was first to see that it had to.
struct LeaseRanOut {
  std::string lock;
};
/// The command has ended and was reaped.
struct Exited {
  int wait_status = 0;  ///< as from waitpid
};
/// The command has ended, but not all zklocks that run below it under the same lock: it is kept.
struct KeptForNested {
  std::string lock;
  std::size_t runs = 0;
  pid_t pid = 0;  ///< of one of them
};
/// The session is closed, and with it everything that was queued or held.
struct Released {
  std::string lock;
  EndReason reason = EndReason::kEnded;
  int status = 0;         ///< that zklock ends with
  bool confirmed = true;  ///< false: the servers have not said so, the session's end does it
};

using Step =
    std::variant<Connected, Queued, Waiting, PlaceLost, IncompatibleArrived, Acquired, Nested,
                 Started, Suspect, Confirmed, Lost, LeaseRanOut, Exited, KeptForNested, Released>;

/// Hears each step of a run, in order.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void OnStep(const Step& step) = 0;
};

}  // namespace zklock::cli
