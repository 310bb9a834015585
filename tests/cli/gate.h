#pragma once

#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/wait.h"

namespace zklock::test {

/// A proxy that holds back the first reply to a given request, and all later replies, until opened.
class Gate {
 public:
  explicit Gate(std::string request) {
    proxy_.EditReplies(
        [this, request = std::move(request)](const std::string& asked, std::string reply) {
          if (!has_come_ && asked.starts_with(request)) {
            has_come_ = true;
            reached_.set_value();
            opened_.wait();
            if (loses_) return std::optional<std::string>();
          } else if (has_come_) {
            ++passed_since_;
          }
          return std::optional(std::move(reply));
        });
  }
  ~Gate() { Open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  [[nodiscard]] ChildOptions Before(ChildOptions options) const {
    options.also_environment.push_back("ZKLOCK_SERVERS=" + proxy_.address());
    return options;
  }
  void WaitUntilReached() {
    if (reached_.get_future().wait_for(kPatience) != std::future_status::ready) {
      throw std::runtime_error("no such request");
    }
  }
  /// Waits until a later request has been answered.
  void WaitUntilPassed() const {
    WaitUntil([&] { return passed_since_ > 0; }, "a later request");
  }
  void Open() {
    if (!std::exchange(is_open_, true)) open_.set_value();
  }
  /// Stops all traffic.
  void Freeze() { proxy_.Freeze(); }
  /// Drops the reply and the connection instead of passing the reply on.
  void Break() {
    loses_ = true;
    Open();
    proxy_.Cut();
  }

 private:
  bool has_come_ = false;
  std::atomic<bool> loses_{false};
  std::atomic<int> passed_since_{0};
  bool is_open_ = false;
  std::promise<void> reached_;
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
  Proxy proxy_{TestServers()};  // its thread uses all members above
};

}  // namespace zklock::test
