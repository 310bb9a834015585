#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "lock/data/run_history.h"
#include "lock/data/ticket.h"
#include "lock/hold/hold.h"
#include "protocol/run_records.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The data that --history records about a run, in addition to its tickets and its outcome.
struct HistoryRequest {
  std::size_t most_runs = 0;  ///< 0: no history is kept
  bool is_shared = false;     ///< for a permit: others may hold, and write, at the same time
  std::string host{};
  std::string user{};
  std::string label{};
  /// When its wait began; none: when its contender was created.
  std::optional<TimePoint> queued_at{};
};

/// A reservation, which the history of its LOCK records as one run.
struct ReservationRun {
  LockName lock;
  std::string path;  ///< of its znode, chroot included
  RunRecord record;
};

/// Maintains LOCK/last-run while LOCKs are held (zklock-protocol(7), The last run): the last
/// success for --min-interval, and the last runs for --history. Both are in the same data, which is
/// read once and written only if its version has not changed since.
///
/// When a run begins, it is recorded in the history without its end; nothing waits for that write.
/// An entry with its end replaces that one: in the transaction that releases the lock, or in a
/// separate write if the servers refuse that, for example because a permission on the LOCK is
/// missing. With --min-interval, the success and the end are written before the release. Data that
/// another program wrote is left alone.
///
/// For reservations, only the start is recorded here: ReleaseReservation() records the end.
///
/// Passive. The Hold is the store's listener: while the store has no server, this does nothing, and
/// after a lost reply it reads again over the next connection.
class RunRecorder final : public EventSource {
 public:
  /// The last success under one of the tickets' LOCKs.
  struct Success {
    std::string lock;  ///< its path, as shown to users
    protocol::LastSuccess success;
  };
  /// A LOCK whose history cannot be kept.
  struct Unkept {
    std::string lock;  ///< as the user knows it
    /// The servers' error; none if the data is not a history that we understand.
    std::optional<zookeeper::Error> error;
  };

  /// `tickets`: held, and all from one session; only one if `request.is_shared`. The history keeps
  /// no runs of readers.
  RunRecorder(zookeeper::Store& store, std::vector<Ticket> tickets, HistoryRequest request);
  /// Records reservations at once, except those that are already recorded or have been released
  /// since.
  RunRecorder(zookeeper::Store& store, const std::vector<ReservationRun>& reservations,
              std::size_t most_runs);

  /// Finds the last success under any of the LOCKs. Must not be called for permits or readers.
  void FindLastSuccess();
  /// Once done, returns the newest success.
  [[nodiscard]] const std::optional<Success>& newest() const { return newest_; }
  /// Set if the last run under one of the LOCKs is unknown. That run may have been only a moment
  /// ago.
  [[nodiscard]] const std::optional<RecordFailure>& unknown() const { return unknown_; }

  /// Records that the run has begun. Later calls do nothing.
  void Begin(TimePoint began);
  /// Returns whether the content of last-run, including the entry of this run, is known or cannot
  /// be determined.
  [[nodiscard]] bool IsSettled() const;

  /// Records that the run, which began at `began`, was a success, and records its end in the
  /// history.
  void RecordSuccess(TimePoint began, const FinishedRun& run);
  /// Once done, returns whether the success was recorded in all LOCKs.
  [[nodiscard]] bool HasRecordedSuccess() const { return has_recorded_success_; }
  /// If settled or shared: records the end together with the release. If another holder of a permit
  /// has written in the meantime, retries with the new data. `hold` must outlive the callbacks.
  void Release(Hold& hold, const FinishedRun& run);

  /// Returns whether nothing is left to do for the last request, not even over another connection.
  /// Hold::Release() releases whatever this class's Release() did not.
  [[nodiscard]] bool IsDone() const;
  /// Stops waiting: whatever is not known to be written counts as not kept.
  void GiveUpRest();

  /// Returns the LOCKs whose history cannot be kept, each once.
  [[nodiscard]] const std::vector<Unkept>& unkept() const { return unkept_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  /// The steps that the caller requests, in this order. The caller may omit some; the last one is
  /// kSuccess or kRelease.
  enum class Step { kNone, kLastSuccess, kBeginning, kSuccess, kRelease };
  /// The content of last-run, as it was last read or written.
  struct Data {
    std::string text;
    std::optional<std::int32_t> version;  ///< none: there is no znode
    std::optional<RunHistory> history;    ///< if a history is kept; includes what will be written
    bool is_listed = false;               ///< lost runs have been recorded in `history`
  };
  /// The work on one LOCK. Unless a request is pending or the step is done, reads the data if it is
  /// not known, and then lists the contenders or writes. A lost reply or a changed version makes
  /// the data unknown.
  struct Place {
    Ticket ticket;
    bool is_kept;  ///< its run is kept in the history
    std::optional<RunRecord> reservation{};
    Step done = Step::kNone;
    bool is_asking = false;      ///< a request is pending
    int attempts = 0;            ///< at this step
    std::optional<Data> data{};  ///< none: must be read
    bool writes_alone = false;   ///< the servers refuse to write the end together with the release
  };

  [[nodiscard]] static std::string PathOf(const Place& place);
  [[nodiscard]] bool IsDone(const Place& place) const;
  void Start(Step step);
  void Proceed(Place& place);
  void Read(Place& place);
  void TakeData(Place& place, const zookeeper::GetReply& reply);
  void OnLockRead(Place& place, const zookeeper::GetReply& lock);
  void List(Place& place);
  void OnListed(Place& place, const zookeeper::ListReply& reply);
  void Write(Place& place, const std::string& text, Step step);
  void OnWritten(Place& place, const std::string& text, Step step, zookeeper::Error error);
  void WriteWithRelease(Place& place);
  void OnReleased(Place& place, zookeeper::Error error);
  void TryAgain(Place& place, zookeeper::Error error);
  void FailToRead(Place& place, const std::string& path, zookeeper::Error error);
  void GiveUp(Place& place, std::optional<zookeeper::Error> error);
  void Unkeep(Place& place, std::optional<zookeeper::Error> error);

  [[nodiscard]] RunRecord RecordOf(const Place& place) const;
  /// Returns the new data for `place`, with the run's end and, if it succeeded, its success.
  [[nodiscard]] std::string TextOfEnd(Place& place) const;

  zookeeper::Store& store_;
  const HistoryRequest request_;
  std::vector<Place> places_;
  Step step_ = Step::kNone;  ///< what the caller requested last
  std::optional<Success> newest_;
  std::optional<RecordFailure> unknown_;
  std::optional<TimePoint> began_;
  FinishedRun run_;  ///< set from kSuccess or kRelease on
  bool has_recorded_success_ = false;
  Hold* hold_ = nullptr;  ///< from kRelease on
  std::vector<Unkept> unkept_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
