#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/event_source.h"
#include "lock/callback_scope.h"
#include "lock/outcome.h"
#include "lock/ticket.h"
#include "protocol/last_run.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// When a command last ran with success under LOCKs that are held: asked before it runs, and
/// written down when it has (protocol, section 6). For --min-interval.
///
/// Passive, beside the Hold, which listens to the store: while that has no server nothing happens
/// here, and what was lost with a connection is asked for anew over the next.
class LastRun final : public EventSource {
 public:
  /// One of the tickets' LOCKs, and the last success under it.
  struct Success {
    std::string lock;  ///< as the user knows it
    protocol::LastSuccess success;
  };

  /// Why a last run is not known. Then it may have been a moment ago.
  using Unknown = std::variant<Refused, Unusable, Defect>;

  /// `tickets`: held, and not for reading. The first work is to ask.
  LastRun(zookeeper::Store& store, std::vector<Ticket> tickets);

  /// The work at hand is done.
  [[nodiscard]] bool IsDone() const { return unknown_ || next_ == tickets_.size(); }
  /// Set if it could not be found out under one of the LOCKs.
  [[nodiscard]] const std::optional<Unknown>& unknown() const { return unknown_; }
  /// Once it was asked: the newest success under any of the LOCKs.
  [[nodiscard]] const std::optional<Success>& newest() const { return newest_; }

  /// Sets to work anew: writes that a run on `host` that began at `began` was a success.
  void Record(TimePoint began, const std::string& host);
  /// Once that is done: LOCKs where the servers do not let us write.
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Ask(const Ticket& ticket);
  void OnKept(const Ticket& ticket, const zookeeper::GetReply& kept);
  void OnAsked(const Ticket& ticket, const zookeeper::GetReply& lock);
  void GiveUp(const Ticket& ticket, const std::string& path, zookeeper::Error error);
  void Write(const Ticket& ticket);
  void OnWritten(const Ticket& ticket, zookeeper::Error error);
  void Advance();

  zookeeper::Store& store_;
  const std::vector<Ticket> tickets_;
  std::size_t next_ = 0;                       // the ticket whose LOCK is worked at
  bool under_way_ = false;                     // a request is
  std::optional<protocol::LastSuccess> kept_;  // of that LOCK
  std::optional<Success> newest_;
  std::optional<Unknown> unknown_;
  bool recording_ = false;
  TimePoint began_{};
  std::string host_;
  std::vector<std::string> refused_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
