#include "lock/acquire/lookahead.h"

#include <algorithm>
#include <utility>

#include "protocol/lock_path.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using protocol::ContenderNameView;
using protocol::Contenders;
using std::chrono::milliseconds;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::Watch;

// Reservations are at the head of a queue. If many contenders wait to reserve, only the first
// ones are read; the next list shows more.
constexpr std::size_t kMostRead = 16;
// After this time, the queue is listed again to find contenders that have been converted.
constexpr Duration kListPause = 10min;
// The servers' clock may be set forward while we wait: the first waiter checks at least this often.
constexpr milliseconds kLongestPause = 1h;
// It may also stand still, or be set back a little: wait at least this long before the next check.
constexpr Duration kLeastPause = 50ms;
// The contenders that wait for an overdue reservation try to delete it in turn, until one succeeds.
// Each turn leaves enough time for a list and a delete.
constexpr Duration kDelayOfEach = 1s;
// The pause before a refused delete is tried again: the ACL may have been changed.
constexpr Duration kRefusalPause = 10min;

std::optional<Reserved> ReservationIn(const std::string& name, const GetReply& reply) {
  if (reply.error != Error::kNone) return std::nullopt;
  return FindReservation(name, reply.data, reply.stat);
}

/// Returns the contenders before `own`, or all of them if it is null, that have `-reserve` in their
/// names, in queue order.
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

/// Returns how many zklock names are between `after` and `own_name`, or before `own_name` if
/// `after` is null.
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

/// Truncates `found` to the kMostRead contenders that are read; returns true if it was longer.
bool KeepFirst(std::vector<ContenderNameView>& found) {
  if (found.size() <= kMostRead) return false;
  found.erase(found.begin() + kMostRead, found.end());
  return true;
}

}  // namespace

void Lookahead::Begin(For purpose, std::string predecessor, bool leaves) {
  state_.emplace(purpose, std::move(predecessor), leaves);
}

void Lookahead::End() { state_.reset(); }

void Lookahead::OnPlaceLost() {
  searched_ = false;
  listed_again_.clear();
  refused_.clear();
  not_ended_.clear();
}

void Lookahead::Take() {
  if (--state_->unread == 0) PlanExpiries();
}

bool Lookahead::IsOver() const {
  if (state_->search || state_->unread > 0 || expiry_) return false;
  // For a contender that is leaving, each reservation is due at once or not at all.
  const Reserving* const next = NextExpiry();
  return next == nullptr || next->due == kNever;
}

bool Lookahead::MayDeleteOneBy(TimePoint moment) const {
  const auto& reserving = state_->reserving;
  return expiry_ || state_->unread > 0 ||
         std::any_of(reserving.begin(), reserving.end(),
                     [&](const auto& one) { return one.due <= moment; });
}

// ---- a holder on our behalf ------------------------------------------------------------------

void Lookahead::SearchHolders(const protocol::Children& children, const std::string& awaited) {
  const AcquireRequest& request = attempt_.request;
  if (!state_ || searched_ || !request.holds_for_us) return;
  std::optional<HolderSearch>& search = state_->search;
  search.emplace(attempt_.store, request.QueuePath(), children, request.host, request.holds_for_us,
                 [this] { OnSearchProgress(); });
  search->Begin(awaited);
  if (!search->IsOver()) return;
  searched_ = true;
  search.reset();
}

void Lookahead::OnSearchProgress() {
  std::optional<HolderSearch>& search = state_->search;
  if (search->IsOver()) {
    searched_ = true;
    if (const auto held = search->found()) return attempt_.Finish(*held);
    search.reset();
  }
  on_progress_();
}

// ---- reservations ----------------------------------------------------------------------------

void Lookahead::JoinIfReservationEnds(const Contenders& contenders, std::string_view blocker) {
  // If the blocker is not a reservation, the lock remains taken, no matter which reservations have
  // ended.
  const ContenderNameView* const first = contenders.Find(blocker);
  if (first == nullptr || !first->reserves()) return;
  std::vector<ContenderNameView> reserving = ReservingBefore(nullptr, contenders);
  KeepFirst(reserving);
  for (const ContenderNameView& one : reserving) {
    if (one.full == blocker) continue;
    attempt_.store.Get(
        attempt_.ChildPath(one.full), Watch::kNo,
        attempt_.InState([this, name = std::string(one.full)](const GetReply& reply) {
          const auto reserved = ReservationIn(name, reply);
          if (reserved && reserved->MayEnd()) attempt_.next.Join();
        }));
  }
}

