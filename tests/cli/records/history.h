#pragma once

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/inspect/inspect_output.h"
#include "cli/zklock.h"

namespace zklock::test {

/// Returns `inspect --history --json`, checked against the manual page.
inline nlohmann::json HistoryOf(const std::string& lock) {
  const Finished finished = RunZklock({"inspect", "--history", "--json", lock});
  CAPTURE(finished.err);
  REQUIRE(finished.exit == Exited(0));
  CheckSchema(finished.out, {"--history"});
  const nlohmann::json locks = nlohmann::json::parse(finished.out);
  REQUIRE(locks.size() == 1);
  CHECK(locks[0]["lock"] == lock);
  return locks[0];
}

using States = std::vector<std::string>;

/// Returns the states of the runs in the history of `lock`, the newest first.
inline States StatesOf(const std::string& lock) {
  const nlohmann::json history = HistoryOf(lock);
  States states;
  for (const nlohmann::json& run : history["runs"]) states.push_back(run["state"]);
  return states;
}

}  // namespace zklock::test
