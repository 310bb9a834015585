#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/reports/event.h"
#include "lock/data/contender_data.h"
#include "lock/data/event.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// Passes each event on to all listeners.
class EventBroadcaster {
 public:
  /// The listener must outlive its registration. For each event, listeners are called in the order
  /// in which they were added.
  void Add(cli::EventListener& listener) { listeners_.push_back(&listener); }
  void Remove(cli::EventListener& listener) { std::erase(listeners_, &listener); }

  void Publish(const cli::Event& event);
  /// Publishes ConnectedEvent once for each connection, and ShortSessionEvent if the reconnect has
  /// made the session timeout short.
  void PublishConnected(const zookeeper::Session& session);
  /// Publishes ShortSessionEvent if `timeout` is short.
  void WarnOfShortSession(Duration timeout);

 private:
  std::vector<cli::EventListener*> listeners_;
  std::pair<std::int64_t, int> connection_;  // the last one published: session and its connects()
};

/// Publishes the events between joining a queue and acquiring the lock.
class QueueEvents {
 public:
  /// `on_joining` may be empty. `expects_acl`: report a LOCK that everyone may write to or delete
  /// from. `events` must outlive the session.
  QueueEvents(EventBroadcaster& events, zookeeper::Session& session,
              std::function<void()> on_joining, bool expects_acl)
      : events_(events),
        session_(session),
        on_joining_(std::move(on_joining)),
        expects_acl_(expects_acl) {}
  void OnEvent(const lock::AcquireEvent& event);

  /// Returns the LOCK that we wait for; empty until another contender is ahead of ours.
  [[nodiscard]] const std::string& waits_for() const { return waits_for_; }
  /// A contender of ours that was asked to leave its queue.
  struct Asked {
    std::string contender;
    lock::ReleaseRequest request;
  };
  /// Returns the requests to leave, the newest last.
  [[nodiscard]] const std::vector<Asked>& asked() const { return asked_; }
  /// With --any: the LOCKs whose queues we have left while we wait in others, and why.
  using Left = std::map<std::string, lock::QueueLeftEvent::Why>;
  [[nodiscard]] const Left& left() const { return left_; }
  /// Call when this contender has left its queue, but others of ours remain.
  void Forget(const std::string& contender) {
    std::erase_if(asked_, [&](const Asked& one) { return one.contender == contender; });
  }

 private:
  void OnJoining(const lock::JoiningEvent& joining);
  void OnLeft(lock::QueueLeftEvent left);
  void ReportIfOpen(const lock::LockName& lock, const std::string& queue);
  void LookForChroot(const std::string& chroot);

  EventBroadcaster& events_;
  zookeeper::Session& session_;
  const std::function<void()> on_joining_;
  const bool expects_acl_;
  std::vector<Asked> asked_;
  Left left_;
  std::string waits_for_;
  std::set<std::string> places_lost_;  // LOCKs
  std::set<std::string> overdue_;      // paths of reservations
  // Shared with callbacks that may run after this object is gone: the LOCKs already reported as
  // open, and whether the chroot was missing.
  const std::shared_ptr<std::set<std::string>> open_ = std::make_shared<std::set<std::string>>();
  const std::shared_ptr<bool> lacks_chroot_ = std::make_shared<bool>(false);
};

/// Publishes the events while the lock is held, and passes the lease on to the guard.
class HoldEvents {
 public:
  /// `locks`: all LOCKs that are held, as messages name them.
  HoldEvents(EventBroadcaster& events, const zookeeper::Session& session, std::string locks)
      : events_(events), session_(session), locks_(std::move(locks)) {}
  using LeaseSink = std::function<void(TimePoint lease_end, Duration grace)>;
  /// From now on, passes the lease to `sink`, for the guard. An empty `sink` stops that.
  void SetLeaseSink(LeaseSink sink) { lease_sink_ = std::move(sink); }
  void OnEvent(const lock::HoldEvent& event);

  /// Returns the request to release the lock, if our contender has received one.
  [[nodiscard]] const std::optional<lock::ReleaseRequest>& release_request() const {
    return release_request_;
  }

 private:
  EventBroadcaster& events_;
  const zookeeper::Session& session_;
  const std::string locks_;
  std::optional<lock::ReleaseRequest> release_request_;
  LeaseSink lease_sink_;
};

}  // namespace zklock::commands
