#include "protocol/semaphore.h"

#include <algorithm>

#include "base/text.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::protocol {

std::string TurnstilePath(std::string_view lock) { return ChildPath(lock, kTurnstileChild); }

std::string PermitsPath(std::string_view lock) { return ChildPath(lock, kPermitsChild); }

std::optional<std::size_t> ParsePermitLimit(std::string_view data) {
  const auto limit = ParseWhole<std::size_t>(data);
  if (limit == std::size_t{0}) return std::nullopt;
  return limit;
}

bool MayBeSemaphore(const Children& children) {
  bool has_permits = false;
  for (const std::string_view child : children) {
    if (child == kSimpleName || ViewContenderName(child)) return false;
    has_permits = has_permits || child == kPermitsChild;
  }
  return has_permits;
}

bool ArePermits(const Children& children, std::string_view data) {
  bool has_others = false;
  for (const std::string_view child : children) {
    const auto name = ViewContenderName(child);
    if (name && name->mark == Mark::kPermit) return true;
    has_others = has_others || name;
  }
  return !has_others && ParsePermitLimit(data);
}

}  // namespace zklock::protocol
