#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "lock/acquire_set.h"
#include "lock/contender_data.h"
#include "lock/hold.h"
#include "lock/semaphore.h"
#include "protocol/lock_path.h"
#include "simulation/client_library.h"
#include "simulation/life.h"
#include "zookeeper/close_session.h"

// A run of zklock, in the order of src/commands: acquire_locks, queue_wait, locked_run,
// session_driver.

namespace zklock::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCloseTimeout = 1s;

std::string MakeUuid() {
  return fmt::format("{:08x}-5eed-4000-8000-{:012x}", world->random.Next() & 0xffffffffU,
                     world->random.Next() & 0xffffffffffffU);
}

class Observer final : public lock::AcquireObserver, public lock::HoldObserver {
 public:
  explicit Observer(const std::string& name) : name_(name) {}
  void OnConnected() override {}
  void OnQueued(const lock::Ticket& ticket) override {
    paths.push_back(ticket.path);
    world->Trace("{}: queued as {}", name_, ticket.path);
  }
  void OnOwnData(const std::string& data) override {
    if (lock::FindReleaseRequest(data)) is_asked_to_leave = true;
  }
  void OnPlaceLost(const lock::LockName& /*lock*/) override { world->Count("places lost"); }
  void OnLease(TimePoint end, Duration /*grace*/) override {
    lease_end = TimeOf(end);
    if (command) {
      command->lease_end = lease_end;
      Command::Watch(command);
    }
  }

  std::vector<std::string> paths;
  bool is_asked_to_leave = false;
  Time lease_end = 0;
  std::shared_ptr<Command> command;

 private:
  const std::string& name_;
};

class ZklockRun {
 public:
  ZklockRun(Process& process, Life& life, Run& run)
      : process_(process),
        life_(life),
        run_(run),
        options_(run.options),
        observer_(run.name),
        session_(life.Endpoints(), options_.timeout, clock_) {
    session_.SetConnectTimeout(options_.connect_timeout);
  }

  std::string Execute() {
    process_.Add(session_);
    const std::string failure = Acquire();
    if (!failure.empty()) {
      Close(0);
      return failure;
    }
    return RunCommand();
  }

 private:
  std::vector<lock::AcquireRequest> Requests() {
    std::vector<lock::AcquireRequest> requests;
    for (const std::string& path : options_.locks) {
      lock::AcquireRequest request{.lock = {.path = path, .chroot = ""},
                                   .mode = options_.mode,
                                   .dialect = options_.dialect,
                                   .host = fmt::format("host{}", process_.place()),
                                   .data = lock::FormatContenderData({.mode = options_.mode}),
                                   .try_only = options_.try_only,
                                   .wait = options_.wait,
                                   .max_queue = options_.max_queue,
                                   .supersede = options_.supersede,
                                   .permits = options_.permits,
                                   .connect_timeout = options_.connect_timeout};
      if (options_.permits) {
        for (auto& one : lock::RequestsForPermit(request)) requests.push_back(std::move(one));
      } else {
        requests.push_back(std::move(request));
      }
    }
    return requests;
  }

  /// Returns why not; empty if the locks are held.
  std::string Acquire() {
    lock::AcquireSet acquire(session_, clock_, Requests(), MakeUuid, observer_);
    process_.Add(acquire);
    std::optional<std::string> failure;
    while (!failure) {
      process_.RunOnce();
      if (acquire.IsNearTurn()) LetGuardKnow();
      if (observer_.is_asked_to_leave) {
        failure = "asked to leave";
      } else if (acquire.outcome()) {
        failure = FailureOf(*acquire.outcome());
      } else if (run_.is_told_to_end) {
        failure = "told to end";
      }
    }
    process_.Remove(acquire);
    tickets_ = acquire.tickets();
    passed_ = acquire.passed();
    return *failure;
  }

  /// Empty if it is none. Throws Violation for an outcome that these options do not allow.
  std::string FailureOf(const lock::AcquireOutcome& outcome) {
    if (std::holds_alternative<lock::Acquired>(outcome)) return "";
    if (const auto* busy = std::get_if<lock::Busy>(&outcome)) return FailureOf(*busy);
    if (std::holds_alternative<lock::Unreachable>(outcome)) return "unreachable";
    if (const auto* slow = std::get_if<lock::TooSlow>(&outcome)) {
      const Duration least = (slow->timeout * 2 / 3 - slow->timeout / 24 - slow->ping_span) / 4;
      if (slow->answer < least && !options_.try_only) {
        throw Violation(run_.name + " calls fast servers too slow");
      }
      return "too slow";
    }
    if (const auto* unusable = std::get_if<lock::Unusable>(&outcome)) {
      return fmt::format("unusable {}", static_cast<int>(unusable->why));
    }
    if (const auto* defect = std::get_if<lock::Defect>(&outcome)) {
      throw Violation(fmt::format("{}: defect {} of {}: {} {}", run_.name,
                                  static_cast<int>(defect->what), defect->path, defect->operation,
                                  static_cast<int>(defect->error)));
    }
    throw Violation(fmt::format("{}: outcome {}", run_.name, outcome.index()));
  }

  std::string FailureOf(const lock::Busy& busy) {
    using Why = lock::Busy::Why;
    const bool was_removed =
        std::any_of(observer_.paths.begin(), observer_.paths.end(),
                    [&](const auto& path) { return life_.checks.IsExcused(path); });
    const bool is_allowed = busy.why == Why::kTaken        ? options_.try_only
                            : busy.why == Why::kWaitOver   ? options_.wait.has_value()
                            : busy.why == Why::kQueueFull  ? options_.max_queue.has_value()
                            : busy.why == Why::kSuperseded ? options_.supersede
                                                           : was_removed;
    if (!is_allowed) {
      throw Violation(fmt::format("{}: busy {}", run_.name, static_cast<int>(busy.why)));
    }
    return fmt::format("busy {}", static_cast<int>(busy.why));
  }

