#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_source.h"
#include "cli/options/options.h"
#include "cli/reports/end_reason.h"
#include "commands/session/session_for_guard.h"
#include "lock/data/outcome.h"
#include "process/loop/event_loop.h"
#include "process/transport/name_lookup.h"
#include "zookeeper/session.h"
#include "zookeeper/transport.h"

namespace zklock::commands {

/// A session with the servers that the user named. Looks up their names and keeps the session's
/// addresses up to date, all in the caller's loop. After each round in which every address has
/// failed, looks the names up again. A proxy command looks names up itself.
class SessionDriver final : public EventSource {
 public:
  /// Registers itself and the session with `loop`, which must outlive it. `shared`, if not null, is
  /// cleared once the servers have answered the close.
  SessionDriver(process::EventLoop& loop, const cli::ServerOptions& options, const Clock& clock,
                SessionForGuard* shared = nullptr);
  ~SessionDriver() override;

  [[nodiscard]] zookeeper::Session& session() { return session_; }

  /// Returns whether every name was looked up and none exists: waiting is then pointless.
  [[nodiscard]] bool IsHopeless() const { return is_hopeless_; }
  /// Returns each server that was tried, with its last failure, for messages: "zk1:2181 (Connection
  /// refused), …". Attempts made for the close are left out.
  [[nodiscard]] std::string Tried() const;

  /// Returns whether a server has granted a session, but none has served a request in it. Attempts
  /// made for the close are left out.
  [[nodiscard]] bool HasUselessSession() const;

  /// Closes the session, and waits up to a second for the servers to confirm that it no longer
  /// holds anything. Returns unconfirmed(): if that is set, the lock is released when the guard
  /// closes the session, or when the session expires. `releases`: from Hold::Release().
  std::optional<Duration> Close(std::size_t releases = 0);
  /// After Close(), if no server has confirmed the end of the session: its timeout, or the last one
  /// that was granted if that is longer, since the servers use that one. Otherwise none.
  [[nodiscard]] std::optional<Duration> unconfirmed() const {
    if (session_.IsClosed()) return std::nullopt;
    // Nothing may have been granted yet.
    return std::max(session_.lease().timeout(), session_.granted_timeout());
  }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  friend class FailureEnd;

  /// Uses the servers as the user wrote them, without a look-up.
  void UseNames();
  /// Throws std::system_error if the system refuses the look-up and no address is known.
  void BeginLookup();
  /// Adds the addresses that the look-up has found so far to those in use.
  void AddFound();
  /// Sets the addresses, for the guard too.
  void SetEndpoints(std::vector<zookeeper::Endpoint> endpoints);
  /// Replaces the addresses with the result of the complete look-up.
  void TakeLookup();

  process::EventLoop& loop_;
  const Clock& clock_;
  SessionForGuard* const shared_;
  const zookeeper::ServerList servers_;
  const bool names_no_server_;                             // the default is used
  const std::string proxy_command_;                        // may be empty
  const std::string identity_;                             // see cli::IdentityText
  const std::string credentials_refused_;                  // see cli::CredentialsRefusedText
  const bool looks_up_;                                    // false: a proxy command looks names up
  const std::unique_ptr<zookeeper::Transport> transport_;  // null: TCP
  zookeeper::Session session_;
  std::unique_ptr<process::NameLookup> lookup_;  // while a look-up is running
  std::vector<process::LookupFailure> lookup_failures_;
  bool has_names_ = false;
  bool is_hopeless_ = false;
  int rounds_at_lookup_ = 0;
  TimePoint next_lookup_ = kNever;
  std::string tried_before_close_;
  bool had_useless_session_ = false;  // before the close
};

/// How a run ends if the servers or the LOCK do not allow it. A visitor for variants of failures.
/// Use it after closing the session: only the close shows whether any credentials would help.
class FailureEnd {
 public:
  /// `lock`: the LOCK as messages name it.
  FailureEnd(SessionDriver& session_driver, Duration connect_timeout, std::string lock)
      : session_driver_(session_driver),
        connect_timeout_(connect_timeout),
        lock_(std::move(lock)) {}

  [[nodiscard]] cli::RunEnd operator()(const lock::Unreachable& unreachable) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::TooSlow& slow) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::Refused& refused) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::Unusable& unusable) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::QuotaExceeded& quota) const;
  [[nodiscard]] cli::RunEnd operator()(const lock::Defect& defect) const;

 private:
  SessionDriver& session_driver_;
  Duration connect_timeout_;
  std::string lock_;
};

}  // namespace zklock::commands
