#pragma once

#include <string>

#include "lock/outcome.h"
#include "process/name_lookup.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "zookeeper/connection.h"
#include "zookeeper/server_list.h"

namespace zklock::cli {

// The words for what the layers below tell as values.

/// Without "zklock: ": the line for a refusal, and for a LOCK that cannot be used.
[[nodiscard]] std::string RefusedText(const lock::Refused& refused);
[[nodiscard]] std::string UnusableText(const std::string& lock, const lock::Unusable& unusable);
/// What such an incompatible contender is, and what makes the two meet.
[[nodiscard]] const char* IncompatibleText(protocol::IncompatibleContender::Kind kind);
[[nodiscard]] std::string DefectText(const lock::Defect& defect);

/// What is wrong with a path, and with a list of servers.
[[nodiscard]] const char* PathText(protocol::BadPath bad);
[[nodiscard]] std::string ServersText(const zookeeper::BadServerList& bad);

/// One server that was tried, and what came of it: "zk1:2181 (Connection refused)".
[[nodiscard]] std::string TriedText(const std::string& server, zookeeper::AttemptEnd end);
[[nodiscard]] std::string TriedText(const process::LookupFailure& failure);
/// Likewise, of one that gives sessions and answers nothing, and of one whose look-up is under way.
[[nodiscard]] std::string SilentText(const std::string& server);
[[nodiscard]] std::string LookingUpText(const std::string& server);

}  // namespace zklock::cli