  /// The guard and zklock share a page with what a close needs.
  void LetGuardKnow() {
    if (session_.credentials()) run_.page = session_.credentials();
  }

  std::string RunCommand() {
    lock::Hold hold(session_, clock_, tickets_, options_.kill_after, observer_, passed_);
    observer_.lease_end = TimeOf(hold.lease_end());
    // First, so that the lease is checked before anything that the servers sent is read.
    process_.Remove(session_);
    process_.Add(hold);
    process_.Add(session_);
    LetGuardKnow();
    std::string outcome = "lost before the run";
    const TimePoint began = clock_.Now();
    if (BeginCommand(hold)) {
      Supervise(hold);
      outcome = hold.loss() ? fmt::format("lost {}", static_cast<int>(*hold.loss())) : "done";
    }
    std::size_t releases = 0;
    if (!hold.loss()) {
      releases = hold.Release({.ran = clock_.Now() - began, .status = 0, .host = "host"});
    }
    process_.Remove(hold);
    Close(releases);
    return outcome;
  }

  /// False: too late. Another process, the guard, looks at the time once more.
  bool BeginCommand(const lock::Hold& hold) {
    process_.Sleep(life_.world.random.Around(500'000));
    const TimePoint stop = protocol::StopTime(hold.lease_end(), hold.grace());
    if (clock_.Now() >= stop || observer_.is_asked_to_leave) return false;
    const Time now = life_.world.now();
    run_.command = std::make_shared<Command>(Command{.name = run_.name,
                                                     .tickets = tickets_,
                                                     .permits = options_.permits,
                                                     .own_end = now + options_.command,
                                                     .lease_end = TimeOf(hold.lease_end()),
                                                     .process = &process_});
    world->Trace("{}: the command starts under {}", run_.name, tickets_.front().path);
    world->Count("commands");
    observer_.command = run_.command;
    life_.checks.Begin(run_.command);
    Command::Watch(run_.command);
    return true;
  }

  void Supervise(lock::Hold& hold) {
    bool is_ending = false;
    while (!run_.command->is_over) {
      process_.RunOnce();
      const bool ends = hold.loss() || observer_.is_asked_to_leave || run_.is_told_to_end;
      if (!ends || std::exchange(is_ending, true)) continue;
      // What the guard ends may take all of the grace.
      const Time grace = hold.grace().count();
      run_.command->own_end =
          std::min(run_.command->own_end, world->now() + world->random.Between(0, grace));
      Command::Watch(run_.command);
    }
    observer_.command.reset();
  }

  void Close(std::size_t releases) {
    session_.BeginClose(releases);
    const TimePoint deadline = clock_.Now() + kCloseTimeout;
    while (!session_.IsClosed() && !session_.IsCloseRefused() && clock_.Now() < deadline) {
      process_.RunOnce(deadline);
    }
    if (!session_.IsClosed()) world->Count("closes without an answer");
    process_.Remove(session_);
  }

  Process& process_;
  Life& life_;
  Run& run_;
  const RunOptions& options_;
  const VirtualClock clock_;
  Observer observer_;
  zookeeper::Session session_;
  std::vector<lock::Ticket> tickets_;
  std::vector<std::string> passed_;
};

}  // namespace

void RunZklock(Process& process, Life& life, Run& run) {
  run.outcome = ZklockRun(process, life, run).Execute();
  run.page.reset();
  world->Trace("{}: {}", run.name, run.outcome);
}

void CloseForRun(Process& process, Life& life, const zookeeper::Credentials& credentials) {
  const VirtualClock clock;
  const auto session = zookeeper::BeginCloseOf(credentials, life.Endpoints(), clock);
  process.Add(*session);
  const TimePoint deadline = clock.Now() + 10s;
  while (!session->IsClosed() && !session->IsCloseRefused() && clock.Now() < deadline) {
    process.RunOnce(deadline);
  }
  process.Remove(*session);
}

RunOptions DrawOptions(Life& life) {
  Random& random = life.world.random;
  const Profile& profile = life.profile;
  RunOptions options;
  const std::string ability = random.Pick(profile.abilities);
  const auto lock = [&] { return fmt::format("/l{}", random.Below(profile.locks)); };
  options.locks = {lock()};
  options.timeout = std::chrono::milliseconds(
      random.Pick(std::vector<std::int64_t>{4000, 6000, 10'000, 15'000, 30'000}));
  options.command = random.Around(random.Pick(
      std::vector<Time>{5 * kMillisecond, 300 * kMillisecond, 3 * kSecond, 12 * kSecond}));
  if (life.is_draining()) options.command = std::min(options.command, kSecond);
  options.kill_after = Duration(random.Between(0, 10 * kSecond));
  if (ability == "read" || ability == "write") options.mode = protocol::Mode::kRead;
  if (ability == "write" && random.Chance(0.5)) options.mode = protocol::Mode::kWrite;
  if (ability == "try") options.try_only = true;
  if (ability == "wait") options.wait = Duration(random.Around(10 * kSecond));
  if (ability == "max-queue") options.max_queue = static_cast<std::size_t>(random.Between(1, 4));
  if (ability == "supersede") options.supersede = true;
  if (ability == "set") {
    options.locks.clear();
    for (int i = 0; i < profile.locks; ++i) {
      if (i == 0 || random.Chance(0.6)) options.locks.push_back(fmt::format("/l{}", i));
    }
  }
  if (ability == "permits") {
    options.locks = {"/s"};
    options.permits = 2;
  }
  return options;
}

}  // namespace zklock::simulation
