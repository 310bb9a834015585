#include "process/guard_link.h"
#include "process/shared_page.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "process/system_error.h"

namespace zklock::process {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kLeaseEnd = TimePoint(hours(100));

TEST_CASE("the stop comes a grace before the lease's end") {
  CHECK(StopAt(kLeaseEnd, seconds(5)) == kLeaseEnd - seconds(5));
}

TEST_CASE("without a grace the stop still comes 250 ms before the lease's end") {
  CHECK(StopAt(kLeaseEnd, {}) == kLeaseEnd - milliseconds(250));
  CHECK(StopAt(kLeaseEnd, milliseconds(249)) == kLeaseEnd - milliseconds(250));
}

TEST_CASE("KILL comes a grace after the stop, and 250 ms before the lease's end at the latest") {
  const TimePoint early = kLeaseEnd - hours(1);
  CHECK(KillAt(early, kLeaseEnd, seconds(5)) == early + seconds(5));
  CHECK(KillAt(kLeaseEnd - seconds(5), kLeaseEnd, seconds(5)) == kLeaseEnd - milliseconds(250));
  CHECK(KillAt(kLeaseEnd + hours(1), kLeaseEnd, seconds(5)) == kLeaseEnd - milliseconds(250));
}

TEST_CASE("a lease without an end stops nothing, and a grace without an end kills nothing") {
  CHECK(StopAt(kNever, seconds(5)) == kNever);
  CHECK(KillAt(kLeaseEnd, kNever, seconds(5)) == kLeaseEnd + seconds(5));
  CHECK(KillAt(kLeaseEnd, kNever, Duration::max()) == kNever);
}

TEST_CASE("the page is shared with a process that is forked later") {
  const SharedPage<GuardPage> page;
  const pid_t pid = Check(fork(), "fork");
  if (pid == 0) {
    page->guard_looks_at.Set(kLeaseEnd);
    page->order = Order::kKill;
    _exit(0);
  }
  Check(waitpid(pid, nullptr, 0), "waitpid");
  CHECK(page->guard_looks_at.Get() == kLeaseEnd);
  CHECK(page->order == Order::kKill);
}

TEST_CASE("messages come one by one, and then the end") {
  GuardSocket ends = MakeGuardSocket();
  CHECK_FALSE(Receive(ends.zklock.get()).message);
  CHECK_FALSE(Receive(ends.zklock.get()).is_closed);
  CHECK(Send(ends.guard.get(), {.kind = Message::Kind::kStarted}));
  CHECK(Send(ends.guard.get(),
             {.kind = Message::Kind::kTreeEnded, .number = 7, .by_order = 1, .name = {"name"}}));
  ends.guard.Reset();
  CHECK(Receive(ends.zklock.get()).message->kind == Message::Kind::kStarted);
  const Message last = Receive(ends.zklock.get()).message.value();
  CHECK(last.kind == Message::Kind::kTreeEnded);
  CHECK(last.number == 7);
  CHECK(last.by_order == 1);
  CHECK(std::string(last.name.data()) == "name");
  CHECK(Receive(ends.zklock.get()).is_closed);
}

TEST_CASE("the last report is read although its sender has gone without reading ours") {
  GuardSocket ends = MakeGuardSocket();
  CHECK(Send(ends.guard.get(), {.kind = Message::Kind::kTreeEnded}));
  CHECK(Send(ends.zklock.get(), {.kind = Message::Kind::kWake}));
  ends.guard.Reset();
  CHECK(Receive(ends.zklock.get()).message.value().kind == Message::Kind::kTreeEnded);
  CHECK(Receive(ends.zklock.get()).is_closed);
}

TEST_CASE("sending never blocks, and a reader that has gone raises no signal") {
  GuardSocket ends = MakeGuardSocket();
  int sent = 0;
  while (Send(ends.zklock.get(), {.kind = Message::Kind::kWake})) ++sent;
  CHECK(sent > 100);
  ends.guard.Reset();
  CHECK_FALSE(Send(ends.zklock.get(), {.kind = Message::Kind::kWake}));
}

TEST_CASE("nested guards are spared for two seconds, and not beyond the time to kill") {
  const TimePoint now(seconds(100));
  CHECK(NestedGuardsUntil(now, kNever) == now + seconds(2));
  CHECK(NestedGuardsUntil(now, now + seconds(1)) == now + milliseconds(750));
  CHECK(NestedGuardsUntil(now, now) < now);
}

}  // namespace
}  // namespace zklock::process
