#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "protocol/queue.h"
#include "protocol/release_record.h"

namespace zklock::protocol {

/// What a waiter remembers of the contenders before its own: enough to tell, without another list,
/// what the deletion of its predecessor means.
///
/// The contenders before ours in a list that has ours too can only leave. There is one exception: a
/// writer of Curator that becomes a reader creates, while it holds, a reader with its own number.
/// So only the deletion of a zklock contender can settle anything. And a contender that becomes a
/// reservation is deleted and created again with the same name, in one transaction: its deletion
/// settles nothing.
class QueueAhead {
 public:
  /// Few enough for a host that all of these wait on to run two more processes for each.
  static constexpr std::size_t kNear = 16;

  /// Nothing is known.
  QueueAhead() = default;
  /// `contenders` has `own_name`, and by Decide it waits for `predecessor`.
  QueueAhead(const Contenders& contenders, std::string_view own_name, std::string_view predecessor);

  /// A record that was read from LOCK's data. If it names the last excluding contender before the
  /// predecessor, that one held the lock, and those before it are gone. Any other record is older,
  /// or of another life of LOCK, and shows nothing.
  void Take(const ReleaseRecord& record);

  /// The predecessor is the first contender: when it is deleted, it is our turn.
  [[nodiscard]] bool IsSettledByDeletion() const;
  /// All contenders before ours hold the lock.
  [[nodiscard]] bool IsNextInLine() const;
  /// At most kNear contenders were before ours in the list. Each may release within milliseconds,
  /// and of all but the last of them the waiter learns nothing.
  [[nodiscard]] bool IsNear() const { return known_ && contenders_before_ <= kNear; }
  /// More than kNear contenders were before ours in the list.
  [[nodiscard]] bool IsFar() const { return known_ && contenders_before_ > kNear; }

 private:
  bool known_ = false;
  std::size_t contenders_before_ = 0;  ///< ours, when the list was read
  bool leaves_for_good_ = false;       ///< the predecessor, when it is deleted
  bool predecessor_reads_ = false;
  bool waiters_between_ = false;  ///< between the predecessor and ours, when the list was read
  bool readers_before_ = false;   ///< between last_excluding_ and the predecessor, likewise
  /// The last contender before the predecessor that is not a reader; empty if there is none.
  std::string last_excluding_;
};

}  // namespace zklock::protocol
