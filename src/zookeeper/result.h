#pragma once

#include "zookeeper/store.h"

namespace zklock::zookeeper {

/// What a request's result code means: one of the client library's ZOO_ERRORS, or one that only
/// newer servers and libraries know.
///
/// A code that means that the request was not done, or that nobody knows, and that another
/// connection helps, is kConnectionLoss: the Session leaves that server then.
[[nodiscard]] Error ToError(int result);

/// The server itself has answered, so that it had the request. False for what the library makes up,
/// and for what a server says that does not serve the session.
[[nodiscard]] bool IsAnswer(int result);

}  // namespace zklock::zookeeper
