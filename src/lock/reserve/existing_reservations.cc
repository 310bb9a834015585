#include "lock/reserve/existing_reservations.h"

#include <algorithm>
#include <utility>

#include "lock/acquire/permit_number.h"
#include "lock/data/contender_data.h"
#include "lock/data/reserved.h"
#include "lock/survey/holders.h"
#include "protocol/lock_path.h"
#include "protocol/reservation.h"
#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

using std::chrono::milliseconds;
using zookeeper::Error;

/// Returns none if LOCK is gone, and all of its reservations with it.
std::optional<milliseconds> AskServersTime(Calls& calls, const LockName& lock) {
  const zookeeper::SetReply stamp =
      calls.Stamp(protocol::ChildPath(lock.path, StampName(calls.store())));
  if (stamp.error == Error::kNoNode) return std::nullopt;
  if (stamp.error != Error::kNone) {
    throw OperationFailed(stamp.error, "learn the servers' time in", lock, "CREATE and DELETE");
  }
  return milliseconds(stamp.stat.modified_ms);
}

/// Returns the reservation of `lock` at `path`, according to `read`; none if it is gone. Throws
/// OperationFailed.
std::optional<Reserved> ReservationIn(const zookeeper::GetReply& read, const LockName& lock,
                                      const std::string& path) {
  if (read.error == Error::kNoNode) return std::nullopt;
  if (read.error == Error::kNone) {
    return FindReservation(protocol::BaseOf(path), read.data, read.stat);
  }
  throw OperationFailed(read.error, "read the reservation of", lock, "READ", path);
}

/// Returns the reservations that `holder` consists of: at most one, unless someone has forged names
/// for its permits. The permits of one reservation were created in one transaction.
std::vector<ReservedLock> ReservationsOf(Calls& calls, const LockName& lock, const Holder& holder) {
  std::vector<ReservedLock> found;
  const auto add = [&](const std::string& path, const std::string& data,
                       const zookeeper::NodeStat& stat) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const ReservedLock& one) {
      return one.reserved.created_zxid == stat.created_zxid;
    });
    if (same != found.end()) return same->more.push_back(path);
    const auto reserved = FindReservation(protocol::BaseOf(path), data, stat);
    if (reserved) found.push_back({lock, path, *reserved});
  };
  if (holder.more.empty()) {
    add(holder.path, holder.data, holder.stat);
  } else {
    std::vector<std::string> paths{holder.path};
    paths.insert(paths.end(), holder.more.begin(), holder.more.end());
    const auto read = calls.Repeat([&] { return calls.GetAll(paths); });
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (read[i].error == Error::kNone) add(paths[i], read[i].data, read[i].stat);
    }
  }
  std::erase_if(found,
                [](const ReservedLock& one) { return 1 + one.more.size() < one.reserved.take; });
  return found;
}

/// Returns whether all permits of `one` are within the limit; true if it has no permits. Anyone
/// who may create znodes can forge a permit beyond the limit; a real one stays within it.
bool HoldsPermits(Calls& calls, const ReservedLock& one) {
  const std::string path(protocol::ParentOf(one.path));
  if (path != protocol::PermitsPath(one.lock.path)) return true;
  const auto [list, number] = calls.Repeat([&] {
    return std::pair{calls.List(path), calls.Get(path)};
  });
  for (const Error error : {list.error, number.error}) {
    if (error == Error::kNoNode) return false;
    if (error == Error::kNone) continue;
    throw OperationFailed(error, "read the permits of", one.lock, "READ", path);
  }
  const protocol::Contenders permits(list.children);
  const auto most = protocol::ParsePermitLimit(number.data);
  const auto holds = [&](const std::string& permit) {
    const auto* const own = permits.Find(protocol::BaseOf(permit));
    return own != nullptr && most && protocol::RankOf(permits, own->full).ahead < *most;
  };
  return holds(one.path) && std::all_of(one.more.begin(), one.more.end(), holds);
}

bool IsOneGone(Calls& calls, const std::vector<std::string>& paths) {
  const auto read = calls.GetAll(paths);
  return std::any_of(read.begin(), read.end(),
                     [](const auto& reply) { return reply.error == Error::kNoNode; });
}

