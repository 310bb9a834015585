#include "lock/acquire/semaphore.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

/// How long a `try` stays in a turnstile. Contenders pass it without waiting while permits are
/// free.
constexpr Duration kTurnstileTime = std::chrono::seconds(5);

}  // namespace

std::vector<AcquireRequest> RequestsForPermit(AcquireRequest permit) {
  permit.below = std::string(protocol::kPermitsChild);
  permit.most_permits = *permit.permits;
  // A `try` queues in the turnstile too, as long as the contenders before it leave a permit for it:
  // they do not wait there either.
  AcquireRequest turnstile{
      .lock = permit.lock,
      .host = permit.host,
      .data = permit.data,
      .wait = permit.try_only ? std::optional<Duration>(kTurnstileTime) : permit.wait,
      .max_queue = permit.try_only ? std::nullopt : permit.max_queue,
      .below = std::string(protocol::kTurnstileChild),
      .take = permit.take,
      .passes = permit.try_only,
      .most_permits = permit.most_permits,
      .reserve = permit.reserve,
      .preempt = permit.preempt,
      .connect_timeout = permit.connect_timeout};
  return {std::move(turnstile), std::move(permit)};
}

}  // namespace zklock::lock
