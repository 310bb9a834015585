#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "lock/data/contender_data.h"
#include "lock/data/outcome.h"
#include "process/transport/name_lookup.h"
#include "process/transport/transport_spec.h"
#include "process/tree/cgroup.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"
#include "zookeeper/access.h"
#include "zookeeper/connection.h"
#include "zookeeper/server_list.h"

namespace zklock::cli {

// Texts for the failures that lower layers return as values, without "zklock: ".

/// `tried`: see TriedText.
[[nodiscard]] std::string UselessSessionText(const std::string& tried);
/// `hopeless`: none of the servers' names exists. `names_no_server`: the user named no server, so
/// the default was tried. `proxy_command`: of --proxy-command; may be empty. `proxy_failure`: its
/// exit status; 0: not known. `tried`: see TriedText.
[[nodiscard]] std::string UnreachableText(const std::string& tried, Duration time_out,
                                          bool hopeless, bool names_no_server,
                                          const std::string& proxy_command, int proxy_failure);
/// Says that a LOCK is free, but that the session is confirmed too slowly to hold it.
[[nodiscard]] std::string TooSlowText(const std::string& lock, const lock::TooSlow& slow);
/// Returns the identity of the caller, as an ACL may name it: "digest:alice".
[[nodiscard]] std::string IdentityText(const zookeeper::Access& access,
                                       const process::TransportSpec& transport);
/// `identity`: from IdentityText().
[[nodiscard]] std::string RefusedText(const lock::Refused& refused, const std::string& identity);
/// Returns the text for kAuthFailed. Names the first line that may be the reason.
[[nodiscard]] std::string CredentialsRefusedText(const zookeeper::Access& access);
/// Returns the text for kAuthFailed if the transport helper reports it. `server`: "zk1:2181
/// (AUTHFAILED)".
[[nodiscard]] std::string SaslText(const std::string& server);
/// Returns the text for kAuthRequired if the servers accept none of the schemes that zklock
/// supports.
[[nodiscard]] std::string OtherSchemeText();
[[nodiscard]] std::string UnusableText(const std::string& lock, const lock::Unusable& unusable);
/// Says what the contender is, and how to make zklock compatible with it.
[[nodiscard]] const char* IncompatibleText(protocol::IncompatibleContender::Kind kind);
/// For inspect: says that a contender in the queue may hold the lock together with zklock's.
[[nodiscard]] std::string OverlapText(const protocol::IncompatibleContender& contender);
[[nodiscard]] std::string QuotaText(const lock::QuotaExceeded& quota);
[[nodiscard]] std::string DefectText(const lock::Defect& defect);
/// Says why --max-queue keeps a run out of the queue, as the rest of a sentence that begins with
/// LOCK.
[[nodiscard]] std::string QueueFullText(std::size_t most);
/// Returns "held by a command (pid 7 on db1)", "held: a command (pid 7 on db1) is ahead", or
/// "reserved for ...".
[[nodiscard]] std::string HeldText(const lock::Busy& busy);

/// Names the contender ahead of ours, as the rest of a sentence; empty if it is not known.
[[nodiscard]] std::string BlockerText(const lock::Busy& busy);
/// Returns ", but for freeze until 2024-03-01 16:00:00: incident 4711"; empty without a
/// reservation.
[[nodiscard]] std::string OtherReservationText(const std::optional<lock::Reserved>& other);
/// Returns the sender of a release request: "root on web1 ('for a restart')".
[[nodiscard]] std::string AskerText(const lock::ReleaseRequest& request);

/// Says why a command has no cgroup of its own.
[[nodiscard]] std::string NoCgroupText(const process::NoCgroup& reason);

/// Return why there is no session with a server: how the last attempt ended; that the server's name
/// has no address or is still being looked up; that it grants sessions but answers no requests.
[[nodiscard]] std::string AttemptText(const zookeeper::AttemptEnd& end);
[[nodiscard]] std::string LookupText(const process::LookupFailure& failure);
[[nodiscard]] std::string LookingUpReason();
[[nodiscard]] std::string SilentReason();

/// A server, and one of these reasons.
struct TriedServer {
  std::string server;
  std::string reason;
};
/// Returns "zk1:2181 (Connection refused)", each reason once: "zk1:2181, zk2:2181 (each: Connection
/// refused)".
[[nodiscard]] std::string TriedText(const std::vector<TriedServer>& servers);

}  // namespace zklock::cli
