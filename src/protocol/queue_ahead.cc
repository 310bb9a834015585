#include "protocol/queue_ahead.h"

#include <algorithm>

namespace zklock::protocol {

QueueAhead::QueueAhead(const Contenders& contenders, std::string_view own_name,
                       std::string_view predecessor) {
  const ContenderNameView* const own = contenders.Find(own_name);
  const ContenderNameView* const nearest = contenders.Find(predecessor);
  if (own == nullptr || nearest == nullptr) return;
  known_ = true;
  leaves_for_good_ = nearest->program() == Program::kZklock && !nearest->reserves();
  predecessor_reads_ = nearest->reads();

  const ContenderNameView* last_excluding = nullptr;
  for (const ContenderNameView& one : contenders) {
    if (IsBefore(one, *own)) ++contenders_before_;
    if (IsBefore(*nearest, one) && IsBefore(one, *own)) waiters_between_ = true;
    if (one.reads() || !IsBefore(one, *nearest)) continue;
    if (last_excluding == nullptr || IsBefore(*last_excluding, one)) last_excluding = &one;
  }
  if (last_excluding != nullptr) last_excluding_ = last_excluding->full;
  readers_before_ = std::any_of(contenders.begin(), contenders.end(), [&](const auto& one) {
    return one.reads() && IsBefore(one, *nearest) &&
           (last_excluding == nullptr || IsBefore(*last_excluding, one));
  });
}

void QueueAhead::Take(const ReleaseRecord& record) {
  // Compares the whole name, which is never used again; the number may already have occurred in an
  // earlier life of LOCK.
  if (record.contender == last_excluding_) last_excluding_.clear();
}

bool QueueAhead::IsSettledByDeletion() const {
  return known_ && leaves_for_good_ && last_excluding_.empty() && !readers_before_;
}

bool QueueAhead::IsNextInLine() const {
  if (!known_ || waiters_between_ || !last_excluding_.empty()) return false;
  return predecessor_reads_ || !readers_before_;
}

}  // namespace zklock::protocol
