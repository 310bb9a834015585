#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace zklock::simulation {

/// Virtual time, in nanoseconds.
using Time = std::int64_t;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000 * kMillisecond;
inline constexpr Time kForever = std::int64_t{1} << 62;

/// Random numbers that are the same on every machine, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  /// Returns 0 to `n` - 1.
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(n));
  }
  std::int64_t Between(std::int64_t low, std::int64_t high) { return low + Below(high - low + 1); }
  bool Chance(double p) { return static_cast<double>(Next() >> 11U) < p * 9007199254740992.0; }
  /// Returns a time that is mostly near `typical`, and rarely many times as long.
  Time Around(Time typical);
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(Below(static_cast<std::int64_t>(from.size())))];
  }

 private:
  std::uint64_t state_;
};

/// Thrown when a promise is broken: ends the life, whose seed is reported.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Time, random numbers and the event queue. Only one exists at a time: `world`.
///
/// Events at the same time run in the order in which they were scheduled, so that the seed
/// determines everything. Nothing here or above may depend on an address, the real time, or the
/// order of an unordered container.
class World {
 public:
  World(std::uint64_t seed, bool trace);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Time now() const { return now_; }
  void At(Time time, std::function<void()> run);
  void After(Time delay, std::function<void()> run) { At(now_ + delay, std::move(run)); }
  /// Runs the next event. Returns false if there is none before `until`.
  bool Step(Time until);

  /// Mixes a decision into the hash of this life.
  void Note(std::uint64_t what);
  void Note(const std::string& what);
  [[nodiscard]] bool traces() const { return traces_; }
  /// Mixes the current time into the hash, and prints a line with --trace.
  template <typename... Arguments>
  void Trace(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    Note(static_cast<std::uint64_t>(now_));
    if (traces_) Print(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  /// Counts an event of this kind, for the figures.
  void Count(const std::string& kind) { ++counts[kind]; }

  Random random;
  std::map<std::string, std::int64_t> counts;
  std::uint64_t hash = 14695981039346656037U;
  std::uint64_t events = 0;

 private:
  struct Event {
    Time time;
    std::uint64_t number;
    std::size_t run;  ///< an index in `runs_`, so that events are cheap to move in the heap
  };
  static bool IsLater(const Event& one, const Event& other) {
    return one.time != other.time ? one.time > other.time : one.number > other.number;
  }
  void Print(const std::string& line) const;

  Time now_ = 1'000 * kSecond;
  bool traces_;
  std::uint64_t planned_ = 0;
  std::vector<Event> queue_;  // a heap
  std::vector<std::function<void()>> runs_;
  std::vector<std::size_t> free_runs_;
};

/// The world that is being simulated. The client library's functions have no other way to find it.
extern World* world;

/// Virtual time for src/.
class VirtualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint Now() const override { return TimePoint(Duration(world->now())); }
};
inline TimePoint PointOf(Time time) { return TimePoint(Duration(time)); }
inline Time TimeOf(TimePoint point) { return point.time_since_epoch().count(); }

}  // namespace zklock::simulation
