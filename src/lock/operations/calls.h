#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lock/data/lock_children.h"
#include "lock/operations/server_operation.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Thrown by Calls, and by the functions that use it, when an operation has failed.
class OperationFailed : public std::exception {
 public:
  explicit OperationFailed(OperationFailure failure) : failure_(std::move(failure)) {}
  /// The failure is the one that FailureOf() returns.
  OperationFailed(zookeeper::Error error, const std::string& operation, const LockName& lock,
                  const char* right, const std::string& path = "")
      : failure_(FailureOf(error, operation, lock, right, path)) {}

  [[nodiscard]] const OperationFailure& failure() const { return failure_; }
  [[nodiscard]] const char* what() const noexcept override { return "an operation has failed"; }

 private:
  OperationFailure failure_;
};

/// Sends requests to the servers and blocks until they are answered, serving the event loop in the
/// meantime. An operation of several requests is thus a plain function. Only for code that holds no
/// lock itself, or for which other runs must wait anyway: code that maintains a lease must not
/// block.
///
/// Requests may only be sent from within Repeat(), by one function at a time. The connection can be
/// lost during any of them; Repeat() then runs the work again.
class Calls final : public ServerOperation {
 public:
  /// Runs the event loop, with `source` added, until `is_done` returns true. May throw to end the
  /// operation.
  using Serve = std::function<void(EventSource& source, const std::function<bool()>& is_done)>;

  /// All arguments must outlive it. `connect_timeout`: how long to continue without a server that
  /// answers.
  Calls(zookeeper::Store& store, const Clock& clock, Duration connect_timeout, Serve serve)
      : ServerOperation(store, clock, connect_timeout), serve_(std::move(serve)) {}

  /// Runs `work`, which sends requests, and returns its result. Whenever the connection is lost,
  /// runs it again from the start over the next one: earlier requests may or may not have taken
  /// effect. Throws OperationFailed, for example if no server answers.
  template <typename F>
  auto Repeat(F work) {
    const Attempts attempts(*this);
    for (;;) {
      AwaitConnection();
      try {
        return work();
      } catch (const ConnectionLost&) {
      }
    }
  }

  /// After a call with a watch, AwaitChange() waits for it to fire.
  [[nodiscard]] zookeeper::GetReply Get(const std::string& path,
                                        zookeeper::Watch watch = zookeeper::Watch::kNo);
  [[nodiscard]] zookeeper::ListReply List(const std::string& path);
  /// Sends all reads together. The answers are in the order of `paths`.
  [[nodiscard]] std::vector<zookeeper::GetReply> GetAll(const std::vector<std::string>& paths);
  [[nodiscard]] std::vector<zookeeper::ListReply> ListAll(const std::vector<std::string>& paths);
  /// Sends together all reads that `children` still needs, and waits for the replies.
  void Complete(std::span<LockChildren> children);
  [[nodiscard]] zookeeper::Error Set(const std::string& path, const std::string& data,
                                     std::int32_t version);
  [[nodiscard]] zookeeper::Error Delete(const std::string& path, std::int32_t version);
  [[nodiscard]] zookeeper::Error WriteAndDelete(const std::vector<zookeeper::DataWrite>& writes,
                                                const std::vector<std::string>& gone,
                                                std::int32_t version);
  [[nodiscard]] zookeeper::Error MakePersistent(
      const std::vector<zookeeper::Conversion>& conversions,
      const std::vector<std::string>& checked, const std::vector<std::string>& deleted);
  /// Like CheckContenders().
  [[nodiscard]] zookeeper::Error Check(const std::vector<ContenderId>& contenders);
  [[nodiscard]] zookeeper::AclReply GetAcl(const std::string& path);
  [[nodiscard]] zookeeper::Error CheckCreate(const std::string& path, const std::string& data,
                                             bool and_delete);
  [[nodiscard]] zookeeper::SetReply Stamp(const std::string& path);
  /// Makes later reads show a state at least as new as this call. Does not wait for the reply,
  /// because replies arrive in order.
  void Sync(const std::string& path);

  /// For requests that the caller sends itself.
  using ServerOperation::store;
  /// Waits until those requests are answered.
  void Await(const std::function<bool()>& has_answer);
  /// Waits until the znode that was last read by a Get() with a watch changes, but only for a few
  /// seconds: since the fix for CVE-2024-23944, a server does not report the deletion of a znode to
  /// a client that has lost permission to read it. Returns whether it has changed.
  bool AwaitChange();

  /// Returns the session over which requests are sent. An expired session is replaced with a new
  /// one.
  [[nodiscard]] std::int64_t session_id() { return store().session_id(); }

  Interest GetInterest() override;
  void OnDisconnected() override;
  void OnWatch(const std::string& path, zookeeper::Change change) override;

 private:
  /// Ends the work; Repeat() handles it.
  struct ConnectionLost {};
  /// While this object exists, the connection is monitored and replies are accepted.
  class Attempts {
   public:
    explicit Attempts(Calls& calls) : calls_(calls) {
      calls_.is_connected_ = false;
      calls_.Restart();
    }
    ~Attempts() { calls_.Succeed(); }
    Attempts(const Attempts&) = delete;
    Attempts& operator=(const Attempts&) = delete;

   private:
    Calls& calls_;
  };

  void Begin() override { is_connected_ = true; }
  void AwaitConnection();
  /// Throws ConnectionLost unless the connection is still the one over which the work began.
  void RequireConnection() const;
  template <typename R, typename F>
  R Ask(F send);
  template <typename R, typename F>
  std::vector<R> AskAll(const std::vector<std::string>& paths, F send);

  const Serve serve_;
  bool is_connected_ = false;
  std::uint64_t began_ = 0;        ///< attempt() when the work began
  std::string watched_;            ///< the znode that AwaitChange() waits for
  bool has_changed_ = false;       ///< that znode has changed since it was read
  TimePoint look_again_ = kNever;  ///< when AwaitChange() ends at the latest
};

}  // namespace zklock::lock
