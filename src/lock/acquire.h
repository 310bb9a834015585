#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/callback_scope.h"
#include "lock/holder_search.h"
#include "lock/outcome.h"
#include "lock/ticket.h"
#include "protocol/queue.h"
#include "protocol/release_record.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// What to queue for, and how long.
struct AcquireRequest {
  LockName lock;
  protocol::Mode mode = protocol::Mode::kExclusive;
  protocol::Dialect dialect = protocol::Dialect::kCurator;
  std::string host;  ///< for the contender's name
  std::string data;  ///< the contender's data; never needed for correctness
  /// Contenders of the same session that are ours already, in other LOCKs: proven together with
  /// this one, and if one of them goes, all is lost.
  std::vector<ContenderId> held{};
  /// No wait at all: leave at once when the lock is not free, and when it is visibly busy join
  /// nothing.
  bool try_only = false;
  std::optional<Duration> wait;  ///< how long to stay in the queue; none: for ever
  /// Leave at once when so many wait already, by the rank in the queue after joining it.
  std::optional<std::size_t> max_queue{};
  /// Leave the queue when a newer contender comes that supersedes; ours supersedes the older ones.
  bool supersede = false;
  /// The child of LOCK that has the queue, for a semaphore: its turnstile, or its leases.
  std::string below{};
  /// For the leases: how many there may be.
  std::optional<std::size_t> permits{};
  /// For the turnstile of a `try`: of so many permits one has to be left for ours. To stand there
  /// is then no wait; once those before ours are known to take them all, it leaves.
  std::optional<std::size_t> permit_limit{};
  /// Once it is known that the lock is not free: whether it is so because of ourselves. Empty: that
  /// is not asked.
  HoldsForUs holds_for_us{};
  /// How long to be without a server: before the queue is joined, and in it for at least as long as
  /// the session can live.
  Duration connect_timeout = std::chrono::seconds(15);

  /// The znode whose children are the queue.
  [[nodiscard]] std::string QueuePath() const {
    return below.empty() ? lock.path : lock.path + "/" + below;
  }
};

/// What happens on the way, for progress and events. Calls come while the acquisition works.
class AcquireObserver {
 public:
  virtual ~AcquireObserver() = default;
  /// A server has taken the session on, a new one or the same again.
  virtual void OnConnected() {}
  /// A contender is about to be created.
  virtual void OnJoining() {}
  virtual void OnQueued(const Ticket& /*ticket*/) {}
  /// Waiting for this one; `ahead` counts the contenders before ours.
  virtual void OnWaiting(const LockName& /*lock*/, const std::string& /*predecessor*/,
                         std::size_t /*ahead*/) {}
  /// The session expired in the queue: the place is lost, a new one at the tail is taken.
  virtual void OnPlaceLost(const LockName& /*lock*/) {}
  /// What is written in a contender of ours: when the wait begins, and whenever somebody has
  /// written to it.
  virtual void OnOwnData(const std::string& /*data*/) {}
  /// A contender that does not see ours has come later than we did; both may hold.
  virtual void OnIncompatible(const LockName& /*lock*/,
                              const protocol::IncompatibleContender& /*incompatible*/) {}
};

/// One contender's way through one LOCK's queue: join, decide, watch the predecessor, decide again.
///
/// Passive: driven by the store's callbacks and by OnReady() at its moments. The store's listener
/// while it lives. It leaves no znode behind that the session's close does not remove: whoever does
/// not get Acquired closes the session.
///
/// Follows protocol, section 3; ZooKeeper's lock recipe; Curator's LockInternals.
class Acquire final : public EventSource, public zookeeper::StoreListener {
 public:
  /// `make_uuid` is called for each session that we queue with: a UUID is used once.
  Acquire(zookeeper::Store& store, const Clock& clock, AcquireRequest request,
          std::function<std::string()> make_uuid, AcquireObserver& observer);
  ~Acquire() override;
  Acquire(const Acquire&) = delete;
  Acquire& operator=(const Acquire&) = delete;

