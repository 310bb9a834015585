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
  kAccepted,    ///< a server accepts a new or existing session
  kCreated,     ///< a contender is committed, but its creator does not know yet
  kDeleted,     ///< likewise for a release
  kWritten,     ///< likewise for any other write
  kHeartbeat,   ///< likewise
  kProven,      ///< likewise for the first heartbeat after a reconnect
  kRefused,     ///< a request is refused, but its client does not know yet
  kConverting,  ///< the leader proposes to make a contender a reservation
  kConverted,   ///< that conversion is committed
};
inline constexpr int kMoments = 10;

/// The name that a run with --preempt gives itself.
inline constexpr char kPreemptor[] = "preemptor";
/// The prefix of the IDs with which pools reserve one of all LOCKs.
inline constexpr char kPoolId[] = "pool";

/// A znode that no run locks, and a LOCK below it: runs that lock the latter create both.
inline constexpr char kParent[] = "/p";
inline constexpr char kLockBelowParent[] = "/p/q";

/// Returns whether the fault "forge-reservation" has made the znode.
inline bool IsForged(const std::string& path) { return path.find("-f0f0-") != std::string::npos; }

/// The options of one run.
struct RunOptions {
  std::vector<std::string> locks{};
  bool any = false;                ///< wants one of the locks: a pool
  bool is_foreign = false;         ///< no zklock, but a program with Curator's or kazoo's recipe
  lock::AcquireRequest request{};  ///< for each lock
  std::size_t history = 0;
  std::optional<Duration> min_interval{};
  bool once_per = false;  ///< --once-per, of kOncePer
  bool resumes = false;
  int nests = 0;       ///< how many runs of zklock its command starts
  Duration timeout{};  ///< of the session
  Duration kill_after = std::chrono::seconds(10);
  Time command = 0;  ///< how long the command runs if not ended
};

/// One run of zklock, and the data that it shares with its guard.
struct Run {
  std::string name;
  RunOptions options;
  std::unique_ptr<Process> process;
  std::shared_ptr<Command> command{};
  std::optional<zookeeper::Credentials> page{};  ///< the guard closes the session with these
  const zookeeper::Session* session = nullptr;   ///< while it has one
  [[nodiscard]] std::int64_t session_id() const {
    return session == nullptr ? 0 : session->session_id();
  }
  std::set<std::int64_t> sessions{};  ///< all that it has had while it acquired locks
  bool is_told_to_end = false;
  // A pool, before it has taken a LOCK.
  bool waits = false;
  bool has_left = false;  ///< it left a queue on request
  Time first_since = 0;   ///< since when it has been first in any of its queues; 0: it is not
  Time asked_since = 0;   ///< since when it has been asked to leave any of them; 0: it is not
  std::string outcome{};  ///< once it is over
  Time began = 0;
};

/// Which faults happen and how often, and what the runs do. Drawn from the seed.
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
  double preempting = 0;  ///< share of runs that preempt those ahead of them
  std::vector<std::int64_t> timeouts_ms = {4000, 6000, 10'000, 15'000, 30'000};  ///< of sessions
  std::vector<Time> commands = {5 * kMillisecond, 300 * kMillisecond, 3 * kSecond, 12 * kSecond};
  std::vector<Time> fsyncs = {200'000, 2 * kMillisecond, 15 * kMillisecond};
  Moment aim = Moment::kOpened;
  int aim_fault = 0;
  double aim_chance = 0;
};
[[nodiscard]] Profile DrawProfile(Random& random, std::string name);
[[nodiscard]] std::vector<std::string> ProfileNames();

/// One life of the ensemble and of all its clients.
class Life {
 public:
  Life(std::uint64_t seed, const std::string& profile, bool trace);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// Lives until the end. Throws Violation.
  void Go();

  World world;
  Network network;
  Profile profile;
  Ensemble ensemble;
  Checks checks;
  /// All runs, even ended ones: sockets and scheduled events refer to their processes.
  std::vector<std::unique_ptr<Run>> runs;

  [[nodiscard]] Place PlaceOf(int host) const { return profile.servers + host; }
  [[nodiscard]] std::vector<zookeeper::Endpoint> Endpoints() const;
  /// Starts another process, which ends by itself.
  void Spawn(const std::string& name, Place place, std::function<void(Process&)> program);
  void KillRun(Run& run, bool with_guard);
  [[nodiscard]] std::vector<Run*> LiveRuns();
  [[nodiscard]] bool is_draining() const { return is_draining_; }
  /// Returns whether anything can go wrong in this life. Slow links and disks count, because the
  /// shortest leases may end before slow commits renew them.
  [[nodiscard]] bool HasFaults() const {
    return !profile.faults.empty() || profile.aim_chance > 0 || usual_fsync > 100 * kMillisecond ||
           longest_delay_ > 20 * kMillisecond;
  }

  /// Injects a fault, which lasts for a while. In faults.cc.
  void InjectFault();
  void OnMoment(Moment moment, std::int64_t session);

  // For faults.
  void For(Time span, const std::function<void()>& begin, std::function<void()> end);
  void CutWays(const std::vector<std::pair<Place, Place>>& ways, Time span);
  void CrashFor(Server& server, Time span);
  [[nodiscard]] int places() const { return profile.servers + profile.hosts; }
  [[nodiscard]] Time usual_delay(Place from, Place to) const;
  Time usual_fsync = 0;
  /// Returns the contenders of all queues, including reservations.
  [[nodiscard]] std::vector<std::string> Contenders() const;
  [[nodiscard]] std::string AnyLock();

  /// Releases a reservation after `wait`.
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
  std::set<std::int64_t> reconnects_;  // sessions without a heartbeat since their reconnect
  std::set<std::string> visited_;      // by a run that has not ended
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Run*> slots_;
  int next_run_ = 1;
  int faults_under_way_ = 0;
  std::vector<Time> usual_delays_;
  Time longest_delay_ = 0;  // of these
};

/// run.cc: what the program does.
void RunZklock(Process& process, Life& life, Run& run);
void RunOtherProgram(Process& process, Life& life, Run& run);
[[nodiscard]] RunOptions DrawOptions(Life& life);
/// Releases a reservation, as `zklock release` does.
void RunRelease(Process& process, Life& life, const std::string& lock, const std::string& path,
                const std::string& id);
/// Runs zklock inside `outer`, the command of a run that the nested zklock sees as the holder.
void RunNested(Process& process, Life& life, const std::shared_ptr<Command>& outer);
/// Closes the session of a run whose zklock was killed.
void CloseForRun(Process& process, Life& life, const zookeeper::Credentials& credentials);

}  // namespace zklock::simulation
