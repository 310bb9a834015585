#pragma once

#include <string>

#include "cli/servers/servers_findings.h"
#include "cli/views/queue_text.h"

namespace zklock::cli {

/// Returns the report for people: a table with a row for each server, followed by the findings.
[[nodiscard]] std::string ServersReportText(const ServersReport& report, const ViewStyle& style);

/// Returns one JSON object (zklock-inspect(1), JSON).
[[nodiscard]] std::string ServersReportJson(const ServersReport& report);

}  // namespace zklock::cli
