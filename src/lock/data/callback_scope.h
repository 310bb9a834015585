#pragma once

#include <memory>
#include <utility>

namespace zklock::lock {

/// Keeps callbacks from reaching an object that no longer exists: a store may answer long after the
/// object that sent the request was destroyed. Make it a member of that object: a callback that
/// Wrap() returns does nothing once the scope is destroyed or replaced.
class CallbackScope {
 public:
  template <typename F>
  [[nodiscard]] auto Wrap(F f) const {
    return [alive = std::weak_ptr<const char>(alive_), f = std::move(f)](const auto&... arguments) {
      if (!alive.expired()) f(arguments...);
    };
  }

 private:
  std::shared_ptr<const char> alive_ = std::make_shared<char>();
};

}  // namespace zklock::lock
