#include "simulation/network.h"

#include <algorithm>

namespace zklock::simulation {

std::shared_ptr<Pipe> Network::MakePipe(Place from, Place to) {
  return std::make_shared<Pipe>(Pipe{.from = from, .to = to});
}

void Network::Send(const std::shared_ptr<Pipe>& pipe, std::function<void()> deliver) {
  if (pipe->is_broken) return;
  const Time due = world->now() + world->random.Around(delay(pipe->from, pipe->to));
  pipe->last_due = std::max(pipe->last_due, due);
  pipe->messages.push_back({pipe->last_due, std::move(deliver)});
  Schedule(pipe);
}

void Network::Break(Pipe& pipe) {
  pipe.is_broken = true;
  pipe.messages.clear();
}

void Network::Schedule(const std::shared_ptr<Pipe>& pipe) {
  if (pipe->is_scheduled || pipe->messages.empty()) return;
  if (IsCut(pipe->from, pipe->to)) {
    waiting_.push_back(pipe);
    pipe->is_scheduled = true;  // by Heal()
    return;
  }
  pipe->is_scheduled = true;
  world->At(std::max(pipe->messages.front().due, stalled_until(pipe->to)),
            [this, pipe] { Pump(pipe); });
}

void Network::Pump(const std::shared_ptr<Pipe>& pipe) {
  pipe->is_scheduled = false;
  const Time now = world->now();
  while (!pipe->messages.empty() && pipe->messages.front().due <= now &&
         !IsCut(pipe->from, pipe->to) && stalled_until(pipe->to) <= now) {
    const auto deliver = std::move(pipe->messages.front().deliver);
    pipe->messages.pop_front();
    deliver();
  }
  Schedule(pipe);
}

void Network::Heal(Place from, Place to) {
  if (--cuts_[Index(from)][Index(to)] > 0) return;
  std::vector<std::weak_ptr<Pipe>> still;
  for (const auto& weak : std::exchange(waiting_, {})) {
    const auto pipe = weak.lock();
    if (!pipe) continue;
    if (pipe->from != from || pipe->to != to) {
      still.push_back(weak);
      continue;
    }
    // By then, retransmissions have become rare.
    const Time wait = world->random.Around(200 * kMillisecond);
    world->After(wait, [this, pipe] { Pump(pipe); });
  }
  waiting_.insert(waiting_.end(), still.begin(), still.end());
}

void Network::Stall(Place place, Time until) {
  stalled_[Index(place)] = std::max(stalled_[Index(place)], until);
}

}  // namespace zklock::simulation
