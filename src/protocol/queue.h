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

/// Returns whether `a` is before `b` in the queue. The queue is ordered by number, then by name:
/// numbers can be equal after a lock downgrade in Curator (5.5 and later).
[[nodiscard]] bool IsBefore(const ContenderNameView& a, const ContenderNameView& b);

/// The children of a znode that count in its queue, in the order of the list. Each name is parsed
/// once and not copied: the names must outlive this.
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
  /// Returns null if there is none.
  [[nodiscard]] const ContenderNameView* Find(std::string_view name) const;
  /// Returns the first contender in queue order; null if there is none.
  [[nodiscard]] const ContenderNameView* First() const;

 private:
  void Add(std::string_view name) {
    if (const auto contender = ViewContenderName(name)) contenders_.push_back(*contender);
  }

  std::vector<ContenderNameView> contenders_;
};

/// According to the list, no contender that we must wait for is ahead of us. A waiter still proves
/// its session before it holds the lock.
struct MayHold {
  friend bool operator==(const MayHold&, const MayHold&) = default;
};
/// Wait until this one child of the LOCK is gone, then decide again.
struct WaitFor {
  std::string predecessor;
  friend bool operator==(const WaitFor&, const WaitFor&) = default;
};
/// Our own name is not in the list: we are not a contender, and certainly not the first.
struct OwnMissing {
  friend bool operator==(const OwnMissing&, const OwnMissing&) = default;
};
/// Our number is negative or too high to order the queue: the LOCK's numbers are used up.
struct NumbersUsedUp {
  friend bool operator==(const NumbersUsedUp&, const NumbersUsedUp&) = default;
};

using Decision = std::variant<MayHold, WaitFor, OwnMissing, NumbersUsedUp>;

/// Decides whether `own_name` may hold the lock and, if not, which contender to watch. Only the
/// server's numbers determine the order, not the rest of the names, and a later contender never
/// counts. A reader's predecessor is the nearest earlier contender that is not a reader; for the
/// other modes, it is the nearest earlier one. Follows Curator's StandardLockInternalsDriver and
/// ZooKeeper's shared-lock recipe.
[[nodiscard]] Decision Decide(const Contenders& contenders, std::string_view own_name);

/// Returns the first permit of each run in `permits`, in list order: a run may take several
/// permits, which are created and deleted together (--take).
[[nodiscard]] Contenders RunsOf(const Contenders& permits);
/// Returns the permits that belong to the same run as `one`, in queue order; only `one` if it is
/// not a permit of zklock.
[[nodiscard]] std::vector<std::string> PermitsOfRun(const Contenders& permits,
                                                    std::string_view one);

/// Decides by the rule for a semaphore: a contender that has created its permits holds the lock if
/// there are no more than `limit` permits, including its own. Otherwise it waits for the first of
/// the other permits, although the release of any of them may be enough. `own_name` is its own
/// first permit. `limit` is at least one.
[[nodiscard]] Decision DecidePermit(const Contenders& permits, std::string_view own_name,
                                    std::size_t limit);

/// Returns all contenders, in queue order.
[[nodiscard]] std::vector<ContenderName> Queue(const Contenders& contenders);

/// Returns the holders among `children`, in queue order: the first contender, or the readers before
/// the first contender of another mode. If there is a znode of Dialect::kSimple, it is the first
/// holder, though its name does not show whether a session owns it.
[[nodiscard]] std::vector<ContenderName> HoldersIn(const Children& children);
/// Returns how many of `contenders` hold the lock. A child named `lock` never counts: it may be a
/// LOCK of its own.
[[nodiscard]] std::size_t CountHolders(const Contenders& contenders);

/// Returns the first contender that a contender of `mode` at the tail of the queue would have to
/// wait for; null if there is none. If there is one, `try` creates nothing.
[[nodiscard]] const ContenderNameView* FirstConflict(const Contenders& contenders, Mode mode);

/// The position of one contender.
struct Rank {
  std::size_t ahead = 0;    ///< contenders before it
  std::size_t waiting = 0;  ///< of those, how many wait
  /// How many of the waiting ones were created with --supersede: a newer such contender supersedes
  /// them.
  std::size_t superseding = 0;
};
/// Returns the position of `own_name`, which is one of `contenders`; if empty, that of a new
/// contender.
[[nodiscard]] Rank RankOf(const Contenders& contenders, std::string_view own_name);

/// Returns the contenders with --supersede up to and including `own_name`: they do not supersede a
/// run that joins the queue as `own_name`. Each is given as the part of its name that stays the
/// same when the create is repeated.
[[nodiscard]] std::vector<std::string> SupersedingUpTo(const Contenders& contenders,
                                                       std::string_view own_name);
/// Returns whether a newer contender supersedes a waiting run. `older`: what SupersedingUpTo()
/// returned when the run first joined this queue.
[[nodiscard]] bool IsSuperseded(const Contenders& contenders,
                                const std::vector<std::string>& older);

/// A contender that cannot see ours, so that both could hold the lock; or the contender of a zklock
/// with another dialect. zklock refuses to run alongside it (zklock-protocol(7)).
struct IncompatibleContender {
  enum class Kind {
    kKazoo,             ///< a contender of a kazoo program
    kKazooPermit,       ///< a permit of kazoo's Semaphore
    kOneZnode,          ///< the lock of a program that uses a single znode
    kCuratorMutex,      ///< it ignores readers and writers
    kCuratorReadWrite,  ///< it ignores exclusive contenders
    kCRecipe,           ///< it ignores readers and writers
    kZklockKazoo,       ///< a zklock's contender in the kazoo dialect
    kZklockCurator,     ///< a zklock's contender in the curator dialect
    kCuratorNames,      ///< a contender of a program that ignores kazoo's names
    kQueue,             ///< a queued contender; ours is a single-znode lock
  };
  std::string child;  ///< the contender's name
  Kind kind = Kind::kKazoo;
  friend bool operator==(const IncompatibleContender&, const IncompatibleContender&) = default;
};
/// Returns the first contender that, by its name alone, is incompatible with `own_name`, which has
/// this `mode` and `dialect`.
[[nodiscard]] std::optional<IncompatibleContender> FindIncompatible(const Contenders& contenders,
                                                                    std::string_view own_name,
                                                                    Mode mode, Dialect dialect);
/// Returns the first contender that, by its name alone, is incompatible with one of zklock's own
/// contenders in the same queue: it has arrived later.
[[nodiscard]] std::optional<IncompatibleContender> FindIncompatible(const Contenders& contenders);
/// Returns the children that are incompatible with `dialect` if a session owns them: `lock`, the
/// znode of Dialect::kSimple, and names of 32 hex digits, the permits of kazoo's Semaphore. The
/// names do not show whether a session owns them.
[[nodiscard]] std::vector<IncompatibleContender> FindUnnumbered(const Children& children,
                                                                Dialect dialect);

/// Finds the predecessors in a whole queue, by the same rule as Decide(). Call Next() once for each
/// contender, in queue order.
class Predecessors {
 public:
  /// Returns the index of the contender that `contender`, the next one in the queue, waits for;
  /// none if it holds the lock.
  [[nodiscard]] std::optional<std::size_t> Next(const ContenderName& contender);

 private:
  std::size_t count_ = 0;
  std::optional<std::size_t> last_[2];  // the last non-reader, and the last reader
};

}  // namespace zklock::protocol
