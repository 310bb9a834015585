#include "lock/reserve/make_reservations.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "lock/data/reserved.h"
#include "protocol/lock_path.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::GetReply;
using Result = std::variant<std::vector<ReservedLock>, NotReserved>;

class Maker {
 public:
  Maker(Calls& calls, const std::vector<HeldContender>& held, const std::vector<ReservedLock>& also,
        const std::vector<std::string>& passed, const protocol::ReservationRequest& request)
      : calls_(calls), held_(held), also_(also), passed_(passed), request_(request) {
    for (const HeldContender& one : held_) {
      for (std::string& path : one.ticket.paths()) znodes_.push_back({&one, std::move(path)});
    }
  }

  [[nodiscard]] bool may_be_made() const { return may_be_made_; }

  Result Run() {
    // A transaction whose reply was lost has either been done by now or never will be: the servers
    // accept no more requests for the session over the old connection, and none for a session that
    // has expired.
    calls_.Sync(held_.front().ticket.lock.path);
    std::optional<Result> result;
    do {
      Read();
      result = Judge();
    } while (!result);
    return *result;
  }

 private:
  /// One znode of a contender. A contender for permits may have several.
  struct Znode {
    const HeldContender* held;
    std::string path;
  };

  /// Reads all contenders, to learn which have been converted, and the versions of the others. A
  /// request to leave that was written to one of them must not be lost in the conversion.
  void Read() {
    std::vector<const LockName*> locks;
    std::vector<std::string> paths;
    for (const Znode& one : znodes_) {
      locks.push_back(&one.held->ticket.lock);
      paths.push_back(one.path);
    }
    for (const ReservedLock& one : also_) {
      locks.push_back(&one.lock);
      paths.push_back(one.path);
    }
    const std::size_t needed = paths.size();
    paths.insert(paths.end(), passed_.begin(), passed_.end());
    read_ = calls_.GetAll(paths);
    for (std::size_t i = 0; i < needed; ++i) {
      if (read_[i].error == Error::kNone || read_[i].error == Error::kNoNode) continue;
      throw OperationFailed(read_[i].error, "read our own contender in", *locks[i], "READ",
                            paths[i]);
    }
  }

  /// Returns none if the znodes must be read again.
  std::optional<Result> Judge() {
    may_be_made_ = false;
    std::vector<ReservedLock> made;
    std::size_t gone = 0;
    std::optional<NotReserved> obstacle;
    for (std::size_t i = 0; i < znodes_.size(); ++i) {
      const Ticket& ticket = znodes_[i].held->ticket;
      const std::string& path = znodes_[i].path;
      const GetReply& reply = read_[i];
      const bool is_gone = reply.error == Error::kNoNode;
      if (is_gone) ++gone;
      const auto reserved =
          is_gone ? std::nullopt : FindReservation(protocol::BaseOf(path), reply.data, reply.stat);
      const auto asked = is_gone ? std::nullopt : FindReleaseRequest(reply.data);
      if (reserved) {
        made.push_back({ticket.lock, path, *reserved});
      } else if (asked && !asked->forced && !obstacle) {
        obstacle = {NotReserved::Why::kAskedToLeave, *asked};
      } else if (reply.stat.ephemeral_owner != calls_.session_id() && !obstacle) {
        const bool has_expired = calls_.session_id() != ticket.session;
        obstacle = {has_expired ? NotReserved::Why::kExpired : NotReserved::Why::kRemoved};
      }
    }
    if (made.size() == znodes_.size()) return OfContenders(std::move(made));
    if (was_sent_ && !made.empty() && made.size() + gone == znodes_.size()) {
      ReleaseRest(made);
      return std::nullopt;
    }
    if (obstacle) return *obstacle;
    const auto others = std::span(read_).subspan(znodes_.size(), also_.size());
    const bool is_another_gone = std::any_of(others.begin(), others.end(), [](const auto& reply) {
      return reply.error == Error::kNoNode;
    });
    if (!made.empty() || is_another_gone) return NotReserved{};
    Convert();
    return std::nullopt;
  }

  /// Combines the reservations in all `znodes_` into one for each contender.
  [[nodiscard]] std::vector<ReservedLock> OfContenders(std::vector<ReservedLock> made) const {
    std::vector<ReservedLock> reservations;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i].path == znodes_[i].held->ticket.path) {
        reservations.push_back(std::move(made[i]));
      } else {
        reservations.back().more.push_back(std::move(made[i].path));
      }
    }
    return reservations;
  }

  /// Releases all of `made`, because the other reservations made with them have been released
  /// since.
  void ReleaseRest(const std::vector<ReservedLock>& made) {
    may_be_made_ = true;
    for (const ReservedLock& one : made) {
      const Error error = calls_.Delete(one.path, one.reserved.version);
      if (error == Error::kNone || error == Error::kNoNode || error == Error::kBadVersion) continue;
      throw OperationFailed(error, "release", one.lock, "DELETE", protocol::ParentOf(one.path));
    }
  }

  void Convert() {
    std::vector<zookeeper::Conversion> conversions;
    std::vector<std::string> checked;
    for (std::size_t i = 0; i < znodes_.size(); ++i) {
      const HeldContender& held = *znodes_[i].held;
      conversions.push_back({.path = znodes_[i].path,
                             .version = read_[i].stat.version,
                             .data = FormatReservation(held.data, request_, held.ticket.token)});
    }
    for (const ReservedLock& one : also_) checked.push_back(one.path);
    std::vector<std::string> deleted;
    for (std::size_t i = 0; i < passed_.size(); ++i) {
      const bool is_gone = read_[znodes_.size() + also_.size() + i].error == Error::kNoNode;
      if (!is_gone) deleted.push_back(passed_[i]);
    }
    may_be_made_ = true;
    was_sent_ = true;
    const Error error = calls_.MakePersistent(conversions, checked, deleted);
    if (error == Error::kNone || error == Error::kNoNode || error == Error::kBadVersion) return;
    may_be_made_ = false;
    const LockName& lock = held_.front().ticket.lock;
    throw OperationFailed(error, "reserve", lock, "DELETE",
                          protocol::ParentOf(znodes_.front().path));
  }

  Calls& calls_;
  const std::vector<HeldContender>& held_;
  const std::vector<ReservedLock>& also_;
  const std::vector<std::string>& passed_;
  const protocol::ReservationRequest& request_;
  std::vector<Znode> znodes_;
  std::vector<GetReply> read_;  ///< for `znodes_`, `also_` and `passed_`, in this order
  bool was_sent_ = false;       ///< the conversion was sent, at least once
  bool may_be_made_ = false;
};

}  // namespace

Result MakeReservations(Calls& calls, const std::vector<HeldContender>& held,
                        const std::vector<ReservedLock>& also,
                        const std::vector<std::string>& passed,
                        const protocol::ReservationRequest& request) {
  Maker maker(calls, held, also, passed, request);
  try {
    return calls.Repeat([&] { return maker.Run(); });
  } catch (const OperationFailed& failed) {
    throw ReservingFailed(failed.failure(), maker.may_be_made());
  }
}

}  // namespace zklock::lock
