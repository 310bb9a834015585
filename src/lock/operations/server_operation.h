#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/event_source.h"
#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// A short operation on the servers that starts over whenever the connection is lost. It holds no
/// lock, so its session does not matter.
///
/// Passive: driven by the store's callbacks, and by OnReady() at the times in its Interest. It is
/// the store's listener while it exists.
class ServerOperation : public EventSource, public zookeeper::StoreListener {
 public:
  ~ServerOperation() override;

  /// Returns whether it has ended, either with a failure or with the derived class's result.
  [[nodiscard]] bool IsOver() const { return over_; }
  [[nodiscard]] const std::optional<OperationFailure>& failure() const { return failure_; }
  /// Makes it wait for servers from now on, however long that takes and however often they fail.
  void KeepTrying() { keeps_trying_ = true; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override;
  void OnRefused(zookeeper::Error why) override;

 protected:
  /// `connect_timeout`: how long to continue without a server that answers.
  ServerOperation(zookeeper::Store& store, const Clock& clock, Duration connect_timeout);

  /// Starts the operation. Call this at the end of the derived class's constructor.
  void Start();
  /// Starts over, as if nothing had been tried yet. Replies to earlier requests are ignored.
  void Restart();
  /// Starts the work from the beginning, over a new connection.
  virtual void Begin() = 0;
  /// Returns the number of connects and disconnects so far.
  [[nodiscard]] std::uint64_t attempt() const { return attempt_; }

  /// Clears the answer deadline: the work is done for now, and no answer is expected.
  void DisarmAnswerDeadline();
  /// Sets the answer deadline again: there is more work to do. Not needed without a connection:
  /// Begin() will follow.
  void ArmAnswerDeadline();

  void Succeed();
  void Fail(OperationFailure failure);

  /// Makes a callback for a request. It runs only if the reply arrives over the same connection;
  /// Begin() follows a lost reply.
  template <typename F>
  auto OnReply(F f) {
    return scope_.Wrap([this, attempt = attempt_, f = std::move(f)](const auto& reply) {
      if (over_ || attempt != attempt_ || zookeeper::IsLost(reply.error)) return;
      Heard();
      f(reply);
    });
  }

  [[nodiscard]] zookeeper::Store& store() { return store_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

 private:
  void Heard();
  [[nodiscard]] TimePoint AnswerDeadline() const;
  [[nodiscard]] TimePoint ConnectDeadline() const;

  zookeeper::Store& store_;
  const Clock& clock_;
  const Duration connect_timeout_;

  bool over_ = false;
  bool keeps_trying_ = false;
  std::optional<OperationFailure> failure_;
  std::uint64_t attempt_ = 0;                    ///< counts connects and disconnects
  int begins_ = 0;                               ///< how often the work has started
  std::optional<TimePoint> disconnected_since_;  ///< no server has answered since then
  TimePoint answer_deadline_ = kNever;           ///< when to give up on the server
  CallbackScope scope_;
};

}  // namespace zklock::lock
