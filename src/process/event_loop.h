#pragma once

#include <cstdint>
#include <vector>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// One thread, one wait: poll(2) over all sources and one CLOCK_BOOTTIME timer for their moments.
/// (poll's own time-out would stop counting while the host sleeps.)
class EventLoop {
 public:
  /// Throws std::system_error when there is no timer to be had.
  EventLoop();

  /// Sources outlive their registration; they are served in the order they were added. Both may be
  /// called while sources are served: a removed one is not called again, and may be destroyed; an
  /// added one is asked from the next wait on.
  void Add(EventSource& source);
  void Remove(EventSource& source);

  /// Waits until at least one source is ready and serves every one that is. A moment that has
  /// passed already is served at once. Throws std::logic_error when no source waits for anything:
  /// that wait would never end.
  void RunOnce();
  /// Serves every source that is ready by now, and waits for none.
  void RunReady();

 private:
  struct Registration {
    uint64_t id;  // an address may be used again by a source that was added meanwhile
    EventSource* source;
  };
  struct Entry {
    uint64_t id;
    EventSource* source;
    EventSource::Interest interest;
    short revents;
  };

  [[nodiscard]] std::vector<Entry> Ask() const;
  bool Wait(std::vector<Entry>& waiting);
  static bool Poll(std::vector<Entry>& waiting, int timer, int milliseconds);
  void Serve(const std::vector<Entry>& waiting);
  [[nodiscard]] bool IsRegistered(uint64_t id) const;

  UniqueFd timer_;
  uint64_t next_id_ = 1;
  std::vector<Registration> sources_;
};

}  // namespace zklock::process
