#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/contender_name.h"

namespace zklock::protocol {

/// The lock is ours by the list; a waiter still proves its session before it believes so.
struct Hold {
  friend bool operator==(const Hold&, const Hold&) = default;
};
/// Wait until this one child of the LOCK has gone, then decide again.
struct WaitFor {
  std::string predecessor;
  friend bool operator==(const WaitFor&, const WaitFor&) = default;
};
/// Our own name is not in the list: we are no contender, and never "first".
struct OwnMissing {
  friend bool operator==(const OwnMissing&, const OwnMissing&) = default;
};
/// Our number cannot be trusted to order the queue: the LOCK is used up.
struct NumbersUsedUp {
  friend bool operator==(const NumbersUsedUp&, const NumbersUsedUp&) = default;
};

using Decision = std::variant<Hold, WaitFor, OwnMissing, NumbersUsedUp>;

/// The whole of the recipe: (children, own name) to (holds, whom to watch). Order is by the
/// server's number, never by the name; a later contender never counts. For a reader the nearest
/// lower one that excludes is the predecessor, for everyone else the nearest lower one.
/// Follows Curator's StandardLockInternalsDriver and ZooKeeper's shared-lock recipe.
[[nodiscard]] Decision Decide(const std::vector<std::string>& children, std::string_view own_name);

/// The children that count, in queue order.
[[nodiscard]] std::vector<ContenderName> Queue(const std::vector<std::string>& children);

/// True when somebody in `children` conflicts with a contender of `mode` that would join at the
/// tail: for `try`, which then creates nothing.
[[nodiscard]] bool IsBusy(const std::vector<std::string>& children, Mode mode);

/// A contender of another program that cannot see ours, so that both could hold (protocol: who
/// cannot see us is refused). `child` is its name; `remedy` what makes the two meet.
struct Stranger {
  std::string child;
  std::string reason;  ///< e.g. "a kazoo program's contender, which does not see zklock's"
  std::string remedy;  ///< e.g. "use another LOCK, or kazoo's extra_lock_patterns=['lock-']"
  friend bool operator==(const Stranger&, const Stranger&) = default;
};
/// The first such contender for `mode`, other than `own_name`. A child named `lock` is not judged
/// here: whether it is one depends on its being ephemeral.
[[nodiscard]] std::optional<Stranger> FindStranger(const std::vector<std::string>& children,
                                                   std::string_view own_name, Mode mode);

/// Who each contender in the queue waits for: index into `queue`, or none for those that hold.
/// By the same rule as Decide.
[[nodiscard]] std::vector<std::optional<std::size_t>> WaitsFor(
    const std::vector<ContenderName>& queue);

}  // namespace zklock::protocol
