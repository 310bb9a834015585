#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "zookeeper/access.h"
#include "zookeeper/connection.h"
#include "zookeeper/store.h"

namespace zklock::zookeeper {

/// Carries the requests of a Session from a call to the client library, and from the library's C
/// callbacks to an answer. No answer is delivered inside a callback: exceptions must not pass
/// through the library's stack frames, and the receiver may close the connection.
///
/// The pipeline keeps the contract of Store: answers are delivered in the order of the requests. A
/// server that throttles a request has not done it, but may have done later ones. All of these are
/// sent again, one by one and in order, except writes that succeeded. So each answer is from a time
/// when all requests before it had been done, as if nothing had been throttled.
class SessionRequests : public Store {
 public:
  void SetListener(StoreListener* listener) override { listener_ = listener; }
  [[nodiscard]] const protocol::Lease& lease() const override { return lease_; }
  void Create(const std::string& path, const std::string& data, NodeKind kind,
              Done<CreateReply> done) override;
  void CreateAll(const std::vector<NewContender>& contenders, const std::string& scratch,
                 Done<CreateAllReply> done) override;
  void Get(const std::string& path, Watch watch, Done<GetReply> done) override;
  void List(const std::string& path, Watch watch, Done<ListReply> done) override;
  void Exists(const std::string& path, Watch watch, Done<Reply> done) override;
  void Delete(const std::string& path, std::int32_t version, Done<Reply> done) override;
  void Set(const std::string& path, const std::string& data, std::int32_t version,
           Done<SetReply> done) override;
  void WriteAndDelete(const std::vector<DataWrite>& writes, const std::vector<std::string>& gone,
                      std::int32_t gone_version, Done<Reply> done) override;
  void MakePersistent(const std::vector<Conversion>& conversions,
                      const std::vector<std::string>& checked,
                      const std::vector<std::string>& deleted, Done<Reply> done) override;
  void Sync(const std::string& path, Done<Reply> done) override;
  void Check(const std::vector<std::string>& paths, Done<Reply> done) override;
  void GetAcl(const std::string& path, Done<AclReply> done) override;
  void CheckCreate(const std::string& path, const std::string& data, bool and_delete,
                   Done<Reply> done) override;
  void Stamp(const std::string& path, Done<SetReply> done) override;

 protected:
  SessionRequests(const Clock& clock, Duration timeout, Access access);
  ~SessionRequests() override;

  /// Returns the connection on which requests are sent while IsConnected(); null without one.
  [[nodiscard]] virtual Connection* connection() = 0;
  /// Called when the library has completed a request. `is_answer`: the server has answered it.
  /// `commits`: success means that a quorum has committed it.
  virtual void OnReply(std::string_view operation, Error error, bool is_answer, bool commits) = 0;
  /// Called when the server has answered a request and throttled neither it nor an earlier one.
  virtual void OnServed() = 0;

  /// Calls the receivers of all answers and events in `ready_`.
  void Deliver();
  /// Answers all unanswered requests with kConnectionLoss. Must be called when the connection is
  /// gone.
  void AnswerAllLost();
  /// Drops all requests: their receivers are not called.
  void Clear();
  /// Returns, for each request that was sent and not answered, in order, whether it is a
  /// WriteAndDelete() that is a release.
  [[nodiscard]] std::vector<bool> UnansweredReleases() const;
  /// Returns whether the server throttled the last request that it answered.
  [[nodiscard]] bool WasThrottled() const { return throttle_pause_ > Duration::zero(); }
  /// Returns when to call SendThrottled().
  [[nodiscard]] TimePoint NextSend() const;
  /// Sends the first throttled request, if it is due and no request is in progress.
  void SendThrottled(TimePoint now);

  const Clock& clock_;
  Access access_;
  protocol::Lease lease_;
  StoreListener* listener_ = nullptr;
  std::deque<std::function<void()>> ready_;  // answers and events, in order, not yet delivered

 private:
  struct Pending;

  /// Adds a request to the pipeline, and sends it unless a throttled one must be sent before it.
  /// Without a connection, the request is answered with kConnectionLoss.
  void Request(std::unique_ptr<Pending> pending);
  /// Passes a request to the library. Answers it with kConnectionLoss if the library refuses it.
  void Send(Pending& pending);
  template <typename R>
  void Complete(Pending& pending, int result, R reply);
  template <typename R>
  void Answer(Pending& pending, R reply);
  void AnswerLost(Pending& pending);
  /// Moves the answers that are next in order to `ready_`.
  void TakeAnswers();
  [[nodiscard]] bool IsBehindThrottled(const Pending& pending) const;
  /// Returns whether a request is waiting to be sent again.
  [[nodiscard]] bool IsThrottled() const;

  std::deque<std::unique_ptr<Pending>> pipeline_;  // not yet delivered, in order
  TimePoint send_again_at_{};                      // for throttled requests
  Duration throttle_pause_{};   // the last pause; zero: the last answer was not "throttled"
  bool holds_garbage_ = false;  // in the allocator, after a long list: see Deliver()
  bool delivering_ = false;
};

}  // namespace zklock::zookeeper
