#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/ensemble.h"

namespace zklock::cli {

/// Texts about one server, not yet made printable.
struct ServerTexts {
  std::string address;  ///< as the user would write it: "[::1]:2181"
  std::string version;  ///< empty: not known
  std::string reason;   ///< why it cannot be reached
};

/// What `inspect --servers-report` prints.
struct ServersReport {
  protocol::EnsembleFacts facts;
  std::vector<ServerTexts> texts;  ///< for the servers in `facts`, in the same order
  std::string root;                ///< the path of --root
  std::string chroot;              ///< of --servers; may be empty
};

/// Returns a finding as a printable sentence.
[[nodiscard]] std::string FindingText(const protocol::Finding& finding,
                                      const ServersReport& report);
/// Says how long a command survives without servers; empty if no server was reached.
[[nodiscard]] std::string WithoutServersText(const ServersReport& report);

/// Return the names that the JSON and the table use.
[[nodiscard]] std::string_view RoleName(protocol::ServerRole role);
[[nodiscard]] std::string_view FindingName(protocol::Finding::Kind kind);
/// Returns how long a command survives without servers; none if no server was reached.
[[nodiscard]] std::optional<protocol::TimeWithoutServers> WithoutServers(
    const ServersReport& report);

}  // namespace zklock::cli
