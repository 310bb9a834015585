#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "simulation/world.h"

namespace zklock::simulation {

/// A host. The first numbers are the hosts of the servers, in order; those after them are hosts
/// that run processes.
using Place = int;
inline constexpr int kMostPlaces = 16;

/// One direction of a connection between two places: messages arrive in order or, once the
/// connection is broken, not at all. While the path is cut, they wait, as in TCP.
struct Pipe {
  Place from;
  Place to;
  struct Message {
    Time due;
    std::function<void()> deliver;
  };
  std::deque<Message> messages{};
  Time last_due = 0;
  bool is_scheduled = false;
  bool is_broken = false;  ///< messages in transit are lost
};

/// The paths between places. Each direction can be cut by itself.
class Network {
 public:
  [[nodiscard]] std::shared_ptr<Pipe> MakePipe(Place from, Place to);
  void Send(const std::shared_ptr<Pipe>& pipe, std::function<void()> deliver);
  void Break(Pipe& pipe);

  void Cut(Place from, Place to) { ++cuts_[Index(from)][Index(to)]; }
  /// Undoes one Cut().
  void Heal(Place from, Place to);
  [[nodiscard]] bool IsCut(Place from, Place to) const { return cuts_[Index(from)][Index(to)] > 0; }
  /// Stalls a place until `until`: messages to it wait in its system's buffers.
  void Stall(Place place, Time until);
  [[nodiscard]] Time stalled_until(Place place) const { return stalled_[Index(place)]; }
  /// Sets the typical delay from now on.
  void SetDelay(Place from, Place to, Time delay) { delay_[Index(from)][Index(to)] = delay; }
  [[nodiscard]] Time delay(Place from, Place to) const { return delay_[Index(from)][Index(to)]; }

 private:
  static std::size_t Index(Place place) { return static_cast<std::size_t>(place); }
  void Schedule(const std::shared_ptr<Pipe>& pipe);
  void Pump(const std::shared_ptr<Pipe>& pipe);

  template <typename T>
  using Matrix = std::array<std::array<T, kMostPlaces>, kMostPlaces>;
  Matrix<int> cuts_{};
  Matrix<Time> delay_{};
  std::array<Time, kMostPlaces> stalled_{};
  std::vector<std::weak_ptr<Pipe>> waiting_;  // pipes with messages that a cut holds up
};

}  // namespace zklock::simulation
