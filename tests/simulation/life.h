#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lock/data/acquire_request.h"
#include "simulation/checks.h"
#include "simulation/ensemble.h"
#include "simulation/network.h"
#include "simulation/process.h"
#include "simulation/world.h"
#include "zookeeper/session.h"

namespace zklock::simulation {

/// Moments at which faults are aimed.
enum class Moment {
  kOpened,      ///< a new session is committed
  kAccepted,    ///< a server accepts a session, a new one or again
  kCreated,     ///< a contender is committed, and its creator not told
  kDeleted,     ///< likewise, a release
  kWritten,     ///< likewise, something else
  kHeartbeat,   ///< likewise
  kProven,      ///< likewise, the first one after a reconnect
  kRefused,     ///< a request is refused, and its client not told
  kConverting,  ///< the leader proposes to make a contender a reservation
  kConverted,   ///< that is committed
};
inline constexpr int kMoments = 10;

/// What a run with --preempt calls itself.
inline constexpr char kPreemptor[] = "preemptor";
/// How the IDs begin for which pools reserve one of all LOCKs.
inline constexpr char kPoolId[] = "pool";

/// A znode that nobody locks, and a LOCK below it: those that lock this one make both.
inline constexpr char kParent[] = "/p";
inline constexpr char kLockBelowParent[] = "/p/q";

/// Whether the fault "forge-reservation" has made the znode.
inline bool IsForged(const std::string& path) { return path.find("-f0f0-") != std::string::npos; }

/// What one run of zklock was told.
struct RunOptions {
  std::vector<std::string> locks{};
  bool any = false;                ///< one of the locks: a pool
  bool is_foreign = false;         ///< no zklock, but a program with Curator's or kazoo's recipe
  lock::AcquireRequest request{};  ///< for each lock
  std::size_t history = 0;
  std::optional<Duration> min_interval{};
  bool once_per = false;  ///< --once-per, of kOncePer
  bool resumes = false;
  int nests = 0;       ///< how many runs of zklock its command starts
  Duration timeout{};  ///< of the session
  Duration kill_after = std::chrono::seconds(10);
  Time command = 0;  ///< how long it runs by itself
};

/// One run of zklock, and what its guard knows of it.
struct Run {
  std::string name;
  RunOptions options;
  std::unique_ptr<Process> process;
  std::shared_ptr<Command> command{};
  std::optional<zookeeper::Credentials> page{};  ///< with which the guard closes the session
  const zookeeper::Session* session = nullptr;   ///< while it has one
  [[nodiscard]] std::int64_t session_id() const {
    return session == nullptr ? 0 : session->session_id();
  }
  bool is_told_to_end = false;
  // A pool, before it has taken a LOCK.
  bool waits = false;
  bool has_left = false;  ///< a queue: it was asked to, or its contender deleted
  // Since when, for all of its queues; 0: in none.
  Time first_since = 0;   ///< the first in one
  Time asked_since = 0;   ///< asked to leave one
  std::string outcome{};  ///< once it is over
  Time began = 0;
};

/// How often things go wrong, and which things are tried. Drawn from the seed.
struct Profile {
  int servers = 3;
  int tick_ms = 2000;
  int hosts = 3;
  int contenders = 6;
  int locks = 1;
  Time length = 120 * kSecond;  ///< until the faults stop
  Time between_faults = 5 * kSecond;
  std::vector<std::string> faults{};  ///< kinds; repeated ones are more likely
  std::vector<std::string> abilities{};
  double preempting = 0;  ///< how many runs preempt those before them
  std::vector<std::int64_t> timeouts_ms = {4000, 6000, 10'000, 15'000, 30'000};  ///< of sessions
  std::vector<Time> commands = {5 * kMillisecond, 300 * kMillisecond, 3 * kSecond, 12 * kSecond};
  std::vector<Time> fsyncs = {200'000, 2 * kMillisecond, 15 * kMillisecond};
  Moment aim = Moment::kOpened;
  int aim_fault = 0;
  double aim_chance = 0;
};
[[nodiscard]] Profile DrawProfile(Random& random, std::string name);
[[nodiscard]] std::vector<std::string> ProfileNames();

/// One life of the ensemble and all that use it.
class Life {
 public:
  Life(std::uint64_t seed, const std::string& profile, bool trace);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// To its end. Throws Violation.
  void Go();

  World world;
  Network network;
  Profile profile;
  Ensemble ensemble;
  Checks checks;
  /// All of them, since sockets and planned events refer to their processes.
  std::vector<std::unique_ptr<Run>> runs;

  [[nodiscard]] Place PlaceOf(int host) const { return profile.servers + host; }
  [[nodiscard]] std::vector<zookeeper::Endpoint> Endpoints() const;
  /// Another process, which ends by itself.
  void Spawn(const std::string& name, Place place, std::function<void(Process&)> program);
  void KillRun(Run& run, bool with_guard);
  [[nodiscard]] std::vector<Run*> LiveRuns();
  [[nodiscard]] bool is_draining() const { return is_draining_; }

  /// faults.cc: something goes wrong, for a while.
  void InjectFault();
  void OnMoment(Moment moment, std::int64_t session);

  // For faults.
  void For(Time span, const std::function<void()>& begin, std::function<void()> end);
  void CutWays(const std::vector<std::pair<Place, Place>>& ways, Time span);
  void CrashFor(Server& server, Time span);
  [[nodiscard]] int places() const { return profile.servers + profile.hosts; }
  [[nodiscard]] Time usual_delay(Place from, Place to) const;
  Time usual_fsync = 0;
  /// Of all queues, with reservations.
  [[nodiscard]] std::vector<std::string> Contenders() const;
  [[nodiscard]] std::string AnyLock();

  /// Somebody releases a reservation.
  void ReleaseLater(const std::string& lock, const std::string& path, const std::string& id,
                    Time wait);

 private:
  void StartRun(int slot);
  Run& Begin(RunOptions options, std::function<void()> at_end);
  void Drain();
  void ReleaseAll();
  void Visit(const std::string& lock);
  void CheckPool(Run& run);
  [[nodiscard]] bool IsCalm() const;
  void CheckIdle();

  bool is_draining_ = false;
  Time last_fault_end_ = 0;
  std::set<std::int64_t> accepted_;    // sessions
  std::set<std::int64_t> reconnects_;  // those without a heartbeat since
  std::set<std::string> visited_;      // by a run that has not ended
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Run*> slots_;
  int next_run_ = 1;
  int faults_under_way_ = 0;
  std::vector<Time> usual_delays_;
};

/// run.cc: what the program does.
void RunZklock(Process& process, Life& life, Run& run);
void RunOtherProgram(Process& process, Life& life, Run& run);
[[nodiscard]] RunOptions DrawOptions(Life& life);
/// `zklock release` of a reservation.
void RunRelease(Process& process, Life& life, const std::string& lock, const std::string& path,
                const std::string& id);
/// A run of zklock in the command of another one. It is told that this one holds the lock.
void RunNested(Process& process, Life& life, const std::shared_ptr<Command>& outer);
/// Closes the session of a run whose zklock is gone.
void CloseForRun(Process& process, Life& life, const zookeeper::Credentials& credentials);

}  // namespace zklock::simulation
