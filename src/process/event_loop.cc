#include "process/event_loop.h"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "process/system_error.h"
#include "process/timer.h"

namespace zklock::process {

EventLoop::EventLoop() : timer_(MakeTimer()) {}

void EventLoop::Add(EventSource& source) { sources_.push_back({next_id_++, &source}); }

void EventLoop::Remove(EventSource& source) {
  std::erase_if(sources_, [&](const Registration& entry) { return entry.source == &source; });
}

void EventLoop::RunOnce() {
  std::vector<Entry> waiting;
  do waiting = Ask();
  while (!Wait(waiting));
  Serve(waiting);
}

void EventLoop::RunReady() {
  std::vector<Entry> waiting = Ask();
  Poll(waiting, -1, 0);
  Serve(waiting);
}

std::vector<EventLoop::Entry> EventLoop::Ask() const {
  std::vector<Entry> waiting;
  waiting.reserve(sources_.size());
  for (const Registration& entry : sources_) {
    waiting.push_back({entry.id, entry.source, entry.source->GetInterest(), 0});
  }
  return waiting;
}

void EventLoop::Serve(const std::vector<Entry>& waiting) {
  const TimePoint now = BootClock::now();
  for (const Entry& entry : waiting) {
    if (entry.revents == 0 && entry.interest.wake > now) continue;
    if (IsRegistered(entry.id)) entry.source->OnReady(entry.revents);
  }
}

bool EventLoop::Wait(std::vector<Entry>& waiting) {
  TimePoint wake = kNever;
  bool waits_for_a_descriptor = false;
  for (const Entry& entry : waiting) {
    wake = std::min(wake, entry.interest.wake);
    waits_for_a_descriptor = waits_for_a_descriptor || entry.interest.fd >= 0;
  }
  if (!waits_for_a_descriptor && wake == kNever) {
    throw std::logic_error("the event loop has nothing to wait for");
  }
  SetTimer(timer_.get(), wake);
  return Poll(waiting, timer_.get(), -1);
}

// False when nothing is ready after all: the sources are asked again.
bool EventLoop::Poll(std::vector<Entry>& waiting, int timer, int milliseconds) {
  std::vector<pollfd> polled;
  polled.reserve(waiting.size() + 1);
  for (const Entry& entry : waiting) {
    // poll(2) skips negative descriptors.
    polled.push_back({entry.interest.fd, entry.interest.events, 0});
  }
  polled.push_back({timer, POLLIN, 0});
  if (poll(polled.data(), polled.size(), milliseconds) < 0) {
    if (errno == EINTR) return false;
    if (errno == EINVAL) errno = EMFILE;  // more than RLIMIT_NOFILE lets there be
    ThrowErrno("poll");
  }
  bool ready = polled.back().revents != 0;
  for (size_t i = 0; i < waiting.size(); ++i) {
    waiting[i].revents = polled[i].revents;
    ready = ready || polled[i].revents != 0;
  }
  return ready;
}

bool EventLoop::IsRegistered(uint64_t id) const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [&](const Registration& entry) { return entry.id == id; });
}

}  // namespace zklock::process