  /// Set once, when it is over.
  [[nodiscard]] const std::optional<AcquireOutcome>& outcome() const { return outcome_; }
  /// A commit is under way whose answer may make the lock ours, or has just done so.
  [[nodiscard]] bool IsAboutToHold() const;
  /// When the wait is over; kNever before the queue has been joined, or without a `wait`.
  [[nodiscard]] TimePoint wait_deadline() const { return wait_deadline_; }
  /// How long a server that has taken the session on may take for an answer.
  [[nodiscard]] Duration AnswerTime() const;

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& path) override;

 private:
  /// kApart       no connection. -> kLooking, kJoining (fresh) or kRejoining (same session)
  /// kLooking     `try`: is it free? nothing created yet. -> kJoining
  /// kJoining     create and list are under way. -> kDeciding, kJoining (LOCK made)
  /// kRejoining   is our contender still there, did the create succeed? -> kDeciding, kJoining
  /// kDeciding    a list or a look at a doubtful child is under way. -> kWaiting, kConfirming
  /// kWaiting     the predecessor is watched. -> kDeciding
  /// kConfirming  all before us have gone, or LOCK's data may say so; it and the proof of the
  ///              session are under way. -> kDone, kDeciding
  /// kDone        the outcome is set. No way out.
  /// From each but kDone: -> kApart when the connection is lost, -> kDone with a failure.
  enum class State {
    kApart,
    kLooking,
    kJoining,
    kRejoining,
    kDeciding,
    kWaiting,
    kConfirming,
    kDone
  };

  /// What proves the session at the time of a list: the create it was sent with, or nothing yet.
  enum class Proof { kCreate, kNone };
  enum class Verdict { kFine, kFinished, kPending };
  /// Whether all before us have gone: known, or for LOCK's data to say.
  enum class Turn { kOurs, kByRecord };

  void Look();
  void Join();
  void MakeLock();
  void OnMade(const std::string& path, const zookeeper::CreateReply& reply);
  /// MakeLock() for a semaphore, unless LOCK is in use without permits: znodes of ours would count
  /// as permits in kazoo's Semaphore.
  void LookBeforeMaking();
  /// Dialect::kSimple: somebody else has the one znode.
  void WaitForSimple();
  /// Who would have to be waited for; empty if nobody.
  [[nodiscard]] std::string FindBlocker(const protocol::Children& children) const;
  /// What LOCK's data says, and for a semaphore whether it is in use without permits: ahead of the
  /// list that decides, in one write with it.
  void AskForUse();
  void OnCreated(const zookeeper::CreateReply& reply);
  void Rejoin();
  void FindLostCreate(const zookeeper::ListReply& reply);
  void AdoptIfOurs(const std::string& name, const zookeeper::GetReply& reply);
  void List();
  void Consider(const protocol::Children& children, Proof proof);
  /// Called with the list that was judged.
  using Resume = std::function<void(const protocol::Children& children)>;
  /// Looks for children that show a use of the LOCK which does not meet ours. kPending: `resume`
  /// is called when it is known to be fine.
  Verdict Judge(const protocol::Children& children, const protocol::Contenders& contenders,
                const Resume& resume);
  /// False, and finished, for an incompatible contender that was there before us. One that comes
  /// later is told of.
  bool Tolerate(const protocol::IncompatibleContender& incompatible);
  /// `resume`, unless a session owns one of them that is not tolerated.
  void LookAt(const std::vector<protocol::IncompatibleContender>& doubtful,
              const std::function<void()>& resume);
  /// LOCK's own children, for a semaphore.
  void TakeUseOfLock(const protocol::Children& children);
  /// How many `max_queue` counts.
  [[nodiscard]] std::size_t CountWaiting(const protocol::Rank& rank) const;
  void WatchPredecessor(const std::string& predecessor);
  void OnPredecessor(const zookeeper::GetReply& reply);
  /// While we wait for the predecessor, or before we leave: do we wait for ourselves? `awaited`:
  /// as HolderSearch::Begin takes it.
  void SearchHolders(const protocol::Children& children, const std::string& awaited);
  void OnSearchTold();
  /// A `try` whose lock is not free, once both are known: who is in the way, and that it is not for
  /// us. Or one that found a full queue, once the latter is.
  void LeaveTaken();
  /// As many wait as may: leaves, unless it is held for us.
  void LeaveFull(const protocol::Children& children);
  /// `resume`, unless somebody has a permit: LOCK is a semaphore then.
  void LookForPermits(std::function<void()> resume);
  /// In the turnstile of a `try`, with so many before ours in the last list of it: leaves if they
  /// take all permits.
  void CountPermits(std::size_t ahead);
  /// Whether our number of permits is the one that all use. If not: finished because others use
  /// another, or ours is being written, after which the leases are listed again.
  bool AgreeOnPermits(const protocol::Contenders& leases);
  void WritePermits();
  void TakePermits(const zookeeper::GetReply& reply);
  /// What a list is judged by has still to be read.
  [[nodiscard]] bool NeedsUse() const { return !judged_ || (request_.permits && !permits_data_); }
  /// For a predecessor that we may not read, and for who leaves when a newer one comes.
  void WatchChildren();
  /// Finishes, if it is so.
  bool LeaveIfSuperseded(const protocol::Contenders& contenders);
  /// After the proof of the session: the last moment to leave for a newer one.
  void LookForNewer();
  void WatchOwn();
  void ReadOwn();
  void CheckOwn();
  /// The predecessor has gone, or was only written to.
  void OnPredecessorEvent();
  /// The record in LOCK's data, if it is zklock's; whether we may leave ours there.
  std::optional<protocol::ReleaseRecord> TakeLockData(const zookeeper::GetReply& reply);
  void Confirm(Turn turn);
  void OnConfirmed(Turn turn, const zookeeper::GetReply& lock);
  void TakeTurn();

  void Finish(AcquireOutcome outcome);
  /// Finishes with the znode that has the quota.
  void FindQuota();
  /// Here and below: `right` on `path`, LOCK if empty, is what an ACL has to grant.
  void FinishRefused(const std::string& operation, zookeeper::Error error, const char* right,
                     const std::string& path);
  /// For an error that no branch expects. A lost reply is none: OnDisconnected comes after it.
  void OnUnexpected(const std::string& operation, zookeeper::Error error,
                    const char* right = "READ", const std::string& path = "");
  void BeginStep(State state);
  /// A callback that runs only while the step in which it was made lasts.
  template <typename F>
  auto InStep(F f) {
    return scope_.Wrap([this, step = step_, f = std::move(f)](const auto& reply) {
      if (step == step_) f(reply);
    });
  }
  [[nodiscard]] bool IsSimple() const { return request_.dialect == protocol::Dialect::kSimple; }
  [[nodiscard]] TimePoint ApartDeadline() const;
  [[nodiscard]] std::string_view own_name() const;
  /// We wait in the queue, so that somebody is before us.
  [[nodiscard]] bool HasPlace() const { return ticket_ || (IsSimple() && joined_); }
  /// A name that only our own creates can have made.
  [[nodiscard]] bool IsOfOurUuid(std::string_view child) const;
  /// Ours, and what is held already.
  [[nodiscard]] std::vector<ContenderId> AllOurs() const;
  [[nodiscard]] bool IsOurs(const std::string& path) const;
  [[nodiscard]] std::string ChildPath(std::string_view child) const;
  [[nodiscard]] protocol::Decision Decide(const protocol::Children& children,
                                          const protocol::Contenders& contenders) const;

  zookeeper::Store& store_;
  const Clock& clock_;
  const AcquireRequest request_;
  std::function<std::string()> make_uuid_;
  AcquireObserver& observer_;

  State state_ = State::kApart;
  std::uint64_t step_ = 0;
  std::optional<AcquireOutcome> outcome_;

  std::string uuid_;          ///< of this session's contender
  bool create_sent_ = false;  ///< a create with uuid_ was sent in this session
  TimePoint create_sent_at_{};
  std::optional<Ticket> ticket_;
  bool joined_ = false;

  bool containers_ = true;                                 ///< the servers know container znodes
  zookeeper::Error make_error_ = zookeeper::Error::kNone;  ///< why a parent could not be made
  std::string make_refused_;                               ///< the parent that did not let us
  int remakes_ = 0;                                        ///< how often LOCK had to be made
  int missing_ = 0;                ///< how often our name was not listed though it is there
  bool ranked_ = false;            ///< the rank after joining has been looked at
  bool judged_ = false;            ///< a first list with our contender has been judged
  bool semaphore_judged_ = false;  ///< a child `leases` has been looked at
  /// The leases' data as it was read last; none: it has to be read again.
  struct PermitsData {
    std::optional<std::size_t> number;  ///< none: the data is no number
    std::int32_t version = 0;
  };
  std::optional<PermitsData> permits_data_;
  std::vector<std::string> looked_at_;  ///< children without a number, to be judged once
  std::vector<protocol::IncompatibleContender>
      above_;                       ///< of a semaphore: those that LOCK itself may have
  bool incompatible_told_ = false;  ///< one that came later has been reported
  bool own_watched_ = false;        ///< on this connection
  bool own_read_pending_ = false;
  std::string predecessor_;
  std::string predecessor_data_;
  bool predecessor_unreadable_ = false;
  std::optional<HolderSearch> search_;  ///< in this step
  bool searched_ = false;               ///< it has come to its end
  bool leaves_full_ = false;            ///< what it tells decides whether to leave; in this step
  bool heartbeat_answered_ = false;     ///< in this step

  std::optional<TimePoint> apart_since_;  ///< since when no server has done anything for us
  TimePoint wait_deadline_ = kNever;
  TimePoint answer_deadline_ = kNever;  ///< then the server is given up
  TimePoint next_read_ = kNever;
  TimePoint confirm_again_ = kNever;

  CallbackScope scope_;
};

}  // namespace zklock::lock
