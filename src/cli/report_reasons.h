#pragma once

#include <string>

#include "base/clock.h"
#include "lock/contender_data.h"
#include "lock/outcome.h"
#include "process/cgroup.h"
#include "process/name_lookup.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "zookeeper/connection.h"
#include "zookeeper/server_list.h"

namespace zklock::cli {

// Texts for the failures that lower layers return as values, without "zklock: ".

/// `hopeless`: none of the servers' names exists. `names_no_server`: the default was tried.
/// `tried`: see TriedText.
[[nodiscard]] std::string UnreachableText(const std::string& tried, Duration time_out,
                                          bool hopeless, bool names_no_server);
/// The message of a LOCK that is free while the session is confirmed too slowly.
[[nodiscard]] std::string TooSlowText(const std::string& lock, const lock::TooSlow& slow);
[[nodiscard]] std::string RefusedText(const lock::Refused& refused);
/// The text for kAuthFailed if a helper says so about a server: "zk1:2181 (AUTHFAILED)".
[[nodiscard]] std::string SaslText(const std::string& server);
/// The text for kAuthRequired if the servers accept none of the schemes that zklock supports.
[[nodiscard]] std::string OtherSchemeText();
[[nodiscard]] std::string UnusableText(const std::string& lock, const lock::Unusable& unusable);
/// What the contender is, and how to make zklock compatible with it.
[[nodiscard]] const char* IncompatibleText(protocol::IncompatibleContender::Kind kind);
[[nodiscard]] std::string QuotaText(const lock::QuotaExceeded& quota);
[[nodiscard]] std::string DefectText(const lock::Defect& defect);
/// The contender ahead of ours, as the rest of a sentence; empty if it is not known.
[[nodiscard]] std::string BlockerText(const lock::Busy& busy);
/// The sender of a request to release: "root on web1 ('for a restart')".
[[nodiscard]] std::string AskerText(const lock::ReleaseRequest& request);

/// Why a command has no cgroup of its own.
[[nodiscard]] std::string NoCgroupText(const process::NoCgroup& reason);

/// What is wrong with a path, and with a list of servers.
[[nodiscard]] const char* PathText(protocol::BadPath bad);
[[nodiscard]] std::string ServersText(const zookeeper::BadServerList& bad);

/// A server and how the attempt to connect to it ended: "zk1:2181 (Connection refused)".
[[nodiscard]] std::string TriedText(const std::string& server, const zookeeper::AttemptEnd& end);
[[nodiscard]] std::string TriedText(const process::LookupFailure& failure);
/// The same without the server.
[[nodiscard]] std::string AttemptText(const zookeeper::AttemptEnd& end);
[[nodiscard]] std::string LookupText(const process::LookupFailure& failure);
[[nodiscard]] std::string SilentReason();
[[nodiscard]] std::string LookingUpReason();
/// As TriedText, for a server that grants sessions but answers no requests, and for one whose name
/// is still being looked up.
[[nodiscard]] std::string SilentText(const std::string& server);
[[nodiscard]] std::string LookingUpText(const std::string& server);

}  // namespace zklock::cli
