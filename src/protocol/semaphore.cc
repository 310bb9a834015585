#include "protocol/semaphore.h"

#include <algorithm>
#include <charconv>

#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::protocol {

std::string TurnstilePath(std::string_view lock) { return ChildPath(lock, kTurnstileChild); }

std::string PermitsPath(std::string_view lock) { return ChildPath(lock, kPermitsChild); }

std::optional<std::size_t> ParsePermits(std::string_view data) {
  std::size_t permits = 0;
  const auto [end, error] = std::from_chars(data.data(), data.data() + data.size(), permits);
  if (error != std::errc() || end != data.data() + data.size() || permits == 0) return std::nullopt;
  return permits;
}

bool MayBeSemaphore(const Children& children) {
  bool has_leases = false;
  for (const std::string_view child : children) {
    if (child == kSimpleName || ViewContenderName(child)) return false;
    has_leases = has_leases || child == kPermitsChild;
  }
  return has_leases;
}

bool AreLeases(const Children& children, std::string_view data) {
  bool has_others = false;
  for (const std::string_view child : children) {
    const auto name = ViewContenderName(child);
    if (name && name->mark == Mark::kLease) return true;
    has_others = has_others || name;
  }
  return !has_others && ParsePermits(data);
}

}  // namespace zklock::protocol
