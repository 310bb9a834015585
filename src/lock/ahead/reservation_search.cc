#include "lock/ahead/reservation_search.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lock/data/contender_data.h"
#include "lock/data/reserved.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

using protocol::ContenderNameView;
using zookeeper::Error;
using zookeeper::GetReply;

void ReservationSearch::Search(const protocol::Contenders& contenders, std::string_view own_name,
                               const std::function<void(const Found& found)>& done) {
  const ContenderNameView* const own = contenders.Find(own_name);
  std::vector<ContenderNameView> candidates;
  const bool is_semaphore = request_.most_permits > 0;
  for (const ContenderNameView& one : is_semaphore ? protocol::RunsOf(contenders) : contenders) {
    const bool counts = own == nullptr || protocol::IsBefore(one, *own);
    if (counts && one.reserves() && others_.count(std::string(one.full)) == 0) {
      candidates.push_back(one);
    }
  }
  if (candidates.empty()) return done({});
  std::sort(candidates.begin(), candidates.end(), protocol::IsBefore);
  const ContenderNameView* const first = contenders.First();
  const ContenderNameView* const writer =
      protocol::FirstConflict(contenders, protocol::Mode::kRead);
  const auto holds = [&](const ContenderNameView& one, std::size_t more) {
    if (is_semaphore) {
      const auto is_before = [&](const auto& other) { return protocol::IsBefore(other, one); };
      const auto before = std::count_if(contenders.begin(), contenders.end(), is_before);
      return static_cast<std::size_t>(before) + more < request_.most_permits;
    }
    if (one.full == first->full) return true;
    return one.reads() && (writer == nullptr || protocol::IsBefore(one, *writer));
  };
  const auto found = std::make_shared<Found>();
  for (const ContenderNameView& one : candidates) {
    // Replies keep the order: the last one completes the search.
    const bool is_last = &one == &candidates.back();
    Found candidate{.name = std::string(one.full)};
    if (is_semaphore) candidate.more = protocol::PermitsOfRun(contenders, one.full);
    std::erase(candidate.more, candidate.name);
    candidate.holds = holds(one, candidate.more.size());
    store_.Get(protocol::ChildPath(request_.ReservationsPath(), candidate.name),
               zookeeper::Watch::kNo,
               scope_.Wrap([this, candidate, is_last, found, done](const GetReply& reply) {
                 if (IsLost(reply.error)) return;
                 Take(candidate, reply, *found);
                 if (is_last) done(*found);
               }));
  }
}

void ReservationSearch::Take(Found one, const GetReply& reply, Found& found) {
  // One that we may not read is not ours.
  if (reply.error != Error::kNone) return;
  one.reserved = FindReservation(one.name, reply.data, reply.stat);
  if (one.reserved) EndIfIncomplete(*one.reserved, 1 + one.more.size());
  const auto data = one.reserved ? std::nullopt : ParseContenderData(reply.data);
  const bool is_contender = reply.stat.ephemeral_owner != 0;
  const std::string id = one.reserved           ? one.reserved->reservation.id
                         : is_contender && data ? data->reserve
                                                : std::string();
  if (id != request_.reserve->id) {
    others_.insert(one.name);
    return;
  }
  std::vector<std::string> pooled = std::move(found.pooled);
  if (data) pooled.insert(pooled.end(), data->any.begin(), data->any.end());
  if (found.name.empty() || (one.IsInForce() && !found.IsInForce())) {
    found = std::move(one);
  }
  found.pooled = std::move(pooled);
}

}  // namespace zklock::lock
