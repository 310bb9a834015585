#pragma once

#include <vector>

#include "base/clock.h"
#include "zookeeper/connection.h"

namespace zklock::zookeeper {

/// Ends somebody's session, and with it all it holds, blocking for `timeout` at the most: for the
/// guard, when zklock itself has been killed. It asks for the shortest session time-out, so that
/// the session soon ends by itself if the close is lost. Servers can be made to want credentials
/// even for this: `access` is the session's own. True when the servers confirmed it.
bool CloseSession(const Credentials& credentials, const std::vector<Endpoint>& endpoints,
                  Duration timeout, const Access& access);

}  // namespace zklock::zookeeper
