#include "process/guard/guard_link.h"
#include "process/guard/shared_memory.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <system_error>

#include "process/loop/system_error.h"

namespace zklock::process {
namespace {

using std::chrono::hours;

const TimePoint kLeaseEnd = TimePoint(hours(100));

TEST_CASE("the page is shared with a process that is forked later") {
  const SharedPage<GuardPage> page;
  const pid_t pid = Check(fork(), "fork");
  if (pid == 0) {
    page->guard_looks_at.Set(kLeaseEnd);
    page->must_kill = true;
    _exit(0);
  }
  Check(waitpid(pid, nullptr, 0), "waitpid");
  CHECK(page->guard_looks_at.Get() == kLeaseEnd);
  CHECK(page->must_kill);
}

TEST_CASE("messages are received one by one, and then the end") {
  GuardSocket ends = MakeGuardSocket();
  CHECK_FALSE(Receive(ends.zklock.get()).message);
  CHECK_FALSE(Receive(ends.zklock.get()).is_closed);
  CHECK(Send(ends.guard.get(), {.kind = Message::Kind::kStarted}));
  CHECK(Send(ends.guard.get(), {.kind = Message::Kind::kTreeEnded, .number = 7, .name = {"name"}}));
  ends.guard.Reset();
  CHECK(Receive(ends.zklock.get()).message->kind == Message::Kind::kStarted);
  const Message last = Receive(ends.zklock.get()).message.value();
  CHECK(last.kind == Message::Kind::kTreeEnded);
  CHECK(last.number == 7);
  CHECK(std::string(last.name.data()) == "name");
  CHECK(Receive(ends.zklock.get()).is_closed);
}

TEST_CASE("the connection of a nested run arrives with its message, even after its sender's end") {
  GuardSocket ends = MakeGuardSocket();
  int pipe_ends[2];
  Check(pipe2(pipe_ends, O_CLOEXEC), "pipe2");
  const UniqueFd read_end(pipe_ends[0]);
  UniqueFd write_end(pipe_ends[1]);
  CHECK(Send(ends.zklock.get(), {.kind = Message::Kind::kWake}));
  CHECK(SendNestedRun(ends.zklock.get(), write_end.get()));
  write_end.Reset();
  ends.zklock.Reset();
  CHECK_FALSE(Receive(ends.guard.get()).connection);
  Received received = Receive(ends.guard.get());
  CHECK(received.message.value().kind == Message::Kind::kNestedRun);
  REQUIRE(received.connection);
  CHECK(fcntl(received.connection.get(), F_GETFD) == FD_CLOEXEC);
  CHECK(write(received.connection.get(), "x", 1) == 1);
  char byte = 0;
  CHECK(read(read_end.get(), &byte, 1) == 1);
  CHECK(Receive(ends.guard.get()).is_closed);
}

TEST_CASE("the last report is read even if its sender exited without reading its messages") {
  GuardSocket ends = MakeGuardSocket();
  CHECK(Send(ends.guard.get(), {.kind = Message::Kind::kTreeEnded}));
  CHECK(Send(ends.zklock.get(), {.kind = Message::Kind::kWake}));
  ends.guard.Reset();
  CHECK(Receive(ends.zklock.get()).message.value().kind == Message::Kind::kTreeEnded);
  CHECK(Receive(ends.zklock.get()).is_closed);
}

TEST_CASE("an operation that has failed is named in full") {
  GuardSocket ends = MakeGuardSocket();
  SendFailure(ends.guard.get(), {EMFILE, std::generic_category(), "listing processes"});
  const Message failure = Receive(ends.zklock.get()).message.value();
  CHECK(failure.number == EMFILE);
  CHECK(std::string(failure.name.data()) == "listing processes");
}

TEST_CASE("sending never blocks, and a closed reader raises no signal") {
  GuardSocket ends = MakeGuardSocket();
  int sent = 0;
  while (Send(ends.zklock.get(), {.kind = Message::Kind::kWake})) ++sent;
  CHECK(sent > 100);
  ends.guard.Reset();
  CHECK_FALSE(Send(ends.zklock.get(), {.kind = Message::Kind::kWake}));
}

}  // namespace
}  // namespace zklock::process
