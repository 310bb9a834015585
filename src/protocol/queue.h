#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/children.h"
#include "protocol/contender_name.h"

namespace zklock::protocol {

/// Those of a znode's children that count, in the order of the list, each name read once and none
/// copied: the names outlive it.
class Contenders {
 public:
  template <std::ranges::input_range Names>
  requires std::convertible_to<std::ranges::range_reference_t<const Names>, std::string_view>
  Contenders(const Names& names) {
    contenders_.reserve(names.size());
    for (const std::string_view name : names) Add(name);
  }
  Contenders(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) Add(name);
  }

  [[nodiscard]] std::size_t size() const { return contenders_.size(); }
  [[nodiscard]] bool empty() const { return contenders_.empty(); }
  [[nodiscard]] auto begin() const { return contenders_.begin(); }
  [[nodiscard]] auto end() const { return contenders_.end(); }
  /// Null where there is none.
  [[nodiscard]] const ContenderNameView* Find(std::string_view name) const;
  /// The first in the queue; null where there is none.
  [[nodiscard]] const ContenderNameView* First() const;

 private:
  void Add(std::string_view name) {
    if (const auto contender = ViewContenderName(name)) contenders_.push_back(*contender);
  }

  std::vector<ContenderNameView> contenders_;
};

/// The list gives us the lock. A waiter proves its session before it holds.
struct MayHold {
  friend bool operator==(const MayHold&, const MayHold&) = default;
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

using Decision = std::variant<MayHold, WaitFor, OwnMissing, NumbersUsedUp>;

/// The whole of the recipe: (contenders, own name) to (holds, whom to watch). Order is by the
/// server's number, never by the name; a later contender never counts. For a reader the nearest
/// lower one that excludes is the predecessor, for everyone else the nearest lower one.
/// Follows Curator's StandardLockInternalsDriver and ZooKeeper's shared-lock recipe.
[[nodiscard]] Decision Decide(const Contenders& contenders, std::string_view own_name);

/// The rule of a semaphore, for who has passed the turnstile: hold while no more than `limit`
/// permits are there, one's own among them. Else wait for the first of the others, and any of them
/// will do. `limit`: one at the least.
[[nodiscard]] Decision DecidePermit(const Contenders& permits, std::string_view own_name,
                                    std::size_t limit);

/// In queue order.
[[nodiscard]] std::vector<ContenderName> Queue(const Contenders& contenders);

/// Those of `children` that hold, in queue order: the first contender, or the readers before the
/// first that excludes. The one znode of Dialect::kSimple is the first of them where there is one,
/// though its name does not show whether a session owns it.
[[nodiscard]] std::vector<ContenderName> HoldersIn(const Children& children);

/// The first in the queue that a contender of `mode` at its tail would have to wait for; null where
/// there is none.
[[nodiscard]] const ContenderNameView* FirstInTheWay(const Contenders& contenders, Mode mode);

/// True when one of them conflicts with a contender of `mode` that would join at the
/// tail: for `try`, which then creates nothing.
[[nodiscard]] bool IsBusy(const Contenders& contenders, Mode mode);

/// Where one contender stands.
struct Rank {
  std::size_t ahead = 0;    ///< contenders before it
  std::size_t waiting = 0;  ///< of those, how many wait themselves
  /// Of those that wait, how many supersede: they leave for a newer one that does so, too.
  std::size_t superseding = 0;
};
/// Of `own_name`, which is one of them.
[[nodiscard]] Rank RankOf(const Contenders& contenders, std::string_view own_name);

/// Whether a newer contender supersedes `own_name` while it waits.
[[nodiscard]] bool IsSuperseded(const Contenders& contenders, std::string_view own_name);

/// A contender that cannot see ours, so that both could hold (protocol: who cannot see us is
/// refused), or one of ours in another dialect.
struct IncompatibleContender {
  enum class Kind {
    kKazoo,             ///< a kazoo program's contender
    kKazooPermit,       ///< a permit of kazoo's Semaphore
    kOneZnode,          ///< the lock of a program that uses one znode
    kCuratorMutex,      ///< to which readers and writers are no contenders
    kCuratorReadWrite,  ///< to which exclusive contenders are none
    kCRecipe,           ///< to which readers and writers are none
    kZklockKazoo,       ///< a zklock's, of the kazoo dialect
    kZklockCurator,     ///< a zklock's, of the curator dialect
    kCuratorNames,      ///< of a program that does not look for kazoo's names
    kQueue,             ///< of a queue, where ours is a lock of one znode
  };
  std::string child;  ///< its name
  Kind kind = Kind::kKazoo;
  friend bool operator==(const IncompatibleContender&, const IncompatibleContender&) = default;
};
/// The first such contender, other than `own_name`, for one of `mode` in `dialect`, by its name
/// alone.
[[nodiscard]] std::optional<IncompatibleContender> FindIncompatible(const Contenders& contenders,
                                                                    std::string_view own_name,
                                                                    Mode mode, Dialect dialect);
/// The children that are incompatible contenders in `dialect` if a session owns them, which their
/// names do not show: `lock`, the lock of who uses one znode, and 32 hex digits, a permit of
/// kazoo's Semaphore.
[[nodiscard]] std::vector<IncompatibleContender> FindUnnumbered(const Children& children,
                                                                Dialect dialect);

/// Who each contender waits for, told one after the other in queue order. By the same rule as
/// Decide.
class Predecessors {
 public:
  /// How many came before the one that `contender`, the next in the queue, waits for; none: it
  /// holds.
  [[nodiscard]] std::optional<std::size_t> Next(const ContenderName& contender);

 private:
  std::size_t count_ = 0;
  std::optional<std::size_t> last_that_excludes_;
};

/// The same of a whole queue: index into `queue`, or none for those that hold.
[[nodiscard]] std::vector<std::optional<std::size_t>> WaitsFor(
    const std::vector<ContenderName>& queue);

}  // namespace zklock::protocol
