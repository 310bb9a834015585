#pragma once

#include <vector>

#include "lock/ticket.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Whether a read of the contender's path shows that the contender has gone: there is no znode of
/// that name, or another one.
[[nodiscard]] bool IsGone(const ContenderId& contender, const zookeeper::GetReply& read);

/// Asks by a committed check whether all of `contenders` are still there, and answers `done` once:
/// kNone if they are, kNoNode if one of them has gone, else why it is not known.
///
/// A check finds a znode by its name. Where a name is used again (Dialect::kSimple) it is read as
/// well, behind the check: a znode with the same czxid after the commit was there at the commit.
void CheckContenders(zookeeper::Store& store, const std::vector<ContenderId>& contenders,
                     zookeeper::Done<zookeeper::Reply> done);

}  // namespace zklock::lock
