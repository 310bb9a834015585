#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "lock/data/contender_data.h"
#include "protocol/lock_path.h"
#include "protocol/release_record.h"
#include "simulation/life.h"

namespace zklock::simulation {
namespace {

// No two arguments of one call draw from `random`: compilers differ in which they evaluate first.

/// Returns how long a usual fault lasts: some end before anyone notices, some outlast every
/// session.
Time Span(Random& random) {
  const Time typical = random.Pick(
      std::vector<Time>{200 * kMillisecond, 2 * kSecond, 6 * kSecond, 15 * kSecond, 40 * kSecond});
  return std::min(random.Around(typical), 60 * kSecond);
}

Server& AnyServer(Life& life) {
  return life.ensemble
      .servers()[static_cast<std::size_t>(life.world.random.Below(life.profile.servers))];
}

Run* AnyRun(Life& life) {
  const auto live = life.LiveRuns();
  return live.empty() ? nullptr : life.world.random.Pick(live);
}

/// Cuts both directions between the places in `inside` and all others among the first `places`
/// places.
void CutOff(Life& life, const std::vector<Place>& inside, Time span, Place places) {
  std::vector<std::pair<Place, Place>> ways;
  for (Place other = 0; other < places; ++other) {
    if (std::find(inside.begin(), inside.end(), other) != inside.end()) continue;
    for (const Place one : inside) {
      ways.emplace_back(one, other);
      ways.emplace_back(other, one);
    }
  }
  life.CutWays(ways, span);
}

void CutOff(Life& life, const std::vector<Place>& inside, Time span) {
  CutOff(life, inside, span, life.places());
}

/// Makes cuts of any shape: between two groups, in one or both directions, between some pairs or
/// all.
void Cut(Life& life) {
  Random& random = life.world.random;
  std::vector<std::pair<Place, Place>> ways;
  const double density = random.Chance(0.5) ? 1 : 0.5;
  const bool both = random.Chance(0.7);
  std::vector<Place> inside;
  for (Place one = 0; one < life.places(); ++one) {
    if (random.Chance(0.4)) inside.push_back(one);
  }
  const auto is_inside = [&](Place one) {
    return std::find(inside.begin(), inside.end(), one) != inside.end();
  };
  for (Place from = 0; from < life.places(); ++from) {
    for (Place to = 0; to < life.places(); ++to) {
      if (is_inside(from) == is_inside(to) || (!both && !is_inside(from))) continue;
      if (random.Chance(density)) ways.emplace_back(from, to);
    }
  }
  life.CutWays(ways, Span(random));
}

void Isolate(Life& life) {
  const Time span = Span(life.world.random);
  CutOff(life, {static_cast<Place>(life.world.random.Below(life.places()))}, span);
}

void IsolateLeader(Life& life) {
  const Server* const leader = life.ensemble.Leader();
  if (leader != nullptr) CutOff(life, {leader->id}, Span(life.world.random));
}

/// Cuts a server and the host of one of its clients off from all other hosts, but not from each
/// other.
void Rack(Life& life) {
  const Run* const run = AnyRun(life);
  if (run == nullptr) return;
  std::vector<Place> inside{run->process->place()};
  for (const Server& server : life.ensemble.servers()) {
    for (const auto& [number, connection] : server.connections) {
      if (connection->place == inside.front() && inside.size() == 1) inside.push_back(server.id);
    }
  }
  CutOff(life, inside, Span(life.world.random));
}

void Crash(Life& life) {
  const Time span = Span(life.world.random);
  life.CrashFor(AnyServer(life), span);
}

void CrashLeader(Life& life) {
  Server* const leader = life.ensemble.Leader();
  if (leader != nullptr) life.CrashFor(*leader, Span(life.world.random));
}

void StallServer(Life& life) {
  const Time span = Span(life.world.random);
  life.network.Stall(AnyServer(life).id, life.world.now() + span);
}

void SlowLink(Life& life) {
  Random& random = life.world.random;
  const auto from = static_cast<Place>(random.Below(life.places()));
  const Time delay =
      random.Pick(std::vector<Time>{30 * kMillisecond, 300 * kMillisecond, 1500 * kMillisecond});
  for (Place to = 0; to < life.places(); ++to) {
    if (!random.Chance(0.6)) continue;
    for (const auto& [one, other] : {std::pair(from, to), std::pair(to, from)}) {
      const Time before = life.usual_delay(one, other);
      life.For(
          Span(random), [&, one = one, other = other] { life.network.SetDelay(one, other, delay); },
          [&life, one = one, other = other, before] { life.network.SetDelay(one, other, before); });
    }
  }
}

/// Makes commits slow, perhaps slower than a lease allows.
void SlowDisks(Life& life) {
  Random& random = life.world.random;
  const Time fsync = random.Pick(
      std::vector<Time>{100 * kMillisecond, 600 * kMillisecond, 2 * kSecond, 4 * kSecond});
  life.For(
      Span(random),
      [&] {
        for (Server& one : life.ensemble.servers()) one.fsync = fsync;
      },
      [&life] {
        for (Server& one : life.ensemble.servers()) one.fsync = life.usual_fsync;
      });
}

void Reset(Life& life) { life.ensemble.CloseConnections(AnyServer(life)); }

void Throttle(Life& life) {
  Server& server = AnyServer(life);
  life.For(
      Span(life.world.random), [&] { server.throttles = life.world.random.Chance(0.3) ? 1 : 0.4; },
      [&server] { server.throttles = 0; });
}

/// Changes the limits of the timeouts that a server grants.
void ChangeTimeouts(Life& life) {
  Random& random = life.world.random;
  Server& server = AnyServer(life);
  const int tick = life.ensemble.tick_ms();
  server.least_timeout_ms = random.Pick(std::vector<int>{2 * tick, 2 * tick, 12'000});
  server.most_timeout_ms =
      std::max(server.least_timeout_ms, random.Pick(std::vector<int>{20 * tick, 5'000, 8'000}));
}

void JumpClock(Life& life) {
  AnyServer(life).clock_offset_ms +=
      life.world.random.Pick(std::vector<std::int64_t>{-3'600'000, -2'000, 2'000, 3'600'000});
}

void Stop(Life& life, Run& run) { run.process->Stop(life.world.now() + Span(life.world.random)); }

void StopRun(Life& life) {
  if (Run* const run = AnyRun(life)) Stop(life, *run);
}

void KillRun(Life& life) {
  if (Run* const run = AnyRun(life)) life.KillRun(*run, life.world.random.Chance(0.6));
}

void TellToEnd(Life& life) {
  if (Run* const run = AnyRun(life)) {
    run->is_told_to_end = true;
    run->process->Wake();
  }
}

/// Makes a host lose power: its processes are gone, and nothing reports that to the others.
void Vanish(Life& life) {
  Random& random = life.world.random;
  const Place place = life.PlaceOf(static_cast<int>(random.Below(life.profile.hosts)));
  CutOff(life, {place}, Span(random));
  for (Run* const run : life.LiveRuns()) {
    if (run->process->place() == place) life.KillRun(*run, false);
  }
}

/// Deletes a contender, perhaps a holder's, as a client with the permission can.
void RemoveByForce(Life& life) {
  const auto contenders = life.Contenders();
  if (contenders.empty()) return;
  const std::string path = life.world.random.Pick(contenders);
  life.checks.Excuse(path);
  (void)life.ensemble.Submit({{.type = OpType::kDelete, .path = path}});
}

/// Reads the contender, and then overwrites the version that it has read, as `zklock release` does.
void AskContender(Life& life, const std::string& path) {
  const Znode* const node = life.ensemble.truth().Find(path);
  life.checks.Excuse(path, /*only_asked=*/true);
  const Op write{.type = OpType::kSet,
                 .path = path,
                 .data = lock::AddReleaseRequest(node->data, {.by = "operator"}),
                 .version = node->version};
  life.world.After(life.world.random.Around(2 * kMillisecond),
                   [&life, write] { (void)life.ensemble.Submit({write}); });
}

void AskToLeave(Life& life) {
  const auto contenders = life.Contenders();
  if (!contenders.empty()) AskContender(life, life.world.random.Pick(contenders));
}

/// Gives LOCK data from another life, as if restored from a backup.
void OldRecord(Life& life) {
  Random& random = life.world.random;
  const std::string lock = life.AnyLock();
  const Znode* const node = life.ensemble.truth().Find(lock);
  if (node == nullptr) return;
  const auto number = random.Chance(0.5) ? random.Between(0, node->created + 3) : 5000;
  const protocol::ReleaseRecord record{
      .contender = fmt::format("host9-00000000-1d1f-4000-8000-000000000000-lock-{:010d}", number),
      .token = 7,
      .status = 0,
      .host = "host9"};
  (void)life.ensemble.Submit(
      {{.type = OpType::kSet, .path = lock, .data = protocol::FormatLockData({record})}});
}

/// Creates a child that looks like a reservation, as a client that may only create children can.
void ForgeReservation(Life& life) {
  const std::string lock = life.AnyLock();
  // This includes the znodes that a leader without a majority may commit later, all together.
  const Server* const leader = life.ensemble.Leader();
  const Znode* const node = leader == nullptr ? nullptr : leader->prepared.Find(lock);
  if (node == nullptr) return;
  // Each forged reservation costs every contender that finds it some requests.
  if (std::count_if(node->children.begin(), node->children.end(), IsForged) >= 3) return;
  world->Count("forged reservations");
  (void)life.ensemble.Submit(
      {{.type = OpType::kCreate,
        .path = lock + "/x-00000000-f0f0-4000-8000-000000000000-reserve-lock-",
        .data = fmt::format(R"({{"reservation":{{"id":"{}","for":{},"token":1}}}})",
                            life.world.random.Chance(0.5) ? "job1" : "forged",
                            life.world.random.Between(500, 6'000)),
        .mode = ZOO_PERSISTENT_SEQUENTIAL}});
}

struct Fault {
  const char* name;
  void (*inject)(Life& life);
};

constexpr Fault kFaults[] = {
    {"cut", Cut},
    {"isolate", Isolate},
    {"isolate-leader", IsolateLeader},
    {"rack", Rack},
    {"crash", Crash},
    {"crash-leader", CrashLeader},
    {"stall-server", StallServer},
    {"slow-link", SlowLink},
    {"slow-disks", SlowDisks},
    {"reset", Reset},
    {"throttle", Throttle},
    {"change-timeouts", ChangeTimeouts},
    {"jump-clock", JumpClock},
    {"stop", StopRun},
    {"kill", KillRun},
    {"tell-to-end", TellToEnd},
    {"vanish", Vanish},
    {"remove", RemoveByForce},
    {"ask-to-leave", AskToLeave},
    {"old-record", OldRecord},
    {"forge-reservation", ForgeReservation},
};

// ---- faults aimed at a moment -------------------------------------------------------------------

void ResetConnection(Life& life, Run& run) {
  for (Server& server : life.ensemble.servers()) {
    life.ensemble.CloseConnections(server, run.session_id());
  }
}
void IsolateHost(Life& life, Run& run) {
  CutOff(life, {run.process->place()}, Span(life.world.random));
}
void Kill(Life& life, Run& run) { life.KillRun(run, life.world.random.Chance(0.7)); }
/// Returns a time longer than the session survives without its run.
Time LongSpan(Life& life, const Run& run) {
  return run.options.timeout.count() + 3 * life.ensemble.tick_ms() * kMillisecond;
}
void IsolateLong(Life& life, Run& run) {
  CutOff(life, {run.process->place()}, LongSpan(life, run));
}
void ExpireSession(Life& life, Run& run) {
  ResetConnection(life, run);
  IsolateLong(life, run);
}
void CrashTheLeader(Life& life, Run& /*run*/) { CrashLeader(life); }
/// Returns the server that the run is connected to; null if there is none.
const Server* ServerOf(Life& life, const Run& run) {
  for (const Server& server : life.ensemble.servers()) {
    for (const auto& [number, connection] : server.connections) {
      if (connection->session == run.session_id()) return &server;
    }
  }
  return nullptr;
}
/// Cuts the run's server off from the other servers only: it continues to answer reads for a while.
void CutServerOff(Life& life, Run& run) {
  const Server* const server = ServerOf(life, run);
  if (server == nullptr) return;
  Random& random = life.world.random;
  const Time span = random.Chance(0.5) ? Span(random) : LongSpan(life, run);
  CutOff(life, {server->id}, span, life.profile.servers);
}
/// Cuts the run off together with its server, when the run has the answer to a heartbeat that the
/// leader does not count yet: a commit does not touch the session until the leader has pinged that
/// server. Done only if the session expires early, which depends on the leader's last ping and its
/// ticks.
void CutRackOff(Life& life, Run& run) {
  life.world.After(20 * kMillisecond, [&life, &run] {
    const Server* const server = ServerOf(life, run);
    const Server* const leader = life.ensemble.Leader();
    if (life.is_draining() || server == nullptr || leader == nullptr || server == leader) return;
    const auto tracked = leader->tracked.find(run.session_id());
    if (tracked == leader->tracked.end()) return;
    const Time left = tracked->second.expires - life.world.now();
    if (left > tracked->second.timeout_ms * kMillisecond - 400 * kMillisecond) return;
    world->Count("racks cut off");
    CutOff(life, {run.process->place(), server->id}, LongSpan(life, run));
  });
}
/// Delays the leader's messages to the run's server; at some point before they arrive, cuts off
/// that server's messages to the leader.
void DelayPings(Life& life, Run& run) {
  const Server* const server = ServerOf(life, run);
  const Server* const leader = life.ensemble.Leader();
  if (server == nullptr || leader == nullptr || server == leader) return;
  const Time late = life.world.random.Between(kSecond, 4 * kSecond);
  life.CutWays({{leader->id, server->id}}, late);
  life.world.After(life.world.random.Between(0, late),
                   [&life, &run, from = server->id, to = leader->id] {
                     if (!life.is_draining()) life.CutWays({{from, to}}, LongSpan(life, run));
                   });
}
/// Cuts the run off together with the leader, which continues to accept connects for some ticks.
/// The other servers restart, so that they elect a new leader before the old one notices that it
/// has lost them.
void StrandWithLeader(Life& life, Run& run) {
  const Server* const leader = life.ensemble.Leader();
  if (leader == nullptr) return;
  CutOff(life, {run.process->place(), leader->id}, LongSpan(life, run));
  for (Server& server : life.ensemble.servers()) {
    if (server.id != leader->id) life.CrashFor(server, kMillisecond);
  }
}
void Remove(Life& life, Run& run) {
  for (const std::string& path : life.ensemble.truth().EphemeralsOf(run.session_id())) {
    life.checks.Excuse(path);
    (void)life.ensemble.Submit({{.type = OpType::kDelete, .path = path}});
  }
  // Deletes one of the reservations that the run has just made.
  for (const auto& [path, reservation] : life.checks.reservations()) {
    if (reservation.session != run.session_id()) continue;
    life.checks.Excuse(path);
    return (void)life.ensemble.Submit({{.type = OpType::kDelete, .path = path}});
  }
}
void Ask(Life& life, Run& run) {
  for (const std::string& path : life.ensemble.truth().EphemeralsOf(run.session_id())) {
    AskContender(life, path);
  }
}

struct AimedFault {
  const char* name;
  void (*inject)(Life& life, Run& run);
};

constexpr AimedFault kAimedFaults[] = {
    {"reset", ResetConnection},
    {"isolate", IsolateHost},
    {"isolate-long", IsolateLong},
    {"kill", Kill},
    {"stop", Stop},
    {"expire", ExpireSession},
    {"crash-leader", CrashTheLeader},
    {"remove", Remove},
    {"cut-server-off", CutServerOff},
    {"cut-rack-off", CutRackOff},
    {"delay-pings", DelayPings},
    {"strand-with-leader", StrandWithLeader},
    {"ask", Ask},
};

}  // namespace

// ---- profiles -----------------------------------------------------------------------------------

std::vector<std::string> ProfileNames() {
  return {"all",          "quiet",   "network", "sessions", "lease",    "slow",    "sets",
          "reservations", "permits", "sharing", "history",  "interval", "nesting", "pools"};
}

Profile DrawProfile(Random& random, std::string name) {
  const auto names = ProfileNames();
  // Half of the lives use a narrow profile, to find defects that are rare otherwise.
  if (name == "all" && random.Chance(0.5)) name = random.Pick(names);
  Profile profile;
  profile.servers = random.Pick(std::vector<int>{1, 3, 3, 3, 5});
  profile.tick_ms = random.Pick(std::vector<int>{500, 1000, 2000, 2000});
  profile.hosts = static_cast<int>(random.Between(2, 5));
  profile.contenders = static_cast<int>(random.Between(2, 10));
  profile.locks = static_cast<int>(random.Between(1, 3));
  profile.length = random.Between(60, 300) * kSecond;
  profile.between_faults =
      random.Pick(std::vector<Time>{kSecond, 4 * kSecond, 4 * kSecond, 20 * kSecond});
  if (random.Chance(0.2)) profile.preempting = random.Pick(std::vector<double>{0.1, 0.4});
  std::vector<std::string> abilities = {
      "exclusive", "exclusive", "read",        "write",   "try",          "wait",  "set",
      "max-queue", "supersede", "permits",     "history", "min-interval", "kazoo", "simple",
      "reserve",   "curator",   "reserve-set", "nested",  "below",        "any",   "any"};
  std::vector<std::string> faults;
  for (const Fault& one : kFaults) faults.emplace_back(one.name);
  double density = 0.3;
  double aims = 0.3;
  std::vector<Moment> moments;
  std::vector<std::string> aimed;
  if (name == "network") {
    faults = {"cut", "isolate", "isolate-leader", "rack", "crash", "reset", "slow-link", "stop"};
    density = 0.5;
  } else if (name == "sessions") {
    faults = {"change-timeouts", "reset", "isolate", "stall-server", "slow-disks", "rack", "stop"};
    abilities = {"exclusive", "read", "write", "set"};
    density = 0.6;
  } else if (name == "lease") {
    // The host, its server, or both are cut off just after a heartbeat, perhaps the first one over
    // a new connection: the leader last heard of the session some time before that, and hears no
    // more of it.
    profile.tick_ms = random.Pick(std::vector<int>{500, 2000, 4000});
    profile.timeouts_ms = {4000, 4000, 8000, 15'000};
    profile.commands = {12 * kSecond, 30 * kSecond};
    profile.between_faults = 4 * kSecond;
    faults = {"reset",           "reset",          "reset",     "isolate",
              "change-timeouts", "isolate-leader", "slow-link", "slow-disks"};
    abilities = {"exclusive", "exclusive", "read", "write"};
    density = 0.7;
    aims = 0.9;
    moments = {Moment::kProven, Moment::kHeartbeat};
    aimed = {"isolate-long", "cut-server-off", "cut-rack-off",
             "cut-rack-off", "delay-pings",    "strand-with-leader"};
  } else if (name == "slow") {
    profile.fsyncs = {300 * kMillisecond, 600 * kMillisecond, 1200 * kMillisecond};
    faults = {"reset", "kill", "isolate"};
    abilities = {"exclusive", "wait", "try", "read"};
  } else if (name == "sets") {
    profile.locks = 3;
    faults = {"reset", "remove", "isolate", "kill", "stop", "cut"};
    abilities = {"set", "set", "exclusive", "reserve-set"};
    profile.timeouts_ms = {4000, 4000, 10'000};
    profile.commands = {300 * kMillisecond, 12 * kSecond};
    density = 0.5;
    aims = 0.6;
  } else if (name == "history") {
    profile.locks = 1;
    faults = {"remove", "remove", "reset", "kill"};
    abilities = {"history"};
    density = 0.7;
    aims = 0.6;
    moments = {Moment::kCreated, Moment::kHeartbeat, Moment::kWritten};
    aimed = {"remove", "isolate", "stop"};
  } else if (name == "interval") {
    profile.commands = {5 * kMillisecond, 300 * kMillisecond};
    profile.between_faults = kSecond;
    faults = {"slow-link", "slow-link", "reset", "slow-disks"};
    abilities = {"min-interval", "once-per"};
    density = 0.8;
  } else if (name == "reservations") {
    abilities = {"reserve", "reserve", "reserve-set", "exclusive",
                 "read",    "try",     "permits",     "curator"};
    faults.insert(faults.end(), {"forge-reservation", "kill", "reset"});
    aims = 0.6;
    moments = {Moment::kConverting, Moment::kConverted, Moment::kCreated, Moment::kDeleted};
  } else if (name == "pools") {
    profile.locks = static_cast<int>(random.Between(2, 3));
    profile.timeouts_ms = {4000, 4000, 10'000};
    profile.commands = {300 * kMillisecond, 3 * kSecond, 12 * kSecond};
    faults = {"reset", "reset", "isolate", "cut",          "crash",
              "kill",  "stop",  "remove",  "ask-to-leave", "slow-link"};
    abilities = {"any", "any", "any", "reserve-any", "reserve-any", "exclusive", "set", "read"};
    aims = 0.8;
    moments = {Moment::kCreated, Moment::kDeleted, Moment::kHeartbeat, Moment::kWritten};
    aimed = {"reset", "reset", "isolate", "remove", "ask", "expire"};
  } else if (name == "permits") {
    abilities = {"permits", "permits", "permits", "try"};
  } else if (name == "nesting") {
    abilities = {"nested", "nested", "below", "exclusive", "simple"};
    faults.insert(faults.end(), {"kill", "stop", "remove"});
    profile.commands = {300 * kMillisecond, 3 * kSecond, 12 * kSecond};
  } else if (name == "sharing") {
    abilities = {"curator", "exclusive", "kazoo", "simple"};
  }
  for (const std::string& one : faults) {
    if (random.Chance(density)) profile.faults.push_back(one);
  }
  const double share = random.Chance(0.3) ? 0.15 : 0.6;
  for (const std::string& one : abilities) {
    if (random.Chance(share)) profile.abilities.push_back(one);
  }
  if (profile.abilities.empty()) profile.abilities.push_back(random.Pick(abilities));
  if (name == "quiet") {
    profile.faults.clear();
    aims = 0;
  }
  if (random.Chance(aims)) {
    profile.aim =
        moments.empty() ? static_cast<Moment>(random.Below(kMoments)) : random.Pick(moments);
    profile.aim_fault = static_cast<int>(random.Below(std::size(kAimedFaults)));
    const auto* const picked = std::find_if(std::begin(kAimedFaults), std::end(kAimedFaults),
                                            [name = aimed.empty() ? "" : random.Pick(aimed)](
                                                const auto& one) { return one.name == name; });
    if (picked != std::end(kAimedFaults)) {
      profile.aim_fault = static_cast<int>(picked - std::begin(kAimedFaults));
    }
    profile.aim_chance = random.Pick(std::vector<double>{0.02, 0.1, 0.4});
  }
  return profile;
}

void Life::InjectFault() {
  const std::string& name = world.random.Pick(profile.faults);
  world.Count("fault: " + name);
  world.Trace("fault: {}", name);
  for (const Fault& one : kFaults) {
    if (one.name == name) return one.inject(*this);
  }
}

/// Injects the fault a little later: before the answer, with it, or just after it.
void Life::OnMoment(Moment moment, std::int64_t session) {
  if (is_draining_ || moment != profile.aim || session == 0) return;
  if (!world.random.Chance(profile.aim_chance)) return;
  const AimedFault& fault = kAimedFaults[profile.aim_fault];
  const Time wait =
      world.random.Pick(std::vector<Time>{0, 100'000, kMillisecond, 30 * kMillisecond});
  world.After(wait, [this, session, &fault] {
    for (Run* const run : LiveRuns()) {
      if (is_draining_ || run->session_id() != session) continue;
      world.Count(std::string("aimed fault: ") + fault.name);
      world.Trace("aimed fault: {} at {}", fault.name, run->name);
      return fault.inject(*this, *run);
    }
  });
}

}  // namespace zklock::simulation
