#include "lock/operations/contender_operations.h"

#include <cstdint>
#include <utility>

#include "lock/data/contender_check.h"
#include "lock/data/run_history.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "protocol/run_records.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::GetReply;

void RequireRead(const GetReply& read, const LockName& lock, const ContenderId& contender) {
  if (read.error == Error::kNone) return;
  throw OperationFailed(read.error, "read a contender in", lock, "READ", contender.path);
}

OperationFailed CannotDelete(Error error, const LockName& lock) {
  return {error, "delete a contender in", lock, "DELETE"};
}

OperationFailed CannotWrite(Error error, const LockName& lock, const std::string& path) {
  return {error, "write to a contender in", lock, "WRITE", path};
}

}  // namespace

std::vector<std::string> PathsOfRun(Calls& calls, const std::string& path) {
  const auto name = protocol::ViewContenderName(protocol::BaseOf(path));
  if (!name || name->run() == name->full) return {path};
  const std::string queue = protocol::ParentOf(path);
  std::vector<std::string> paths{path};
  for (const std::string& one : protocol::PermitsOfRun(calls.List(queue).children, name->full)) {
    if (one != name->full) paths.push_back(protocol::ChildPath(queue, one));
  }
  if (paths.size() == 1) return paths;
  // Names can be forged: only permits that were created in one transaction belong together.
  const std::vector<GetReply> read = calls.GetAll(paths);
  std::vector<std::string> same{path};
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const bool is_same = read[i].error == Error::kNone && read[0].error == Error::kNone &&
                         read[i].stat.created_zxid == read[0].stat.created_zxid;
    if (is_same) same.push_back(std::move(paths[i]));
  }
  return same;
}

bool DeleteContender(Calls& calls, const LockName& lock, const ContenderId& contender) {
  bool may_be_done = false;  // a delete was sent over a connection that was lost
  return calls.Repeat([&] {
    std::vector<std::string> paths = PathsOfRun(calls, contender.path);
    for (int conflicts = 0;; ++conflicts) {
      std::int32_t version = zookeeper::kAnyVersion;
      if (contender.token != 0 && paths.front() == contender.path) {
        const GetReply read = calls.Get(contender.path);
        if (read.error == Error::kNoNode && paths.size() > 1) {  // delete the others
          paths.erase(paths.begin());
          continue;
        }
        if (IsGone(contender, read)) return may_be_done;
        RequireRead(read, lock, contender);
        // A contender must not evade its deletion by writing to its znode again and again.
        if (conflicts < kMostHistoryConflicts) version = read.stat.version;
      }
      const bool may_have_been_done = std::exchange(may_be_done, true);
      const Error error = calls.WriteAndDelete({}, paths, version);
      if (error == Error::kNone) return true;
      may_be_done = may_have_been_done;
      if (error == Error::kNoNode && paths.size() > 1) {  // one is gone: delete the others
        const std::vector<GetReply> read = calls.GetAll(paths);
        std::vector<std::string> left;
        for (std::size_t i = 0; i < paths.size(); ++i) {
          if (read[i].error != Error::kNoNode) left.push_back(std::move(paths[i]));
        }
        if (left.empty()) return may_be_done;
        paths = std::move(left);
        continue;
      }
      if (error == Error::kNoNode) return may_be_done;
      if (error != Error::kBadVersion) throw CannotDelete(error, lock);
    }
  });
}

std::optional<Error> EnterTaken(Calls& calls, const LockName& lock, std::int64_t token,
                                const ReleaseRequest& request) {
  const std::string path = protocol::ChildPath(lock.path, protocol::kLastRunChild);
  const auto enter = [&]() -> std::optional<Error> {
    for (int conflicts = 1;; ++conflicts) {
      const GetReply read = calls.Get(path);
      if (read.error == Error::kNoNode) return std::nullopt;
      if (read.error != Error::kNone) return read.error;
      auto history = RunHistory::Parse(read.data);
      if (!history || !history->EnterTaken(token, request.by, request.reason)) return std::nullopt;
      const Error error = calls.Set(path, history->Format(kMostRuns), read.stat.version);
      if (error == Error::kNone) return std::nullopt;
      if (error != Error::kBadVersion || conflicts == kMostHistoryConflicts) return error;
    }
  };
  try {
    return calls.Repeat(enter);
  } catch (const OperationFailed&) {
    return Error::kConnectionLoss;  // the contender is gone anyway
  }
}

bool RequestRelease(Calls& calls, const LockName& lock, const ContenderId& contender,
                    const std::function<std::string(const std::string&)>& edit) {
  return calls.Repeat([&] {
    for (;;) {
      const GetReply read = calls.Get(contender.path);
      if (IsGone(contender, read)) return false;
      RequireRead(read, lock, contender);
      const Error error = calls.Set(contender.path, edit(read.data), read.stat.version);
      if (error == Error::kNone) return true;
      if (error == Error::kNoNode) return false;
      if (error != Error::kBadVersion) throw CannotWrite(error, lock, contender.path);
    }
  });
}

bool MayDelete(Calls& calls, const LockName& lock, const std::string& path) {
  const Error error = calls.Repeat([&] { return calls.Delete(path, zookeeper::kNoVersion); });
  if (error != Error::kNoNode && error != Error::kBadVersion) throw CannotDelete(error, lock);
  return error == Error::kBadVersion;
}

bool MayRequestRelease(Calls& calls, const LockName& lock, const std::string& path) {
  const Error error = calls.Repeat([&] { return calls.Set(path, "", zookeeper::kNoVersion); });
  if (error != Error::kNoNode && error != Error::kBadVersion) {
    throw CannotWrite(error, lock, path);
  }
  return error == Error::kBadVersion;
}

bool IsGoneSoon(Calls& calls, const LockName& lock, const ContenderId& contender) {
  return calls.Repeat([&] {
    for (bool is_late = false;; is_late = !calls.AwaitChange()) {
      // Exists() would leave a watch on a znode that is already gone; Get() does not.
      const GetReply read = calls.Get(contender.path, zookeeper::Watch::kYes);
      if (IsGone(contender, read)) return true;
      // A contender that we lack permission to read still exists.
      if (read.error != Error::kNoAuth) RequireRead(read, lock, contender);
      if (is_late) return false;
    }
  });
}

void WaitUntilGone(Calls& calls, const LockName& lock, const ContenderId& contender) {
  while (!IsGoneSoon(calls, lock, contender)) {
  }
}

bool AreHeld(Calls& calls, const LockName& lock, const std::vector<ContenderId>& contenders) {
  return calls.Repeat([&] {
    const Error error = calls.Check(contenders);
    if (error != Error::kNone && error != Error::kNoNode) {
      throw OperationFailed(error, "check a contender in", lock, "READ", contenders.front().path);
    }
    return error == Error::kNone;
  });
}

}  // namespace zklock::lock
