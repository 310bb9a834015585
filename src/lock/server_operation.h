#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/callback_scope.h"
#include "lock/lock_children.h"
#include "lock/outcome.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Why an operation came to nothing.
using OperationFailure = std::variant<Unreachable, Refused, QuotaExceeded, Defect>;

/// A short piece of work on the servers that can be begun anew as often as the connection is lost:
/// it holds nothing, and its session does not matter.
///
/// Passive: driven by the store's callbacks and by OnReady() at its moments. The store's listener
/// while it lives.
class ServerOperation : public EventSource, public zookeeper::StoreListener {
 public:
  ~ServerOperation() override;
  ServerOperation(const ServerOperation&) = delete;
  ServerOperation& operator=(const ServerOperation&) = delete;

  /// It has ended: with a failure, or with the result that the operation has.
  [[nodiscard]] bool IsOver() const { return over_; }
  [[nodiscard]] const std::optional<OperationFailure>& failure() const { return failure_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;
  void OnWatch(const std::string& /*path*/) override {}

 protected:
  /// `connect_timeout`: how long to be without a server that answers.
  ServerOperation(zookeeper::Store& store, const Clock& clock, Duration connect_timeout);

  /// To be called when the object is complete.
  void Start();
  /// Does the work from its beginning, over a connection that has just been made.
  virtual void Begin() = 0;

  /// Nothing is asked and no answer waited for, until Rouse(): the work is done for now.
  void Rest();
  /// There is work again. Not while the connection is lost: Begin() follows.
  void Rouse();

  void Succeed();
  void Fail(OperationFailure failure);
  /// For an answer that no branch expects: `why` not. `operation` on `path`, and `right` on
  /// `right_path`, are as in Refused, which it is where the servers do not let us, and else a
  /// defect.
  void FailBecause(zookeeper::Error why, const std::string& operation, const std::string& path,
                   const std::string& right, const std::string& right_path);

  /// A callback for a request: runs only while the connection lasts over which it was sent, and not
  /// for a lost reply, which Begin() follows.
  template <typename F>
  auto OnReply(F f) {
    return scope_.Wrap([this, attempt = attempt_, f = std::move(f)](const auto& reply) {
      if (over_ || attempt != attempt_ || zookeeper::IsLost(reply.error)) return;
      Heard();
      f(reply);
    });
  }

  /// Reads that leave no watch, answered as by OnReply.
  [[nodiscard]] LockChildren::Requests UnwatchedReads();

  [[nodiscard]] zookeeper::Store& store() { return store_; }

 private:
  void Heard();
  [[nodiscard]] TimePoint AnswerDeadline() const;
  [[nodiscard]] TimePoint ApartDeadline() const;

  zookeeper::Store& store_;
  const Clock& clock_;
  const Duration connect_timeout_;

  bool over_ = false;
  std::optional<OperationFailure> failure_;
  std::uint64_t attempt_ = 0;             ///< counts connections, made and lost
  int begins_ = 0;                        ///< how often the work was begun
  std::optional<TimePoint> apart_since_;  ///< since when no server has answered
  TimePoint answer_deadline_ = kNever;    ///< then the server is given up
  CallbackScope scope_;
};

}  // namespace zklock::lock
