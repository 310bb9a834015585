#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lock/lock_children.h"
#include "lock/lock_survey.h"
#include "protocol/queue.h"

namespace zklock::lock {

/// One LOCK of a survey from its list of children on: which of its contenders to ask for, and what
/// to tell of them, in order. Entries are asked for ahead of being told. Asks nothing itself.
///
/// The queue of a semaphore is that of its permits, and behind it that of its turnstile. The first
/// in the turnstile whose session has made the last permit since is the same contender, and told
/// once, as its permit: it waits where there are more permits than permits. Every other permit
/// holds, however many there are, since its contender has left the turnstile.
class SurveyQueue {
 public:
  /// `lock`: all that is known except its entries. `children`: complete. `most`: how many
  /// contenders to read.
  SurveyQueue(LockSurvey lock, const LockChildren& children, std::size_t most);

  [[nodiscard]] const LockSurvey& lock() const { return lock_; }
  /// No child may be a contender.
  [[nodiscard]] bool IsEmpty() const { return entries_.empty(); }
  /// It has been told of.
  [[nodiscard]] bool is_announced() const { return announced_; }

  /// What was asked for and not answered has to be asked for again.
  void Forget();
  /// True once: the LOCK's own data is to be asked for.
  [[nodiscard]] bool WantsHead();
  /// `head`: the LOCK's own; null where it is not known.
  void TakeHead(const zookeeper::GetReply* head, std::size_t most_data);
  /// The next entry to ask for: the first contenders, and beyond them who may be none by its name,
  /// and the two of a semaphore that may be one: the queue is counted by that.
  [[nodiscard]] std::optional<std::size_t> NextToAsk();
  [[nodiscard]] const std::string& PathOf(std::size_t index) const { return entries_[index].path; }
  void MarkAsked(std::size_t index) { states_[index] = State::kAsked; }
  /// False for an answer that sound servers do not give.
  [[nodiscard]] bool Take(std::size_t index, const zookeeper::GetReply& reply,
                          std::size_t most_data);

  /// Tells what is known by now. True when there are no more contenders to be told.
  [[nodiscard]] bool TellContenders(SurveySink& sink);
  /// Children that turned out to be no contenders, by their paths below the LOCK, sorted: there may
  /// be LOCKs below them.
  [[nodiscard]] std::vector<std::string> Strays() const;
  /// What there is below it besides its queue, and what zklock keeps there.
  [[nodiscard]] bool HasOthers() const;
  /// Tells the rest.
  void TellEnd(SurveySink& sink);

 private:
  enum class State : unsigned char { kUnasked, kAsked, kRead, kGone };

  void AddQueue(const std::string& lock, const protocol::Children& children);
  void AddSemaphore(const std::string& lock, const SemaphoreChildren& semaphore);
  void Add(const std::string& parent, const protocol::Children& children, bool in_turnstile);
  void Ignore(const std::string& above, const protocol::Children& children);
  [[nodiscard]] bool IsOut(std::size_t index) const;

  // Of a semaphore.
  [[nodiscard]] std::optional<std::size_t> LastPermit() const;
  [[nodiscard]] std::optional<std::size_t> FirstInTurnstile() const;
  [[nodiscard]] std::size_t CountPermits() const;
  [[nodiscard]] bool HasPermit(const QueueEntry& in_turnstile, const QueueEntry& permit) const;
  [[nodiscard]] bool LastPermitWaits() const;
  void Settle();
  [[nodiscard]] std::optional<Predecessor> WaitsForPermit(std::size_t index) const;

  void Tell(std::size_t index, SurveySink& sink);
  void TellLock(SurveySink& sink);
  void Count();

  [[nodiscard]] std::optional<Predecessor> WaitsFor(std::size_t index);

  LockSurvey lock_;
  const std::size_t path_length_;  ///< of the LOCK's, with the slash behind it
  const std::size_t most_;
  std::vector<QueueEntry> entries_;
  std::vector<State> states_;
  bool head_asked_ = false;
  bool head_known_ = false;
  std::size_t next_ = 0;        ///< to be asked for in turn
  std::size_t candidates_ = 0;  ///< asked for in turn, and contenders as far as known
  std::size_t unknown_ = 0;     ///< to be looked at out of turn
  std::size_t telling_ = 0;     ///< the next to be told
  bool announced_ = false;
  protocol::Predecessors predecessors_;
  std::size_t turnstile_ = 0;           ///< of a semaphore: where its turnstile begins
  bool settled_ = true;                 ///< it is known whether there is one such:
  std::optional<std::size_t> passing_;  ///< in the turnstile, and has the last permit
  std::vector<std::size_t> told_;       ///< indices of the contenders
  std::vector<std::size_t> others_;
};

}  // namespace zklock::lock
