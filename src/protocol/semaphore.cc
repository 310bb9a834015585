#include "protocol/semaphore.h"

#include <algorithm>
#include <charconv>

#include "protocol/contender_name.h"

namespace zklock::protocol {

std::optional<std::size_t> ParsePermits(std::string_view data) {
  std::size_t permits = 0;
  const auto [end, error] = std::from_chars(data.data(), data.data() + data.size(), permits);
  if (error != std::errc() || end != data.data() + data.size() || permits == 0) return std::nullopt;
  return permits;
}

bool MayBeSemaphore(const std::vector<std::string>& children) {
  bool has_leases = false;
  for (const std::string& child : children) {
    if (child == kSimpleName || ParseContenderName(child)) return false;
    has_leases = has_leases || child == kLeases;
  }
  return has_leases;
}

bool AreLeases(const std::vector<std::string>& children, std::string_view data) {
  bool has_others = false;
  for (const std::string& child : children) {
    const auto name = ParseContenderName(child);
    if (name && name->mark == Mark::kLease) return true;
    has_others = has_others || name;
  }
  return !has_others && ParsePermits(data);
}

}  // namespace zklock::protocol
