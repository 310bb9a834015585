#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lock/lock_children.h"
#include "lock/lock_survey.h"
#include "lock/read_cache.h"
#include "lock/server_operation.h"
#include "lock/survey_queue.h"
#include "lock/ticket.h"

namespace zklock::lock {

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
class Survey final : public ServerOperation {
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
  /// One znode of the frontier: told in this order, asked for in any.
  struct Place {
    explicit Place(std::string znode) : path(std::move(znode)) {}
    enum class State { kToList, kListing, kReadingChildren, kReading, kDone };
    std::string path;
    State state = State::kToList;
    std::unique_ptr<LockChildren> children;  ///< of a LOCK, until they are known
    std::unique_ptr<SurveyQueue> queue;      ///< of a LOCK, from then on
  };
  using Frontier = std::list<Place>;  // what is in it stays where it is

  void StartOver();
  void Pump();
  void SendWindow();
  bool SendNext(Frontier::iterator place);
  void OnListed(Frontier::iterator place, const zookeeper::ListReply& reply);
  bool SendChildren(Frontier::iterator place);
  void OnChildren(Frontier::iterator place);
  void TakeQueue(Frontier::iterator place, SurveyQueue queue);
  void OnNotListed(const std::string& path, zookeeper::Error error, bool is_wanted);
  void SendHead(Frontier::iterator place);
  void SendEntry(Frontier::iterator place, std::size_t index);
  /// Here and below: `take` is called with what is known already, or else with the answer.
  void AskForChildren(const std::string& path, zookeeper::Done<zookeeper::ListReply> take);
  void AskForData(const std::string& path, zookeeper::Done<zookeeper::GetReply> take);

  bool Tell();
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
