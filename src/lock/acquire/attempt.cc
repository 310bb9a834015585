#include "lock/acquire/attempt.h"

#include <algorithm>
#include <chrono>

#include "lock/acquire/lock_creation.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"

namespace zklock::lock {

using namespace std::chrono_literals;
using zookeeper::Error;

Duration AnswerTime(const protocol::Lease& lease) {
  return std::max<Duration>(2s, lease.timeout() / 3);
}

AcquireOutcome UnexpectedEnd(Error error, const std::string& operation, const LockName& lock,
                             const char* right, const std::string& path) {
  return std::visit([](auto failure) -> AcquireOutcome { return failure; },
                    FailureOf(error, operation, lock, right, path));
}

Attempt::Attempt(zookeeper::Store& its_store, const Clock& its_clock, AcquireRequest its_request,
                 std::function<std::string()> make_uuid, AcquireEventSink its_publish,
                 AcquireSteps& its_next)
    : store(its_store),
      clock(its_clock),
      request(std::move(its_request)),
      publish(std::move(its_publish)),
      next(its_next),
      contender(store, clock, request, std::move(make_uuid)),
      compatibility(store, request, publish),
      reservations(store, request),
      permit_number(store, request),
      unserved_since(clock.Now()) {}

void Attempt::Enter(AcquirePart& part) {
  Stop();
  at_work_ = &part;
  answer_deadline = clock.Now() + AnswerTime(store.lease());
}

void Attempt::Stop() {
  if (at_work_ != nullptr) at_work_->Leave();
  at_work_ = nullptr;
  state_scope_ = CallbackScope();
  answer_deadline = kNever;
  unanswered = 0;
}

void Attempt::ExpectAnswer() {
  answer_deadline = std::min(answer_deadline, clock.Now() + AnswerTime(store.lease()));
}

void Attempt::OnAnswer() {
  answer_deadline = AwaitsAnswer() ? clock.Now() + AnswerTime(store.lease()) : kNever;
}

void Attempt::Finish(AcquireOutcome its_outcome) {
  Stop();
  outcome = std::move(its_outcome);
}

void Attempt::FinishQuota() {
  Stop();
  ExpectAnswer();
  FindQuota(store, request, InState([this](const QuotaExceeded& quota) { Finish(quota); }));
}

void Attempt::OnUnexpected(const std::string& operation, Error error, const char* right,
                           const std::string& path) {
  if (IsLost(error)) return;
  if (error == Error::kQuotaExceeded) return FinishQuota();
  Finish(UnexpectedEnd(error, operation, request.lock, right,
                       path.empty() ? request.QueuePath() : path));
}

bool Attempt::ExistsOrFinish(const zookeeper::Reply& reply) {
  if (reply.error == Error::kNoNode) {
    FinishBusy(Busy::Why::kRemoved);
  } else if (reply.error != Error::kNone) {
    OnUnexpected("check our own contender in", reply.error, "READ", contender.ticket()->path);
  }
  return reply.error == Error::kNone;
}

bool Attempt::FinishIfReserved(const ReservationSearch::Found& found) {
  rivals = found.pooled;
  const bool is_usable = found.IsInForce() && !HasEnded(*found.reserved);
  may_be_reserved = found.reserved && !is_usable;
  if (!is_usable) return false;
  // Leave the queue now: we may still have to wait for other LOCKs.
  contender.Delete();
  if (found.reserved->mode == request.mode) {
    const auto path = [this](std::string_view name) {
      return protocol::ChildPath(request.ReservationsPath(), name);
    };
    ReservedLock lock{request.lock, path(found.name), *found.reserved};
    for (const std::string& name : found.more) lock.more.push_back(path(name));
    Finish(lock);
  } else {
    Finish(Unusable{.why = Unusable::Why::kReservedInOtherMode,
                    .child = found.name,
                    .reserved_mode = found.reserved->mode});
  }
  return true;
}

bool Attempt::FinishIfSuperseded(const protocol::Contenders& contenders) {
  if (!request.supersede) return false;
  FirstPlace& first = *request.first_place;
  const std::int64_t token = contender.ticket()->token;
  if (first.token == 0) {
    if (contenders.Find(contender.name()) == nullptr) return false;
    first = {token, protocol::SupersedingUpTo(contenders, contender.name())};
  }
  const bool newer_has_run = first.token < newest_released && newest_released < token;
  if (!newer_has_run && !protocol::IsSuperseded(contenders, first.older)) return false;
  FinishBusy(Busy::Why::kSuperseded);
  return true;
}

bool Attempt::AcceptOrFinish(const Compatibility& found) {
  if (const auto* unusable = std::get_if<Unusable>(&found)) Finish(*unusable);
  if (const auto* failed = std::get_if<CheckFailed>(&found)) {
    OnUnexpected(failed->operation, failed->error, "READ", failed->path);
  }
  return std::holds_alternative<Compatible>(found);
}

void Attempt::IfCompatible(const protocol::Children& children,
                           std::function<void(const QueueList&)> then) {
  const protocol::Contenders contenders(children);
  compatibility.Check(
      {children, contenders}, contender.name(),
      InState([this, then = std::move(then)](const Compatibility& found, const QueueList& list) {
        if (AcceptOrFinish(found)) then(list);
      }));
}

void Attempt::LookAtQueue(std::function<void(const QueueList&)> then) {
  using zookeeper::ListReply;
  // A script may have just released the lock, and this server may not know that yet: sync first.
  store.Sync(request.QueuePath(), [](const zookeeper::Reply&) {});
  store.List(request.QueuePath(), zookeeper::Watch::kNo,
             InState([this, then = std::move(then)](const ListReply& reply) {
               if (reply.error == Error::kNoNode) return next.Join();
               if (reply.error != Error::kNone) return OnUnexpected("list", reply.error);
               IfCompatible(reply.children, then);
             }));
}

bool Attempt::HasEnded(const Reserved& reserved) const {
  const auto end = reserved.end();
  return end && contender.ticket() &&
         LatestServerTimeAt(clock.Now(), reserved, *contender.ticket()) >= *end;
}

std::optional<protocol::ReleaseRecord> Attempt::TakeLockData(const zookeeper::GetReply& reply) {
  if (request.permits) {
    permit_number.Take(reply);
    if (reply.error != Error::kNone && reply.error != Error::kNoNode) {  // the list reports kNoNode
      OnUnexpected("read", reply.error, "READ", request.QueuePath());
    }
  }
  std::optional<protocol::LockData> data;
  if (reply.error == Error::kNone) data = protocol::ParseLockData(reply.data);
  contender.SetLockVersion(data ? std::optional(reply.stat.version) : std::nullopt);
  // A reservation's record proves nothing: whoever deleted the reservation relied on its data, and
  // it may never have held the lock.
  if (!data || !data->last_release || data->last_release->is_reservation) return std::nullopt;
  const auto released = protocol::ViewContenderName(data->last_release->contender);
  newest_released = released && released->supersedes() ? data->last_release->token : 0;
  return data->last_release;
}

std::string Attempt::ChildPath(std::string_view child) const {
  return protocol::ChildPath(request.QueuePath(), child);
}

}  // namespace zklock::lock
