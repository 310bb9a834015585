#include "lock/acquire/compatibility_check.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/semaphore.h"

namespace zklock::lock {
namespace {

using protocol::Children;
using protocol::Contenders;
using protocol::IncompatibleContender;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Watch;

bool IsCompatible(const Compatibility& found) { return std::holds_alternative<Compatible>(found); }

}  // namespace

CompatibilityCheck::CompatibilityCheck(zookeeper::Store& store, const AcquireRequest& request,
                                       const AcquireEventSink& publish)
    : store_(store), request_(request), publish_(publish) {}

void CompatibilityCheck::Restart() {
  accepted_ = permits_checked_ = false;
  lock_use_ = Compatible{};
  lock_unnumbered_.clear();
  read_.clear();
  scope_ = CallbackScope();
}

void CompatibilityCheck::ReadLock() {
  if (request_.below.empty() || accepted_) return;
  // A contender that uses LOCK without permits looks for permits once it has joined. We look for
  // such contenders with a request sent along with each create, both in the turnstile and among the
  // permits. If a contender of each kind joins at the same time, at least one sees the other.
  store_.List(request_.lock.path, Watch::kNo,
              scope_.Wrap([this](const ListReply& reply) { TakeLock(reply); }));
}

void CompatibilityCheck::TakeLock(const ListReply& reply) {
  if (IsLost(reply.error)) return;
  lock_use_ = Compatible{};
  lock_unnumbered_ = protocol::FindUnnumbered(reply.children, request_.dialect);
  if (reply.error == Error::kNoNode) return;
  if (reply.error != Error::kNone) {
    lock_use_ = CheckFailed{"list", request_.lock.path, reply.error};
    return;
  }
  const Contenders contenders(reply.children);
  const bool in_use =
      std::any_of(contenders.begin(), contenders.end(), [this](const auto& contender) {
        return std::none_of(
            lock_unnumbered_.begin(), lock_unnumbered_.end(),
            [&](const IncompatibleContender& one) { return one.child == contender.full; });
      });
  if (in_use) lock_use_ = Unusable{Unusable::Why::kHasNoPermits};
}

void CompatibilityCheck::CheckLock(std::function<void(const Compatibility& found)> done) {
  store_.List(request_.lock.path, Watch::kNo,
              scope_.Wrap([this, done = std::move(done)](const ListReply& reply) {
                if (IsLost(reply.error)) return;
                TakeLock(reply);
                if (!IsCompatible(lock_use_)) return done(lock_use_);
                ReadOwners(Unread(lock_unnumbered_), done);
              }));
}

void CompatibilityCheck::Check(const QueueList& list, std::string_view own_name, Done done) {
  if (!IsCompatible(lock_use_)) return done(lock_use_, list);
  std::vector<IncompatibleContender> unread =
      Unread(request_.below.empty() ? protocol::FindUnnumbered(list.children, request_.dialect)
                                    : lock_unnumbered_);
  if (unread.empty()) return CheckNames(list, own_name, done);
  // The list may be long: it is copied only here, where it is needed again.
  ReadOwners(std::move(unread), [this, children = list.children, own_name = std::string(own_name),
                                 done = std::move(done)](const Compatibility& found) {
    const Contenders contenders(children);
    if (!IsCompatible(found)) return done(found, {children, contenders});
    CheckNames({children, contenders}, own_name, done);
  });
}

void CompatibilityCheck::ReadOwners(std::vector<IncompatibleContender> children, Answer answer) {
  if (children.empty()) return answer(Compatible{});
  // Empty once it has been called.
  const auto pending = std::make_shared<Answer>(std::move(answer));
  for (const IncompatibleContender& child : children) {
    // Replies arrive in order: the last one completes the check.
    const bool is_last = &child == &children.back();
    store_.Get(protocol::ChildPath(request_.lock.path, child.child), Watch::kNo,
               scope_.Wrap([this, child, is_last, pending](const GetReply& reply) {
                 if (IsLost(reply.error) || !*pending) return;
                 const Compatibility found = JudgeOwner(child, reply);
                 if (is_last || !IsCompatible(found)) std::exchange(*pending, nullptr)(found);
               }));
  }
}

Compatibility CompatibilityCheck::JudgeOwner(const IncompatibleContender& child,
                                             const GetReply& reply) {
  if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
    return CheckFailed{"read a znode in", protocol::ChildPath(request_.lock.path, child.child),
                       reply.error};
  }
  read_.push_back(child.child);
  const bool is_held = reply.error == Error::kNone && reply.stat.ephemeral_owner != 0;
  return is_held ? Judge(child) : Compatible{};
}

void CompatibilityCheck::CheckNames(const QueueList& list, std::string_view own_name,
                                    const Done& done) {
  // A contender among the permits was already checked in the turnstile.
  if (!request_.permits) {
    const auto incompatible =
        protocol::FindIncompatible(list.contenders, own_name, request_.mode, request_.dialect);
    if (incompatible) {
      const Compatibility found = Judge(*incompatible);
      if (!IsCompatible(found)) return done(found, list);
    }
    if (request_.below.empty() && !permits_checked_ && list.children.Has(protocol::kPermitsChild)) {
      return CheckPermits([this, children = list.children, has_joined = !own_name.empty(),
                           done](const Compatibility& found) {
        if (IsCompatible(found)) accepted_ = has_joined;
        done(found, {children, Contenders(children)});
      });
    }
  }
  accepted_ = !own_name.empty();
  done(Compatible{}, list);
}

void CompatibilityCheck::CheckPermits(Answer answer) {
  const std::string path = protocol::PermitsPath(request_.lock.path);
  store_.List(path, Watch::kNo,
              scope_.Wrap([this, path, answer = std::move(answer)](const ListReply& reply) {
                if (IsLost(reply.error)) return;
                if (reply.error != Error::kNone && reply.error != Error::kNoNode) {
                  return answer(CheckFailed{"list", path, reply.error});
                }
                if (!Contenders(reply.children).empty())
                  return answer(Unusable{Unusable::Why::kHasPermits});
                permits_checked_ = true;
                answer(Compatible{});
              }));
}

Compatibility CompatibilityCheck::Judge(const IncompatibleContender& incompatible) {
  if (!accepted_) {
    return Unusable{.why = Unusable::Why::kIncompatible, .incompatible = incompatible};
  }
  if (!std::exchange(reported_, true)) {
    publish_(IncompatibleArrivedEvent{request_.lock.display_path(), incompatible});
  }
  return Compatible{};
}

std::vector<IncompatibleContender> CompatibilityCheck::Unread(
    std::vector<IncompatibleContender> children) const {
  std::erase_if(children, [this](const IncompatibleContender& one) {
    return std::find(read_.begin(), read_.end(), one.child) != read_.end();
  });
  return children;
}

}  // namespace zklock::lock
