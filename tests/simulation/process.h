#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_source.h"
#include "simulation/network.h"
#include "simulation/world.h"
#include "zookeeper/server_list.h"

namespace zklock::simulation {

/// A simulated process with an event loop like process::EventLoop. It runs on a stack of its own,
/// so that its program reads from top to bottom, and can be stopped or killed wherever it waits.
class Process {
 public:
  /// Starts `program` now.
  Process(std::string name, Place place, std::function<void(Process&)> program);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Place place() const { return place_; }
  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] bool is_killed() const { return is_killed_; }
  /// Returns the process whose program is running; null if none is.
  [[nodiscard]] static Process* Current();

  // For its program.
  void Add(EventSource& source);
  void Remove(EventSource& source);
  /// Waits until a source is ready, or until `until`, and serves all ready sources.
  void RunOnce(TimePoint until = kNever);
  /// Does nothing for this time.
  void Sleep(Time span);

  // From outside.
  void Wake();  ///< a descriptor or a condition of its program may have changed
  void Stop(Time until);
  [[nodiscard]] bool IsStopped() const { return stopped_until_ > world->now(); }
  /// Kills the process: its program ends without another request.
  void Kill();

  std::int64_t requests = 0;  ///< how many its program has made

  /// The typical duration of a turn of the loop.
  static constexpr Time kTurn = 30'000;

 private:
  struct Killed {};
  struct Entry {
    std::uint64_t id;
    EventSource* source;
    EventSource::Interest interest{};
    short revents = 0;
  };

  static void Enter(unsigned low, unsigned high);
  void Resume();
  void Yield();
  /// Suspends the program until `time`, or until it is woken if `can_be_woken`.
  void WaitUntil(Time time, bool can_be_woken);
  [[nodiscard]] bool Ask(std::vector<Entry>& entries, TimePoint& wake);

  const std::string name_;
  const Place place_;
  std::function<void(Process&)> program_;
  std::unique_ptr<char[]> stack_;
  // Switches stacks with jumps, which need no system calls, except the first time.
  ucontext_t context_{};
  std::jmp_buf inside_{};
  std::jmp_buf outside_{};
  bool has_begun_ = false;
  std::vector<Entry> sources_;
  std::uint64_t next_id_ = 1;
  std::uint64_t wait_ = 0;  ///< the number of the current wait
  bool waits_ = false;
  bool can_be_woken_ = false;
  bool is_woken_ = false;
  bool may_be_ready_ = true;  ///< a descriptor may be ready and must be polled
  Time stopped_until_ = 0;
  bool is_over_ = false;
  bool is_killed_ = false;
  std::exception_ptr failure_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// client_library.cc.

class Ensemble;
/// The servers that the client library connects to. Set before the first process starts.
extern Ensemble* ensemble;
/// Returns the address of a server, for the library and for a Session.
[[nodiscard]] zookeeper::Endpoint EndpointOf(int server);
/// Returns the ready events of one descriptor, as poll(2) does: it is writable once it is
/// connected.
[[nodiscard]] short ReadyEvents(int fd, short asked);
/// Forgets the sockets of a world that ends.
void CloseAllSockets();

}  // namespace zklock::simulation
