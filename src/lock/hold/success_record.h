#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/event_source.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "lock/data/ticket.h"
#include "lock/operations/server_operation.h"
#include "protocol/run_records.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Why a record of runs is not known, or cannot be written. Unusable: another program's data.
using RecordFailure = std::variant<Unusable, OperationFailure>;

/// When a command last succeeded under LOCKs that are held: read before the command runs, and
/// written after it has succeeded (zklock-protocol(7), section 6). For --min-interval. Only the
/// first line of the data is used and replaced.
///
/// Passive. The Hold is the store's listener: while the store has no server, this does nothing, and
/// requests that were lost with a connection are sent again over the next one.
class SuccessRecord final : public EventSource {
 public:
  /// The last success under one of the tickets' LOCKs.
  struct Success {
    std::string lock;  ///< its path, as shown to users
    protocol::LastSuccess success;
  };

  /// `tickets`: held, and not for reading. Starts by reading.
  SuccessRecord(zookeeper::Store& store, std::vector<Ticket> tickets);

  /// The current work, reading or writing, is done.
  [[nodiscard]] bool IsDone() const { return unknown_ || next_ == tickets_.size(); }
  /// Set if the last run under one of the LOCKs is unknown. It may then have been a moment ago.
  [[nodiscard]] const std::optional<RecordFailure>& unknown() const { return unknown_; }
  /// After reading: the newest success under any of the LOCKs.
  [[nodiscard]] const std::optional<Success>& newest() const { return newest_; }

  /// Starts writing: a run on `host` that began at `began` has succeeded. `data`: for each ticket
  /// what to write instead, with the success in its first line; may be empty.
  void Record(TimePoint began, const std::string& host,
              std::vector<std::optional<zookeeper::DataWrite>> data = {});
  /// After writing: the LOCKs to which the servers did not let us write.
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
  std::size_t next_ = 0;                       // the current ticket
  bool under_way_ = false;                     // a request is pending
  std::optional<protocol::LastSuccess> kept_;  // of the current LOCK
  std::vector<std::string> below_;  // what follows the first line in the data, of each ticket
  std::optional<Success> newest_;
  std::optional<RecordFailure> unknown_;
  bool recording_ = false;
  TimePoint began_{};
  std::string host_;
  std::vector<std::optional<zookeeper::DataWrite>> data_;
  std::vector<std::string> refused_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
