#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "protocol/queue.h"
#include "protocol/release_record.h"

namespace zklock::protocol {

/// A waiter's memory of the contenders before its own: enough to tell, without another list, what
/// the deletion of its predecessor means.
///
/// Once a list includes us, the contenders ahead of us can only leave. There is one exception: a
/// Curator writer that becomes a reader creates a reader with its own number while it holds the
/// lock. So only the deletion of a zklock contender can prove anything. But a zklock contender that
/// becomes a reservation is deleted and created again with the same name, in one transaction: its
/// deletion proves nothing.
class QueueAhead {
 public:
  /// Small enough that a host with this many waiters can run two more processes for each.
  static constexpr std::size_t kNear = 16;

  /// Nothing is known.
  QueueAhead() = default;
  /// `contenders` includes `own_name`, which, according to Decide(), waits for `predecessor`.
  QueueAhead(const Contenders& contenders, std::string_view own_name, std::string_view predecessor);

  /// Takes into account a record that was read from LOCK's data. If it names the last non-reader
  /// before the predecessor, that contender has released the lock, and those before it are gone.
  /// Any other record is older, or from a previous life of LOCK, and proves nothing.
  void Take(const ReleaseRecord& record);

  /// Returns whether it is our turn once the predecessor is deleted: the predecessor is the first
  /// contender, and nothing takes its place.
  [[nodiscard]] bool IsSettledByDeletion() const;
  /// Returns whether all contenders ahead of us hold the lock.
  [[nodiscard]] bool IsNextInLine() const;
  /// Returns whether at most kNear contenders were ahead of us in the list. Each may release the
  /// lock within milliseconds, and the waiter learns only of the last of these releases.
  [[nodiscard]] bool IsNear() const { return known_ && contenders_before_ <= kNear; }
  /// Returns whether more than kNear contenders were ahead of us in the list.
  [[nodiscard]] bool IsFar() const { return known_ && contenders_before_ > kNear; }

 private:
  bool known_ = false;
  std::size_t contenders_before_ = 0;  ///< contenders ahead of us when the list was read
  bool leaves_for_good_ = false;       ///< nothing takes a deleted predecessor's place
  bool predecessor_reads_ = false;
  bool waiters_between_ = false;  ///< there were waiters between the predecessor and us
  bool readers_before_ = false;   ///< there were readers between last_excluding_ and the
                                  ///< predecessor
  /// The last non-reader before the predecessor; empty if there is none, or if it is known to be
  /// gone.
  std::string last_excluding_;
};

}  // namespace zklock::protocol
