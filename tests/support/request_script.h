#pragma once

#include <functional>
#include <string>
#include <vector>

#include "zookeeper/session.h"

namespace zklock::test {

/// Where a script of requests runs: against real servers or simulated ones.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;
  /// Opens a session with this timeout, and serves it from now on. Sessions use the servers in
  /// turn, one server each, so that they see each other's changes late.
  virtual zookeeper::Session& Open(Duration timeout) = 0;
  /// Stops serving `session`, or serves it again.
  virtual void SetServed(zookeeper::Session& session, bool is_served) = 0;
  /// Serves the sessions until `holds` returns true. Throws if this takes too long.
  virtual void Await(const std::function<bool()>& holds) = 0;
};

/// Runs the requests in the file `script` in order, all below `root`, which is created. Returns the
/// answers, and which watches fired after each, without anything that differs between ensembles:
/// transactions are identified only by their order.
///
/// A line is `CLIENT VERB ARGUMENT...`; see request_script.cc for the verbs.
[[nodiscard]] std::vector<std::string> RunRequestScript(const std::string& script,
                                                        const std::string& root, ScriptHost& host);

}  // namespace zklock::test
