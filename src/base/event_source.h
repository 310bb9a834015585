#pragma once

#include "base/clock.h"

namespace zklock {

/// Something the event loop waits for: a descriptor, a moment, or both.
///
/// Entirely passive: the loop asks GetInterest() before each wait, and calls OnReady() when the
/// descriptor is ready or the moment has come. Both run on the one thread there is.
class EventSource {
 public:
  struct Interest {
    int fd = -1;              ///< -1: no descriptor
    short events = 0;         ///< as for poll(2)
    TimePoint wake = kNever;  ///< when to be called even if nothing arrived
  };

  virtual ~EventSource() = default;
  [[nodiscard]] virtual Interest GetInterest() = 0;
  /// `revents` as from poll(2); 0 when only the moment came.
  virtual void OnReady(short revents) = 0;
};

}  // namespace zklock
