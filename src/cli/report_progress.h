#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"

namespace zklock::cli {

/// Where a waiter stands, as far as known.
struct ProgressView {
  std::string lock;       ///< as the user knows it
  Duration waited{};      ///< in the queue
  std::size_t place = 0;  ///< in the queue, from 1
  bool connected = true;
  std::string holder;       ///< the child at the head of the queue; empty: not known
  std::string holder_data;  ///< its data, anybody's bytes
  std::optional<Duration> held_at_most;
  std::size_t more_holders = 0;  ///< of a semaphore
};

// The sentences of --progress.

/// The live line, cut to `columns`.
[[nodiscard]] std::string LiveProgress(const ProgressView& view, std::size_t columns);
/// A line of its own; `first`: the wait has begun.
[[nodiscard]] std::string PlainProgress(const ProgressView& view, bool first);

/// "backup.sh, pid 3185 on web1", as far as a contender's data tells; else its name.
[[nodiscard]] std::string WhoOf(const std::string& name, const std::string& data);

}  // namespace zklock::cli
