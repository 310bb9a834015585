#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lock/data/callback_scope.h"
#include "protocol/ensemble.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The scope of a ServerMeasurement.
struct MeasurementRequest {
  std::string checked;              ///< an existing znode, for commits like those of heartbeats
  std::vector<std::string> stamps;  ///< where to try, in this order, to create a short-lived znode
  std::size_t rounds = 20;          ///< how many commits to send
  std::size_t connects = 20;        ///< how many times to connect, including the first
};

/// Measures one server through a store that connects to it alone: how long a commit takes (sent
/// like a heartbeat), how long a connect takes, and what the servers' clock shows. Holds nothing,
/// and leaves nothing on the servers, no matter when it stops.
///
/// Passive: driven by the store's callbacks. It is the store's listener while it exists. The caller
/// limits the time; whatever has been measured by then counts.
class ServerMeasurement final : public zookeeper::StoreListener {
 public:
  /// The time of day on this host, since 1970.
  using WallClock = std::function<Duration()>;

  /// `connect_took`: how long the store's last connect took.
  ServerMeasurement(zookeeper::Store& store, const Clock& clock, WallClock wall,
                    std::function<Duration()> connect_took, MeasurementRequest request);
  ~ServerMeasurement() override;

  /// Returns whether everything has been measured, or nothing more can be.
  [[nodiscard]] bool IsOver() const { return over_; }
  /// Returns whether the server has granted a session, and serves it.
  [[nodiscard]] bool has_reached() const { return !connects_.empty() && !refusal_; }
  /// Set if the servers reject the credentials, or require some.
  [[nodiscard]] std::optional<zookeeper::Error> refusal() const { return refusal_; }

  [[nodiscard]] std::optional<protocol::Spread> connects() const;
  /// A commit that is not answered yet counts with the time elapsed so far.
  [[nodiscard]] std::optional<protocol::Spread> commits() const;
  /// Derived from the stamp that was answered most quickly.
  [[nodiscard]] const std::optional<protocol::ClockOffset>& clock_offset() const { return offset_; }
  /// Returns whether the session is a local one that may own no znodes.
  [[nodiscard]] bool is_local() const { return is_local_; }
  /// Returns whether the znode to be checked does not exist.
  [[nodiscard]] bool lacks_checked() const { return lacks_checked_; }
  /// Returns the data of /zookeeper/config.
  [[nodiscard]] const std::optional<std::string>& configuration() const { return configuration_; }

  void OnConnected(bool fresh) override;
  void OnDisconnected() override;
  void OnExpired() override { over_ = true; }
  void OnRefused(zookeeper::Error why) override;

 private:
  void Continue();
  void ReadConfiguration();
  void Commit();
  void StampOnce();
  void TakeStamp(const zookeeper::SetReply& reply);

  /// Makes a callback for a request. It runs only when a reply arrives; if the reply is lost,
  /// OnConnected() continues the work.
  template <typename F>
  auto OnReply(F f) {
    return scope_.Wrap([this, f = std::move(f)](const auto& reply) {
      if (!over_ && !zookeeper::IsLost(reply.error)) f(reply);
    });
  }

  zookeeper::Store& store_;
  const Clock& clock_;
  const WallClock wall_;
  const std::function<Duration()> connect_took_;
  const MeasurementRequest request_;

  bool over_ = false;
  bool leaving_ = false;    ///< we left the server, to measure the next connect
  std::size_t losses_ = 0;  ///< connections that broke by themselves
  std::optional<zookeeper::Error> refusal_;
  std::optional<std::string> configuration_;
  bool has_configuration_ = false;  ///< it was read or cannot be read
  bool lacks_checked_ = false;
  bool is_local_ = false;
  std::vector<Duration> connects_;
  std::vector<Duration> commits_;
  std::optional<TimePoint> committing_;  ///< when a commit that awaits its answer was sent
  Duration unanswered_{};                ///< the longest such wait cut off by a lost connection
  std::size_t stamps_ = 0;               ///< answered with success
  std::size_t place_ = 0;                ///< the index in request_.stamps
  std::optional<protocol::ClockOffset> offset_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
