#pragma once

#include <string>

#include "base/clock.h"
#include "cli/contender_data.h"
#include "lock/outcome.h"
#include "process/name_lookup.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "zookeeper/connection.h"
#include "zookeeper/server_list.h"

namespace zklock::cli {

// The words for what the layers below tell as values.

/// Without "zklock: ": the line for servers that gave no session, for a refusal, for a LOCK that
/// cannot be used. `hopeless`: none of the servers' names exists. `tried`: see TriedText.
[[nodiscard]] std::string UnreachableText(const std::string& tried, Duration time_out,
                                          bool hopeless);
[[nodiscard]] std::string RefusedText(const lock::Refused& refused);
/// As RefusedText for kAuthRequired, where no credentials that zklock can give would do.
[[nodiscard]] std::string OtherSchemeText();
[[nodiscard]] std::string UnusableText(const std::string& lock, const lock::Unusable& unusable);
/// What such an incompatible contender is, and what makes the two meet.
[[nodiscard]] const char* IncompatibleText(protocol::IncompatibleContender::Kind kind);
[[nodiscard]] std::string QuotaText(const lock::QuotaExceeded& quota);
[[nodiscard]] std::string DefectText(const lock::Defect& defect);
/// The contender in the way of ours, as part of a sentence; empty where it is not known.
[[nodiscard]] std::string BlockerText(const lock::Busy& busy);
/// Who has asked a contender to leave: "root on web1 ('for a restart')".
[[nodiscard]] std::string AskerText(const RevokeData& revocation);

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
