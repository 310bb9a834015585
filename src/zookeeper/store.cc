#include "zookeeper/store.h"

namespace zklock::zookeeper {

bool IsLost(Error error) { return error == Error::kConnectionLoss; }

bool IsRefusal(Error error) {
  switch (error) {
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
    case Error::kInvalidAcl:
      return true;
    case Error::kNone:
    case Error::kNoNode:
    case Error::kNodeExists:
    case Error::kNoChildrenForEphemerals:
    case Error::kLocalSession:
    case Error::kNotEmpty:
    case Error::kBadVersion:
    case Error::kUnimplemented:
    case Error::kQuotaExceeded:
    case Error::kThrottled:
    case Error::kConnectionLoss:
    case Error::kOther:
      break;
  }
  return false;
}

}  // namespace zklock::zookeeper