void Lookahead::FindReserving(const Contenders& contenders, bool reads_predecessor) {
  const std::string_view own_name = attempt_.contender.name();
  const ContenderNameView* const own = contenders.Find(own_name);
  std::vector<ContenderNameView> found = ReservingBefore(is_ordered() ? own : nullptr, contenders);
  if (is_ordered()) {
    state_->has_more = KeepFirst(found);
  } else {
    DropGone(contenders);
  }
  for (const ContenderNameView& one : found) {
    if (own != nullptr && one.run() == own->run()) continue;
    if (const Reserving* const known = Find(one.full)) {
      if (known->reserved) continue;
    } else {
      Reserving& added = state_->reserving.emplace_back(
          Reserving{.name = std::string(one.full), .run = std::string(one.run())});
      if (is_ordered()) {
        added.between = CountZklocks(contenders, &one, own_name);
        added.was_first = contenders.First()->full == one.full;
      }
    }
    if (!reads_predecessor || one.full != state_->predecessor) {
      ReadReserving(std::string(one.full));
    } else if (!std::exchange(state_->reads_predecessor, true)) {
      Expect();
    }
  }
  if (state_->unread == 0) PlanExpiries();
}

void Lookahead::RecountPermits(const Contenders& permits) {
  DropGone(permits);
  if (state_->unread == 0) PlanExpiries();
}

void Lookahead::DropGone(const Contenders& contenders) {
  std::erase_if(state_->reserving,
                [&](const Reserving& one) { return contenders.Find(one.name) == nullptr; });
}

void Lookahead::ReadReserving(const std::string& name) {
  Expect();
  attempt_.store.Get(ReservationPath(name), Watch::kNo,
                     attempt_.InState([this, name](const GetReply& reply) {
                       if (IsLost(reply.error)) return;
                       --state_->unread;
                       TakeReserving(name, ReservationIn(name, reply));
                       on_progress_();
                     }));
}

void Lookahead::TakePredecessor(const GetReply& reply, const std::optional<Reserved>& reserved) {
  if (reserved && attempt_.contender.ticket()) TakeReserving(state_->predecessor, reserved);
  if (std::exchange(state_->reads_predecessor, false)) Take();
  if (state_->search) state_->search->Take(state_->predecessor, reply);
}

void Lookahead::TakeReserving(const std::string& name, const std::optional<Reserved>& reserved) {
  if (Reserving* const found = Find(name)) found->reserved = reserved;
  if (state_->unread == 0) PlanExpiries();
}

void Lookahead::CountZklocksBefore(const Contenders& contenders) {
  state_->zklocks_before = CountZklocks(contenders, nullptr, attempt_.contender.name());
}

/// Finds the permits that belong to one reservation: those created in one transaction. Their names
/// prove nothing, because they can be forged.
void Lookahead::GroupPermits() {
  auto& reserving = state_->reserving;
  for (Reserving& one : reserving) {
    one.more.clear();
    one.is_more = false;
  }
  for (Reserving& one : reserving) {
    if (!one.reserved || one.is_more) continue;
    std::size_t count = 0;
    for (Reserving& other : reserving) {
      // A contender that was not a reservation yet may have been converted after it was read.
      const bool may_belong = other.run == one.run && !other.reserved;
      const bool belongs =
          other.reserved && other.reserved->created_zxid == one.reserved->created_zxid;
      if (may_belong || belongs) ++count;
      if (!belongs || &other == &one) continue;
      other.is_more = true;
      one.more.push_back(other.name);
    }
    one.reserved->is_incomplete = count < one.reserved->take;
  }
}

/// Decides when to act on each reservation. Called once all candidates have been read.
void Lookahead::PlanExpiries() {
  if (!is_ordered()) GroupPermits();
  const bool waits = state_->purpose == For::kWait;
  bool may_be_converted = state_->has_more || attempt_.request.is_for_turnstile();
  std::size_t reservations_between = 0;
  for (auto one = state_->reserving.rbegin(); one != state_->reserving.rend(); ++one) {
    // The watch on the predecessor shows its conversion.
    if (!one->reserved && one->name != state_->predecessor) may_be_converted = true;
    if (one->is_more) one->due = kNever;
    if (!one->reserved || one->is_more) continue;
    const bool in_turnstile = attempt_.request.is_for_turnstile() && waits;
    one->position = in_turnstile ? state_->zklocks_before : one->between;
    if (is_ordered()) one->position -= reservations_between++;
    PlanExpiry(*one);
  }
  if (may_be_converted && waits && state_->list_at == kNever) {
    state_->list_at = attempt_.clock.Now() + kListPause;
  }
}

/// Returns the latest time that the servers' clock may show now.
milliseconds Lookahead::LatestServerTime(const Reserving& one) const {
  const TimePoint now = attempt_.clock.Now();
  const auto asked = not_ended_.find(one.name);
  if (asked == not_ended_.end()) {
    return LatestServerTimeAt(now, *one.reserved, *attempt_.contender.ticket());
  }
  return asked->second.shown + std::chrono::ceil<milliseconds>(now - asked->second.asked);
}

