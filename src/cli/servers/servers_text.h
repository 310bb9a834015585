#pragma once

#include <string>

#include "cli/servers/servers_findings.h"
#include "cli/views/queue_text.h"

namespace zklock::cli {

/// For people: a table, a row for each server, and what follows from it.
[[nodiscard]] std::string ServersReportText(const ServersReport& report, const ViewStyle& style);

}  // namespace zklock::cli
