#pragma once

#include "base/clock.h"

namespace zklock {

/// Something the event loop waits for: a descriptor, a point in time, or both.
///
/// Entirely passive: the loop calls GetInterest() before each wait, and OnReady() when the
/// descriptor is ready or the time is reached. Both run on zklock's only thread. A source can be
/// neither copied nor moved: the loop keeps a pointer to it.
class EventSource {
 public:
  struct Interest {
    int fd = -1;              ///< -1: no descriptor
    short events = 0;         ///< as for poll(2)
    TimePoint wake = kNever;  ///< when to call OnReady() even if the descriptor is not ready
  };

  EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  virtual ~EventSource() = default;
  [[nodiscard]] virtual Interest GetInterest() = 0;
  /// Handles readiness. `revents`: as from poll(2); 0 if only the time was reached.
  virtual void OnReady(short revents) = 0;
};

}  // namespace zklock
