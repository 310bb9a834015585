#include "lock/survey/join_preview.h"

#include <vector>

#include "lock/acquire/compatibility_check.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;

/// A name that no contender has, so it does not count in a queue.
constexpr char kNoContender[] = "zklock-dry-run";

std::optional<RecordFailure> RefusalOf(Error error, const AcquireRequest& request,
                                       const std::string& path, const char* right) {
  using enum Unusable::Why;
  const LockName& lock = request.lock;
  const bool exists = path.size() >= lock.path.size();
  switch (error) {
    case Error::kNodeExists:
      return std::nullopt;
    case Error::kNoChildrenForEphemerals:
      return Unusable{exists ? kEphemeral : kBelowEphemeral};
    case Error::kLocalSession:
      return Unusable{kLocalSessions};
    case Error::kUnimplemented:
      return Unusable{kOldServers};
    default:
      return FailureOf(error, exists ? "queue in" : "make", lock, right, path);
  }
}

/// Throws OperationFailed if we lack permission to write to `path`. It need not exist.
void RequireWritable(Calls& calls, const LockName& lock, const std::string& path,
                     const char* operation) {
  // No znode has this version: nothing is written.
  const Error error = calls.Repeat([&] { return calls.Set(path, "", zookeeper::kNoVersion); });
  if (error == Error::kBadVersion || error == Error::kNoNode) return;
  throw OperationFailed(error, operation, lock, "WRITE", path);
}

}  // namespace

QueueAccess FindQueueAccess(Calls& calls, const AcquireRequest& request, bool and_delete) {
  return calls.Repeat([&] {
    std::string path = request.QueuePath();
    const auto check = [&](bool deletes) {
      return calls.CheckCreate(protocol::ChildPath(path, kNoContender), request.data, deletes);
    };
    Error error = check(false);
    const char* right = "CREATE";
    if (error == Error::kNodeExists && and_delete) {
      error = check(true);
      right = "DELETE";
    }
    // A LOCK that does not exist would be created in the nearest existing znode above it.
    while (error == Error::kNoNode && path != "/") {
      path = protocol::ParentOf(path);
      error = check(false);
    }
    return QueueAccess{path, calls.GetAcl(path), RefusalOf(error, request, path, right)};
  });
}

std::optional<Unusable> FindUnusable(Calls& calls, const AcquireRequest& request) {
  const AcquireEventSink nobody = [](const AcquireEvent&) {};
  CompatibilityCheck check(calls.store(), request, nobody);
  const LockName& lock = request.lock;
  return calls.Repeat([&]() -> std::optional<Unusable> {
    std::optional<Compatibility> compatibility;
    check.Restart();
    check.ReadLock();
    const zookeeper::ListReply queue = calls.List(request.QueuePath());
    if (queue.error != Error::kNone && queue.error != Error::kNoNode) {
      throw OperationFailed(queue.error, "list", lock, "READ", request.QueuePath());
    }
    const protocol::Contenders contenders(queue.children);
    check.Check(
        {queue.children, contenders}, "",
        [&](const Compatibility& found, const QueueList& /*list*/) { compatibility = found; });
    calls.Await([&] { return compatibility.has_value(); });
    if (const auto* failed = std::get_if<CheckFailed>(&*compatibility)) {
      throw OperationFailed(failed->error, failed->operation, lock, "READ", failed->path);
    }
    const auto* const unusable = std::get_if<Unusable>(&*compatibility);
    return unusable != nullptr ? std::optional(*unusable) : std::nullopt;
  });
}

LastRuns ReadLastRuns(Calls& calls, const LockName& lock, const RunIntervals& intervals) {
  const std::string run = protocol::ChildPath(lock.path, protocol::kLastRunChild);
  const std::string start = protocol::ChildPath(lock.path, protocol::kLastStartChild);
  const auto replies = calls.Repeat([&] { return calls.GetAll({lock.path, run, start}); });
  const auto require = [&](const zookeeper::GetReply& reply, const std::string& path,
                           const char* operation) {
    if (reply.error == Error::kNone || reply.error == Error::kNoNode) return;
    throw OperationFailed(reply.error, operation, lock, "READ", path);
  };
  if (intervals.since_success) {
    require(replies[0], lock.path, "read the last run under");
    require(replies[1], run, "read the last run under");
  }
  if (intervals.since_start) require(replies[2], start, "read the last start under");
  return LastRunsIn(intervals, replies[0], replies[1], replies[2]);
}

void RequireReservationIsUsable(Calls& calls, const ReservedLock& reserved, bool renews) {
  const LockName& lock = reserved.lock;
  const std::string scratch = protocol::ChildPath(lock.path, kNoContender);
  const Error may_stamp = calls.Repeat([&] { return calls.CheckCreate(scratch, "", true); });
  if (may_stamp != Error::kNodeExists && may_stamp != Error::kNoNode) {
    throw OperationFailed(may_stamp, "learn the servers' time in", lock, "CREATE and DELETE");
  }
  if (!renews) return;
  RequireWritable(calls, lock, reserved.path, "renew the reservation of");
}

void RequireStartIsWritable(Calls& calls, const LockName& lock) {
  RequireWritable(calls, lock, protocol::ChildPath(lock.path, protocol::kLastStartChild),
                  "record a start under");
}

}  // namespace zklock::lock
