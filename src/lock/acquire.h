#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/callback_scope.h"
#include "lock/ticket.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// What to queue for, and how long.
struct AcquireRequest {
  LockName lock;
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::string host;  ///< for the contender's name
  std::string data;  ///< the contender's data; never needed for correctness
  /// No wait at all: leave at once when the lock is not free, and when it is visibly busy join
  /// nothing.
  bool try_only = false;
  std::optional<Duration> wait;  ///< how long to stay in the queue; none: for ever
  /// How long to be without a server: before the queue is joined, and in it for at least as long as
  /// the session can live.
  Duration connect_timeout = std::chrono::seconds(15);
};

/// The lock is ours: by the list, by an answered commit after everything that went before us had
/// gone, and by the lease.
struct Acquired {
  Ticket ticket;
};
/// Not taken because of somebody else.
struct Busy {
  enum class Why {
    kTaken,     ///< `try`: not free
    kWaitOver,  ///< the wait is over
    kRemoved,   ///< somebody deleted our contender: we were told to leave
  };
  Why why = Why::kTaken;
  std::string blocker;       ///< the contender in the way; may be empty
  std::string blocker_data;  ///< its data: somebody else's, to be shown and not believed
};
/// No server had a session for us in time.
struct Unreachable {};
/// The servers refuse.
struct Refused {
  std::string operation;  ///< "create a contender in", "list"
  std::string path;       ///< as the user knows it
  zookeeper::Error error = zookeeper::Error::kNoAuth;
};
/// The LOCK cannot be used like this.
struct Unusable {
  std::string reason;
  std::string remedy;
};
/// The servers answered what sound servers do not.
struct Defect {
  std::string what;
};

using AcquireOutcome = std::variant<Acquired, Busy, Unreachable, Refused, Unusable, Defect>;

/// What happens on the way, for progress and events. Calls come while the acquisition works.
class AcquireObserver {
 public:
  virtual ~AcquireObserver() = default;
  virtual void OnQueued(const Ticket& /*ticket*/) {}
  /// Waiting for this one; `ahead` counts the contenders before ours.
  virtual void OnWaiting(const std::string& /*predecessor*/, std::size_t /*ahead*/) {}
  /// The session expired in the queue: the place is lost, a new one at the tail is taken.
  virtual void OnPlaceLost() {}
  /// A contender that does not see ours has come later than we did; both may hold.
  virtual void OnStranger(const protocol::Stranger& /*stranger*/) {}
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
  /// True from the first contender on: the queue has been joined.
  [[nodiscard]] bool has_joined() const { return joined_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnWatch(const std::string& path) override;

 private:
  /// kApart       no connection. -> kLooking, kJoining (fresh) or kRejoining (same session)
  /// kLooking     `try`: is it free? nothing created yet. -> kJoining
  /// kJoining     create and list are under way. -> kDeciding, kJoining (LOCK made)
  /// kRejoining   is our contender still there, did the create succeed? -> kDeciding, kJoining
  /// kDeciding    a list or a look at a doubtful child is under way. -> kWaiting, kConfirming
  /// kWaiting     the predecessor is watched. -> kDeciding
  /// kConfirming  all before us have gone; the proof of the session is under way. -> kDone
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

  void Look();
  void Join();
  void MakeLock();
  void OnCreated(const zookeeper::CreateReply& reply);
  void Rejoin();
  void FindLostCreate(const zookeeper::ListReply& reply);
  void AdoptIfOurs(const std::string& name, const zookeeper::GetReply& reply);
  void List();
  void Consider(const std::vector<std::string>& children, Proof proof);
  /// Looks for children that show a use of the LOCK which does not meet ours. kPending: `resume`
  /// is called when it is known to be fine.
  Verdict Judge(const std::vector<std::string>& children, std::function<void()> resume);
  void WatchPredecessor(const std::string& predecessor);
  void OnPredecessor(const zookeeper::GetReply& reply);
  /// For a predecessor that we may not read.
  void WatchChildren();
  void WatchOwn();
  void ReadOwn();
  void CheckOwn();
  void Confirm();
  void OnConfirmed(const zookeeper::Reply& reply);

  void Finish(AcquireOutcome outcome);
  void FinishRefused(const std::string& operation, zookeeper::Error error);
  /// For an error that no branch expects. A lost reply is none: OnDisconnected comes after it.
  void OnUnexpected(const std::string& operation, zookeeper::Error error);
  void BeginStep(State state);
  /// A callback that runs only while the step in which it was made lasts.
  template <typename F>
  auto InStep(F f) {
    return scope_.Wrap([this, step = step_, f = std::move(f)](const auto& reply) {
      if (step == step_) f(reply);
    });
  }
  [[nodiscard]] TimePoint ApartDeadline() const;
  [[nodiscard]] Duration AnswerTime() const;
  [[nodiscard]] std::string own_name() const;
  [[nodiscard]] std::string ChildPath(const std::string& child) const;

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
  std::optional<Ticket> ticket_;
  bool joined_ = false;

  bool containers_ = true;                                 ///< the servers know container znodes
  zookeeper::Error make_error_ = zookeeper::Error::kNone;  ///< why a parent could not be made
  int remakes_ = 0;                                        ///< how often LOCK had to be made
  int missing_ = 0;             ///< how often our name was not listed though it is there
  bool judged_ = false;         ///< a first list has been judged
  bool plain_judged_ = false;   ///< a child `lock` has been looked at
  bool stranger_told_ = false;  ///< one that came later has been reported
  bool own_watched_ = false;    ///< on this connection
  bool own_read_pending_ = false;
  std::string predecessor_;
  std::string predecessor_data_;
  bool predecessor_unreadable_ = false;

  std::optional<TimePoint> apart_since_;  ///< since when no server has done anything for us
  TimePoint wait_deadline_ = kNever;
  TimePoint answer_deadline_ = kNever;  ///< then the server is given up
  TimePoint next_read_ = kNever;
  TimePoint confirm_again_ = kNever;

  CallbackScope scope_;
};

}  // namespace zklock::lock
