#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/lock_children.h"
#include "lock/survey/lock_survey.h"
#include "protocol/queue.h"

namespace zklock::lock {

/// The parts of a LOCK that a survey reads besides its children.
struct QueueReads {
  std::size_t most_data = 0;  ///< how much of a znode's data to keep
  std::size_t most_contenders = std::string::npos;
  bool with_lock = true;         ///< the LOCK's own data, if it exists
  bool with_last_run = false;    ///< the child last-run, if there is one
  bool with_last_start = false;  ///< likewise
};

/// One LOCK in a survey once its children are known: decides which contenders to read next, and
/// reports them in order. It reads ahead of the entry that it reports next. Sends no requests
/// itself.
///
/// The queue of a semaphore consists of its permits, followed by its turnstile. If the session of
/// the first contender in the turnstile has since created the last permit, the two are the same
/// contender; it is reported once, as the permit, and waits if there are more permits than the
/// limit. Every other permit is held, however many there are, because its contender has left the
/// turnstile.
class SurveyQueue {
 public:
  /// A znode to read.
  struct Read {
    std::string path;
    std::size_t most = 0;   ///< how many bytes of its data to keep
    const char* operation;  ///< for the message if it fails
    /// Takes the reply. Returns false if a correct server would not send it.
    std::function<bool(const zookeeper::GetReply&)> take;
  };

  /// `lock`: all that is known except its entries. `children`: complete. Must not be moved after
  /// the first NextRead().
  SurveyQueue(LockSurvey lock, const LockChildren& children, const QueueReads& reads);

  [[nodiscard]] const LockSurvey& lock() const { return lock_; }
  /// Returns whether no child can be a contender.
  [[nodiscard]] bool IsEmpty() const { return entries_.empty(); }
  /// Returns whether OnLock() was called.
  [[nodiscard]] bool is_announced() const { return announced_; }
  /// Makes OnLock() report the LOCK as one of a tree.
  void SetInTree() { lock_.in_tree = true; }

  /// Called when the connection was lost: unanswered requests must be sent again.
  void Forget();
  /// Returns the next znode to read; none if there is nothing to read for now. Besides the records
  /// and the first contenders, these are the entries that might not be contenders, and the two
  /// entries of a semaphore that may be the same contender: the counts depend on them.
  [[nodiscard]] std::optional<Read> NextRead();

  /// Reports the contenders known so far. Returns true if no more contenders remain to be reported.
  [[nodiscard]] bool ReportContenders(SurveySink& sink);
  /// Returns the sorted paths, below the LOCK, of the children that turned out not to be
  /// contenders. There may be LOCKs below them.
  [[nodiscard]] std::vector<std::string> Strays() const;
  /// Returns whether runs are refused because of one of the strays.
  [[nodiscard]] bool IsBlocked() const;
  /// Returns whether the znode is a LOCK. If its queue is empty, its children or its data may still
  /// identify it as one.
  [[nodiscard]] bool IsLock() const;
  /// Returns whether it has children other than its queue and zklock's own znodes.
  [[nodiscard]] bool HasOthers() const;
  /// Reports the entries that are not contenders, and the end of the LOCK.
  void ReportEnd(SurveySink& sink);

 private:
  enum class State : unsigned char { kUnasked, kAsked, kRead, kGone };
  using Take = bool (SurveyQueue::*)(const zookeeper::GetReply& reply);
  /// A znode that is read besides the entries, before anything is reported.
  struct Record {
    std::string path;
    std::size_t most;
    const char* operation;
    Take take;
    State state = State::kUnasked;
  };

  void AddQueue(const std::string& lock, const protocol::Children& children);
  void AddSemaphore(const std::string& lock, const SemaphoreChildren& semaphore);
  void Add(const std::string& parent, const protocol::Children& children, bool in_turnstile);
  void AddPermits(const std::string& parent, const protocol::Children& children);
  void Ignore(const std::string& above, const protocol::Children& children);
  [[nodiscard]] bool IsOut(std::size_t index) const;
  void FindIncompatible();
  [[nodiscard]] std::optional<std::size_t> NextEntry();
  bool TakeLock(const zookeeper::GetReply& reply);
  bool TakeTurnstile(const zookeeper::GetReply& reply);
  bool TakeLastRun(const zookeeper::GetReply& reply);
  bool TakeLastStart(const zookeeper::GetReply& reply);
  bool TakeEntry(std::size_t index, const zookeeper::GetReply& reply);
  void SeekUnlisted();
  void OnGone(const std::string& contender);
  void ReadAgain(Take take);

  // For a semaphore:
  [[nodiscard]] std::optional<std::size_t> LastPermit() const;
  [[nodiscard]] std::optional<std::size_t> FirstInTurnstile() const;
  [[nodiscard]] std::size_t CountPermits() const;
  [[nodiscard]] bool HasPermit(const QueueEntry& in_turnstile, const QueueEntry& permit) const;
  [[nodiscard]] bool LastPermitWaits() const;
  void Settle();
  [[nodiscard]] std::optional<Predecessor> WaitsForPermit(std::size_t index) const;

  void ReportEntry(std::size_t index, SurveySink& sink);
  void ReportLock(SurveySink& sink);
  [[nodiscard]] LockKind KindOfQueue() const;
  [[nodiscard]] std::string BelowLock(const QueueEntry& entry) const;
  [[nodiscard]] std::int64_t NextNumber(bool in_turnstile) const;
  [[nodiscard]] bool Blocks(const QueueEntry& entry) const;
  void FindRunning();
  void Count();

  [[nodiscard]] std::optional<Predecessor> WaitsFor(std::size_t index);

  LockSurvey lock_;
  std::int64_t turnstile_children_made_ = 0;  ///< NodeStat::children_made, once it was read
  const std::string path_;                    ///< on the servers
  const QueueReads reads_;
  std::vector<Record> records_;
  /// The contenders of runs without an end that were not listed, and whether they exist. They may
  /// have joined since.
  std::map<std::string, State> unlisted_;
  std::vector<QueueEntry> entries_;
  std::vector<State> states_;
  std::size_t next_ = 0;        ///< the next entry to read in turn
  std::size_t candidates_ = 0;  ///< entries read in turn that are contenders, as far as is known
  std::size_t unknown_ = 0;     ///< the next entry that may have to be read out of turn
  std::size_t reporting_ = 0;   ///< the next to report
  bool announced_ = false;
  protocol::Predecessors predecessors_;
  std::size_t turnstile_ = 0;           ///< for a semaphore: the index where its turnstile begins
  bool settled_ = true;                 ///< `passing_` is final
  std::optional<std::size_t> passing_;  ///< the entry in the turnstile whose contender has created
                                        ///< the last permit
  std::vector<std::size_t> reported_;   ///< indices of contenders
  std::vector<std::size_t> others_;     ///< indices of entries that are not contenders
};

}  // namespace zklock::lock
