#pragma once

#include <set>

#include "process/children_file.h"
#include "process/process_tree.h"

namespace zklock::process {

/// Sends the stop signal to the descendants of this process, once to each, round after round.
class TreeStopper {
 public:
  TreeStopper(int stop_signal, const ChildrenFile& children)
      : stop_signal_(stop_signal), children_(children) {}

  /// Signals those that have not got it yet, and continues those that are stopped. Where no
  /// descriptors are left, this process's children only.
  void Round();

 private:
  void StopChildren();

  int stop_signal_;
  const ChildrenFile& children_;
  std::set<ProcessId> stopped_;  // have got the signal
};

}  // namespace zklock::process
