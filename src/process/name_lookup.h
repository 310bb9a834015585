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

/// A server whose name gave no address.
struct LookupFailure {
  zookeeper::Server server;
  std::optional<int> error;  ///< getaddrinfo's; none: the look-up ended before it was known
  bool permanent = false;    ///< the name does not exist; trying again is no use
};

struct LookupResult {
  std::vector<zookeeper::Endpoint> endpoints;
  std::vector<LookupFailure> failures;
};

/// Turns the servers' names into numeric addresses in a helper process, since a resolver may block
/// for as long as it likes; all at once, so that one name does not keep the others waiting. Numeric
/// addresses alone need no helper.
class NameLookup final : public EventSource {
 public:
  /// Throws std::system_error when no helper can be had.
  explicit NameLookup(const std::vector<zookeeper::Server>& servers);
  ~NameLookup() override;  ///< Ends the helper.
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// The addresses found so far: numeric ones at once, the others as they come.
  [[nodiscard]] const std::vector<zookeeper::Endpoint>& found() const { return found_.endpoints; }
  /// Set once, when all names have been looked up.
  [[nodiscard]] const std::optional<LookupResult>& result() const { return result_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void TakeLine(const std::string& line);
  void Finish();

  std::vector<zookeeper::Server> servers_;  // with names
  std::vector<bool> answered_;              // by these
  LookupResult found_;
  pid_t helper_ = -1;
  UniqueFd answers_;
  std::string text_;  // the beginning of a line
  std::optional<LookupResult> result_;
};

}  // namespace zklock::process