/// Replaces the reason and the label if `renewal` gives new ones. Returns whether anything has
/// changed.
bool Reword(Reserved& reserved, const Renewal& renewal) {
  const auto replace = [](std::string& text, const std::string& given) {
    return !given.empty() && std::exchange(text, given) != given;
  };
  const bool has_new_reason = replace(reserved.reservation.reason, renewal.reason);
  return replace(reserved.label, renewal.label) || has_new_reason;
}

}  // namespace

// Another run may renew a reservation after we have read its end. So we can be sure that the
// reservation has ended only if its end is not later than a server time that we requested before
// the read.

std::optional<ReservedLock> FindHeldReservation(Calls& calls, const LockName& lock,
                                                const std::string& id,
                                                std::optional<Reserved>* other) {
  std::optional<milliseconds> before;
  for (;;) {
    if (other != nullptr) other->reset();
    std::optional<milliseconds> now;
    // Only holders count: anyone who may create znodes can forge a reservation further back.
    std::vector<ReservedLock> held;
    for (const Holder& holder : ReadHolders(calls, lock, kAllHolders)) {
      for (ReservedLock& one : ReservationsOf(calls, lock, holder)) held.push_back(std::move(one));
    }
    for (ReservedLock& one : held) {
      const Reserved& reserved = one.reserved;
      if (reserved.reservation.id != id) {
        if (other != nullptr) *other = reserved;
        continue;
      }
      if (!HoldsPermits(calls, one)) continue;
      if (reserved.until) {
        if (before && *before >= *reserved.until) continue;
        now = calls.Repeat([&] { return AskServersTime(calls, lock); });
        if (!now) return std::nullopt;
        if (*now >= *reserved.until) continue;
      }
      return std::move(one);
    }
    if (!now) return std::nullopt;
    before = now;
  }
}

std::optional<std::size_t> CountWaitingAtEarlierPool(Calls& calls, const LockName& lock,
                                                     const std::string& id, const Ticket& own) {
  return calls.Repeat([&]() -> std::optional<std::size_t> {
    const zookeeper::ListReply list = calls.List(lock.path);
    if (list.error == Error::kNoNode) return std::nullopt;
    if (list.error != Error::kNone) {
      throw OperationFailed(list.error, "list", lock, "READ");
    }
    const protocol::Contenders contenders(list.children);
    std::vector<std::string> paths;
    for (const protocol::ContenderNameView& one : contenders) {
      if (one.reserves()) paths.push_back(protocol::ChildPath(lock.path, one.full));
    }
    const auto read = calls.GetAll(paths);
    const bool is_there = std::any_of(read.begin(), read.end(), [&](const auto& one) {
      const auto data = one.error == Error::kNone ? ParseContenderData(one.data) : std::nullopt;
      return data && one.stat.ephemeral_owner != 0 && one.stat.created_zxid < own.token &&
             data->reserve == id &&
             std::find(data->any.begin(), data->any.end(), own.lock.path) != data->any.end();
    });
    if (!is_there) return std::nullopt;
    return contenders.size() - protocol::CountHolders(contenders);
  });
}

std::optional<Unusable> FindOtherUse(Calls& calls, const ReservedLock& reserved,
                                     protocol::Mode mode, std::optional<std::size_t> permits,
                                     std::size_t take) {
  using enum Unusable::Why;
  const LockName& lock = reserved.lock;
  const std::string queue = protocol::ParentOf(reserved.path);
  const bool is_permit = queue == protocol::PermitsPath(lock.path);
  if (is_permit != permits.has_value()) return Unusable{is_permit ? kHasPermits : kHasNoPermits};
  if (reserved.reserved.mode != mode) {
    return Unusable{.why = kReservedInOtherMode,
                    .child = std::string(protocol::BaseOf(reserved.path)),
                    .reserved_mode = reserved.reserved.mode};
  }
  if (!permits) return std::nullopt;
  if (reserved.reserved.take != take) {
    return Unusable{.why = kReservedWithOtherTake, .permits = reserved.reserved.take};
  }
  const auto read = calls.Repeat([&] { return calls.Get(queue); });
  if (read.error != Error::kNone && read.error != Error::kNoNode) {
    throw OperationFailed(read.error, "read the number of permits of", lock, "READ", queue);
  }
  // The reservation counts as one run that has left the turnstile.
  return FindOtherNumber(read, 1, *permits);
}

