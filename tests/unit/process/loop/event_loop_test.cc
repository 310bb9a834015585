#include "process/loop/event_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "process/loop/alarm.h"
#include "process/loop/system_error.h"

namespace zklock::process {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// A source with a given interest, which counts calls.
struct Source final : EventSource {
  explicit Source(Interest what) : interest(what) {}
  Interest GetInterest() override { return interest; }
  void OnReady(short revents) override {
    calls.push_back(revents);
    if (when_ready) when_ready();
  }

  Interest interest;
  std::vector<short> calls;
  std::function<void()> when_ready;
};

struct Pipe {
  Pipe() {
    int ends[2];
    Check(pipe2(ends, O_CLOEXEC), "pipe2");
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  void Fill() const { Check(::write(write.get(), "x", 1), "write"); }
  UniqueFd read;
  UniqueFd write;
};

EventSource::Interest Readable(const Pipe& pipe) {
  return {.fd = pipe.read.get(), .events = POLLIN};
}
EventSource::Interest At(TimePoint moment) { return {.wake = moment}; }

TEST_CASE("an alarm wakes the loop once") {
  const TimePoint start = BootClock::now();
  Alarm early(start);
  Alarm late(start + milliseconds(20));
  EventLoop loop;
  loop.Add(early);
  loop.Add(late);
  loop.RunOnce();
  loop.RunOnce();
  CHECK(BootClock::now() >= start + milliseconds(20));
}

TEST_CASE("a source is served when its descriptor is ready, and others are not") {
  const Pipe ready;
  const Pipe silent;
  ready.Fill();
  Source first(Readable(ready));
  Source second(Readable(silent));
  EventLoop loop;
  loop.Add(second);
  loop.Add(first);
  loop.RunOnce();
  CHECK(first.calls == std::vector<short>{POLLIN});
  CHECK(second.calls.empty());
}

TEST_CASE("a hangup is reported to the source") {
  Pipe pipe;
  pipe.write.Reset();
  Source source(Readable(pipe));
  EventLoop loop;
  loop.Add(source);
  loop.RunOnce();
  CHECK(source.calls == std::vector<short>{POLLHUP});
}

TEST_CASE("a source is served at its moment, not before") {
  const TimePoint moment = BootClock::now() + milliseconds(30);
  Source source(At(moment));
  Source later(At(BootClock::now() + hours(1)));
  EventLoop loop;
  loop.Add(later);
  loop.Add(source);
  loop.RunOnce();
  CHECK(BootClock::now() >= moment);
  CHECK(source.calls == std::vector<short>{0});
  CHECK(later.calls.empty());
}

TEST_CASE("a moment in the past is served at once") {
  Source passed(At(BootClock::now() - hours(1)));
  Source before_the_epoch(At(TimePoint(hours(-1))));
  EventLoop loop;
  loop.Add(passed);
  loop.Add(before_the_epoch);
  loop.RunOnce();
  CHECK(passed.calls.size() == 1);
  CHECK(before_the_epoch.calls.size() == 1);
}

TEST_CASE("a ready descriptor does not wait for a distant moment") {
  const Pipe pipe;
  pipe.Fill();
  Source source({pipe.read.get(), POLLIN, BootClock::now() + hours(10'000)});
  EventLoop loop;
  loop.Add(source);
  loop.RunOnce();
  CHECK(source.calls == std::vector<short>{POLLIN});
}

TEST_CASE("a moment of an earlier wait does not end a later one") {
  const Pipe pipe;
  Source source({pipe.read.get(), POLLIN, BootClock::now() - hours(1)});
  EventLoop loop;
  loop.Add(source);
  loop.RunOnce();
  source.interest.wake = kNever;
  pipe.Fill();
  loop.RunOnce();
  CHECK(source.calls == std::vector<short>{0, POLLIN});
}

TEST_CASE("all ready sources are served in the order they were added") {
  const Pipe pipe;
  pipe.Fill();
  std::vector<int> order;
  Source first(Readable(pipe));
  Source second(At(BootClock::now()));
  Source third(Readable(pipe));
  first.when_ready = [&] { order.push_back(1); };
  second.when_ready = [&] { order.push_back(2); };
  third.when_ready = [&] { order.push_back(3); };
  EventLoop loop;
  loop.Add(first);
  loop.Add(second);
  loop.Add(third);
  loop.RunOnce();
  CHECK(order == std::vector<int>{1, 2, 3});
}

TEST_CASE("a source that another one removes and destroys is no longer served") {
  const Pipe pipe;
  pipe.Fill();
  EventLoop loop;
  Source first(Readable(pipe));
  auto second = std::make_unique<Source>(Readable(pipe));
  first.when_ready = [&] {
    loop.Remove(*second);
    second.reset();
  };
  loop.Add(first);
  loop.Add(*second);
  loop.RunOnce();
  CHECK(first.calls.size() == 1);
}

TEST_CASE("a source may remove and destroy itself") {
  const Pipe pipe;
  pipe.Fill();
  EventLoop loop;
  auto source = std::make_unique<Source>(Readable(pipe));
  Source last(Readable(pipe));
  source->when_ready = [&] { loop.Remove(*source); };
  loop.Add(*source);
  loop.Add(last);
  loop.RunOnce();
  source.reset();
  loop.RunOnce();
  CHECK(last.calls.size() == 2);
}

TEST_CASE("a source added while others are served waits for the next round") {
  const Pipe pipe;
  pipe.Fill();
  EventLoop loop;
  Source first(Readable(pipe));
  Source added(Readable(pipe));
  first.when_ready = [&] {
    if (first.calls.size() == 1) loop.Add(added);
  };
  loop.Add(first);
  loop.RunOnce();
  CHECK(added.calls.empty());
  loop.RunOnce();
  CHECK(added.calls.size() == 1);
}

TEST_CASE("a source at a removed one's address does not get the events of the removed one") {
  const Pipe pipe;
  pipe.Fill();
  EventLoop loop;
  Source first(Readable(pipe));
  Source second(Readable(pipe));
  first.when_ready = [&] {
    loop.Remove(second);
    loop.Add(second);  // the same address, another registration
  };
  loop.Add(first);
  loop.Add(second);
  loop.RunOnce();
  CHECK(second.calls.empty());
}

TEST_CASE("sources that are ready are served without a wait") {
  const Pipe filled;
  const Pipe silent;
  filled.Fill();
  Source ready(Readable(filled));
  Source not_ready(Readable(silent));
  Source due(At(BootClock::now() - hours(1)));
  Source later(At(BootClock::now() + hours(1)));
  EventLoop loop;
  loop.RunReady();
  for (Source* source : {&ready, &not_ready, &due, &later}) loop.Add(*source);
  loop.RunReady();
  CHECK(ready.calls == std::vector<short>{POLLIN});
  CHECK(not_ready.calls.empty());
  CHECK(due.calls == std::vector<short>{0});
  CHECK(later.calls.empty());
}

TEST_CASE("a loop with nothing to wait for throws instead of waiting forever") {
  EventLoop loop;
  CHECK_THROWS_AS(loop.RunOnce(), std::logic_error);
  Source idle({});
  loop.Add(idle);
  CHECK_THROWS_AS(loop.RunOnce(), std::logic_error);
}

}  // namespace
}  // namespace zklock::process
