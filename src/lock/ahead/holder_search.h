#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/callback_scope.h"
#include "lock/data/outcome.h"
#include "protocol/contender_name.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// Searches the holders of a LOCK for one that holds it on our behalf, with --hold: waiting for
/// such a holder would never end. It starts from a list that the waiter already has, uses the
/// waiter's session, and reads only holders whose names are zklock's. A committed check confirms
/// the holder that it finds. A holder whose data we lack permission to read, or that is deleted in
/// the meantime, counts as not holding the lock on our behalf.
///
/// Passive. It serves one connection only: after a lost reply it never ends, and the next
/// connection needs a new search.
class HolderSearch {
 public:
  /// `queue`: the parent of these `children`. `host`: our host, whose contenders are read first.
  /// `on_progress`: called after each answer; may destroy this.
  HolderSearch(zookeeper::Store& store, std::string queue, const protocol::Children& children,
               const std::string& host, HoldsForUs holds_for_us, std::function<void()> on_progress);

  /// Sends the first requests; the search may be over at once. `awaited`: a child that the caller
  /// reads anyway, and whose reply it passes to Take(); none if empty.
  void Begin(const std::string& awaited);
  void Take(const std::string& child, const zookeeper::GetReply& reply);

  [[nodiscard]] bool IsOver() const { return found_ || (pending_ == 0 && unread_.empty()); }
  [[nodiscard]] const std::optional<HeldForUs>& found() const { return found_; }

 private:
  void ReadMore();
  void OnRead(const protocol::ContenderName& holder, const zookeeper::GetReply& reply);
  void OnChecked(const HeldForUs& held, const zookeeper::Reply& reply);
  void RuleOut();
  void Report();

  zookeeper::Store& store_;
  const std::string queue_;
  const HoldsForUs holds_for_us_;
  const std::function<void()> on_progress_;
  std::vector<protocol::ContenderName> unread_;  ///< in reverse order: the last is read next
  std::optional<protocol::ContenderName> awaited_;
  std::size_t pending_ = 0;  ///< holders that are being read or checked
  std::optional<HeldForUs> found_;
  CallbackScope scope_;
};

}  // namespace zklock::lock
