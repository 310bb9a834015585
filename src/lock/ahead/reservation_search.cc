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
  for (const ContenderNameView& one : contenders) {
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
  const auto holds = [&](const ContenderNameView& one) {
    if (request_.most_permits > 0) {
      const auto is_before = [&](const auto& other) { return protocol::IsBefore(other, one); };
      const auto before = std::count_if(contenders.begin(), contenders.end(), is_before);
      return static_cast<std::size_t>(before) < request_.most_permits;
    }
    if (one.full == first->full) return true;
    return one.reads() && (writer == nullptr || protocol::IsBefore(one, *writer));
  };
  const auto ours = std::make_shared<std::vector<Found>>();
  for (const ContenderNameView& one : candidates) {
    // Replies arrive in order: the last one completes the search.
    const bool is_last = &one == &candidates.back();
    const Found candidate{.name = std::string(one.full), .holds = holds(one)};
    store_.Get(protocol::ChildPath(request_.ReservationsPath(), candidate.name),
               zookeeper::Watch::kNo,
               scope_.Wrap([this, candidate, is_last, ours, done](const GetReply& reply) {
                 if (IsLost(reply.error)) return;
                 Take(candidate, reply, *ours);
                 if (is_last) done(FirstOf(*ours));
               }));
  }
}

void ReservationSearch::Take(Found one, const GetReply& reply, std::vector<Found>& ours) {
  // A contender that we lack permission to read is not ours.
  if (reply.error != Error::kNone) return;
  one.reserved = FindReservation(one.name, reply.data, reply.stat);
  const auto data = one.reserved ? std::nullopt : ParseContenderData(reply.data);
  const bool is_contender = reply.stat.ephemeral_owner != 0;
  const std::string id = one.reserved           ? one.reserved->reservation.id
                         : is_contender && data ? data->reserve
                                                : std::string();
  if (id != request_.reserve->id) {
    others_.insert(one.name);
    return;
  }
  one.created_zxid = reply.stat.created_zxid;
  // Permits that were created in one transaction belong together; their names can be forged.
  const auto same = std::find_if(ours.begin(), ours.end(), [&](const Found& other) {
    return request_.most_permits > 0 && other.created_zxid == one.created_zxid;
  });
  if (same != ours.end()) {
    same->more.push_back(one.name);
    same->holds = same->holds && one.holds;
    return;
  }
  if (data) one.pooled = data->any;
  ours.push_back(std::move(one));
}

ReservationSearch::Found ReservationSearch::FirstOf(std::vector<Found>& ours) {
  const auto run_of = [](const Found& one) { return protocol::ViewContenderName(one.name)->run(); };
  if (ours.empty()) return {};
  const Found* first = &ours.front();
  std::vector<std::string> pooled;
  for (Found& one : ours) {
    if (one.reserved && 1 + one.more.size() < one.reserved->take) {
      // The reservation may have been made while we read its permits.
      const bool is_new = std::any_of(ours.begin(), ours.end(), [&](const Found& other) {
        return !other.reserved && run_of(other) == run_of(one);
      });
      one.reserved->is_incomplete = !is_new;
      if (is_new) one.reserved.reset();
    }
    pooled.insert(pooled.end(), one.pooled.begin(), one.pooled.end());
    if (one.IsInForce() && !first->IsInForce()) first = &one;
  }
  Found found = *first;
  found.pooled = std::move(pooled);
  return found;
}

}  // namespace zklock::lock
