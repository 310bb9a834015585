#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/data/callback_scope.h"
#include "lock/data/run_history.h"
#include "lock/data/ticket.h"
#include "lock/hold/hold.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// What --history keeps of a run, beside what the tickets and the end say.
struct HistoryRequest {
  std::size_t most_runs = 0;
  bool is_shared = false;  ///< others may hold, and write, at the same time: a semaphore's permit
  std::string host{};
  std::string user{};
  std::string label{};
  /// Since when it waited; none: since its contender was created.
  std::optional<TimePoint> queued_at{};
};

/// A reservation, which counts as one run, for the history of its LOCK.
struct ReservationRun {
  LockName lock;
  std::string path;  ///< of its znode, chroot included
  RunRecord record;
};

/// Keeps the history of runs in LOCK/last-run while LOCKs are held (zklock-protocol(7), The last
/// runs). The run is entered without its end when it begins; nobody waits for that write. The end
/// replaces that entry in the transaction that releases the lock, or by itself if the servers
/// refuse that, as where a right to the LOCK is missing.
///
/// Of reservations only the beginning is entered: ReleaseReservation enters the end.
///
/// Data that another program wrote is left alone, and the lock works without a history.
///
/// Passive. The Hold is the store's listener: while the store has no server, this does nothing, and
/// requests that were lost with a connection are sent again over the next one.
class HistoryWriter final : public EventSource {
 public:
  /// A LOCK whose history cannot be kept.
  struct Unkept {
    std::string lock;  ///< as the user knows it
    /// Of the servers; none: the data is not a history that we understand.
    std::optional<zookeeper::Error> error;
  };

  /// `tickets`: of one session, and held; runs of readers are not kept. If the request is_shared,
  /// there is one.
  HistoryWriter(zookeeper::Store& store, std::vector<Ticket> tickets, HistoryRequest request);
  /// Enters reservations at once, unless they are there. One that has been released meanwhile is
  /// not entered.
  HistoryWriter(zookeeper::Store& store, const std::vector<ReservationRun>& reservations,
                std::size_t most_runs);

  /// The run begins. Later calls do nothing.
  void Begin(TimePoint began);
  /// What is in last-run is known, with the entry of this run, or cannot be found out.
  [[nodiscard]] bool IsSettled() const;
  /// Nothing is left to do, not even over another connection, before the end is entered.
  [[nodiscard]] bool IsEntered() const;
  /// Waits no longer: what is not entered yet is unkept.
  void GiveUpRest();

  /// For each ticket the write that enters the end, for a caller that writes it itself. None where
  /// no history is kept. Only if settled and not shared, and instead of Release().
  [[nodiscard]] std::vector<std::optional<zookeeper::DataWrite>> End(const FinishedRun& run);

  /// If settled: enters the end and releases. If another holder of a permit wrote meanwhile, again
  /// with what is then there. `hold` outlives the callbacks.
  void Release(Hold& hold, const FinishedRun& run);
  /// Nothing of Release() is pending. Hold::Release() releases what it did not.
  [[nodiscard]] bool IsReleaseOver() const;
  /// No more answers are read: an end that was to be written by itself, and is not known to be, is
  /// not kept.
  void EndRelease();

  [[nodiscard]] const std::vector<Unkept>& unkept() const { return unkept_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// kUnread    -> kReading when there is a server
  /// kReading   -> kMarking with the write of the entry; kMarked if an earlier write had succeeded;
  ///            kUnread after a lost reply; kOff
  /// kMarking   -> kMarked; kUnread if the write was lost or came too late; kOff
  /// kMarked    the data and its version are known. -> kReleasing
  /// kReleasing the end is being entered together with the release. -> kEntering if that is
  ///            refused; kOff
  /// kEntering  the end is being entered by itself. -> kOff
  /// kOff       final
  enum class State { kUnread, kReading, kMarking, kMarked, kReleasing, kEntering, kOff };
  struct Place {
    Ticket ticket;
    State state = State::kUnread;
    int attempts = 0;
    RunHistory history{};
    std::int32_t version = 0;  ///< of the data once the pending write is done
    std::optional<RunRecord> reservation{};
  };

  [[nodiscard]] std::string PathOf(const Place& place) const;
  void Read(Place& place);
  void ListChildren(Place& place, const std::shared_ptr<const zookeeper::GetReply>& read);
  void OnRead(Place& place, const zookeeper::GetReply& reply,
              const std::vector<std::string>* present);
  void Mark(Place& place, bool exists);
  void OnMarked(Place& place, zookeeper::Error error);
  void TryAgain(Place& place, zookeeper::Error error);
  void GiveUp(Place& place, std::optional<zookeeper::Error> error);
  [[nodiscard]] RunRecord RecordOf(const Place& place) const;
  void EnterEnd(Place& place, const FinishedRun& run);

  void ReadForRelease(Place& place);
  void OnReadForRelease(Place& place, const zookeeper::GetReply& reply);
  void WriteEnd(Place& place);
  void OnEndWritten(Place& place, zookeeper::Error error);
  void EndEntering(Place& place, zookeeper::Error error);

  zookeeper::Store& store_;
  const HistoryRequest request_;
  std::vector<Place> places_;
  std::optional<TimePoint> began_;
  bool ended_ = false;  // late answers to Begin() mean nothing any more
  std::vector<Unkept> unkept_;

  // Of Release():
  Hold* hold_ = nullptr;
  FinishedRun run_;

  CallbackScope scope_;
};

}  // namespace zklock::lock
