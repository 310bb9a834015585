#pragma once

#include <initializer_list>
#include <vector>

#include "base/event_source.h"
#include "process/loop/event_loop.h"
#include "zookeeper/session.h"

namespace zklock::commands {

/// While this object exists, the loop serves `sources`, of which the hold must be the first, before
/// the session: after each wake-up, the lease is checked before anything from the servers is read.
class LeaseFirst {
 public:
  /// All arguments must outlive it. `session` must be in the loop, and stays there.
  LeaseFirst(process::EventLoop& loop, zookeeper::Session& session,
             std::initializer_list<EventSource*> sources)
      : loop_(loop), sources_(sources) {
    loop_.Remove(session);
    for (EventSource* source : sources_) loop_.Add(*source);
    loop_.Add(session);
  }
  ~LeaseFirst() {
    for (EventSource* source : sources_) loop_.Remove(*source);
  }
  LeaseFirst(const LeaseFirst&) = delete;
  LeaseFirst& operator=(const LeaseFirst&) = delete;

 private:
  process::EventLoop& loop_;
  const std::vector<EventSource*> sources_;
};

}  // namespace zklock::commands
