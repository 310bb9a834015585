#pragma once

namespace zklock {

/// One function object of several, for std::visit.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

// GCC deduces this itself, clang only since version 17: clang-tidy needs it.
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace zklock
