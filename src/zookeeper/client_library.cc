#include "zookeeper/client_library.h"

#include <zookeeper/zookeeper_version.h>

namespace zklock::zookeeper {

std::string_view ClientLibraryVersion() { return ZOO_VERSION; }

}  // namespace zklock::zookeeper
