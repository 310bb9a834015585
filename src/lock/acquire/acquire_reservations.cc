#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lock/acquire/acquire.h"
#include "protocol/lock_path.h"
#include "protocol/queue.h"

// Reservations before our own contender: found with our ID, or deleted at their end.

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using protocol::ContenderNameView;
using protocol::Contenders;
using std::chrono::milliseconds;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

// Reservations are at the head of a queue. If many wait to reserve, only the first ones are read;
// the next list shows others.
constexpr std::size_t kMostRead = 16;
// A contender that is converted later is seen with the next list.
constexpr Duration kListPause = 10min;
// The servers' clock may be set forward while we wait.
constexpr milliseconds kLongestPause = 1h;
// It may also stand still, or be set back a little.
constexpr Duration kLeastPause = 50ms;
// The contenders that wait for one overdue reservation delete it one after the other, until one
// succeeds: longer than the list and the delete of one take.
constexpr Duration kDelayOfEach = 1s;
// After a delete was refused: the ACL may have been changed.
constexpr Duration kRefusalPause = 10min;

std::optional<Reserved> ReservationIn(const std::string& name, const GetReply& reply) {
  if (reply.error != Error::kNone) return std::nullopt;
  return FindReservation(name, reply.data, reply.stat);
}

/// The contenders before `own` with `-reserve` in their names, in queue order. Without `own` all.
std::vector<ContenderNameView> ReservingBefore(const ContenderNameView* own,
                                               const Contenders& contenders) {
  std::vector<ContenderNameView> found;
  for (const ContenderNameView& one : contenders) {
    const bool counts = own == nullptr || protocol::IsBefore(one, *own);
    if (counts && one.reserves()) found.push_back(one);
  }
  std::sort(found.begin(), found.end(), protocol::IsBefore);
  return found;
}

/// How many names of zklock are between `after` and `own_name`; before `own_name`, if `after` is
/// null.
std::size_t CountZklocks(const Contenders& contenders, const ContenderNameView* after,
                         std::string_view own_name) {
  const ContenderNameView* const own = contenders.Find(own_name);
  if (own == nullptr) return 0;
  return static_cast<std::size_t>(
      std::count_if(contenders.begin(), contenders.end(), [&](const ContenderNameView& one) {
        return one.program() == protocol::Program::kZklock && protocol::IsBefore(one, *own) &&
               (after == nullptr || protocol::IsBefore(*after, one));
      }));
}

/// Cuts `found` to what is read of a queue; true if it was longer.
bool KeepFirst(std::vector<ContenderNameView>& found) {
  if (found.size() <= kMostRead) return false;
  found.erase(found.begin() + kMostRead, found.end());
  return true;
}

}  // namespace

// ---- of our own ID ---------------------------------------------------------------------------

/// In a turnstile: lists the permits, which may be reserved for our ID, or overdue, and compares
/// their number.
void Acquire::ListPermits() {
  const bool watches = request_.reserve || place_.watches_permits;
  const auto taken = std::make_shared<std::size_t>(0);
  ++LookupOfState()->unread;
  store_.List(request_.ReservationsPath(), watches ? Watch::kYes : Watch::kNo,
              InState([this, taken](const ListReply& reply) {
                // kNoNode: no permit was ever taken.
                if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                  return OnUnexpected("list", reply.error);
                }
                const Contenders permits(reply.children);
                *taken = permits.size();
                --LookupOfState()->unread;
                if (request_.reserve) FindReservationIn(permits);
                if (IsOver()) return;
                FindReserving(permits);
                if (LeavesAtOnce()) LeaveAfterLookup();
              }));
  ReadPermitNumber(taken);
}

/// While we wait: `contenders` may have a reservation of our ID by now.
void Acquire::FindReservationIn(const Contenders& contenders) {
  reservations_.Search(
      contenders, contender_.name(),
      InState([this](const ReservationSearch::Found& found) { (void)FinishIfReserved(found); }));
}

