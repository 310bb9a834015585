#include "lock/operations/server_measurement.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace zklock::lock {
namespace {

using zookeeper::Error;

// The quickest of several stamps has the least uncertainty.
constexpr std::size_t kStamps = 3;
// A server that closes more connections than this by itself is no longer measured.
constexpr std::size_t kMostReconnects = 4;
constexpr char kConfiguration[] = "/zookeeper/config";

}  // namespace

ServerMeasurement::ServerMeasurement(zookeeper::Store& store, const Clock& clock, WallClock wall,
                                     std::function<Duration()> connect_took,
                                     MeasurementRequest request)
    : store_(store),
      clock_(clock),
      wall_(std::move(wall)),
      connect_took_(std::move(connect_took)),
      request_(std::move(request)) {
  store_.SetListener(this);
}

ServerMeasurement::~ServerMeasurement() { store_.SetListener(nullptr); }

std::optional<protocol::Spread> ServerMeasurement::connects() const {
  return protocol::SpreadOf(connects_);
}

std::optional<protocol::Spread> ServerMeasurement::commits() const {
  std::vector<Duration> times = commits_;
  if (committing_) times.push_back(clock_.Now() - *committing_);
  // The server has not answered a single commit, but has shown that it is slow.
  if (times.empty() && unanswered_ > protocol::HeartbeatPeriod(store_.lease().timeout())) {
    times.push_back(unanswered_);
  }
  return protocol::SpreadOf(std::move(times));
}

void ServerMeasurement::OnConnected(bool /*fresh*/) {
  if (over_) return;
  if (!connects_.empty() && !std::exchange(leaving_, false) && ++losses_ > kMostReconnects) {
    over_ = true;
    return;
  }
  if (connects_.size() < request_.connects) connects_.push_back(connect_took_());
  Continue();
}

void ServerMeasurement::OnDisconnected() {
  if (!committing_) return;
  unanswered_ = std::max(unanswered_, clock_.Now() - *committing_);
  committing_.reset();
}

void ServerMeasurement::OnRefused(Error why) {
  refusal_ = why;
  over_ = true;
}

void ServerMeasurement::Continue() {
  // Commit first: a server too slow to answer anything else in time must not pass as healthy.
  if (commits_.empty()) return Commit();
  if (!has_configuration_) return ReadConfiguration();
  if (stamps_ < kStamps && place_ < request_.stamps.size()) return StampOnce();
  if (commits_.size() < request_.rounds) return Commit();
  if (connects_.size() < request_.connects) {
    leaving_ = true;
    return store_.GiveUpServer();
  }
  over_ = true;
}

void ServerMeasurement::ReadConfiguration() {
  store_.Get(kConfiguration, zookeeper::Watch::kNo,
             OnReply([this](const zookeeper::GetReply& reply) {
               has_configuration_ = true;
               if (reply.error == Error::kNone) configuration_ = reply.data;
               Continue();
             }));
}

void ServerMeasurement::Commit() {
  committing_ = clock_.Now();
  store_.Check({request_.checked}, OnReply([this](const zookeeper::Reply& reply) {
                 committing_.reset();
                 // The server also closes the session, and every later one.
                 if (reply.error == Error::kAuthRequired) return OnRefused(reply.error);
                 // A check that fails because we lack permission to read the znode, or because a
                 // chroot does not exist yet, is committed just like one that succeeds.
                 lacks_checked_ = reply.error == Error::kNoNode;
                 commits_.push_back(clock_.Now() - reply.sent);
                 Continue();
               }));
}

void ServerMeasurement::StampOnce() {
  store_.Stamp(request_.stamps[place_],
               OnReply([this](const zookeeper::SetReply& reply) { TakeStamp(reply); }));
}

void ServerMeasurement::TakeStamp(const zookeeper::SetReply& reply) {
  if (reply.error != Error::kNone) {
    is_local_ = is_local_ || reply.error == Error::kLocalSession;
    ++place_;
    return Continue();
  }
  ++stamps_;
  const auto offset = protocol::OffsetOf(std::chrono::milliseconds(reply.stat.modified_ms), wall_(),
                                         clock_.Now() - reply.sent);
  if (!offset_ || offset.uncertainty < offset_->uncertainty) offset_ = offset;
  Continue();
}

}  // namespace zklock::lock
