#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_source.h"
#include "cli/options/options.h"
#include "commands/session/session_for_guard.h"
#include "process/loop/event_loop.h"
#include "process/transport/name_lookup.h"
#include "zookeeper/session.h"
#include "zookeeper/transport.h"

namespace zklock::commands {

/// A session with the servers that the user named: looks up their names, keeps the session's
/// addresses up to date, all in the caller's loop. A proxy command looks names up itself. After
/// each round in which every address has failed it looks the names up again.
class SessionDriver final : public EventSource {
 public:
  /// Registers itself and the session with `loop`, which outlives it. `shared`, if not null, is
  /// cleared once the servers have answered the close.
  SessionDriver(process::EventLoop& loop, const cli::ServerOptions& options, const Clock& clock,
                SessionForGuard* shared = nullptr);
  ~SessionDriver() override;

  [[nodiscard]] zookeeper::Session& session() { return session_; }

  /// Every name was looked up and none exists: waiting is pointless.
  [[nodiscard]] bool IsHopeless() const { return is_hopeless_; }
  /// The user named no server, and the default is used.
  [[nodiscard]] bool names_no_server() const { return names_no_server_; }
  /// Of --proxy-command; may be empty.
  [[nodiscard]] const std::string& proxy_command() const { return proxy_command_; }
  /// See zookeeper::Transport::LastFailure().
  [[nodiscard]] int proxy_failure() const {
    return transport_ == nullptr ? 0 : transport_->LastFailure();
  }
  /// See cli::IdentityText.
  [[nodiscard]] const std::string& identity() const { return identity_; }
  /// See cli::CredentialsRefusedText.
  [[nodiscard]] const std::string& credentials_refused() const { return credentials_refused_; }
  /// Each server that was tried, with its last failure, for messages: "zk1:2181 (Connection
  /// refused), …". What is tried for the close does not count.
  [[nodiscard]] std::string Tried() const;

  /// Closes the session, and waits up to a second for the servers to confirm that it holds nothing
  /// any more. Returns unconfirmed(): if it is set, the lock is released when the guard has closed
  /// the session, or when it expires. `releases`: of Hold::Release().
  std::optional<Duration> Close(std::size_t releases = 0);
  /// After Close(): the timeout of a session whose end no server has confirmed.
  [[nodiscard]] std::optional<Duration> unconfirmed() const {
    return session_.IsClosed() ? std::nullopt : std::optional(session_.lease().timeout());
  }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// Without a look-up: the servers as the user wrote them.
  void UseNames();
  /// Throws std::system_error when the system refuses it and no address is known.
  void BeginLookup();
  /// Adds the addresses that the look-up has found so far to those in use.
  void AddFound();
  /// Replaces the addresses: the look-up is complete.
  void TakeLookup();

  process::EventLoop& loop_;
  const Clock& clock_;
  SessionForGuard* const shared_;
  const zookeeper::ServerList servers_;
  const bool names_no_server_;
  const std::string proxy_command_;
  const std::string identity_;
  const std::string credentials_refused_;
  const bool looks_up_;                                    // false: a proxy command does
  const std::unique_ptr<zookeeper::Transport> transport_;  // null: TCP
  zookeeper::Session session_;
  std::unique_ptr<process::NameLookup> lookup_;  // while one is running
  std::vector<process::LookupFailure> lookup_failures_;
  bool has_names_ = false;
  bool is_hopeless_ = false;
  int rounds_at_lookup_ = 0;
  TimePoint next_lookup_ = kNever;
  std::string tried_before_close_;
};

}  // namespace zklock::commands
