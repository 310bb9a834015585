#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lock/errand.h"
#include "lock/ticket.h"
#include "protocol/contender_name.h"

namespace zklock::lock {

/// One child of a LOCK whose name counts in its queue.
struct QueueEntry {
  protocol::ContenderName name;
  bool readable = false;  ///< false: we may not read it; the rest is not known
  zookeeper::NodeStat stat{};
  std::string data{};  ///< somebody else's bytes, cut

  /// False for a znode that ends with no session: a lock below the lock, or a stranger's.
  [[nodiscard]] bool IsContender() const { return !readable || stat.ephemeral_owner != 0; }
};

/// One LOCK as it was found.
struct LockSurvey {
  std::string path;  ///< as the user knows it
  bool exists = true;
  std::vector<QueueEntry> entries{};  ///< in queue order
  /// For each entry the index of the one it waits for; none: it holds, or is no contender.
  std::vector<std::optional<std::size_t>> waits_for{};
  std::vector<std::string> ignored_children{};  ///< names that do not count

  [[nodiscard]] bool IsHeld() const;
};

struct SurveyRequest {
  enum class Scope {
    kLock,  ///< this LOCK, whatever it is
    kTree,  ///< every LOCK that has contenders, this znode and all below it
  };
  LockName place;
  Scope scope = Scope::kLock;
  std::size_t most_data = 4096;  ///< how much of each contender's data to keep
  Duration connect_timeout = std::chrono::seconds(15);
};

struct SurveyResult {
  std::vector<LockSurvey> locks;        ///< by path; with kLock exactly one
  std::vector<std::string> unlistable;  ///< znodes whose children we may not list, but for `place`
};

/// Reads queues for people to look at: a list of children, then each contender, 64 requests under
/// way at most. What vanishes meanwhile was not there. Begins anew after a loss of the connection.
///
/// A tree is walked below everything but contenders and the servers' own /zookeeper.
class Survey final : public Errand {
 public:
  Survey(zookeeper::Store& store, const Clock& clock, SurveyRequest request);

  /// Once it is over without a failure.
  [[nodiscard]] const SurveyResult& result() const { return result_; }

 protected:
  void Begin() override;

 private:
  using Found = std::map<std::string, LockSurvey>;  // by path on the servers
  struct Read {
    Found::value_type* lock;
    std::size_t entry;
  };

  void Pump();
  void SendList(const std::string& path);
  void OnListed(const std::string& path, const zookeeper::ListReply& reply);
  void TakeChildren(const std::string& path, const std::vector<std::string>& children);
  void SendRead(Read read);
  void OnRead(Read read, const zookeeper::GetReply& reply);
  void Complete();
  [[nodiscard]] bool walks() const { return request_.scope == SurveyRequest::Scope::kTree; }

  const SurveyRequest request_;
  SurveyResult result_;
  Found found_;
  std::vector<std::string> to_list_;  // from its back: what was found last first
  std::deque<Read> to_read_;
  std::size_t under_way_ = 0;
};

}  // namespace zklock::lock
