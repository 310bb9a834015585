#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_source.h"
#include "cli/options.h"
#include "process/event_loop.h"
#include "process/name_lookup.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// A session with the servers that the user named: their look-up, their addresses, the session, all
/// of it in the caller's loop. Names are looked up again after every round of failures.
class SessionDriver final : public EventSource {
 public:
  /// Registers itself and the session with `loop`, which outlives it.
  SessionDriver(process::EventLoop& loop, const cli::ServerOptions& options, const Clock& clock);
  ~SessionDriver() override;

  [[nodiscard]] zookeeper::Session& session() { return session_; }

  /// Every name was looked up and none exists: waiting for them is no use.
  [[nodiscard]] bool IsHopeless() const { return hopeless_; }
  /// What each server was tried with and answered last: "zk1:2181 (Connection refused), …".
  [[nodiscard]] std::string Tried() const;

  /// Ends the session and waits for the servers to confirm that nothing is held any more, a second
  /// at most: then the session's own end does it. False when they did not confirm. `releases`: of
  /// Hold::Release().
  bool Close(std::size_t releases = 0);

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// Throws std::system_error when the system refuses it and no address is known.
  void BeginLookup();
  /// What has been found so far, besides what is in use.
  void TakeFound();
  void TakeLookup();

  process::EventLoop& loop_;
  const Clock& clock_;
  const zookeeper::ServerList servers_;
  zookeeper::Session session_;
  std::unique_ptr<process::NameLookup> lookup_;  // while it runs
  std::vector<process::LookupFailure> lookup_failures_;
  bool has_names_ = false;
  bool hopeless_ = false;
  int rounds_at_lookup_ = 0;
  TimePoint next_lookup_ = kNever;
};

}  // namespace zklock::commands
