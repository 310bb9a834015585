#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"
#include "lock/data/reserved.h"

namespace zklock::cli {

/// What is known about the queue in which a run waits.
struct ProgressView {
  std::string lock;                  ///< as the user knows it
  Duration waited{};                 ///< in the queue
  std::optional<std::size_t> ahead;  ///< how many of those ahead are also waiting; none: not known
  bool is_first = false;             ///< no contender is ahead, but the lease is too short
  bool connected = true;
  std::string holder;                      ///< the child at the head of the queue; empty: not known
  std::string holder_data;                 ///< its data: arbitrary bytes
  std::optional<lock::Reserved> reserved;  ///< the holder is this reservation
  std::optional<Duration> held_for;        ///< at most
  std::size_t more_holders = 0;            ///< for a semaphore
  std::string last_run;                    ///< the data of the LOCK's last-run: arbitrary bytes
};

/// Returns "next in line, ", or "2 waiting ahead, " if 2 others wait ahead; empty if that is not
/// known.
[[nodiscard]] std::string PlaceInLine(const std::optional<std::size_t>& ahead);
/// Returns "waiting for /jobs/backup: next in line, 17s; held by backup.sh (pid 4242 on build1) for
/// 18s; runs take 4m to 6m".
[[nodiscard]] std::string ProgressLine(const ProgressView& view);
/// Returns the live line, cut to `columns`: a long LOCK first loses its beginning, then the line
/// loses its end, so that the position and the time stay visible as long as possible. It begins
/// with "zklock: " unless that would leave too little of the LOCK.
[[nodiscard]] std::string LiveProgress(const ProgressView& view, std::size_t columns);

/// Returns "acquired /jobs/backup after 6m12s".
[[nodiscard]] std::string AcquiredLine(const std::string& locks, Duration waited);
/// Returns the live line before any server was found: "zklock: looking for a server, 3s".
[[nodiscard]] std::string LiveSearch(Duration since, std::size_t columns);

/// Returns "backup.sh (pid 3185 on web1, 'nightly')" if the contender's data contains this,
/// otherwise the contender's name.
[[nodiscard]] std::string ProcessText(const std::string& name, const std::string& data);

}  // namespace zklock::cli
