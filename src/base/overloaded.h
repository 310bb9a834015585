#pragma once

namespace zklock {

/// Combines several function objects into one, for std::visit.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

// GCC deduces this itself, clang only since version 17: clang-tidy needs it.
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace zklock
