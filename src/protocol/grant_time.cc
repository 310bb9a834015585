#include "protocol/grant_time.h"

#include <algorithm>

namespace zklock::protocol {

GrantTime GrantTimeOf(const ContenderName& holder, std::int64_t created_ms,
                      const std::optional<LastRelease>& last,
                      const std::optional<HolderBefore>& before) {
  if (holder.number == 0) return {created_ms, true};
  GrantTime granted{created_ms, false};
  if (last) {
    const std::optional<ContenderName> previous = ParseContenderName(last->record.contender);
    const bool was_before = previous && previous->number < holder.number;
    // Readers hold the lock together: the release of one says nothing about the others. A writer
    // held it alone: when the writer released it, all contenders before the writer were gone.
    if (was_before && !previous->reads()) {
      granted.since_ms = std::max(created_ms, last->written_ms);
      granted.exact = previous->number == holder.number - 1;
    } else if (was_before && !holder.reads()) {
      granted.since_ms = std::max(created_ms, last->written_ms);
    }
  }
  if (before && before->number == holder.number - 1 && before->granted.exact) {
    // There has never been a contender between the two.
    return {std::max(created_ms, before->granted.since_ms), true};
  }
  return granted;
}

GrantTime PermitTimeOf(const ContenderName& first, std::size_t take, std::int64_t created_ms,
                       const std::optional<std::size_t>& limit) {
  const bool had_room = first.number >= 0 && limit.has_value() &&
                        static_cast<std::uint64_t>(first.number) + take <= *limit;
  return {created_ms, first.number == 0 || had_room};
}

}  // namespace zklock::protocol
