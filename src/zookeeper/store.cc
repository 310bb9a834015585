#include "zookeeper/store.h"

namespace zklock::zookeeper {

std::string_view ErrorText(Error error) {
  switch (error) {
    case Error::kNone:
      return "no error";
    case Error::kNoNode:
      return "no such znode";
    case Error::kNodeExists:
      return "the znode is there already";
    case Error::kNoAuth:
      return "not authorised";
    case Error::kAuthFailed:
      return "the servers refuse the credentials";
    case Error::kAuthRequired:
      return "the servers want credentials";
    case Error::kInvalidAcl:
      return "the servers refuse the ACL";
    case Error::kNoChildrenForEphemerals:
      return "an ephemeral znode can have no children";
    case Error::kNotEmpty:
      return "the znode has children";
    case Error::kBadVersion:
      return "the znode was written to meanwhile";
    case Error::kUnimplemented:
      return "the server does not know this request";
    case Error::kConnectionLoss:
      return "the connection was lost";
    case Error::kSessionExpired:
      return "the session has expired";
    case Error::kOther:
      break;
  }
  return "an answer that was not to be expected";
}

bool IsLost(Error error) {
  return error == Error::kConnectionLoss || error == Error::kSessionExpired;
}

bool IsRefusal(Error error) {
  return error == Error::kNoAuth || error == Error::kAuthFailed || error == Error::kAuthRequired ||
         error == Error::kInvalidAcl;
}

}  // namespace zklock::zookeeper
