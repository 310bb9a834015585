#pragma once

#include <fmt/core.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/overloaded.h"
#include "lock/acquire/acquire.h"
#include "lock/hold/hold.h"
#include "lock/several/acquire_set.h"
#include "protocol/lock_path.h"
#include "support/fake_store.h"

namespace zklock::lock {

using protocol::Mode;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;

inline std::string NextUuid() {
  static int number = 0;
  return fmt::format("00000000-0000-4000-8000-{:012d}", ++number);
}

/// Returns the last part of a path.
inline std::string Name(const std::string& path) { return std::string(protocol::BaseOf(path)); }

/// What an acquisition has published.
struct AcquireNotes {
  void Add(const AcquireEvent& event) {
    std::visit(
        Overloaded{[this](const QueuedEvent& one) { queued = one.ticket.path; },
                   [this](const WaitingEvent& one) {
                     waits.emplace_back(one.predecessor, one.ahead.contenders);
                   },
                   [this](const PreemptedEvent& one) { preempted.push_back(one.preempted); },
                   [this](const FirstEvent&) { ++times_first; },
                   [this](const PlaceLostEvent& one) {
                     ++places_lost;
                     lost_in.push_back(one.lock);
                   },
                   [this](const QueueLeftEvent& one) { left.push_back(one); },
                   [this](const IncompatibleArrivedEvent& one) {
                     incompatible.push_back(one.incompatible.child);
                   },
                   [this](const OwnDataEvent& one) { own_data.push_back(one.data); },
                   [this](const ReservationOverdueEvent& one) { overdue.push_back(one.path); },
                   [](const auto&) {}},
        event);
  }
  [[nodiscard]] AcquireEventSink Sink() {
    return [this](const AcquireEvent& event) { Add(event); };
  }

  std::string queued;
  std::vector<std::string> overdue;
  std::vector<std::string> own_data;
  std::vector<std::pair<std::string, std::size_t>> waits;
  std::vector<Preempted> preempted;
  std::vector<QueueLeftEvent> left;
  int places_lost = 0;
  std::vector<std::string> lost_in;  ///< the LOCKs
  int times_first = 0;
  std::vector<std::string> incompatible;
};

/// Ignores the events of a Hold.
inline void Ignore(const HoldEvent& /*event*/) {}

/// Servers, by default with a LOCK that zklock created.
struct World {
  explicit World(bool lock_exists = true, const std::string& data = "zklock/1") {
    if (lock_exists) servers.Put("/l", 0, false, data);
  }
  FakeClock clock;
  FakeServers servers;
};

/// One contender with its own store, on the test's servers.
struct Contender {
  /// `request`: the LOCK is /l and the host "host" unless it names others.
  explicit Contender(FakeServers& servers, FakeClock& its_clock, AcquireRequest request = {})
      : clock(its_clock),
        store(servers, its_clock),
        acquire(store, its_clock, WithDefaults(std::move(request)), NextUuid, notes.Sink()) {}
  explicit Contender(World& world, AcquireRequest request = {})
      : Contender(world.servers, world.clock, std::move(request)) {}

  template <typename T>
  [[nodiscard]] bool Ended() const {
    return acquire.outcome() && std::holds_alternative<T>(*acquire.outcome());
  }
  [[nodiscard]] bool Holds() const { return Ended<Acquired>(); }
  /// Runs until nothing is left to do. Returns whether it then holds (RunToWait: still waits).
  [[nodiscard]] bool RunToHold() {
    store.Run();
    return Holds();
  }
  [[nodiscard]] bool RunToWait() {
    store.Run();
    return !acquire.outcome();
  }
  [[nodiscard]] const Ticket& ticket() const {
    return std::get<Acquired>(*acquire.outcome()).ticket;
  }
  /// Returns why it has left; nothing if it has not.
  [[nodiscard]] std::optional<Busy::Why> why() const {
    return Ended<Busy>() ? std::optional(std::get<Busy>(*acquire.outcome()).why) : std::nullopt;
  }
  /// Writes the record and deletes the contender in one transaction, then ends the session, as run
  /// does after its command.
  void Release(FakeServers& servers) {
    {
      Hold hold(store, clock, {ticket()}, std::chrono::seconds(5), Ignore);
      hold.Release({.duration = std::chrono::milliseconds(1500), .status = 3, .host = "host"});
      store.Run();
    }
    Leave(servers);
  }
  /// Ends the session, as a run does at its end, whatever the outcome.
  void Leave(FakeServers& servers) { servers.EndSession(store.session_id()); }

  FakeClock& clock;
  AcquireNotes notes;
  FakeStore store;
  Acquire acquire;

 private:
  static AcquireRequest WithDefaults(AcquireRequest request) {
    if (request.lock.path.empty()) request.lock.path = "/l";
    if (request.host.empty()) request.host = "host";
    return request;
  }
};

/// A contender that has run until nothing was left to do.
struct Joined : Contender {
  explicit Joined(World& world, AcquireRequest request = {})
      : Contender(world, std::move(request)) {
    store.Run();
  }
};

/// `auto [world, other, self] = BehindOther();`: another client's contender, which holds the lock,
/// and one that has queued after it.
struct BehindOther {
  explicit BehindOther(AcquireRequest request = {}) : self(world, std::move(request)) {}
  World world;
  std::string other = world.servers.Put("/l/other-lock-", 1, true);
  Joined self;
};

/// One contender of several LOCKs, or of a semaphore.
template <typename Acquisition>
struct ContenderOf {
  template <typename... Further>
  ContenderOf(World& its_world, const std::vector<AcquireRequest>& requests, Further... further)
      : world(its_world),
        store(world.servers, world.clock),
        set(store, world.clock, requests, NextUuid, notes.Sink(), further...) {}

  /// Runs until nothing is left to do without advancing the clock.
  void Run() {
    do {
      store.Run();
      ServeTimers();
    } while (store.Step());
  }
  void ServeTimers() {
    while (set.GetInterest().wake <= world.clock.Now()) set.OnReady(0);
  }
  template <typename T>
  [[nodiscard]] bool Ended() const {
    return set.outcome() && std::holds_alternative<T>(*set.outcome());
  }
  [[nodiscard]] bool Holds() const { return Ended<Acquired>(); }
  /// Returns why it has left; nothing if it has not.
  [[nodiscard]] std::optional<Busy::Why> why() const {
    return Ended<Busy>() ? std::optional(std::get<Busy>(*set.outcome()).why) : std::nullopt;
  }

  World& world;
  AcquireNotes notes;
  FakeStore store;
  Acquisition set;
};
using SetContender = ContenderOf<AcquireSet>;

/// A waiter that has sent nothing for this long since it joined no longer has a lease in hand. A
/// heartbeat gives it a lease that is long enough to start a command.
inline constexpr Duration kPastLeaseInHand = std::chrono::seconds(17);

}  // namespace zklock::lock
