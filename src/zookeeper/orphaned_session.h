#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "zookeeper/connection.h"
#include "zookeeper/session.h"

namespace zklock::zookeeper {

/// Returns a Session that closes another process's session, which releases everything that it
/// holds. The Session is done once IsClosed() or IsCloseRefused(). It requests the shortest session
/// timeout, so that the session soon expires if the close is lost. `access`: that of the session,
/// since servers can be configured to require credentials even for the close. `transport`:
/// likewise; must outlive the Session.
[[nodiscard]] std::unique_ptr<Session> BeginCloseOf(const Credentials& credentials,
                                                    const std::vector<Endpoint>& endpoints,
                                                    const Clock& clock, const Access& access = {},
                                                    Transport* transport = nullptr);

/// Closes the session like that, for the guard, after zklock was killed. Blocks for at most
/// `timeout`. Returns whether the servers confirmed the close.
bool CloseSession(const Credentials& credentials, const std::vector<Endpoint>& endpoints,
                  Duration timeout, const Access& access, Transport* transport = nullptr);

}  // namespace zklock::zookeeper
