#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/event_source.h"
#include "base/unique_fd.h"
#include "zookeeper/connection.h"
#include "zookeeper/server_list.h"

namespace zklock::process {

/// A server whose name could not be resolved.
struct LookupFailure {
  zookeeper::Server server;
  std::optional<int> error;  ///< from getaddrinfo; none: the helper ended without an answer
  bool permanent = false;    ///< the name does not exist: trying again is pointless
};

struct LookupResult {
  std::vector<zookeeper::Endpoint> endpoints;
  std::vector<LookupFailure> failures;
};

/// Resolves the servers' names to numeric addresses in a helper process, since a resolver may block
/// for a long time. Resolves names in parallel, so that none delays the others. Without names,
/// starts no helper.
class NameLookup final : public EventSource {
 public:
  /// Throws std::system_error if the helper cannot be started.
  explicit NameLookup(const std::vector<zookeeper::Server>& servers);
  ~NameLookup() override;  ///< Kills the helper.

  /// The addresses found so far: numeric ones at once, those of names once they are resolved.
  [[nodiscard]] const std::vector<zookeeper::Endpoint>& found() const { return found_.endpoints; }
  /// Set once all names have been looked up.
  [[nodiscard]] const std::optional<LookupResult>& result() const { return result_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void TakeLine(const std::string& line);
  void Finish();

  std::vector<zookeeper::Server> servers_;  // those with names
  std::vector<bool> answered_;              // for each of them
  LookupResult found_;
  pid_t helper_ = -1;
  UniqueFd answers_;
  std::string text_;  // an incomplete line
  std::optional<LookupResult> result_;
};

}  // namespace zklock::process