/// True if the lock is reserved for our ID: then it is over.
bool Acquire::FinishIfReserved(const ReservationSearch::Found& found) {
  if (!found.IsInForce() || HasEnded(*found.reserved)) return false;
  // Other LOCKs may have to be waited for yet.
  if (const auto& ticket = contender_.ticket()) {
    store_.Delete(ticket->path, zookeeper::kAnyVersion, [](const Reply&) {});
  }
  if (found.reserved->mode == request_.mode) {
    Finish(ReservedLock{request_.lock, protocol::ChildPath(request_.ReservationsPath(), found.name),
                        *found.reserved});
  } else {
    Finish(Unusable{.why = Unusable::Why::kReservedInOtherMode,
                    .child = found.name,
                    .reserved_mode = found.reserved->mode});
  }
  return true;
}

/// By the servers' clock, as far as we know it.
bool Acquire::HasEnded(const Reserved& reserved) const {
  return reserved.until && contender_.ticket() &&
         LatestServerTimeAt(clock_.Now(), reserved, *contender_.ticket()) >= *reserved.until;
}

// ---- at their end ----------------------------------------------------------------------------

/// The contender in the way is a reservation.
void Acquire::OnReservationAhead(const Reserved& reserved) {
  const bool is_our_id = request_.reserve && !request_.is_for_turnstile() &&
                         request_.reserve->id == reserved.reservation.id;
  const bool may_be_ours = is_our_id && contender_.ticket() && !HasEnded(reserved);
  if (may_be_ours && std::exchange(listed_for_, reserved.created_zxid) != reserved.created_zxid) {
    return ListAgain();
  }
  if (contender_.ticket()) return TakeReserving(predecessor_.name, reserved);
  // Only the creation of a contender shows a `try` what time it is for the servers.
  if (reserved.until) Join();
}

/// For a `try` that has created nothing yet, behind `blocker`, which is read after this.
void Acquire::JoinIfReservationEnds(const Contenders& contenders, std::string_view blocker) {
  // If that is none, the lock is taken whatever has ended.
  const ContenderNameView* const first = contenders.Find(blocker);
  if (first == nullptr || !first->reserves()) return;
  std::vector<ContenderNameView> reserving = ReservingBefore(nullptr, contenders);
  KeepFirst(reserving);
  for (const ContenderNameView& one : reserving) {
    if (one.full == blocker) continue;
    store_.Get(ChildPath(one.full), Watch::kNo,
               InState([this, name = std::string(one.full)](const GetReply& reply) {
                 const auto reserved = ReservationIn(name, reply);
                 if (reserved && reserved->until) Join();
               }));
  }
}

/// Reads the contenders that may be reservations: in our queue those before our
/// contender; of a semaphore any permit.
void Acquire::FindReserving(const Contenders& contenders) {
  const bool is_ordered = !request_.permits && !request_.is_for_turnstile();
  std::vector<ContenderNameView> found =
      ReservingBefore(is_ordered ? contenders.Find(contender_.name()) : nullptr, contenders);
  Lookup& lookup = *LookupOfState();
  if (is_ordered) lookup.has_more = KeepFirst(found);
  for (const ContenderNameView& one : found) {
    if (one.full == contender_.name()) continue;
    const auto known = std::find_if(lookup.reserving.begin(), lookup.reserving.end(),
                                    [&](const Reserving& other) { return other.name == one.full; });
    if (known == lookup.reserving.end()) {
      Reserving& added = lookup.reserving.emplace_back(Reserving{.name = std::string(one.full)});
      if (is_ordered) {
        added.between = CountZklocks(contenders, &one, contender_.name());
        added.was_first = contenders.First()->full == one.full;
      }
    } else if (known->reserved) {
      continue;
    }
    const auto* const waiting = std::get_if<Waiting>(&state_);
    const bool is_read_anyway =
        waiting != nullptr && predecessor_.readable && one.full == predecessor_.name;
    if (!is_read_anyway) {
      ReadReserving(std::string(one.full));
    } else if (!std::exchange(lookup.reads_predecessor, true)) {
      ++lookup.unread;
    }
  }
  if (lookup.unread == 0) PlanExpiries();
}

