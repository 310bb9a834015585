#pragma once

#include <string>

#include "cli/servers/servers_findings.h"

namespace zklock::cli {

/// One JSON object (zklock-inspect(1), JSON).
[[nodiscard]] std::string ServersReportJson(const ServersReport& report);

}  // namespace zklock::cli
