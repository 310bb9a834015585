#include "zookeeper/orphaned_session.h"

#include <poll.h>

#include <algorithm>

#include "protocol/lease.h"

namespace zklock::zookeeper {

std::unique_ptr<Session> BeginCloseOf(const Credentials& credentials,
                                      const std::vector<Endpoint>& endpoints, const Clock& clock,
                                      const Access& access, Transport* transport) {
  auto session = std::make_unique<Session>(endpoints, protocol::kLeastSessionTimeout, clock, access,
                                           transport);
  session->Adopt(credentials);
  session->BeginClose();
  return session;
}

bool CloseSession(const Credentials& credentials, const std::vector<Endpoint>& endpoints,
                  Duration timeout, const Access& access, Transport* transport) {
  const SystemClock clock;
  const TimePoint deadline = clock.Now() + timeout;
  const auto session = BeginCloseOf(credentials, endpoints, clock, access, transport);
  while (!session->IsClosed() && !session->IsCloseRefused() && clock.Now() < deadline) {
    const EventSource::Interest interest = session->GetInterest();
    const TimePoint wake = std::min(interest.wake, deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(wake - clock.Now(), Duration::zero()));
    pollfd ready{.fd = interest.fd, .events = interest.events, .revents = 0};
    poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    session->OnReady(ready.revents);
  }
  return session->IsClosed();
}

}  // namespace zklock::zookeeper
