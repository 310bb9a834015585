#include "simulation/life.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lock/data/contender_data.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::simulation {
namespace {

// Within this time after the last fault, every run must have ended, and nothing may be left.
constexpr Time kDrainTime = 300 * kSecond;

// Limits of the requests of one run. A wait costs a request every T/4, a held lock one every T/8,
// and each connection some more.
constexpr std::int64_t kMostRequests = 200;
constexpr std::int64_t kMostRequestsPerSecond = 30;

// A stopped server or run stays stopped for up to this time; other faults record when they end.
constexpr Time kLongestStop = 60 * kSecond;
// This long after the last fault, every client has found a server, and the sessions of killed runs
// have expired.
constexpr Time kTimeToRecover = 60 * kSecond;
// After that, no LOCK stays free longer than this while a pool waits for it.
constexpr Time kMostIdle = 5 * kSecond;
// The longest minimum timeout that the fault "change-timeouts" sets on servers.
constexpr Time kLongestLeastTimeout = 12 * kSecond;

bool IsConversion(const Txn& txn) {
  return std::any_of(txn.changes.begin(), txn.changes.end(), [&](const Change& one) {
    return one.kind == Change::Kind::kCreate && one.owner == 0 &&
           txn.changes.front().kind == Change::Kind::kDelete;
  });
}

Moment MomentOf(const Txn& txn) {
  if (txn.kind == Txn::Kind::kOpenSession) return Moment::kOpened;
  if (txn.changes.empty()) return Moment::kHeartbeat;
  if (IsConversion(txn)) return Moment::kConverted;
  // The transaction that creates a pool's contenders also creates znodes and deletes them again.
  const auto created = std::count_if(txn.changes.begin(), txn.changes.end(),
                                     [](const Change& one) { return one.owner != 0; });
  const auto deleted = std::count_if(txn.changes.begin(), txn.changes.end(), [](const Change& one) {
    return one.kind == Change::Kind::kDelete;
  });
  if (created > deleted) return Moment::kCreated;
  return deleted > 0 ? Moment::kDeleted : Moment::kWritten;
}

}  // namespace

