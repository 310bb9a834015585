#include "zookeeper/result.h"

#include <zookeeper/zookeeper.h>

namespace zklock::zookeeper {
namespace {

// Codes of newer servers that are not in this library's header (KeeperException.java).
constexpr int kRequestTimeout = -122;
constexpr int kQuotaExceeded = -125;

}  // namespace

Error ToError(int result) {
  if (result == kQuotaExceeded) return Error::kQuotaExceeded;
  if (result == kRequestTimeout) return Error::kConnectionLoss;
  if (result > ZOK || result < ZTHROTTLEDOP) return Error::kOther;
  // No default, so that the compiler reports codes that a newer header adds.
  switch (static_cast<ZOO_ERRORS>(result)) {
    case ZOK:
      return Error::kNone;
    case ZNONODE:
      return Error::kNoNode;
    case ZNODEEXISTS:
      return Error::kNodeExists;
    case ZNOAUTH:
      return Error::kNoAuth;
    case ZAUTHFAILED:
      return Error::kAuthFailed;
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
      return Error::kAuthRequired;
    case ZINVALIDACL:
      return Error::kInvalidAcl;
    case ZNOCHILDRENFOREPHEMERALS:
      return Error::kNoChildrenForEphemerals;
    case ZEPHEMERALONLOCALSESSION:
      return Error::kLocalSession;
    case ZNOTEMPTY:
      return Error::kNotEmpty;
    case ZBADVERSION:
      return Error::kBadVersion;
    case ZUNIMPLEMENTED:
      return Error::kUnimplemented;
    case ZTHROTTLEDOP:
      return Error::kThrottled;
    // Made up by the library when a connection or session ends, or an answer is malformed.
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
    case ZINVALIDSTATE:
    case ZSESSIONEXPIRED:
    case ZRUNTIMEINCONSISTENCY:
    case ZMARSHALLINGERROR:
    case ZSYSTEMERROR:
    case ZSSLCONNECTIONERROR:
    // The request was not done, and this server will do no others: the session has moved to another
    // server, or the server has lost its quorum and is read-only.
    case ZSESSIONMOVED:
    case ZNOTREADONLY:
      return Error::kConnectionLoss;
    // Answers to requests that zklock never makes (reconfiguration, removing watches, persistent
    // watches), and codes that no server sends.
    case ZDATAINCONSISTENCY:
    case ZBADARGUMENTS:
    case ZNEWCONFIGNOQUORUM:
    case ZRECONFIGINPROGRESS:
    case ZRECONFIGDISABLED:
    case ZAPIERROR:
    case ZINVALIDCALLBACK:
    case ZNOTHING:
    case ZNOWATCHER:
      return Error::kOther;
  }
  return Error::kOther;
}

bool IsAnswer(int result) {
  // The library answers all outstanding requests with ZAUTHFAILED if the credentials are refused.
  const Error error = ToError(result);
  return error != Error::kConnectionLoss && error != Error::kAuthFailed;
}

}  // namespace zklock::zookeeper
