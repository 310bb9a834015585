#include "process/loop/event_loop.h"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "process/loop/alarm.h"
#include "process/loop/system_error.h"
#include "process/loop/timer.h"

namespace zklock::process {

EventLoop::EventLoop() : timer_(MakeTimer()) {}

void EventLoop::Add(EventSource& source) { sources_.push_back({next_id_++, &source}); }

void EventLoop::Remove(EventSource& source) {
  std::erase_if(sources_, [&](const Registration& entry) { return entry.source == &source; });
}

void EventLoop::RunOnce() {
  std::vector<Entry> entries;
  do entries = Ask();
  while (!Wait(entries));
  Serve(entries);
}

void EventLoop::RunUntil(TimePoint deadline, const std::function<bool()>& is_done) {
  Alarm alarm(deadline);
  Add(alarm);
  while (!is_done() && BootClock::now() < deadline) RunOnce();
  Remove(alarm);
}

void EventLoop::RunReady() {
  std::vector<Entry> entries = Ask();
  Poll(entries, -1, 0);
  Serve(entries);
}

std::vector<EventLoop::Entry> EventLoop::Ask() const {
  std::vector<Entry> entries;
  entries.reserve(sources_.size());
  for (const Registration& entry : sources_) {
    entries.push_back({entry.id, entry.source, entry.source->GetInterest(), 0});
  }
  return entries;
}

void EventLoop::Serve(const std::vector<Entry>& entries) {
  const TimePoint now = BootClock::now();
  for (const Entry& entry : entries) {
    if (entry.revents == 0 && entry.interest.wake > now) continue;
    if (IsRegistered(entry.id)) entry.source->OnReady(entry.revents);
  }
}

bool EventLoop::Wait(std::vector<Entry>& entries) {
  TimePoint wake = kNever;
  bool has_descriptor = false;
  for (const Entry& entry : entries) {
    wake = std::min(wake, entry.interest.wake);
    has_descriptor = has_descriptor || entry.interest.fd >= 0;
  }
  if (!has_descriptor && wake == kNever) {
    throw std::logic_error("the event loop has nothing to wait for");
  }
  SetTimer(timer_.get(), wake);
  return Poll(entries, timer_.get(), -1);
}

// Returns false if nothing is ready after all: the caller must then query the sources again.
bool EventLoop::Poll(std::vector<Entry>& entries, int timer, int milliseconds) {
  std::vector<pollfd> polled;
  polled.reserve(entries.size() + 1);
  for (const Entry& entry : entries) {
    // poll(2) skips negative descriptors.
    polled.push_back({entry.interest.fd, entry.interest.events, 0});
  }
  polled.push_back({timer, POLLIN, 0});
  if (poll(polled.data(), polled.size(), milliseconds) < 0) {
    if (errno == EINTR) return false;
    if (errno == EINVAL) errno = EMFILE;  // more than RLIMIT_NOFILE allows
    ThrowErrno("poll");
  }
  bool ready = polled.back().revents != 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].revents = polled[i].revents;
    ready = ready || polled[i].revents != 0;
  }
  return ready;
}

bool EventLoop::IsRegistered(uint64_t id) const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [&](const Registration& entry) { return entry.id == id; });
}

}  // namespace zklock::process
