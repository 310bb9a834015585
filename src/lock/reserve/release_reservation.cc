#include "lock/reserve/release_reservation.h"

#include <chrono>
#include <utility>
#include <vector>

#include "lock/data/reserved.h"
#include "lock/data/run_history.h"
#include "lock/operations/contender_operations.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "protocol/release_record.h"

namespace zklock::lock {
namespace {

using zookeeper::DataWrite;
using zookeeper::Error;
using zookeeper::GetReply;

// A reservation must not remain just because writing its history breaks the connection again and
// again.
constexpr int kMostLosses = 3;

bool MayNotWrite(Error error) {
  return zookeeper::IsRefusal(error) || error == Error::kQuotaExceeded;
}

/// Returns the record of the release in LOCK's data; none if the reservation does not leave one.
std::optional<DataWrite> RecordFor(Calls& calls, const std::string& lock, const std::string& path,
                                   const Reserved& reserved) {
  // A semaphore has no record.
  if (protocol::ParentOf(path) != lock) return std::nullopt;
  const zookeeper::ListReply list = calls.List(lock);
  const protocol::Contenders contenders(list.children);
  const auto* const first = contenders.First();
  const bool was_first = first != nullptr && first->full == protocol::BaseOf(path);
  const GetReply data = calls.Get(lock);
  const bool is_ours = data.error == Error::kNone && protocol::ParseLockData(data.data);
  if (!is_ours || !LeavesRecord(reserved, was_first)) return std::nullopt;
  return DataWrite{lock, protocol::FormatLockData({RecordOf(protocol::BaseOf(path), reserved)}),
                   data.stat.version};
}

/// Returns the history in `last_run`, if the start of the reservation is recorded there but its end
/// is not.
std::optional<RunHistory> OpenHistory(const GetReply& last_run, const std::string& path,
                                      const Reserved& reserved) {
  if (last_run.error != Error::kNone) return std::nullopt;
  auto history = RunHistory::Parse(last_run.data);
  const RunRecord* const entry = history ? history->Find(reserved.reservation.token) : nullptr;
  const bool is_open = entry != nullptr && entry->end == RunRecord::End::kNone &&
                       entry->contender == protocol::BaseOf(path);
  return is_open ? std::move(history) : std::nullopt;
}

}  // namespace

ReservationRelease ReleaseReservation(Calls& calls, const LockName& lock, const std::string& path,
                                      const std::string& id) {
  const std::string last_run_path = protocol::ChildPath(lock.path, protocol::kLastRunChild);
  bool may_be_done = false;  // a delete was sent over a connection that was lost
  bool keeps_record = true;
  std::optional<Error> unkept;  // why the end is not recorded in the history
  bool is_entering = false;     // the end is being recorded
  int losses = 0;               // of the connection, while recording the end
  int conflicts = 0;
  return calls.Repeat([&]() -> ReservationRelease {
    if (std::exchange(is_entering, false) && ++losses >= kMostLosses) {
      unkept = Error::kConnectionLoss;
    }
    for (;;) {
      const GetReply read = calls.Get(path);
      if (read.error != Error::kNone && read.error != Error::kNoNode) {
        throw OperationFailed(read.error, "read a contender in", lock, "READ", path);
      }
      const auto reserved = read.error == Error::kNone
                                ? FindReservation(protocol::BaseOf(path), read.data, read.stat)
                                : std::nullopt;
      if (!reserved || reserved->reservation.id != id) return {may_be_done, unkept};

      std::vector<DataWrite> writes;
      const auto record =
          keeps_record ? RecordFor(calls, lock.path, path, *reserved) : std::nullopt;
      if (record) writes.push_back(*record);
      const GetReply last_run = calls.Get(last_run_path);
      auto history = unkept ? std::nullopt : OpenHistory(last_run, path, *reserved);
      if (history) {
        is_entering = true;
        // How long the lock was reserved, by the servers' clock.
        const auto stamp = calls.Stamp(protocol::ChildPath(lock.path, StampName(calls.store())));
        if (stamp.error == Error::kNone) {
          const std::chrono::milliseconds now(stamp.stat.modified_ms);
          history->EnterEnd(reserved->reservation.token, now - reserved->since);
          writes.push_back({last_run_path, history->Format(kMostRuns), last_run.stat.version});
        } else {
          unkept = stamp.error;
          history.reset();
        }
      }
      std::vector<std::string> paths{path};
      if (reserved->take > 1) {
        for (const std::string& one : PathsOfRun(calls, path)) {
          if (one != path) paths.push_back(one);
        }
      }
      const bool may_have_been_done = std::exchange(may_be_done, true);
      const Error error = calls.WriteAndDelete(writes, paths, reserved->version);
      is_entering = false;
      if (error == Error::kNone) return {true, unkept};
      may_be_done = may_have_been_done;
      // After each of these errors, the loop reads the current state.
      if (error == Error::kNoNode || error == Error::kBadVersion) {
        if (history && ++conflicts >= kMostHistoryConflicts) unkept = error;
      } else if (history) {
        unkept = error;
      } else if (record && MayNotWrite(error)) {
        keeps_record = false;
      } else {
        throw OperationFailed(error, "delete a contender in", lock, "DELETE",
                              protocol::ParentOf(path));
      }
    }
  });
}

}  // namespace zklock::lock
