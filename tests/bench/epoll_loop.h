#pragma once

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::bench {

/// zklock's own loop queries all its sources before each wait, which is right for five of them but
/// not for ten thousand. This loop queries a source only after it, or one linked to it, was served.
class EpollLoop {
 public:
  EpollLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  void Add(EventSource& source) {
    entries_.try_emplace(&source);
    Touch(source);
  }
  /// Queries each of two sources whenever the other is served: callbacks of one change what the
  /// other waits for.
  void AddBeside(EventSource& source, EventSource& other) {
    Add(source);
    entries_[&source].company = &other;
    entries_[&other].company = &source;
  }
  void Remove(EventSource& source) {
    Entry& entry = entries_[&source];
    if (entry.fd >= 0) ForgetFd(source, entry);
    if (entry.wake != kNever) wakes_.erase({entry.wake, &source});
    if (entry.company != nullptr) entries_[entry.company].company = nullptr;
    touched_.erase(&source);
    entries_.erase(&source);
  }
  /// Call this when a source no longer waits for what it waited for when it was last queried.
  void Touch(EventSource& source) { touched_.insert(&source); }

  template <typename Predicate>
  void RunUntil(Predicate is_over) {
    while (!is_over()) RunOnce();
  }

 private:
  struct Entry {
    int fd = -1;
    short events = 0;
    TimePoint wake = kNever;
    EventSource* company = nullptr;
  };

  void RunOnce() {
    Ask();
    const TimePoint now = clock_.Now();
    const TimePoint wake = wakes_.empty() ? kNever : wakes_.begin()->first;
    int left = -1;
    if (wake != kNever) {
      const auto span = std::chrono::ceil<std::chrono::milliseconds>(wake - now);
      left = static_cast<int>(std::clamp<std::int64_t>(span.count(), 0, 60'000));
    } else if (by_fd_.empty()) {
      throw std::logic_error("nothing is waited for");
    }
    std::array<epoll_event, 64> ready;
    const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), left);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = ready[static_cast<std::size_t>(i)];
      const auto found = by_fd_.find(event.data.fd);
      if (found != by_fd_.end()) Serve(*found->second, static_cast<short>(event.events));
    }
    while (!wakes_.empty() && wakes_.begin()->first <= clock_.Now()) {
      EventSource& source = *wakes_.begin()->second;
      wakes_.erase(wakes_.begin());
      entries_[&source].wake = kNever;
      Serve(source, 0);
    }
  }

  void Serve(EventSource& source, short revents) {
    Touch(source);
    if (EventSource* company = entries_[&source].company) Touch(*company);
    source.OnReady(revents);
  }

  void Ask() {
    const std::set<EventSource*> touched = std::exchange(touched_, {});
    for (EventSource* source : touched) {
      const auto found = entries_.find(source);
      if (found != entries_.end()) Note(*source, found->second, source->GetInterest());
    }
  }

  void Note(EventSource& source, Entry& entry, const EventSource::Interest& interest) {
    if (entry.fd >= 0 && entry.fd != interest.fd) ForgetFd(source, entry);
    if (interest.fd >= 0 && (entry.fd != interest.fd || entry.events != interest.events)) {
      epoll_event event{};
      event.events = static_cast<std::uint32_t>(interest.events);  // the same bits as poll
      event.data.fd = interest.fd;
      // The descriptor may have been closed and its number reused without notice.
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, interest.fd, &event) != 0 && errno == ENOENT) {
        epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, interest.fd, &event);
      }
      entry.fd = interest.fd;
      entry.events = interest.events;
      by_fd_[entry.fd] = &source;
    }
    if (entry.wake != interest.wake) {
      if (entry.wake != kNever) wakes_.erase({entry.wake, &source});
      entry.wake = interest.wake;
      if (entry.wake != kNever) wakes_.insert({entry.wake, &source});
    }
  }

  void ForgetFd(EventSource& source, Entry& entry) {
    // It may have been closed, and its number reused.
    const auto known = by_fd_.find(entry.fd);
    if (known != by_fd_.end() && known->second == &source) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry.fd, nullptr);
      by_fd_.erase(known);
    }
    entry.fd = -1;
  }

  const SystemClock clock_;
  UniqueFd epoll_;
  std::unordered_map<EventSource*, Entry> entries_;
  std::unordered_map<int, EventSource*> by_fd_;
  std::set<std::pair<TimePoint, EventSource*>> wakes_;
  std::set<EventSource*> touched_;
};

}  // namespace zklock::bench
