#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lock/data/contender_data.h"
#include "lock/reserve/make_reservations.h"
#include "lock/several/acquire_any.h"
#include "lock/several/acquire_set.h"
#include "protocol/lock_path.h"
#include "protocol/release_record.h"
#include "unit/lock/contender.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {

struct ReserveOptions {
  std::vector<std::string> locks = {"/l"};
  Mode mode = Mode::kExclusive;
  bool try_only = false;
  std::optional<std::size_t> permits{};
  std::size_t take = 1;
  std::optional<std::chrono::milliseconds> lasts{};
  std::optional<std::size_t> max_queue{};
  std::optional<Duration> wait{};
  bool any = false;  ///< one of `locks` is enough
};

inline std::vector<AcquireRequest> RequestsFor(const std::string& id,
                                               const ReserveOptions& options) {
  std::vector<AcquireRequest> requests;
  for (const std::string& lock : options.locks) {
    ContenderData data{.mode = options.mode, .host = "host", .take = options.take, .reserve = id};
    for (const std::string& other : options.locks) {
      if (options.any && other != lock) data.any.push_back(other);
    }
    AcquireRequest request{
        .lock = {lock, ""},
        .mode = options.mode,
        .host = "host",
        .data = FormatContenderData(data),
        .try_only = options.try_only,
        .wait = options.wait,
        .max_queue = options.max_queue,
        .permits = options.permits,
        .take = options.take,
        .reserve = protocol::ReservationRequest{.id = id, .reason = "why", .lasts = options.lasts}};
    if (id.empty()) request.reserve.reset();
    if (options.permits) {
      for (auto& one : RequestsForPermit(request)) requests.push_back(std::move(one));
    } else {
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

/// One zklock with its own store; with --reserve, unless `id` is empty.
struct Reserver {
  Reserver(World& its_world, std::string its_id, const ReserveOptions& options = {})
      : world(its_world),
        id(std::move(its_id)),
        requests(RequestsFor(id, options)),
        is_any(options.any),
        store(world.servers, world.clock) {
    if (is_any) {
      set = std::make_unique<AcquireAny>(store, world.clock, requests, NextUuid, notes.Sink());
    } else {
      set = std::make_unique<AcquireSet>(store, world.clock, requests, NextUuid, notes.Sink());
    }
  }

  /// Runs until nothing is left to do without advancing the clock.
  void Run() {
    do {
      store.Run();
      if (set) RunSet();
    } while (store.Step());
  }
  void RunSet() {
    while (set->GetInterest().wake <= world.clock.Now()) set->OnReady(0);
    if (!set->outcome()) return;
    outcome = *set->outcome();
    found = set->reserved();
    tickets = set->tickets();
    may_be_reserved = set->MayBeReserved();
    const auto passed = is_any ? set->passed() : std::vector<std::string>();
    set.reset();
    if (id.empty() || tickets.empty()) return;
    std::vector<HeldContender> held;
    for (const Ticket& ticket : tickets) held.push_back({ticket, requests.front().data});
    try {
      result = RunCalls(store, world.clock, [&](Calls& calls) {
        return MakeReservations(calls, held, found, passed, *requests.front().reserve);
      });
    } catch (const ReservingFailed& failed) {
      failure = failed;
    }
  }
  /// Lets time pass for this client, which sends its heartbeats, and the servers.
  void Pass(std::chrono::milliseconds time) {
    while (time.count() > 0) {
      const std::chrono::milliseconds step =
          std::min<std::chrono::milliseconds>(time, std::chrono::seconds(5));
      time -= step;
      world.clock.Set(world.clock.Now() + step);
      world.servers.now_ms += step.count();
      Run();
    }
  }
  /// Ends the session, as a run does at its end, whatever the outcome.
  void Leave() const { world.servers.EndSession(store.session_id()); }

  [[nodiscard]] bool HasReserved() const {
    return result && std::holds_alternative<std::vector<ReservedLock>>(*result);
  }
  [[nodiscard]] const std::vector<ReservedLock>& made() const {
    return std::get<std::vector<ReservedLock>>(*result);
  }
  /// Returns why it has not reserved. There must be a result.
  [[nodiscard]] const NotReserved& obstacle() const {
    REQUIRE(result);
    return std::get<NotReserved>(*result);
  }
  [[nodiscard]] bool HasFound() const {
    return outcome && std::holds_alternative<ReservedLock>(*outcome) && tickets.empty();
  }
  [[nodiscard]] bool Holds() const { return outcome && std::holds_alternative<Acquired>(*outcome); }
  [[nodiscard]] bool Waits() const { return !outcome; }
  [[nodiscard]] bool IsBusy() const { return outcome && std::holds_alternative<Busy>(*outcome); }

  World& world;
  const std::string id;
  const std::vector<AcquireRequest> requests;
  const bool is_any;
  AcquireNotes notes;
  FakeStore store;
  std::unique_ptr<Acquisition> set;
  std::optional<std::variant<std::vector<ReservedLock>, NotReserved>> result;
  std::optional<ReservingFailed> failure;
  std::optional<AcquireOutcome> outcome;
  std::vector<ReservedLock> found;
  std::vector<Ticket> tickets;
  bool may_be_reserved = false;
};

/// A Reserver that has run until nothing was left to do.
struct JoinedReserver : Reserver {
  JoinedReserver(World& its_world, std::string its_id, const ReserveOptions& options = {})
      : Reserver(its_world, std::move(its_id), options) {
    Run();
  }
};

/// Makes a reservation, and ends the session that made it.
inline ReservedLock MakeReservation(World& world, const std::string& id,
                                    const ReserveOptions& options = {}) {
  const JoinedReserver reserver(world, id, options);
  REQUIRE(reserver.HasReserved());
  reserver.Leave();
  return reserver.made().front();
}

/// `auto [world, freeze] = ReservedWorld("freeze");`: servers with a reservation.
struct ReservedWorld {
  explicit ReservedWorld(const std::string& id, const ReserveOptions& options = {})
      : made(MakeReservation(world, id, options)) {}
  World world;
  const ReservedLock made;
};

/// Releases a reservation, as `zklock release --reserve` does.
inline void Release(World& world, const ReservedLock& one) {
  world.servers.Write(
      "/l", protocol::FormatLockData({RecordOf(protocol::BaseOf(one.path), one.reserved)}));
  world.servers.Remove(one.path);
}

inline std::string NameOf(const std::string& uuid_end, const std::string& mark = "-reserve-lock-") {
  return "/l/host-0f8fad5b-d9cb-469f-a165-7086772895" + uuid_end + mark;
}

}  // namespace zklock::lock