void Acquire::ReadReserving(const std::string& name) {
  ++LookupOfState()->unread;
  store_.Get(protocol::ChildPath(request_.ReservationsPath(), name), Watch::kNo,
             InState([this, name](const GetReply& reply) {
               if (IsLost(reply.error)) return;
               --LookupOfState()->unread;
               TakeReserving(name, ReservationIn(name, reply));
               if (LeavesAtOnce()) LeaveAfterLookup();
             }));
}

void Acquire::TakeReserving(const std::string& name, const std::optional<Reserved>& reserved) {
  Lookup& lookup = *LookupOfState();
  const auto found = std::find_if(lookup.reserving.begin(), lookup.reserving.end(),
                                  [&](const Reserving& one) { return one.name == name; });
  if (found != lookup.reserving.end()) found->reserved = reserved;
  if (lookup.unread == 0) PlanExpiries();
}

/// In a turnstile: these may delete an overdue permit before us.
void Acquire::CountZklocksBefore(const Contenders& contenders) {
  std::get<Waiting>(state_).zklocks_before = CountZklocks(contenders, nullptr, contender_.name());
}

/// All contenders that may be reservations have been read: decides when to act on each.
void Acquire::PlanExpiries() {
  const bool is_ordered = !request_.permits && !request_.is_for_turnstile();
  auto* const waiting = std::get_if<Waiting>(&state_);
  Lookup& lookup = *LookupOfState();
  bool may_be_converted = lookup.has_more || request_.is_for_turnstile();
  std::size_t reservations_between = 0;
  for (auto one = lookup.reserving.rbegin(); one != lookup.reserving.rend(); ++one) {
    // The predecessor is watched.
    if (!one->reserved && one->name != predecessor_.name) may_be_converted = true;
    if (!one->reserved) continue;
    one->position =
        request_.is_for_turnstile() && waiting != nullptr ? waiting->zklocks_before : one->between;
    if (is_ordered) one->position -= reservations_between++;
    PlanExpiry(*one);
  }
  if (may_be_converted && waiting != nullptr && waiting->list_at == kNever) {
    waiting->list_at = clock_.Now() + kListPause;
  }
}

/// What the servers' clock shows now, at most.
milliseconds Acquire::LatestServerTime(const Reserving& one) const {
  const TimePoint now = clock_.Now();
  const auto asked = place_.not_ended.find(one.name);
  if (asked == place_.not_ended.end()) {
    return LatestServerTimeAt(now, *one.reserved, *contender_.ticket());
  }
  return asked->second.shown + std::chrono::ceil<milliseconds>(now - asked->second.asked);
}

void Acquire::PlanExpiry(Reserving& one) {
  one.due = kNever;
  const bool is_running = connection_.expiry && connection_.expiry->name() == one.name;
  if (!one.reserved->until || is_running) return;
  const Ticket& own = *contender_.ticket();
  const auto refused = place_.refused.find(one.name);
  const bool had_ended = HadEnded(*one.reserved, own);
  const bool leaves =
      request_.try_only || request_.permit_limit || std::holds_alternative<LeavingFull>(state_);
  if (leaves || request_.reserve) {
    if (had_ended && refused == place_.refused.end()) {
      one.due = clock_.Now();
      one.lists_first = false;
      return;
    }
    if (leaves) return;  // without waiting for the end
  }
  const milliseconds since_created = own.LatestServerTimeAt(clock_.Now()) - own.created;
  milliseconds left = std::max(*one.reserved->until - LatestServerTime(one), -since_created);
  if (one.position == 0) left = std::min(left, kLongestPause);
  const Duration delay = kDelayOfEach * static_cast<Duration::rep>(one.position);
  one.due = After(clock_.Now(), Duration(left) + delay);
  if (refused != place_.refused.end()) {
    one.due = std::max(one.due, After(refused->second, kRefusalPause + delay));
  }
  one.lists_first = one.position > 0 || refused != place_.refused.end();
  if (one.due > clock_.Now()) {
    place_.listed_again.erase(one.name);  // it was given more time
  } else if (place_.listed_again.count(one.name) != 0) {
    one.lists_first = false;
  }
}

