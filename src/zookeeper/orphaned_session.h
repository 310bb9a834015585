#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "zookeeper/connection.h"
#include "zookeeper/session.h"

namespace zklock::zookeeper {

/// A session that ends another process's session, and with it everything it holds: it is over once
/// it IsClosed() or IsCloseRefused(). Requests the shortest session timeout, so that the session
/// soon expires if the close is lost. `access`: that of the session, since servers can be
/// configured to require credentials even for the close. `transport`: likewise; outlives it.
[[nodiscard]] std::unique_ptr<Session> BeginCloseOf(const Credentials& credentials,
                                                    const std::vector<Endpoint>& endpoints,
                                                    const Clock& clock, const Access& access = {},
                                                    Transport* transport = nullptr);

/// The same for the guard, after zklock was killed. Blocks for at most `timeout`. True if the
/// servers confirmed the close.
bool CloseSession(const Credentials& credentials, const std::vector<Endpoint>& endpoints,
                  Duration timeout, const Access& access, Transport* transport = nullptr);

}  // namespace zklock::zookeeper
