#pragma once

#include <memory>
#include <utility>

namespace zklock::lock {

/// Keeps callbacks from reaching an object that has gone: a store may answer long after the one who
/// asked was destroyed. A member of the object; what Wrap() makes does nothing once it has gone.
class CallbackScope {
 public:
  template <typename F>
  [[nodiscard]] auto Wrap(F f) const {
    return [alive = std::weak_ptr<const char>(alive_), f = std::move(f)](const auto& reply) {
      if (!alive.expired()) f(reply);
    };
  }

 private:
  std::shared_ptr<const char> alive_ = std::make_shared<char>();
};

}  // namespace zklock::lock
