// A zklock that holds locks, and zklocks nested under it: both ends of a socket in one process,
// which is its own parent here.

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "process/event_loop.h"
#include "process/identity.h"
#include "process/nesting_link.h"
#include "process/nesting_server.h"
#include "support/child.h"

namespace zklock::process {
namespace {

using protocol::NestingLease;
using protocol::NestingRequest;
using Kind = NestingRequest::Kind;
using State = NestingLink::State;
using std::chrono::seconds;

constexpr char kNode[] = "/l/h-lock-0000000001";

ProcessId Self() { return ReadProcessStat(getpid())->id; }
NestingLease LeaseOf(int session_timeout) {
  return {BootClock::now() + seconds(60), seconds(session_timeout)};
}

struct Nesting {
  const std::string name = "zklock-test-" + MakeUuid();
  NestingServer server;
  EventLoop loop;

  explicit Nesting(ProcessId root = Self()) : server(name, root) { loop.Add(server); }

  std::unique_ptr<NestingLink> Ask(Kind kind = Kind::kRun, const std::string& node = kNode) {
    auto link = NestingLink::Open(name, Self(), Self(), {kind, node});
    REQUIRE(link);
    loop.Add(*link);
    return link;
  }
  template <typename F>
  void RunUntil(F is_true) {
    while (!is_true()) loop.RunOnce();
  }
  State Answer(Kind kind = Kind::kRun, const std::string& node = kNode) {
    const auto link = Ask(kind, node);
    RunUntil([&] { return link->state() != State::kAsking; });
    loop.Remove(*link);
    return link->state();
  }
};

TEST_CASE("A nested run gets the lease, each change of it, and the end") {
  Nesting nesting;
  const auto link = nesting.Ask();
  nesting.loop.RunReady();
  CHECK(link->state() == State::kAsking);  // not before the lock is held
  const NestingLease first = LeaseOf(30);
  nesting.server.Open({kNode}, first);
  nesting.RunUntil([&] { return link->state() == State::kHeld; });
  CHECK(link->lease() == first);
  CHECK(nesting.server.Runs() == std::vector<pid_t>{getpid()});
  const NestingLease earlier{first.end - seconds(10), seconds(20)};
  nesting.server.SetLease(earlier);
  nesting.RunUntil([&] { return link->lease() == earlier; });
  nesting.server.End();
  nesting.RunUntil([&] { return link->state() == State::kEnded; });
  // It is over once no process, such as its guard, has its end open.
  CHECK(nesting.server.Runs().size() == 1);
}

TEST_CASE("A nested run is over when the last process has closed its link") {
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  auto link = nesting.Ask();
  nesting.RunUntil([&] { return link->state() == State::kHeld; });
  UniqueFd guard(dup(link->fd()));
  nesting.loop.Remove(*link);
  link.reset();
  nesting.loop.RunReady();
  CHECK(nesting.server.Runs().size() == 1);
  guard.Reset();
  nesting.RunUntil([&] { return nesting.server.Runs().empty(); });
}

TEST_CASE("Another contender's name, a lease that has ended and a lock that is lost are refused") {
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  CHECK(nesting.Answer(Kind::kRun, "/l/other") == State::kRefused);
  CHECK(nesting.Answer(Kind::kRelease, "/l/other") == State::kRefused);
  CHECK(nesting.Answer() == State::kHeld);
  nesting.server.SetLease({BootClock::now(), seconds(30)});
  CHECK(nesting.Answer() == State::kRefused);
  nesting.server.SetLease(LeaseOf(30));
  nesting.server.End();
  CHECK(nesting.Answer() == State::kRefused);
}

TEST_CASE("While it waits for nested runs, only their descendants may run") {
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  {
    const auto link = nesting.Ask();
    nesting.RunUntil([&] { return link->state() == State::kHeld; });
    nesting.server.Drain();
    CHECK(nesting.Answer() == State::kHeld);  // nested under itself
    nesting.loop.Remove(*link);
  }
  nesting.RunUntil([&] { return nesting.server.Runs().empty(); });
  CHECK(nesting.Answer() == State::kRefused);
}

TEST_CASE("A release is accepted once, and not from a descendant of a nested run") {
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  {
    const auto link = nesting.Ask();
    nesting.RunUntil([&] { return link->state() == State::kHeld; });
    CHECK(nesting.Answer(Kind::kRelease) == State::kRefused);
    CHECK_FALSE(nesting.server.release_requested());
    nesting.loop.Remove(*link);
  }
  nesting.RunUntil([&] { return nesting.server.Runs().empty(); });
  CHECK(nesting.Answer(Kind::kRelease) == State::kReleasing);
  CHECK(nesting.server.release_requested());
}

TEST_CASE("A process that is no descendant of the owner may neither run nor release") {
  const test::Child owner = test::Child::Start({.argv = {"sleep", "1000"}});
  Nesting nesting(ReadProcessStat(owner.pid())->id);
  nesting.server.Open({kNode}, LeaseOf(30));
  for (const Kind kind : {Kind::kRun, Kind::kRelease}) {
    const State state = nesting.Answer(kind);
    CHECK((state == State::kRefused || state == State::kEnded));
  }
  CHECK_FALSE(nesting.server.release_requested());
}

TEST_CASE("A process that is not the one that has connected may not run") {
  if (geteuid() != 0) return;  // only root can connect as another user
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  // As if the number had been another user's when it connected.
  REQUIRE(seteuid(65534) == 0);
  auto link = NestingLink::Open(nesting.name, Self(), Self(), {Kind::kRun, kNode});
  REQUIRE(seteuid(0) == 0);
  REQUIRE(link);
  nesting.loop.Add(*link);
  nesting.RunUntil([&] { return link->state() != State::kAsking; });
  CHECK((link->state() == State::kRefused || link->state() == State::kEnded));
}

TEST_CASE("A listener other than the claimed holder proves nothing") {
  const Nesting nesting;
  const NestingRequest request{Kind::kRun, kNode};
  ProcessId other = ReadProcessStat(getppid())->id;
  CHECK_FALSE(NestingLink::Open(nesting.name, other, Self(), request));
  other = Self();
  ++other.start_time;
  CHECK_FALSE(NestingLink::Open(nesting.name, other, Self(), request));
  CHECK_FALSE(NestingLink::Open("zklock-nobody", Self(), Self(), request));
  CHECK_FALSE(NestingLink::Open("", Self(), Self(), request));
  CHECK_FALSE(NestingLink::Open(std::string(200, 'x'), Self(), Self(), request));
  CHECK(NestingLink::Open(nesting.name, Self(), Self(), request));
}

}  // namespace
}  // namespace zklock::process
