#include "zookeeper/store.h"

namespace zklock::zookeeper {

bool IsLost(Error error) {
  return error == Error::kConnectionLoss || error == Error::kSessionExpired;
}

bool IsRefusal(Error error) {
  return error == Error::kNoAuth || error == Error::kAuthFailed || error == Error::kAuthRequired ||
         error == Error::kInvalidAcl;
}

}  // namespace zklock::zookeeper
