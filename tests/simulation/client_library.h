#pragma once

#include <string>

#include "simulation/ensemble.h"
#include "zookeeper/endpoint.h"

namespace zklock::simulation {

/// The servers that the client library connects to. Set before the first process starts.
extern Ensemble* ensemble;

/// The address of a server, for the library and for a Session.
[[nodiscard]] zookeeper::Endpoint EndpointOf(int server);

/// Forgets the sockets of a world that ends.
void CloseAllSockets();

}  // namespace zklock::simulation
