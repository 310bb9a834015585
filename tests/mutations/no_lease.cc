// zklock broken on purpose: the lease never ends, so the command keeps running when the servers
// have given the lock to another contender. The linker puts this in place of protocol::Lease::End()
// (--wrap in cmake/Faults.cmake).

#include <optional>

#include "protocol/lease.h"

namespace zklock::protocol {

std::optional<TimePoint> RealEnd(const Lease* lease) asm("__real__ZNK6zklock8protocol5Lease3EndEv");
std::optional<TimePoint> EndNever(const Lease* lease) asm(
    "__wrap__ZNK6zklock8protocol5Lease3EndEv");

std::optional<TimePoint> EndNever(const Lease* lease) {
  return RealEnd(lease) ? std::optional(kNever) : std::nullopt;
}

}  // namespace zklock::protocol
