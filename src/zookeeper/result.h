#pragma once

#include "zookeeper/store.h"

namespace zklock::zookeeper {

/// The meaning of a request's result code: one of the client library's ZOO_ERRORS, or one that only
/// newer servers and libraries have.
///
/// If the request was not done, or might not have been, and another connection helps, the result is
/// kConnectionLoss: Session then leaves that server.
[[nodiscard]] Error ToError(int result);

/// Whether the server itself has answered, and so has received the request. False for codes that
/// the library makes up, and for those of a server that does not serve the session.
[[nodiscard]] bool IsAnswer(int result);

}  // namespace zklock::zookeeper
