#include "simulation/world.h"

#include <algorithm>
#include <span>

#include "base/random.h"

namespace zklock::simulation {

World* world = nullptr;

std::uint64_t Random::Next() {  // splitmix64
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

Time Random::Around(Time typical) {
  const Time most = Chance(0.02) ? 8 * typical : Chance(0.2) ? 2 * typical : typical;
  return typical / 2 + Below(most + 1);
}

World::World(std::uint64_t seed, bool trace) : random(seed), traces_(trace) { world = this; }

World::~World() { world = nullptr; }

void World::At(Time time, std::function<void()> run) {
  if (free_runs_.empty()) {
    free_runs_.push_back(runs_.size());
    runs_.emplace_back();
  }
  runs_[free_runs_.back()] = std::move(run);
  queue_.push_back({std::max(time, now_), planned_++, free_runs_.back()});
  free_runs_.pop_back();
  std::push_heap(queue_.begin(), queue_.end(), IsLater);
}

bool World::Step(Time until) {
  if (queue_.empty() || queue_.front().time > until) {
    now_ = std::max(now_, until);
    return false;
  }
  std::pop_heap(queue_.begin(), queue_.end(), IsLater);
  const Event event = queue_.back();
  queue_.pop_back();
  now_ = event.time;
  ++events;
  Note(static_cast<std::uint64_t>(event.time) ^ event.number << 40U);
  const auto run = std::exchange(runs_[event.run], nullptr);
  free_runs_.push_back(event.run);
  run();
  return true;
}

void World::Note(std::uint64_t what) { hash = (hash ^ what) * 1099511628211U; }

void World::Note(const std::string& what) {
  for (const char c : what) Note(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
}

void World::Print(const std::string& line) const {
  fmt::print("{:12.6f}  {}\n", static_cast<double>(now_) / 1e9, line);
}

}  // namespace zklock::simulation

namespace zklock {

// Replaces getrandom(2), which seeds each Session's random numbers.
void FillRandomly(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(simulation::world->random.Next() & 0xffU);
  }
}

}  // namespace zklock
