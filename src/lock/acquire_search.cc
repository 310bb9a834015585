#include "lock/acquire.h"

// Whether what is waited for is held for ourselves: asked beside the wait, which goes on meanwhile.

namespace zklock::lock {

void Acquire::SearchHolders(const protocol::Children& children, const std::string& awaited) {
  if (searched_ || !request_.holds_for_us) return;
  search_.emplace(store_, request_.QueuePath(), children, request_.host, request_.holds_for_us,
                  [this] { OnSearchTold(); });
  search_->Begin(awaited);
  if (!search_->IsOver()) return;
  searched_ = true;
  search_.reset();
}

void Acquire::OnSearchTold() {
  if (search_->IsOver()) {
    searched_ = true;
    if (const auto held = search_->found()) return Finish(*held);
    search_.reset();
  }
  if (request_.try_only || leaves_full_) LeaveTaken();
}

void Acquire::LeaveTaken() {
  if (state_ == State::kDone) return;
  if (search_) {
    // Each answer is one of a server that answers.
    answer_deadline_ = clock_.Now() + AnswerTime();
    return;
  }
  if (leaves_full_) return Finish(Busy{Busy::Why::kQueueFull, "", ""});
  Finish(Busy{Busy::Why::kTaken, predecessor_, predecessor_data_});
}

void Acquire::LeaveFull(const protocol::Children& children) {
  BeginStep(State::kDeciding);
  leaves_full_ = true;
  SearchHolders(children, "");
  LeaveTaken();
}

}  // namespace zklock::lock
