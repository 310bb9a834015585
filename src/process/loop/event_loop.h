#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Waits for all sources in one poll(2): on their descriptors, and on a CLOCK_BOOTTIME timer for
/// their wake-up times. (poll's own timeout does not count while the host is suspended.)
class EventLoop {
 public:
  /// Throws std::system_error.
  EventLoop();

  /// Registers a source, which must outlive its registration. Sources are served in the order of
  /// their registration. Add() and Remove() may be called while sources are being served: a removed
  /// source is not called again and may be destroyed; an added one joins at the next wait.
  void Add(EventSource& source);
  void Remove(EventSource& source);

  /// Waits until at least one source is ready, and serves every one that is. Throws
  /// std::logic_error if no source waits for anything: the wait would never end.
  void RunOnce();
  /// Runs until `is_done` returns true or `deadline` is reached.
  void RunUntil(TimePoint deadline, const std::function<bool()>& is_done);
  /// Serves every source that is ready now, without waiting.
  void RunReady();

 private:
  struct Registration {
    uint64_t id;  // a source that is added later may have the same address
    EventSource* source;
  };
  struct Entry {
    uint64_t id;
    EventSource* source;
    EventSource::Interest interest;
    short revents;
  };

  [[nodiscard]] std::vector<Entry> Ask() const;
  bool Wait(std::vector<Entry>& entries);
  static bool Poll(std::vector<Entry>& entries, int timer, int milliseconds);
  void Serve(const std::vector<Entry>& entries);
  [[nodiscard]] bool IsRegistered(uint64_t id) const;

  UniqueFd timer_;
  uint64_t next_id_ = 1;
  std::vector<Registration> sources_;
};

}  // namespace zklock::process
