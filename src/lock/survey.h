#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/errand.h"
#include "lock/read_cache.h"
#include "lock/ticket.h"
#include "protocol/contender_name.h"

namespace zklock::lock {

/// The one of whom an entry waits for.
struct Predecessor {
  std::size_t position = 0;
  std::string name;
  friend bool operator==(const Predecessor&, const Predecessor&) = default;
};

/// One child of a LOCK whose name counts in its queue, or the znode `lock` of the simple lock.
struct QueueEntry {
  protocol::ContenderName name;
  std::string path{};     ///< on the servers
  bool readable = false;  ///< false: we may not read it; the rest is not known
  zookeeper::NodeStat stat{};
  std::string data{};                      ///< somebody else's bytes, cut
  std::optional<std::size_t> position{};   ///< from 1; none: no contender
  std::optional<Predecessor> waits_for{};  ///< none: it holds, or is no contender

  /// False for a znode that ends with no session: a lock below the lock, or a stranger's.
  [[nodiscard]] bool IsContender() const { return !readable || stat.ephemeral_owner != 0; }
};

/// What a LOCK is used as, told from its contenders' names.
enum class LockKind {
  kMutex,
  kReadWrite,
  kSimple,  ///< the one znode `lock`
};

/// One LOCK as it was found.
struct LockSurvey {
  std::string path;  ///< as the user knows it
  bool exists = true;
  zookeeper::NodeStat stat{};
  std::string data{};                 ///< the LOCK's own, cut: the release record
  std::vector<QueueEntry> entries{};  ///< in queue order, then who is no contender
  std::size_t held = 0;               ///< how many contenders hold, those not read included
  std::size_t waiting = 0;
  std::optional<LockKind> kind{};               ///< none where nobody queues to tell it
  std::vector<std::string> ignored_children{};  ///< names that do not count, sorted
  bool in_tree = false;                         ///< one of all below what was asked for

  [[nodiscard]] bool IsHeld() const { return held != 0; }
};

/// Is told what a survey finds as it comes. May not destroy the survey.
class SurveySink {
 public:
  virtual ~SurveySink() = default;
  /// The next LOCK, in the tree's order. Its entries follow; `held` and `waiting` count names, of
  /// which one or the other may turn out to be no contender.
  virtual void OnLock(const LockSurvey& lock) = 0;
  /// Its next one in queue order, then those that are no contenders.
  virtual void OnEntry(const QueueEntry& entry) = 0;
  /// No more of it. Now the counts are right.
  virtual void OnLockEnd(const LockSurvey& lock) = 0;
  /// All was told: when watching, until something changes.
  virtual void OnEnd() {}
  /// False while it can take no more: the survey asks no further until Resume().
  [[nodiscard]] virtual bool WantsMore() const { return true; }
};

struct SurveyRequest {
  enum class Scope {
    kLock,   ///< this LOCK, whatever it is
    kTree,   ///< every LOCK that has contenders, this znode and all below it
    kGuess,  ///< the LOCK, unless it is free and there is something below
  };
  LockName place;
  Scope scope = Scope::kLock;
  std::size_t most_data = 4096;  ///< how much of a znode's data to keep
  /// How many contenders of a LOCK to read; of the others the names alone are known.
  std::size_t most_contenders = std::string::npos;
  std::size_t most_in_tree = std::string::npos;  ///< the same, of each LOCK below a path
  bool watch = false;  ///< goes on for ever: looks again when something has changed
  Duration connect_timeout = std::chrono::seconds(15);
};

struct SurveyResult {
  std::vector<LockSurvey> locks;        ///< in the tree's order; with kLock exactly one
  std::vector<std::string> unlistable;  ///< znodes whose children we may not list, but for `place`
};

/// Reads queues for people to look at: a list of children, then each contender, 64 requests under
/// way at most. What vanishes meanwhile was not there. Goes on where it was after a loss of the
/// connection: what has been told is not told again.
///
/// A tree is walked below everything but contenders and the servers' own /zookeeper. Of what is to
/// come only names are kept, of what was told nothing.
///
/// Watching, every read leaves a watch, and nothing is asked again before one fires, nor more often
/// than ten times a second. Then the whole is told once more.
class Survey final : public Errand {
 public:
  /// `sink`, if any, outlives it and is told everything; without one result() has it all.
  Survey(zookeeper::Store& store, const Clock& clock, SurveyRequest request,
         SurveySink* sink = nullptr);
  ~Survey() override;

  /// Once it is over without a failure, or in OnEnd().
  [[nodiscard]] const SurveyResult& result() const { return result_; }
  /// The sink can take more again.
  void Resume();
  /// Watching: tells everything once more, for `most_contenders`, from what is known.
  void LookAgain(std::size_t most_contenders);

  Interest GetInterest() override;
  void OnReady(short revents) override;
  void OnDisconnected() override;
  void OnWatch(const std::string& path) override;

 protected:
  void Begin() override;

 private:
  struct Reading;
  /// One znode of the frontier: told in this order, asked for in any.
  struct Place {
    explicit Place(std::string znode);
    ~Place();
    enum class State { kToList, kListing, kReading, kDone };
    std::string path;
    State state = State::kToList;
    std::unique_ptr<Reading> reading;  ///< of a LOCK, from its list on
  };
  using Frontier = std::list<Place>;  // what is in it stays where it is

  void StartOver();
  void Pump();
  void SendWindow();
  bool SendNext(Frontier::iterator place);
  void SendList(Frontier::iterator place);
  void OnListed(Frontier::iterator place, const zookeeper::ListReply& reply);
  void TakeChildren(Frontier::iterator place, const std::vector<std::string>& children);
  void SendHead(Frontier::iterator place);
  void SendEntry(Frontier::iterator place, std::size_t index);
  void TakeEntry(Place& place, std::size_t index, const zookeeper::GetReply& reply);

  bool Tell();
  bool TellEntries(Reading& reading);
  void TellContender(Reading& reading, std::size_t index);
  void TellLock(Reading& reading);
  void Finish(Frontier::iterator place);
  void Walk(Frontier::iterator place, const std::vector<std::string>& children);
  void Complete();
  void WatchForCreation();
  void BeAtRest();
  [[nodiscard]] bool IsPlace(const Place& place) const { return place.path == request_.place.path; }

  /// How many contenders of a LOCK are read.
  [[nodiscard]] std::size_t most() const {
    return walks_ ? request_.most_in_tree : request_.most_contenders;
  }

  SurveyRequest request_;
  SurveyResult result_;
  std::unique_ptr<SurveySink> collector_;
  SurveySink* sink_;
  const Clock& clock_;

  Frontier frontier_;
  bool resting_ = true;   ///< nothing is asked: not begun yet, or all told
  bool pumping_ = false;  ///< further up the stack
  bool walks_ = false;    ///< all below the place is looked at too
  bool exists_ = true;    ///< the place
  std::size_t under_way_ = 0;

  // Watching.
  ReadCache cache_;
  bool stale_ = false;           ///< something has changed since the last beginning
  TimePoint began_{};            ///< the last one
  TimePoint again_at_ = kNever;  ///< resting: when to begin again
};

}  // namespace zklock::lock
