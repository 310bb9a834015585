#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "simulation/life.h"

namespace zklock::simulation {

void Life::For(Time span, std::function<void()> begin, std::function<void()> end) {
  ++faults_under_way_;
  begin();
  world.After(span, [this, end = std::move(end)] {
    --faults_under_way_;
    end();
  });
}

namespace {

/// How long most faults last: some are over before anybody notices, some outlast every session.
Time Span(Random& random) {
  return random.Around(random.Pick(
      std::vector<Time>{200 * kMillisecond, 2 * kSecond, 6 * kSecond, 15 * kSecond, 40 * kSecond}));
}

}  // namespace

Profile DrawProfile(Random& random, const std::string& name) {
  Profile profile;
  profile.servers = random.Pick(std::vector<int>{1, 3, 3, 3, 5});
  profile.tick_ms = random.Pick(std::vector<int>{500, 1000, 2000, 2000});
  profile.hosts = static_cast<int>(random.Between(2, 5));
  profile.contenders = static_cast<int>(random.Between(2, 10));
  profile.locks = static_cast<int>(random.Between(1, 3));
  profile.length = random.Between(60, 300) * kSecond;
  profile.between_faults = random.Pick(std::vector<Time>{kSecond, 4 * kSecond, 20 * kSecond});
  profile.abilities = {"exclusive", "read", "write", "try", "wait"};
  const std::vector<std::string> all = {"cut", "crash", "stall", "stop", "kill"};
  for (const std::string& one : all) {
    if (random.Chance(0.5)) profile.faults.push_back(one);
  }
  if (name == "quiet") profile.faults.clear();
  return profile;
}

std::vector<std::string> ProfileNames() { return {"all", "quiet"}; }

void Life::InjectFault() {
  Random& random = world.random;
  const std::string& kind = random.Pick(profile.faults);
  world.Count("fault: " + kind);
  world.Trace("fault: {}", kind);
  const int places = profile.servers + profile.hosts;
  const auto any_place = [&] { return static_cast<Place>(random.Below(places)); };
  const auto any_server = [&]() -> Server& {
    return ensemble.servers()[static_cast<std::size_t>(random.Below(profile.servers))];
  };
  if (kind == "cut") {
    // Any shape: each way between places of two groups may be cut, in one direction or both.
    std::vector<std::pair<Place, Place>> cut;
    const double density = random.Chance(0.5) ? 1 : 0.5;
    const bool both = random.Chance(0.7);
    std::vector<bool> side;
    const bool isolates = random.Chance(0.5);
    const Place alone = any_place();
    for (int i = 0; i < places; ++i) side.push_back(isolates ? i == alone : random.Chance(0.5));
    for (Place from = 0; from < places; ++from) {
      for (Place to = 0; to < places; ++to) {
        const bool crosses =
            side[static_cast<std::size_t>(from)] != side[static_cast<std::size_t>(to)];
        const bool is_way = both || side[static_cast<std::size_t>(from)];
        if (crosses && is_way && random.Chance(density)) cut.emplace_back(from, to);
      }
    }
    For(
        Span(random),
        [&] {
          for (const auto& [from, to] : cut) network.Cut(from, to);
        },
        [this, cut] {
          for (const auto& [from, to] : cut) network.Heal(from, to);
        });
  } else if (kind == "crash") {
    Server& server = any_server();
    For(
        Span(random), [&] { ensemble.Crash(server); },
        [this, id = server.id] {
          ensemble.Restart(ensemble.servers()[static_cast<std::size_t>(id)]);
        });
  } else if (kind == "stall") {
    network.Stall(any_server().id, world.now() + Span(random));
  } else if (kind == "stop") {
    const auto live = LiveRuns();
    if (!live.empty()) random.Pick(live)->process->Stop(world.now() + Span(random));
  } else if (kind == "kill") {
    const auto live = LiveRuns();
    if (!live.empty()) KillRun(*random.Pick(live), random.Chance(0.6));
  }
}

}  // namespace zklock::simulation
