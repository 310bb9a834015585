#pragma once

#include "zookeeper/store.h"

namespace zklock::zookeeper {

/// Returns the meaning of a request's result code: one of the client library's ZOO_ERRORS, or one
/// that only newer servers and libraries have.
///
/// Returns kConnectionLoss if the request was not done, or might not have been, and another
/// connection may help: Session then leaves that server.
[[nodiscard]] Error ToError(int result);

/// Returns whether the server itself answered, and so received the request. False for codes that
/// the library makes up, and for those of a server that does not serve the session.
[[nodiscard]] bool IsAnswer(int result);

}  // namespace zklock::zookeeper
