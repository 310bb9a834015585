#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lock/data/lock_children.h"
#include "lock/data/ticket.h"
#include "lock/operations/server_operation.h"
#include "lock/survey/lock_survey.h"
#include "lock/survey/survey_queue.h"

namespace zklock::lock {

struct SurveyRequest {
  enum class Scope {
    kLock,   ///< this LOCK, even if it is free
    kTree,   ///< every LOCK that has contenders: this znode and all below it
    kGuess,  ///< like kLock, unless the LOCK is free and has other children; then like kTree
  };
  LockName place;
  Scope scope = Scope::kLock;
  std::size_t most_data = 4096;  ///< how much of a znode's data to keep
  /// How many contenders to read in each LOCK; the others are only counted.
  std::size_t most_contenders = std::string::npos;
  std::size_t most_in_tree = std::string::npos;  ///< the same, for each LOCK of a tree
  bool with_last_run = false;                    ///< read the LOCKs' last-run znodes
  bool with_last_start = false;                  ///< and their last-start znodes
  /// Also report the free LOCKs of a tree: znodes that have a record of their runs or the children
  /// of a semaphore, or whose data zklock has written. This reads the data of every znode in the
  /// tree.
  bool with_free = false;
  /// With kGuess: if the LOCK has contenders, also report the LOCKs below it.
  bool below_contenders = false;
  bool watch = false;  ///< never stop: survey again after every change
  Duration connect_timeout = std::chrono::seconds(15);
};

struct SurveyResult {
  bool exists = true;                   ///< `place` exists
  std::vector<LockSurvey> locks;        ///< in the order of the tree; exactly one with kLock
  std::vector<std::string> unlistable;  ///< znodes below `place` whose children we cannot list
};

/// Reads queues for display: a list of children, then each contender, with at most 64 requests
/// pending. Znodes that vanish in the meantime are left out. After a lost connection it continues
/// where it stopped: nothing is reported twice.
///
/// The walk of a tree visits everything except contenders and the servers' own /zookeeper. It keeps
/// only the names of the znodes still to be visited, and nothing about those already reported.
///
/// When watching, every read leaves a watch. When a watch fires, the survey reads what has changed
/// and reports everything again, at most ten times a second.
class Survey final : public ServerOperation {
 public:
  /// `sink` must outlive the survey, and receives everything. Without a sink, result() contains
  /// everything.
  Survey(zookeeper::Store& store, const Clock& clock, SurveyRequest request,
         SurveySink* sink = nullptr);
  ~Survey() override;

  /// Valid after success, or in OnEnd().
  [[nodiscard]] const SurveyResult& result() const { return result_; }
  /// Call this when the sink can accept more.
  void Resume();
  /// When watching: reports everything again, with a new limit, from the cache where possible.
  void Repeat(std::size_t most_contenders);

  Interest GetInterest() override;
  void OnReady(short revents) override;
  void OnDisconnected() override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 protected:
  void Begin() override;

 private:
  /// One znode of the frontier. Znodes are reported in order, but requests can be sent in any
  /// order.
  struct Node {
    explicit Node(std::string znode) : path(std::move(znode)) {}
    enum class State { kToList, kListing, kReadingChildren, kReading, kDone };
    std::string path;
    State state = State::kToList;
    std::unique_ptr<LockChildren> children;  ///< for a LOCK, until they are known
    std::unique_ptr<SurveyQueue> queue;      ///< for a LOCK, once they are known
  };
  using Frontier = std::list<Node>;  // pending replies keep iterators
  class ReadCache;

  void StartOver();
  void Pump();
  void SendWindow();
  bool SendNext(Frontier::iterator node);
  void OnListed(Frontier::iterator node, const zookeeper::ListReply& reply);
  bool SendChildren(Frontier::iterator node);
  void OnChildren(Frontier::iterator node);
  void TakeQueue(Frontier::iterator node, SurveyQueue queue);
  void OnNotListed(const std::string& path, zookeeper::Error error, bool is_wanted);
  /// Calls `take` with the cached reply if there is one, otherwise with the servers' reply.
  void AskForChildren(const std::string& path, zookeeper::Done<zookeeper::ListReply> take);
  /// `most`: how many bytes of the data are needed.
  void AskForData(const std::string& path, std::size_t most,
                  zookeeper::Done<zookeeper::GetReply> take);

  bool Report();
  void Finish(Frontier::iterator node);
  void Walk(Frontier::iterator node, const std::vector<std::string>& children);
  void Complete();
  void WatchForCreation();
  void WaitForChange();
  [[nodiscard]] bool IsRoot(const Node& node) const { return node.path == request_.place.path; }

  SurveyRequest request_;
  SurveyResult result_;
  std::unique_ptr<SurveySink> collector_;
  SurveySink* sink_;
  const Clock& clock_;

  Frontier frontier_;
  bool idle_ = true;      ///< not begun yet, or everything has been reported
  bool pumping_ = false;  ///< Pump() is on the stack
  bool walks_ = false;    ///< everything below the root is also surveyed
  std::size_t under_way_ = 0;

  // When watching:
  const std::unique_ptr<ReadCache> cache_;
  bool stale_ = false;           ///< something has changed since the survey began
  TimePoint began_{};            ///< when the survey began
  TimePoint again_at_ = kNever;  ///< when idle: when to begin again
};

}  // namespace zklock::lock
