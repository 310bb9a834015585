#include "simulation/process.h"

#include <algorithm>
#include <utility>

namespace zklock::simulation {
namespace {

constexpr std::size_t kStack = 256 * 1024;
// Limits the turns at one virtual time: a busy loop would otherwise stop the clock of the world.
constexpr int kMostTurnsAtOnce = 100'000;

Process* current = nullptr;
std::vector<std::unique_ptr<char[]>> free_stacks;

}  // namespace

Process* Process::Current() { return current; }

Process::Process(std::string name, Place place, std::function<void(Process&)> program)
    : name_(std::move(name)), place_(place), program_(std::move(program)) {
  if (free_stacks.empty()) {
    stack_ = std::make_unique_for_overwrite<char[]>(kStack);
  } else {
    stack_ = std::move(free_stacks.back());
    free_stacks.pop_back();
  }
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = kStack;
  context_.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(Enter), 2,
              static_cast<unsigned>(address & 0xffffffffU), static_cast<unsigned>(address >> 32U));
  waits_ = true;
  WaitUntil(world->now() + 1, false);
}

Process::~Process() {
  if (!is_over_) Kill();
  *alive_ = false;
}

void Process::Enter(unsigned low, unsigned high) {
  auto* const self = reinterpret_cast<Process*>(std::uintptr_t{low} | std::uintptr_t{high} << 32U);
  try {
    if (!self->is_killed_) self->program_(*self);
  } catch (const Killed&) {
  } catch (...) {
    self->failure_ = std::current_exception();
  }
  self->program_ = nullptr;
  self->is_over_ = true;
  _longjmp(self->outside_, 1);
}

void Process::Resume() {
  Process* const before = std::exchange(current, this);
  waits_ = false;
  if (_setjmp(outside_) == 0) {
    if (std::exchange(has_begun_, true)) _longjmp(inside_, 1);
    setcontext(&context_);
  }
  current = before;
  if (is_over_) free_stacks.push_back(std::move(stack_));
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Process::Yield() {
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
  if (is_killed_) throw Killed{};
}

void Process::WaitUntil(Time time, bool can_be_woken) {
  waits_ = true;
  can_be_woken_ = can_be_woken;
  ++wait_;
  if (can_be_woken && std::exchange(is_woken_, false)) time = world->now();
  if (time >= kForever) return;
  const auto run = [this, wait = wait_, alive = alive_](const auto& self) -> void {
    if (!*alive || !waits_ || wait_ != wait) return;
    if (!IsStopped()) return Resume();
    world->At(stopped_until_, [self] { self(self); });
  };
  world->At(time, [run] { run(run); });
}

void Process::Wake() {
  if (is_over_) return;
  is_woken_ = may_be_ready_ = true;
  if (waits_ && can_be_woken_) WaitUntil(kForever, true);
}

void Process::Stop(Time until) { stopped_until_ = std::max(stopped_until_, until); }

void Process::Kill() {
  if (is_over_) return;
  is_killed_ = true;
  // If a program kills its own process, it ends at its next wait.
  if (current != this) Resume();
}

void Process::Add(EventSource& source) {
  sources_.push_back({next_id_++, &source});
  may_be_ready_ = true;
}

void Process::Remove(EventSource& source) {
  std::erase_if(sources_, [&](const Entry& one) { return one.source == &source; });
}

void Process::Sleep(Time span) {
  WaitUntil(world->now() + span, false);
  Yield();
}

bool Process::Ask(std::vector<Entry>& entries, TimePoint& wake) {
  entries = sources_;
  for (Entry& one : entries) {
    one.interest = one.source->GetInterest();
    wake = std::min(wake, one.interest.wake);
  }
  // Everything that makes a descriptor ready also wakes this process.
  if (!may_be_ready_) return false;
  bool is_ready = false;
  for (Entry& one : entries) {
    one.revents = ReadyEvents(one.interest.fd, one.interest.events);
    is_ready = is_ready || one.revents != 0;
  }
  may_be_ready_ = is_ready;
  return is_ready;
}

void Process::RunOnce(TimePoint until) {
  static int turns_at_once = 0;
  static Time last_turn = 0;
  turns_at_once = std::exchange(last_turn, world->now()) == world->now() ? turns_at_once + 1 : 0;
  if (turns_at_once > kMostTurnsAtOnce) throw Violation(name_ + " spins");

  Sleep(world->random.Around(kTurn));
  std::vector<Entry> entries;
  TimePoint wake = until;
  if (!Ask(entries, wake) && TimeOf(wake) > world->now()) {
    WaitUntil(wake == kNever ? kForever : TimeOf(wake), true);
    Yield();
    (void)Ask(entries, wake);
  }
  is_woken_ = false;
  const TimePoint now = PointOf(world->now());
  for (const Entry& one : entries) {
    if (one.revents == 0 && one.interest.wake > now) continue;
    const bool is_there = std::any_of(sources_.begin(), sources_.end(),
                                      [&](const Entry& entry) { return entry.id == one.id; });
    if (is_there) one.source->OnReady(one.revents);
  }
}

}  // namespace zklock::simulation