Life::Life(std::uint64_t seed, const std::string& profile_name, bool trace)
    : world(seed, trace),
      profile(DrawProfile(world.random, profile_name)),
      ensemble(network, profile.servers, profile.tick_ms),
      checks(ensemble),
      slots_(static_cast<std::size_t>(profile.contenders)),
      usual_delays_(static_cast<std::size_t>(kMostPlaces * kMostPlaces)) {
  simulation::ensemble = &ensemble;
  Random& random = world.random;
  const Time near = random.Between(50'000, 2 * kMillisecond);
  const Time far = random.Chance(0.2) ? random.Between(5, 60) * kMillisecond : near;
  for (int from = 0; from < profile.servers + profile.hosts; ++from) {
    for (int to = 0; to < profile.servers + profile.hosts; ++to) {
      const Time delay = random.Chance(0.3) ? far : near;
      network.SetDelay(from, to, delay);
      usual_delays_[static_cast<std::size_t>(from * kMostPlaces + to)] = delay;
    }
  }
  longest_delay_ = *std::max_element(usual_delays_.begin(), usual_delays_.end());
  usual_fsync = random.Pick(profile.fsyncs);
  for (Server& server : ensemble.servers()) {
    server.fsync = usual_fsync;
    server.clock_offset_ms = random.Between(-20, 20);
  }
  ensemble.container_interval =
      random.Pick(std::vector<Time>{300 * kMillisecond, 5 * kSecond, 60 * kSecond});
  ensemble.on_accept = [this](std::int64_t session) {
    if (!accepted_.insert(session).second) reconnects_.insert(session);
    OnMoment(Moment::kAccepted, session);
  };
  ensemble.on_propose = [this](const Txn& txn) {
    if (IsConversion(txn)) OnMoment(Moment::kConverting, txn.session);
  };
  ensemble.after_commit = [this](const Txn& txn) {
    const Moment moment = txn.error == ZOK ? MomentOf(txn) : Moment::kRefused;
    OnMoment(moment, txn.session);
    if (moment == Moment::kHeartbeat && reconnects_.erase(txn.session) > 0) {
      OnMoment(Moment::kProven, txn.session);
    }
  };
  checks.clocks_jump =
      std::find(profile.faults.begin(), profile.faults.end(), "jump-clock") != profile.faults.end();
  for (int slot = 0; slot < profile.contenders; ++slot) {
    world.After(random.Between(0, 5 * kSecond), [this, slot] { StartRun(slot); });
  }
}

Life::~Life() {
  processes_.clear();
  runs.clear();
  CloseAllSockets();
}

std::vector<zookeeper::Endpoint> Life::Endpoints() const {
  std::vector<zookeeper::Endpoint> endpoints;
  for (int i = 0; i < profile.servers; ++i) endpoints.push_back(EndpointOf(i));
  return endpoints;
}

std::vector<Run*> Life::LiveRuns() {
  std::vector<Run*> live;
  for (const auto& run : runs) {
    if (!run->process->is_over()) live.push_back(run.get());
  }
  return live;
}

void Life::Spawn(const std::string& name, Place place, std::function<void(Process&)> program) {
  processes_.push_back(std::make_unique<Process>(name, place, std::move(program)));
}

Run& Life::Begin(RunOptions options, std::function<void()> at_end) {
  runs.push_back(std::make_unique<Run>());
  Run& run = *runs.back();
  run.name = fmt::format("run {}", next_run_++);
  run.options = std::move(options);
  run.began = world.now();
  const Place place = PlaceOf(static_cast<int>(world.random.Below(profile.hosts)));
  world.Count("runs");
  run.process = std::make_unique<Process>(run.name, place, [this, &run](Process& process) {
    run.options.is_foreign ? RunOtherProgram(process, *this, run) : RunZklock(process, *this, run);
    run.session = nullptr;  // KillRun() does the same for one that is killed
  });
  const auto follow = [this, &run, at_end = std::move(at_end)](const auto& self) -> void {
    if (!run.process->is_over()) {
      const Time since = world.now() - run.began;
      // Whenever the queue changes, a run with --reserve lists it and reads every znode that may be
      // a reservation.
      const std::int64_t changes = run.options.request.reserve ? 5 : 1;
      const auto queues = static_cast<std::int64_t>(run.options.any ? run.options.locks.size() : 1);
      // Requests that a server throttles are repeated.
      const auto& faults = profile.faults;
      const bool are_throttled =
          std::find(faults.begin(), faults.end(), "throttle") != faults.end();
      const std::int64_t most = changes * queues * (are_throttled ? 2 : 1) *
                                (kMostRequests + kMostRequestsPerSecond * (since / kSecond));
      if (run.process->requests > most) {
        throw Violation(fmt::format("{} makes {} requests in {} s", run.name, run.process->requests,
                                    since / kSecond));
      }
      CheckPool(run);
      return world.After(500 * kMillisecond, [self] { self(self); });
    }
    world.Count(run.outcome.empty() ? "outcome: killed" : "outcome: " + run.outcome);
    at_end();
  };
  world.After(500 * kMillisecond, [follow] { follow(follow); });
  return run;
}

/// Returns whether there are no faults, or the last one was so long ago that its effects are over.
bool Life::IsCalm() const {
  if (profile.faults.empty() && profile.aim_chance == 0) return true;
  return is_draining_ && faults_under_way_ == 0 && world.now() > last_fault_end_ + kTimeToRecover;
}

/// Checks that a waiting pool has a contender in each of its LOCKs, or in none, and that it takes a
/// LOCK that is free.
void Life::CheckPool(Run& run) {
  std::set<std::string> queues;
  bool is_first = false;
  bool is_asked = false;
  if (run.waits) {
    for (const std::string& path : ensemble.truth().EphemeralsOf(run.session_id())) {
      is_asked = is_asked || lock::FindReleaseRequest(ensemble.truth().Find(path)->data);
      const std::string lock = protocol::ParentOf(path);
      queues.insert(lock);
      const protocol::Contenders contenders(ensemble.truth().Find(lock)->children);
      is_first = is_first || contenders.First()->full == protocol::BaseOf(path);
    }
  }
  const lock::AcquireRequest& request = run.options.request;
  const bool may_leave = request.try_only || request.wait || request.max_queue || request.reserve ||
                         run.has_left || checks.WasRobbed(run.sessions);
  if (!queues.empty() && queues.size() != run.options.locks.size() && !may_leave) {
    throw Violation(fmt::format("{} waits in {} of its {} queues", run.name, queues.size(),
                                run.options.locks.size()));
  }
  const bool is_stopped = run.process->IsStopped();
  const auto lasts = [this](bool holds, Time& since, Time most) {
    if (!holds) since = 0;
    if (holds && since == 0) since = world.now();
    return holds && world.now() > since + most;
  };
  if (lasts(is_first && IsCalm() && !is_stopped, run.first_since, kMostIdle)) {
    throw Violation(run.name + " waits for a LOCK that is free");
  }
  // The run's session is alive. While a leader serves, the run learns of the request, perhaps over
  // another connection.
  const Time session = std::max(run.options.timeout.count(), kLongestLeastTimeout);
  if (lasts(is_asked && !is_stopped && ensemble.Leader() != nullptr, run.asked_since,
            2 * session)) {
    throw Violation(run.name + " stays in a queue that it was asked to leave");
  }
}

/// Starts one run in this slot, and another when that has ended.
void Life::StartRun(int slot) {
  if (is_draining_) return;
  Run*& run = slots_[static_cast<std::size_t>(slot)];
  run = &Begin(DrawOptions(*this), [this, slot, &run] {
    run = nullptr;
    world.After(world.random.Around(kSecond), [this, slot] { StartRun(slot); });
  });
}

/// Starts a run that finds and deletes overdue reservations.
void Life::Visit(const std::string& lock) {
  if (!visited_.insert(lock).second) return;
  RunOptions options{.locks = {lock}, .timeout = std::chrono::seconds(10)};
  Begin(std::move(options), [this, lock] { visited_.erase(lock); });
}

void Life::For(Time span, const std::function<void()>& begin, std::function<void()> end) {
  ++faults_under_way_;
  begin();
  world.After(span, [this, end = std::move(end)] {
    --faults_under_way_;
    last_fault_end_ = std::max(last_fault_end_, world.now());
    end();
  });
}

void Life::CutWays(const std::vector<std::pair<Place, Place>>& ways, Time span) {
  For(
      span,
      [&] {
        for (const auto& [from, to] : ways) network.Cut(from, to);
      },
      [this, ways] {
        for (const auto& [from, to] : ways) network.Heal(from, to);
      });
}

void Life::CrashFor(Server& server, Time span) {
  For(
      span, [&] { ensemble.Crash(server); }, [this, &server] { ensemble.Restart(server); });
}

Time Life::usual_delay(Place from, Place to) const {
  return usual_delays_[static_cast<std::size_t>(from * kMostPlaces + to)];
}

std::vector<std::string> Life::Contenders() const {
  std::vector<std::string> paths;
  for (const auto& [path, node] : ensemble.truth().nodes()) {
    // Leave out the contenders of the simple dialect, whose names are reused.
    if (protocol::ParseContenderName(protocol::BaseOf(path))) paths.push_back(path);
  }
  return paths;
}

std::string Life::AnyLock() { return fmt::format("/l{}", world.random.Below(profile.locks)); }

void Life::ReleaseLater(const std::string& lock, const std::string& path, const std::string& id,
                        Time wait) {
  world.After(wait, [=, this] {
    checks.Allow(path);
    const Place place = PlaceOf(static_cast<int>(world.random.Below(profile.hosts)));
    Spawn("release " + path, place,
          [=, this](Process& process) { RunRelease(process, *this, lock, path, id); });
  });
}

void Life::KillRun(Run& run, bool with_guard) {
  if (run.process->is_over()) return;
  world.Trace("{} is killed{}", run.name, with_guard ? "" : " with its guard");
  run.process->Kill();
  run.session = nullptr;
  if (run.options.is_foreign) with_guard = false;
  const auto command = std::exchange(run.command, nullptr);
  const auto page = run.page;
  if (!with_guard) {
    // Nested runs have guards of their own.
    if (command) command->is_over = command->is_ending = true;
    return;
  }
  // The guard ends the command, at the latest when the lease ends, and then closes the session.
  const Place place = run.process->place();
  Time end = world.now() + world.random.Around(5 * kMillisecond);
  if (command && !command->IsOverWithNested()) {
    end = Command::EndBy(command, world.random.Chance(0.5) ? end : command->lease_end);
  }
  if (!page) return;
  world.At(end + 1, [this, page, place, name = run.name] {
    Spawn("guard of " + name, place,
          [this, page](Process& process) { CloseForRun(process, *this, *page); });
  });
}

void Life::Go() {
  const Time end = world.now() + profile.length;
  const auto inject = [this, end](const auto& self) -> void {
    if (world.now() >= end || profile.faults.empty()) return;
    InjectFault();
    world.After(world.random.Around(profile.between_faults), [self] { self(self); });
  };
  world.After(world.random.Around(profile.between_faults), [inject] { inject(inject); });
  while (world.Step(end)) {
  }
  Drain();
}

/// Ends the faults, and starts no more runs.
void Life::Drain() {
  is_draining_ = true;
  last_fault_end_ = world.now() + kLongestStop;
  world.Trace("the faults stop");
  ReleaseAll();
  for (const Run* run : LiveRuns()) {
    if (!run->command) continue;
    (void)Command::EndBy(run->command, world.now() + 10 * kSecond);
  }
  const Time end = world.now() + kDrainTime;
  while (world.now() < end) {
    if (!world.Step(std::min(end, world.now() + kSecond)) && LiveRuns().empty() &&
        faults_under_way_ == 0) {
      break;
    }
  }
  for (const Run* run : LiveRuns()) {
    throw Violation(run->name + " has not ended long after the faults");
  }
  // The sessions of killed runs expire, and containers are deleted, level by level.
  const Time last = world.now() + 150 * kSecond + 2 * ensemble.container_interval;
  while (world.Step(last)) {
  }
  CheckIdle();
}

/// Releases all reservations, and does so repeatedly, because runs in the queues may make more. A
/// reservation that has ended is deleted by the next zklock in its queue, whatever its position.
void Life::ReleaseAll() {
  for (const auto& [path, reservation] : checks.reservations()) {
    // One of several permits may stay until no others are left.
    if (checks.HasEnded(reservation) && !reservation.held->permits) {
      Visit(reservation.lock);
    } else {
      ReleaseLater(reservation.lock, path, reservation.id, 0);
    }
  }
  // Delete forged reservations: a zklock deletes them only if it has to wait for them.
  for (const std::string& path : Contenders()) {
    const Znode* const node = ensemble.truth().Find(path);
    if (node->owner == 0 && IsForged(path)) {
      (void)ensemble.Submit({{.type = OpType::kDelete, .path = path}});
    }
  }
  world.After(10 * kSecond, [this] { ReleaseAll(); });
}

void Life::CheckIdle() {
  // A run that does not wait for as long as it takes may find the LOCK reserved each time.
  const bool are_reserved = std::any_of(runs.begin(), runs.end(), [](const auto& run) {
    return run->options.request.reserve.has_value();
  });
  const bool should_run = std::any_of(runs.begin(), runs.end(), [are_reserved](const auto& run) {
    const lock::AcquireRequest& request = run->options.request;
    const bool is_patient = !request.try_only && !request.wait && !request.max_queue;
    return !run->options.is_foreign && !request.reserve && (is_patient || !are_reserved);
  });
  if (should_run && !HasFaults() && world.counts["commands"] == 0) {
    throw Violation("no command has run, without any fault");
  }
  for (const auto& [path, node] : ensemble.truth().nodes()) {
    if (node.owner != 0) throw Violation(path + " is left, though nobody lives");
    // A container that has never had a child stays.
    if (path == kParent && node.created > 0 && node.children.empty())
      throw Violation(path + " is left, which a run has made above its LOCK");
  }
  if (!checks.reservations().empty()) {
    throw Violation(checks.reservations().begin()->first + " is left, though it was released");
  }
  if (!ensemble.truth().sessions().empty()) throw Violation("a session is left");
}

}  // namespace zklock::simulation