std::optional<std::vector<ReservedLock>> RenewReservations(
    Calls& calls, const std::vector<ReservedLock>& reserved, const Renewal& renewal) {
  std::vector<std::string> paths;
  paths.reserve(reserved.size());
  for (const ReservedLock& one : reserved) paths.push_back(one.path);
  std::vector<std::string> more;
  for (const ReservedLock& one : reserved)
    more.insert(more.end(), one.more.begin(), one.more.end());
  return calls.Repeat([&]() -> std::optional<std::vector<ReservedLock>> {
    std::optional<milliseconds> before;
    for (;;) {
      std::vector<ReservedLock> renewed = reserved;
      std::vector<zookeeper::DataWrite> writes;
      std::optional<milliseconds> now;
      bool may_have_ended = false;
      const auto read = calls.GetAll(paths);
      for (std::size_t i = 0; i < read.size(); ++i) {
        ReservedLock& one = renewed[i];
        const auto found = ReservationIn(read[i], one.lock, one.path);
        if (!found || found->reservation.id != one.reserved.reservation.id) return std::nullopt;
        one.reserved = *found;
        bool is_changed = Reword(one.reserved, renewal);
        if (found->until) {
          if (before && *before >= *found->until) return std::nullopt;
          if (!now) now = AskServersTime(calls, one.lock);
          if (!now) return std::nullopt;
          may_have_ended = may_have_ended || *now >= *found->until;
          const milliseconds altogether =
              std::min(*now + renewal.lasts - found->since, protocol::kLongestReservation);
          if (found->since + altogether > *found->until) {
            one.reserved.reservation.lasts = altogether;
            one.reserved.until = found->since + altogether;
            is_changed = true;
          }
        }
        if (!is_changed) continue;
        ++one.reserved.version;
        const std::string data = Rewritten(read[i].data, one.reserved);
        writes.push_back({one.path, data, read[i].stat.version});
        for (const std::string& path : one.more) {
          writes.push_back({path, data, zookeeper::kAnyVersion});
        }
      }
      if (IsOneGone(calls, more)) return std::nullopt;
      before = now;
      if (may_have_ended) continue;
      if (writes.empty()) return renewed;
      const Error error = calls.WriteAndDelete(writes, {}, zookeeper::kAnyVersion);
      if (error == Error::kNone) return renewed;
      if (error != Error::kNoNode && error != Error::kBadVersion) {
        const LockName& lock = renewed.front().lock;
        throw OperationFailed(error, "renew the reservation of", lock, "WRITE",
                              renewed.front().path);
      }
    }
  });
}

std::vector<Outlived> FindOutlived(Calls& calls, const std::vector<Ticket>& reserved) {
  std::vector<std::string> paths;
  paths.reserve(reserved.size());
  for (const Ticket& ticket : reserved) paths.push_back(ticket.path);
  return calls.Repeat([&] {
    std::optional<milliseconds> before;
    for (;;) {
      std::vector<Outlived> outlived;
      const LockName* with_end = nullptr;  // a LOCK whose reservation has an end
      // Sync first: the reservation may have just been released through another server.
      for (const std::string& path : paths) calls.Sync(path);
      const auto read = calls.GetAll(paths);
      for (std::size_t i = 0; i < read.size(); ++i) {
        const LockName& lock = reserved[i].lock;
        const auto found = ReservationIn(read[i], lock, paths[i]);
        if (!found || found->reservation.token != reserved[i].token ||
            IsOneGone(calls, reserved[i].more)) {
          outlived.push_back({lock});
        } else if (found->until) {
          with_end = &lock;
          if (before && *before >= *found->until) outlived.push_back({lock, *found});
        }
      }
      if (before || with_end == nullptr) return outlived;
      before = AskServersTime(calls, *with_end);
    }
  });
}

}  // namespace zklock::lock
