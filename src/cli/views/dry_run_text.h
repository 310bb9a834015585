#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/options/option_table.h"
#include "lock/data/outcome.h"
#include "lock/data/reserved.h"
#include "process/tree/cgroup.h"
#include "process/tree/owner.h"
#include "protocol/contender_name.h"
#include "zookeeper/store.h"

// The output of --dry-run, except the queues, which are shown as by inspect.

namespace zklock::cli {

/// "servers   zk1:2181 (default)": one line, or several with the name in the first.
struct DryRunRow {
  std::string_view name;
  std::string text;  ///< may contain arbitrary bytes
};
/// Returns the rows, with newlines. Long texts are wrapped to `width`; 0: no limit.
[[nodiscard]] std::string FormatRows(const std::vector<DryRunRow>& rows, std::size_t width,
                                     bool colours);

/// Returns the servers, and where their list comes from.
[[nodiscard]] DryRunRow ServersRow(const ServerOptions& options);
/// Says that the chroot of --servers does not exist.
[[nodiscard]] DryRunRow MissingChrootRow(const RunOptions& options);
/// Returns the identity by which the servers know the caller.
[[nodiscard]] DryRunRow IdentityRow(const ServerOptions& options);
/// Returns the command's absolute path.
[[nodiscard]] DryRunRow CommandRow(const std::string& executable);
/// Says that there is no command. `owner`: the process to hold for, with --hold; null: the run only
/// reserves.
[[nodiscard]] DryRunRow NoCommandRow(const process::Owner* owner);
/// Says whether the command would get a cgroup, by which zklock would find its processes. `parent`:
/// where; `none`: why it would get none. Neither is given with --contain off.
[[nodiscard]] DryRunRow ContainRow(const std::string& parent,
                                   const std::optional<process::NoCgroup>& none);
/// Says how long the command may run, or an owner may hold the lock (--max-run).
[[nodiscard]] DryRunRow MaxRunRow(Duration limit, bool has_owner);
/// Says that the shell holds the lock through --hold, and that the run may use it.
[[nodiscard]] DryRunRow HeldByShellRow();
/// Says that an outer zklock already holds the LOCK for this run.
[[nodiscard]] std::string HeldAboveText(const std::string& lock);
/// Says what the run requests.
[[nodiscard]] DryRunRow ModeRow(protocol::Mode mode, const std::optional<std::size_t>& permits,
                                std::size_t take);
/// Returns a line for each user: "digest:ops: all". `of`: the queue, or the nearest znode above it
/// that exists. `may_queue`: the servers would let the caller join the queue and, if
/// `needs_delete`, leave it.
[[nodiscard]] std::vector<DryRunRow> RightsRows(const zookeeper::AclReply& acl,
                                                const std::string& of, bool is_queue,
                                                bool may_queue, bool needs_delete,
                                                const zookeeper::Access& access);

/// The last run, if another run would be too soon after it.
struct RecentRun {
  std::string_view option;  ///< the option that forbids it
  std::string host{};
  Duration ago{};
  Duration interval{};  ///< of the option
};
/// What one LOCK means for the run.
struct DryRunFinding {
  enum class What {
    kFree,  ///< nothing keeps the run from starting
    kBusy,
    kQueueFull,
    kTooRecent,
    kNotReserved,
  };
  What what = What::kFree;
  std::string lock;      ///< as the user knows it
  bool is_ours = false;  ///< with kFree: it is reserved for our ID
  lock::Busy busy{};     ///< with kBusy: who is ahead; with kNotReserved: another reservation
  std::size_t more = 0;  ///< with kBusy: how many others hold or wait
  RecentRun recent{};    ///< with kTooRecent
};
/// Says what would happen, according to all findings: a line for each LOCK that keeps the run from
/// starting, or one line that says that the run would start. `error`: the exit status if an error
/// keeps the run from starting, otherwise 0; `why`: the error's message.
[[nodiscard]] std::vector<DryRunRow> ResultRows(const RunOptions& options,
                                                const std::vector<DryRunFinding>& findings,
                                                int error, const std::string& why);

/// What `release` would do with a contender or a reservation.
enum class ReleaseAction { kAskProgram, kDeleteContender, kReleaseLock };
/// `target`: as DescribeTarget() or one of the following functions describes it.
[[nodiscard]] std::vector<DryRunRow> ReleaseRows(ReleaseAction action, const std::string& target);
[[nodiscard]] std::string OwnHoldText(const std::string& lock, pid_t keeper);
[[nodiscard]] std::string ReservationHoldText(const std::string& lock,
                                              const lock::Reserved& reserved);

}  // namespace zklock::cli