/// The one that is due first; null if there is none, or one is being deleted.
Acquire::Reserving* Acquire::NextExpiry() {
  Lookup* const lookup = LookupOfState();
  if (lookup == nullptr || lookup->reserving.empty() || connection_.expiry) return nullptr;
  auto& reserving = lookup->reserving;
  return &*std::min_element(reserving.begin(), reserving.end(),
                            [](const auto& a, const auto& b) { return a.due < b.due; });
}

/// Those of a contender that LeavesAtOnce() are due now or never.
bool Acquire::MayExpireAtOnce() {
  const Reserving* const next = NextExpiry();
  return connection_.expiry || (next != nullptr && next->due != kNever);
}

void Acquire::OnExpiryDue(Reserving& one) {
  if (one.lists_first) return ReadBeforeList(one);
  place_.listed_again.erase(one.name);
  one.due = kNever;
  connection_.expiry =
      std::make_unique<ReservationExpiry>(store_, request_.ReservationsPath(), one.name,
                                          *one.reserved, one.was_first, *contender_.ticket());
  answer_deadline_ = std::min(answer_deadline_, clock_.Now() + AnswerTime());
  connection_.expiry->Run(
      scope_.Wrap([this](const ReservationExpiry::Result& result) { OnExpiry(result); }));
}

/// Most often another contender has deleted it by now: then the queue need not be listed.
void Acquire::ReadBeforeList(Reserving& one) {
  one.due = kNever;
  store_.Get(protocol::ChildPath(request_.ReservationsPath(), one.name), Watch::kNo,
             InState([this, name = one.name](const GetReply& reply) {
               if (IsLost(reply.error)) return;
               if (reply.error == Error::kNoNode) {
                 std::erase_if(LookupOfState()->reserving,
                               [&](const Reserving& other) { return other.name == name; });
                 return;
               }
               place_.listed_again.insert(name);
               ListAgain();
             }));
}

void Acquire::OnExpiry(ReservationExpiry::Result result) {
  using Result = ReservationExpiry::Result;
  const auto expiry = std::move(connection_.expiry);
  if (IsOver()) return;
  if (result == Result::kDeleted) {
    observer_.OnReservationExpired(request_.lock, expiry->reserved());
  }
  if (result == Result::kNotYet) {
    place_.not_ended.insert_or_assign(expiry->name(), expiry->servers_time());
  }
  if (result == Result::kMayNot) {
    place_.refused.insert_or_assign(expiry->name(), clock_.Now());
    if (expiry->lacks_right()) {
      observer_.OnReservationOverdue(
          request_.lock, protocol::ChildPath(request_.ReservationsPath(), expiry->name()),
          expiry->reserved());
    }
  }
  Lookup* const lookup = LookupOfState();
  if (lookup == nullptr) return;  // an event has come first
  if (result == Result::kDeleted || result == Result::kChanged) return ListAgain();
  answer_deadline_ = kNever;
  const auto found = std::find_if(lookup->reserving.begin(), lookup->reserving.end(),
                                  [&](const Reserving& one) { return one.name == expiry->name(); });
  if (found != lookup->reserving.end() && found->reserved) {
    PlanExpiry(*found);
    if (found->due != kNever) found->due = std::max(found->due, clock_.Now() + kLeastPause);
  }
  if (LeavesAtOnce()) LeaveAfterLookup();
}

/// Contenders that were not reservations may be some by now.
void Acquire::LookForReservations() {
  if (!request_.is_for_turnstile()) return ListAgain();
  std::get<Waiting>(state_).list_at = kNever;
  ListPermits();
}

}  // namespace zklock::lock
