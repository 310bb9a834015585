#include "lock/data/lock_children.h"

#include <utility>

#include "protocol/semaphore.h"

namespace zklock::lock {

using zookeeper::GetReply;
using zookeeper::ListReply;

LockChildren::LockChildren(std::string lock, protocol::Children children)
    : lock_(std::move(lock)), children_(std::move(children)) {
  if (protocol::MayBeSemaphore(children_)) next_ = Part::kLimit;
}

LockChildren LockChildren::OfSemaphore(std::string lock) {
  LockChildren children(std::move(lock), {});
  children.is_semaphore_ = true;
  children.next_ = Part::kPermits;
  return children;
}

bool LockChildren::SendNext(const Requests& requests, std::function<void()> done) {
  // A reply may arrive during the call, from a cache, and `done` may destroy this object.
  switch (next_) {
    case Part::kLimit:
      next_ = Part::kPermits;
      requests.get(protocol::PermitsPath(lock_), Keep(&LockChildren::limit_, std::move(done)));
      return true;
    case Part::kPermits:
      next_ = Part::kTurnstile;
      requests.list(protocol::PermitsPath(lock_), Keep(&LockChildren::permits_, std::move(done)));
      return true;
    case Part::kTurnstile:
      next_ = Part::kNone;
      requests.list(protocol::TurnstilePath(lock_),
                    Keep(&LockChildren::turnstile_, std::move(done)));
      return true;
    case Part::kNone:
      break;
  }
  return false;
}

template <typename Reply>
zookeeper::Done<Reply> LockChildren::Keep(Reply LockChildren::*kept, std::function<void()> done) {
  ++pending_;
  return [this, kept, done = std::move(done)](const Reply& reply) {
    --pending_;
    this->*kept = reply;
    if (!IsComplete()) return;
    Decide();
    done();
  };
}

void LockChildren::SendAll(const Requests& requests, const std::function<void()>& done) {
  if (IsComplete()) return done();
  bool is_last = false;
  while (!is_last) {
    is_last = next_ == Part::kTurnstile;
    SendNext(requests, done);
  }
}

void LockChildren::Decide() {
  if (!is_semaphore_ && !protocol::ArePermits(permits_.children, limit_.data)) return;
  semaphore_ = {.permits = std::move(permits_.children),
                .turnstile = std::move(turnstile_.children),
                .permit_limit = protocol::ParsePermitLimit(limit_.data)};
}

}  // namespace zklock::lock
