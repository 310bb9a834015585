#pragma once

#include <vector>

#include "base/clock.h"
#include "zookeeper/connection.h"

namespace zklock::zookeeper {

/// Ends another process's session, and with it everything it holds. For the guard, after zklock was
/// killed. Blocks for at most `timeout`. Requests the shortest session time-out, so that the
/// session soon expires if the close is lost. `access`: that of the session, since servers can be
/// configured to require credentials even for the close. `transport`: likewise. True if the servers
/// confirmed the close.
bool CloseSession(const Credentials& credentials, const std::vector<Endpoint>& endpoints,
                  Duration timeout, const Access& access, Transport* transport = nullptr);

}  // namespace zklock::zookeeper
