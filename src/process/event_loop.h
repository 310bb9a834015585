#pragma once

#include <vector>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// One thread, one wait: poll(2) over all sources and one CLOCK_BOOTTIME timer for their moments.
class EventLoop {
 public:
  EventLoop();

  /// Sources outlive their registration; they are served in the order they were added.
  void Add(EventSource& source);
  void Remove(EventSource& source);

  /// Waits until at least one source is ready and serves every one that is.
  void RunOnce();

 private:
  UniqueFd timer_;
  std::vector<EventSource*> sources_;
};

}  // namespace zklock::process
