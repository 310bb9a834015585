#include "lock/acquire/znode_wait_part.h"

#include <string_view>

#include "protocol/contender_name.h"

namespace zklock::lock {
namespace {

using zookeeper::Change;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

constexpr std::string_view kZnode = protocol::kSimpleName;

}  // namespace

void ZnodeWaitPart::LookIfFree() {
  attempt_.Enter(*this);
  attempt_.LookAtQueue([this](const QueueList& list) {
    if (!list.children.Has(kZnode)) return attempt_.next.Join();
    readable_ = true;
    data_.clear();
    Read();
    SearchHolders(list.children);
  });
}

void ZnodeWaitPart::WaitFor(const std::string& predecessor, const QueueList& list,
                            bool /*is_rival*/) {
  attempt_.unserved_since.reset();
  proof_.Schedule();
  attempt_.publish(
      WaitingEvent{attempt_.request.lock.display_path(), predecessor, {.contenders = 1}});
  attempt_.Enter(*this);
  is_waiting_ = true;
  if (!proof_.HasBegunToWatch() && !attempt_.request.try_only) proof_.WatchOwn();
  readable_ ? Read() : WatchChildren();
  SearchHolders(list.children);
}

void ZnodeWaitPart::Leave() {
  is_waiting_ = false;
  search_.reset();
}

void ZnodeWaitPart::Read() {
  attempt_.ExpectAnswer();
  ++attempt_.unanswered;
  // Exists() would leave a watch on a znode that is gone; Get() does not.
  attempt_.store.Get(attempt_.ChildPath(kZnode),
                     attempt_.request.try_only ? Watch::kNo : Watch::kYes,
                     attempt_.InState([this](const GetReply& reply) {
                       --attempt_.unanswered;
                       OnRead(reply);
                     }));
}

void ZnodeWaitPart::OnRead(const GetReply& reply) {
  switch (reply.error) {
    case Error::kNone:
      if (reply.stat.ephemeral_owner == 0) {
        return attempt_.Finish(Unusable{Unusable::Why::kNobodysContender, std::string(kZnode)});
      }
      // It is from our own create, whose reply was lost: waiting for it would never end.
      if (reply.stat.ephemeral_owner == attempt_.store.session_id()) {
        return attempt_.next.AdoptOrJoin({std::string(kZnode)}, reply);
      }
      // Anyone may have written a megabyte there.
      data_ = reply.data.substr(0, kMostContenderData);
      break;
    case Error::kNoNode:
      return attempt_.next.Join();
    case Error::kNoAuth:
      readable_ = false;
      data_.clear();
      break;
    default:
      return attempt_.OnUnexpected("read a contender of", reply.error);
  }
  if (search_) search_->Take(std::string(kZnode), reply);
  if (attempt_.request.try_only) return LeaveIfSearched();
  attempt_.OnAnswer();
  if (!readable_) WatchChildren();
}

/// Watches the list, because we lack permission to read the znode.
void ZnodeWaitPart::WatchChildren() {
  const std::string path = attempt_.request.QueuePath();
  attempt_.ExpectAnswer();
  ++attempt_.unanswered;
  attempt_.store.List(path, Watch::kYes, attempt_.InState([this](const ListReply& reply) {
    --attempt_.unanswered;
    if (reply.error == Error::kNoNode) return attempt_.next.Join();
    if (reply.error != Error::kNone) return attempt_.OnUnexpected("list", reply.error);
    attempt_.OnAnswer();
    if (!reply.children.Has(kZnode)) attempt_.next.Join();
  }));
}

void ZnodeWaitPart::SearchHolders(const protocol::Children& children) {
  const AcquireRequest& request = attempt_.request;
  if (searched_ || !request.holds_for_us) return;
  search_.emplace(attempt_.store, request.QueuePath(), children, request.host, request.holds_for_us,
                  [this] {
                    if (search_->IsOver()) {
                      searched_ = true;
                      if (const auto held = search_->found()) return attempt_.Finish(*held);
                      search_.reset();
                    }
                    if (attempt_.request.try_only) LeaveIfSearched();
                  });
  search_->Begin(readable_ ? std::string(kZnode) : "");
  if (!search_->IsOver()) return;
  searched_ = true;
  search_.reset();
}

/// For a `try`: gives up once the search has shown that the znode's owner does not hold the lock on
/// our behalf.
void ZnodeWaitPart::LeaveIfSearched() {
  if (attempt_.IsOver()) return;
  if (!search_) return FinishBlocked(Busy::Why::kTaken);
  attempt_.answer_deadline = attempt_.clock.Now() + AnswerTime(attempt_.store.lease());
}

void ZnodeWaitPart::FinishBlocked(Busy::Why why) {
  attempt_.Finish(Busy{why, std::string(kZnode), data_, std::nullopt, true});
}

void ZnodeWaitPart::CheckPredecessor() {
  if (!is_waiting_) return;
  attempt_.ExpectAnswer();
  ++attempt_.unanswered;
  attempt_.store.Exists(attempt_.ChildPath(kZnode), Watch::kNo,
                        attempt_.InState([this](const zookeeper::Reply& reply) {
                          --attempt_.unanswered;
                          if (IsLost(reply.error)) return;
                          attempt_.OnAnswer();
                          if (reply.error == Error::kNoNode) attempt_.next.Join();
                        }));
}

void ZnodeWaitPart::OnWatch(const std::string& path, Change change) {
  const bool is_there = path == attempt_.ChildPath(kZnode) && change != Change::kDeleted;
  is_there ? Read() : attempt_.next.Join();
}

TimePoint ZnodeWaitPart::end() const {
  return is_waiting_ && !attempt_.AwaitsAnswer() ? attempt_.wait_deadline : kNever;
}

}  // namespace zklock::lock
