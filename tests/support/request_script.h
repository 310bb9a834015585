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
  /// A new session with a timeout of `timeout`, which is served from now on. Each is with one
  /// server, the next one in turn, so that they see each other's changes late.
  virtual zookeeper::Session& Open(Duration timeout) = 0;
  /// Serves `session` no more, or again.
  virtual void SetServed(zookeeper::Session& session, bool is_served) = 0;
  /// Serves the sessions until `holds`. Throws if that takes too long.
  virtual void Await(const std::function<bool()>& holds) = 0;
};

/// Runs the requests of the file `script` one after the other, all below `root`, which is created.
/// Returns what was answered, and which watches fired after each, without what differs from one
/// ensemble to the next: of transactions, only the order counts.
///
/// A line is `CLIENT VERB ARGUMENT...`; see request_script.cc for the verbs.
[[nodiscard]] std::vector<std::string> RunRequestScript(const std::string& script,
                                                        const std::string& root, ScriptHost& host);

}  // namespace zklock::test
