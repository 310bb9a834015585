#include "zookeeper/close_session.h"

#include <poll.h>

#include <algorithm>

#include "protocol/lease.h"
#include "zookeeper/session.h"

namespace zklock::zookeeper {

bool CloseSession(const Credentials& credentials, const std::vector<Endpoint>& endpoints,
                  Duration timeout, const Access& access, Transport* transport) {
  const SystemClock clock;
  const TimePoint deadline = clock.Now() + timeout;
  Session session(endpoints, protocol::kLeastSessionTimeout, clock, access, transport);
  session.Adopt(credentials);
  session.BeginClose();
  while (!session.IsClosed() && !session.IsCloseRefused() && clock.Now() < deadline) {
    const EventSource::Interest interest = session.GetInterest();
    const TimePoint wake = std::min(interest.wake, deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(wake - clock.Now(), Duration::zero()));
    pollfd ready{.fd = interest.fd, .events = interest.events, .revents = 0};
    poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    session.OnReady(ready.revents);
  }
  return session.IsClosed();
}

}  // namespace zklock::zookeeper
