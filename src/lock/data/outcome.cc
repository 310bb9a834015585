#include "lock/data/outcome.h"

namespace zklock::lock {

OperationFailure FailureOf(zookeeper::Error error, const std::string& operation,
                           const LockName& lock, const char* right, const std::string& path) {
  const std::string shown = lock.DisplayPath(lock.path);
  if (IsRefusal(error)) {
    return Refused{operation, shown, error, right, path.empty() ? shown : lock.DisplayPath(path)};
  }
  if (error == zookeeper::Error::kQuotaExceeded) return QuotaExceeded{shown, ""};
  if (error == zookeeper::Error::kLocalSession) {
    return Unusable{.why = Unusable::Why::kLocalSessions, .lock = shown};
  }
  return Defect{Defect::What::kAnswer, shown, operation, error};
}

}  // namespace zklock::lock
