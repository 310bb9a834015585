#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lock/callback_scope.h"
#include "lock/outcome.h"
#include "protocol/contender_name.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Looks, for one who has to wait, whether LOCK is held for that one by --hold, so that the wait
/// would never end. It begins with a list that is there already, goes over the session of the
/// waiter, and reads those alone that hold and are zklock's by their names. What it finds has been
/// proven by a committed check. Who may not be read, or vanishes meanwhile, does not hold for us.
///
/// Passive. It lasts as long as a connection: a lost reply leaves it without an end, and a new one
/// is to be made over the next.
class HolderSearch {
 public:
  /// `queue`: the znode that `children` are of. `host`: ours, whose contenders are read first.
  /// `told`: called after each answer, and may destroy this.
  HolderSearch(zookeeper::Store& store, std::string queue, const protocol::Children& children,
               const std::string& host, HoldsForUs holds_for_us, std::function<void()> told);

  /// Asks; it may be over at once. `awaited`: the child that is being read anyway, and whose answer
  /// will be given to Take(); none if empty.
  void Begin(const std::string& awaited);
  void Take(const std::string& child, const zookeeper::GetReply& reply);

  [[nodiscard]] bool IsOver() const { return found_ || (to_come_ == 0 && left_.empty()); }
  [[nodiscard]] const std::optional<HeldForUs>& found() const { return found_; }

 private:
  void AskOn();
  void OnRead(const protocol::ContenderName& holder, const zookeeper::GetReply& reply);
  void OnChecked(const HeldForUs& held, const zookeeper::Reply& reply);
  void RuleOut();
  void Tell();

  zookeeper::Store& store_;
  const std::string queue_;
  const HoldsForUs holds_for_us_;
  const std::function<void()> told_;
  std::vector<protocol::ContenderName> left_;  ///< not asked yet, the next one last
  std::optional<protocol::ContenderName> awaited_;
  std::size_t to_come_ = 0;  ///< those of whom it is not known yet
  std::optional<HeldForUs> found_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