void Lookahead::PlanExpiry(Reserving& one) {
  one.due = kNever;
  const bool is_running = expiry_ && expiry_->name() == one.name;
  const auto end = one.reserved->end();
  if (!end || is_running) return;
  const TimePoint now = attempt_.clock.Now();
  const Ticket& own = *attempt_.contender.ticket();
  const auto refused = refused_.find(one.name);
  const bool had_ended = HadEnded(*one.reserved, own);
  if (state_->leaves || attempt_.request.reserve) {
    if (had_ended && refused == refused_.end()) {
      one.due = now;
      one.lists_first = false;
      return;
    }
    if (state_->leaves) return;  // without waiting for the end
  }
  const milliseconds since_created = own.LatestServerTimeAt(now) - own.created;
  milliseconds left = std::max(*end - LatestServerTime(one), -since_created);
  if (one.position == 0) left = std::min(left, kLongestPause);
  const Duration delay = kDelayOfEach * static_cast<Duration::rep>(one.position);
  one.due = After(now, Duration(left) + delay);
  if (refused != refused_.end()) {
    one.due = std::max(one.due, After(refused->second, kRefusalPause + delay));
  }
  one.lists_first = one.position > 0 || refused != refused_.end();
  if (one.due > now) {
    listed_again_.erase(one.name);  // it was given more time
  } else if (listed_again_.count(one.name) != 0) {
    one.lists_first = false;
  }
}

/// Returns the reservation that is due first; null if there is none, or if one is being deleted.
const Lookahead::Reserving* Lookahead::NextExpiry() const {
  if (!state_ || state_->reserving.empty() || expiry_) return nullptr;
  const auto& reserving = state_->reserving;
  return &*std::min_element(reserving.begin(), reserving.end(),
                            [](const auto& a, const auto& b) { return a.due < b.due; });
}

TimePoint Lookahead::expiry_due() const {
  const Reserving* const next = NextExpiry();
  return next == nullptr ? kNever : next->due;
}

void Lookahead::OnExpiryDue() {
  Reserving& one = *Find(NextExpiry()->name);
  one.due = kNever;
  if (one.lists_first) return ReadBeforeList(one);
  listed_again_.erase(one.name);
  expiry_ = std::make_unique<ReservationExpiry>(attempt_.store, attempt_.request.ReservationsPath(),
                                                one.name, one.more, *one.reserved, one.was_first,
                                                *attempt_.contender.ticket());
  attempt_.ExpectAnswer();
  expiry_->Run(scope_.Wrap([this](const ReservationExpiry::Result& result) { OnExpiry(result); }));
}

/// Reads the reservation before listing the queue: usually another contender has already deleted
/// it, and the list is not needed.
void Lookahead::ReadBeforeList(Reserving& one) {
  attempt_.ExpectAnswer();
  ++attempt_.unanswered;
  attempt_.store.Get(ReservationPath(one.name), Watch::kNo,
                     attempt_.InState([this, name = one.name](const GetReply& reply) {
                       --attempt_.unanswered;
                       if (IsLost(reply.error)) return;
                       if (reply.error == Error::kNoNode) {
                         attempt_.OnAnswer();
                         std::erase_if(state_->reserving,
                                       [&](const Reserving& other) { return other.name == name; });
                         return;
                       }
                       listed_again_.insert(name);
                       attempt_.next.ListAgain();
                     }));
}

void Lookahead::OnExpiry(ReservationExpiry::Result result) {
  using Result = ReservationExpiry::Result;
  const auto expiry = std::move(expiry_);
  if (attempt_.IsOver()) return;
  const LockName& lock = attempt_.request.lock;
  if (result == Result::kDeleted) {
    attempt_.publish(ReservationEndedEvent{lock.display_path(), expiry->reserved()});
  }
  if (result == Result::kNotYet) {
    not_ended_.insert_or_assign(expiry->name(), expiry->servers_time());
  }
  if (result == Result::kMayNot) {
    refused_.insert_or_assign(expiry->name(), attempt_.clock.Now());
    if (expiry->lacks_right()) {
      attempt_.publish(
          ReservationOverdueEvent{lock, ReservationPath(expiry->name()), expiry->reserved()});
    }
  }
  if (!state_) return;  // another event has already ended the state
  if (result == Result::kDeleted || result == Result::kChanged) return attempt_.next.ListAgain();
  attempt_.OnAnswer();
  Reserving* const found = Find(expiry->name());
  if (found != nullptr && found->reserved) {
    PlanExpiry(*found);
    if (found->due != kNever) {
      found->due = std::max(found->due, attempt_.clock.Now() + kLeastPause);
    }
  }
  on_progress_();
}

Lookahead::Reserving* Lookahead::Find(std::string_view name) {
  const auto found = std::find_if(state_->reserving.begin(), state_->reserving.end(),
                                  [&](const Reserving& one) { return one.name == name; });
  return found == state_->reserving.end() ? nullptr : &*found;
}

/// Returns true for a queue; in a semaphore, any permit may be released first.
bool Lookahead::is_ordered() const {
  return !attempt_.request.permits && !attempt_.request.is_for_turnstile();
}

std::string Lookahead::ReservationPath(std::string_view name) const {
  return protocol::ChildPath(attempt_.request.ReservationsPath(), name);
}

}  // namespace zklock::lock
