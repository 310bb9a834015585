#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Commits the start of a run under LOCKs that are held, unless one started too recently
/// (zklock-protocol(7), The last start). For --once-per.
///
/// Reads LOCK/last-start of all LOCKs, and then writes to all of them, each with the version that
/// was read. If that is refused because of the version, it reads and decides again: of two holders
/// that have read the same start, for example because one of them has lost the lock, only one can
/// begin. It does the same after a lost reply; it recognises its own write by the token.
///
/// Passive, like RunRecorder: while the store has no server, this does nothing.
class StartCommit final : public EventSource {
 public:
  /// A run started `ago`, by the servers' clock, under one of the LOCKs.
  struct TooRecent {
    std::string lock;  ///< its path, as shown to users
    std::string host;
    Duration ago{};
  };
  /// Why the command must not run.
  using Refusal = std::variant<TooRecent, RecordFailure>;

  /// `tickets`: held, and not for reading. The run starts on `host`. A start keeps others from
  /// starting for `once_per`.
  StartCommit(zookeeper::Store& store, const Clock& clock, const std::vector<Ticket>& tickets,
              std::string host, Duration once_per);

  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }
  /// Returns whether the start is committed under all LOCKs. The lease may be too short by then to
  /// start a command.
  [[nodiscard]] bool IsCommitted() const;
  /// Returns whether the start may have been committed under at least one LOCK, or still may be,
  /// even after a refusal by another.
  [[nodiscard]] bool MayBeCommitted() const;

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// kUnread -> kAllowed on a read, -> kUnread on a write, -> kCommitted on either.
  enum class State { kUnread, kAllowed, kCommitted };
  struct Place {
    Ticket ticket;
    State state = State::kUnread;
    std::optional<std::int32_t> version{};  ///< the version that was read; none: there is no znode
    std::size_t unrefused = 0;              ///< writes that may have taken effect, or still may
  };

  [[nodiscard]] bool IsIdle() const;
  [[nodiscard]] std::string DataOf(const Place& place) const;
  void Read(Place& place);
  void OnRead(Place& place, const zookeeper::GetReply& reply);
  void Write(Place& place);
  void OnWritten(Place& place, zookeeper::Error error);
  void GiveUp(const Place& place, zookeeper::Error error, const std::string& operation,
              const char* right, const std::string& right_path);

  zookeeper::Store& store_;
  const Clock& clock_;
  const std::string host_;
  const Duration once_per_;
  std::vector<Place> places_;
  std::size_t pending_ = 0;  // requests
  bool has_written_ = false;
  std::optional<Refusal> refusal_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
