#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/end_cause.h"
#include "process/loop/system_error.h"
#include "protocol/lease.h"

namespace zklock::process {

/// Owns a T in memory that is shared with processes forked after it was created.
template <typename T>
class SharedPage {
 public:
  /// Throws std::system_error.
  SharedPage() {
    void* memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) ThrowErrno("mmap");
    page_ = new (memory) T;
  }
  ~SharedPage() { munmap(page_, sizeof(T)); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  T* operator->() const { return page_; }
  T& operator*() const { return *page_; }

 private:
  T* page_;
};

/// A moment in memory that zklock and its guard share.
class SharedMoment {
 public:
  explicit SharedMoment(TimePoint moment = {}) : value_(moment.time_since_epoch().count()) {}
  void Set(TimePoint moment) { value_ = moment.time_since_epoch().count(); }
  [[nodiscard]] TimePoint Get() const { return TimePoint(Duration(value_)); }

 private:
  std::atomic<int64_t> value_;
  static_assert(std::atomic<int64_t>::is_always_lock_free);
};

/// The end of the lease and the grace before it, in shared memory. zklock writes them; the guard
/// reads them.
class SharedLease {
 public:
  /// Moves the lease's end, forward or back. Returns true if the stop time has become earlier: the
  /// caller must then wake the guard to plan again.
  bool Set(TimePoint end, Duration grace) {
    const TimePoint stop = StopTime();
    // In this order, a guard that looks in the meantime sees a stop time that is too early, never
    // one that is too late.
    if (end < end_.Get()) end_.Set(end);
    grace_ = grace.count();
    end_.Set(end);
    return StopTime() < stop;
  }

  [[nodiscard]] TimePoint end() const { return end_.Get(); }
  [[nodiscard]] Duration grace() const { return Duration(grace_); }
  [[nodiscard]] TimePoint StopTime() const { return protocol::StopTime(end(), grace()); }

 private:
  SharedMoment end_;
  std::atomic<int64_t> grace_{};
};

/// Why the run or hold that the lease covers must end, in shared memory. zklock and the guard both
/// set it; the first cause counts.
class SharedCause {
 public:
  /// Returns whether this is the first cause.
  bool Set(EndCause cause) {
    int none = kNone;
    return value_.compare_exchange_strong(none, static_cast<int>(cause));
  }
  [[nodiscard]] std::optional<EndCause> Get() const {
    const int value = value_;
    return value == kNone ? std::nullopt : std::optional(static_cast<EndCause>(value));
  }

 private:
  static constexpr int kNone = -1;
  std::atomic<int> value_{kNone};
  static_assert(std::atomic<int>::is_always_lock_free);
};

/// The environment of a command that is forked before its environment is known. Must be in memory
/// that is shared, at the same address, with processes forked later (SharedPage).
class SharedEnvironment {
 public:
  /// Sets the complete environment, one NAME=VALUE each. Must be called only once. Returns false if
  /// the environment is larger than execve accepts.
  [[nodiscard]] bool Set(const std::vector<std::string>& environment);
  /// Returns the environment for execve. Async-signal-safe.
  [[nodiscard]] char* const* words() const { return memory_.data(); }

 private:
  // Holds the strings and the pointers to them; no kernel accepts more (execve(2)). Unwritten pages
  // take up no memory.
  static constexpr std::size_t kSize = std::size_t{6} << 20;
  std::array<char*, kSize / sizeof(char*)> memory_;
};

}  // namespace zklock::process
