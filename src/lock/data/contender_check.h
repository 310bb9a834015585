#pragma once

#include <vector>

#include "lock/data/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Returns whether a read of the contender's path shows that the contender is gone: no znode has
/// that name, or the name belongs to a later contender or to the reservation that it was converted
/// to.
[[nodiscard]] bool IsGone(const ContenderId& contender, const zookeeper::GetReply& read);

/// Checks with a commit that all of `contenders` still exist, and calls `done` once: with kNone if
/// they do, kNoNode if one of them is gone, otherwise the error that prevented the check.
///
/// A check finds a znode by its name. Where names are reused (Dialect::kSimple), the znode is read
/// as well, after the check: if it has the same czxid after the commit, it existed at the commit.
void CheckContenders(zookeeper::Store& store, const std::vector<ContenderId>& contenders,
                     zookeeper::Done<zookeeper::Reply> done);

}  // namespace zklock::lock
