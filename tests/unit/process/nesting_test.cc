// A zklock that holds locks, and zklocks nested under it. Both ends of the socket are in one
// process, which also plays the parent.

#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process/guard/nested_run.h"
#include "process/loop/event_loop.h"
#include "process/nesting/nesting_link.h"
#include "process/nesting/nesting_server.h"
#include "process/nesting/nesting_socket.h"
#include "process/tree/identity.h"
#include "support/child.h"
#include "support/loop.h"
#include "support/skip.h"
#include "support/sudo.h"

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

  explicit Nesting(ProcessId root = Self(), std::function<void(int)> before_run = {})
      : server(name, root, std::move(before_run)) {
    loop.Add(server);
  }

  std::unique_ptr<NestingLink> Ask(Kind kind = Kind::kRun, const std::string& node = kNode) {
    auto link = NestingLink::Open(name, Self(), Self(), {kind, node});
    REQUIRE(link);
    loop.Add(*link);
    return link;
  }
  void RunUntil(const std::function<bool()>& is_true) { test::RunUntil(loop, is_true); }
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
  CHECK(link->state() == State::kAsking);  // no answer before the lock is held
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
  // The run is over once no process, such as its guard, has its end of the socket open.
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

TEST_CASE("The server waits for a nested command that outlives its zklock and guard") {
  const bool has_unread_lease = GENERATE(false, true);
  test::Child command = test::Child::Start({.argv = {"sleep", "1000"}});
  NestedRuns in_guard;
  Nesting nesting(Self(), [&](int socket) { in_guard.Add(UniqueFd(dup(socket))); });
  nesting.server.Open({kNode}, LeaseOf(30));
  auto link = nesting.Ask();
  nesting.RunUntil([&] { return link->state() == State::kHeld; });
  link->NameCommand(ReadProcessStat(command.pid())->id);
  nesting.loop.RunReady();
  CHECK(nesting.server.Runs() == std::vector<pid_t>{getpid()});
  nesting.loop.Remove(*link);
  if (has_unread_lease) nesting.server.SetLease(LeaseOf(20));
  link.reset();
  CHECK(in_guard.AreLeft());  // both before and after the server has seen the close
  nesting.loop.RunReady();
  CHECK(in_guard.AreLeft());
  CHECK(nesting.server.Runs() == std::vector<pid_t>{command.pid()});
  CHECK(nesting.server.IsBelowRun(command.pid()));
  CHECK_FALSE(nesting.server.IsBelowRun(getpid()));
  command.Signal(SIGKILL);
  nesting.RunUntil([&] { return nesting.server.Runs().empty(); });
  CHECK_FALSE(in_guard.AreLeft());
}

TEST_CASE(
    "A run that must end counts as over soon after its close, even if its command still runs") {
  const bool told_first = GENERATE(false, true);
  const test::Child command = test::Child::Start({.argv = {"sleep", "1000"}});
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  auto link = nesting.Ask();
  nesting.RunUntil([&] { return link->state() == State::kHeld; });
  link->NameCommand(ReadProcessStat(command.pid())->id);
  nesting.loop.Remove(*link);
  if (told_first) nesting.server.End();
  link.reset();
  nesting.RunUntil([&] { return nesting.server.Runs() == std::vector<pid_t>{command.pid()}; });
  nesting.server.End();
  nesting.RunUntil([&] { return nesting.server.Runs().empty(); });
}

TEST_CASE("A run ends with its connection if the process that it names cannot be its command") {
  const test::Child other = test::Child::Start({.argv = {"sleep", "1000"}});
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  auto link = nesting.Ask();
  nesting.RunUntil([&] { return link->state() == State::kHeld; });
  const bool names_older = GENERATE(false, true);  // older than the run's zklock, here our process
  ProcessId named = ReadProcessStat(names_older ? 1 : other.pid())->id;
  if (!names_older) --named.start_time;
  link->NameCommand(named);
  nesting.loop.Remove(*link);
  link.reset();
  const auto release = nesting.Ask(Kind::kRelease);
  nesting.RunUntil([&] { return release->state() == State::kReleasing; });
  CHECK(release->release().runs == 0);
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

TEST_CASE("While the server waits for nested runs, only their descendants may run") {
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
    CHECK(nesting.Answer(Kind::kMayRelease) == State::kRefused);
    CHECK_FALSE(nesting.server.release_requested());
    nesting.loop.Remove(*link);
  }
  nesting.RunUntil([&] { return nesting.server.Runs().empty(); });
  CHECK(nesting.Answer(Kind::kMayRelease) == State::kReleasing);
  CHECK_FALSE(nesting.server.release_requested());
  CHECK(nesting.Answer(Kind::kRelease) == State::kReleasing);
  CHECK(nesting.server.release_requested());
}

TEST_CASE(
    "A process that is not a descendant of the owner can neither run under the lock nor release "
    "it") {
  const test::Child owner = test::Child::Start({.argv = {"sleep", "1000"}});
  Nesting nesting(ReadProcessStat(owner.pid())->id);
  nesting.server.Open({kNode}, LeaseOf(30));
  for (const Kind kind : {Kind::kRun, Kind::kRelease, Kind::kMayRelease}) {
    CHECK(nesting.Answer(kind) == State::kStranger);
  }
  CHECK_FALSE(nesting.server.release_requested());
}

TEST_CASE("A process other than the one that has connected is refused") {
  if (geteuid() != 0) return test::Skip("root, to connect as another user");
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  // As if this pid had belonged to another user when it connected.
  REQUIRE(seteuid(65534) == 0);
  auto link = NestingLink::Open(nesting.name, Self(), Self(), {Kind::kRun, kNode});
  REQUIRE(seteuid(0) == 0);
  REQUIRE(link);
  nesting.loop.Add(*link);
  nesting.RunUntil([&] { return link->state() != State::kAsking; });
  CHECK(link->state() == State::kStranger);
}

TEST_CASE("A listener other than the claimed holder proves nothing") {
  const Nesting nesting;
  const NestingRequest request{Kind::kRun, kNode};
  ProcessId other = ReadProcessStat(getppid())->id;
  CHECK_FALSE(NestingLink::Open(nesting.name, other, Self(), request));
  other = Self();
  ++other.start_time;
  CHECK_FALSE(NestingLink::Open(nesting.name, other, Self(), request));
  for (const std::string& name :
       {std::string("zklock-nobody"), std::string(), std::string(200, 'x')}) {
    CHECK_FALSE(NestingLink::Open(name, Self(), Self(), request));
    CHECK(errno != EAGAIN);
  }
  CHECK(NestingLink::Open(nesting.name, Self(), Self(), request));
}

TEST_CASE("A holder of the owner's user is trusted even if the owner is not dumpable") {
  if (geteuid() != 0) return test::Skip("root, to hold as another user");
  test::Child owner = test::Child::Start({.body = [] {
    const bool is_user = setresuid(test::kNobody, test::kNobody, test::kNobody) == 0;
    return is_user && prctl(PR_SET_DUMPABLE, 0) == 0 && write(1, "\n", 1) == 1 ? pause() : 1;
  }});
  owner.ReadLine();
  REQUIRE(seteuid(test::kNobody) == 0);
  const Nesting nesting;
  REQUIRE(seteuid(0) == 0);
  const NestingRequest request{Kind::kRun, kNode};
  const ProcessId its_id = ReadProcessStat(owner.pid())->id;
  CHECK(NestingLink::Open(nesting.name, Self(), its_id, request));
  CHECK_FALSE(NestingLink::Open(nesting.name, Self(), Self(), request));
}

/// Returns how many of `sockets` the server has refused or closed.
std::ptrdiff_t CountAnswered(const std::vector<UniqueFd>& sockets) {
  return std::count_if(sockets.begin(), sockets.end(), [](const UniqueFd& socket) {
    pollfd polled{socket.get(), POLLIN, 0};
    return poll(&polled, 1, 0) == 1;
  });
}

TEST_CASE("A flood of strangers is served in parts, with pauses") {
  const test::Child owner = test::Child::Start({.argv = {"sleep", "1000"}});
  Nesting nesting(ReadProcessStat(owner.pid())->id);
  nesting.server.Open({kNode}, LeaseOf(30));
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(ConnectTo(nesting.name));
  nesting.loop.RunReady();
  const auto answered = CountAnswered(strangers);
  CHECK(answered > 0);
  CHECK(answered < 300);
  CHECK(nesting.server.GetInterest().wake != kNever);
  nesting.RunUntil([&] { return CountAnswered(strangers) == 300; });
}

TEST_CASE("After a stranger, further connections of that user are closed without an answer") {
  if (geteuid() != 0) return test::Skip("root, to connect as another user");
  Nesting nesting;
  nesting.server.Open({kNode}, LeaseOf(30));
  const auto connect_as = [&](uid_t user) {
    REQUIRE(seteuid(user) == 0);
    UniqueFd socket = ConnectTo(nesting.name);
    REQUIRE(seteuid(0) == 0);
    nesting.RunUntil([&] { return recv(socket.get(), nullptr, 0, MSG_PEEK) >= 0; });
    return ReceiveText(socket.get()).text.value_or("");
  };
  CHECK(connect_as(65534) == protocol::kNestingStranger);
  CHECK(connect_as(65534).empty());
  CHECK(connect_as(65533) == protocol::kNestingStranger);  // one user is refused, not everybody
  CHECK(nesting.Answer() == State::kHeld);
}

#ifndef ZKLOCK_SANITIZED  // the sanitizers need descriptors, too
TEST_CASE("With too few descriptors, a nested run is not taken for a stranger, but waits") {
  const auto free = GENERATE(range(0, 5));
  CAPTURE(free);
  const auto hold = [free] {
    Nesting nesting;
    nesting.server.Open({kNode}, LeaseOf(30));
    const auto link = nesting.Ask();
    rlimit limit{};
    Check(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    const int next = dup(STDIN_FILENO);
    close(next);
    const rlimit few{static_cast<rlim_t>(next + free), limit.rlim_max};
    Check(setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
    nesting.loop.RunReady();
    nesting.loop.RunReady();
    if (link->state() != State::kAsking && link->state() != State::kHeld) return 1;
    Check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    nesting.RunUntil([&] { return link->state() != State::kAsking; });
    return link->state() == State::kHeld ? 0 : 2;
  };
  CHECK(test::Run({.body = hold}).exit == test::Exited(0));
}
#endif

TEST_CASE("A full queue of connections does not look as if nobody listened") {
  Nesting nesting;  // accepts nothing before the lock is held
  while (ConnectTo(nesting.name)) {
  }
  CHECK(errno == EAGAIN);
  CHECK_FALSE(NestingLink::Open(nesting.name, Self(), Self(), {Kind::kRun, kNode}));
  CHECK(errno == EAGAIN);
  nesting.server.Open({kNode}, LeaseOf(30));
  nesting.loop.RunOnce();
  CHECK(nesting.Answer() == State::kHeld);
}

// A test in its own PID namespace, where pids can be chosen: a stranger connects and ends; then a
// process below the owner gets its pid. The result says whether a run was admitted.
enum Reuse : int { kNone = 0, kAdmitted = 1, kCannotBeTested = 2 };

/// Forks a process with the pid `wanted`.
pid_t ForkAs(pid_t wanted) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uintptr_t>(&wanted);
  arguments.set_tid_size = 1;
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
}

/// Runs as the first process of the namespace.
int ReusePid() {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("proc", "/proc", "proc", 0, nullptr) != 0) {
    return kCannotBeTested;
  }
  const std::string name = "zklock-test-" + MakeUuid();
  std::array<int, 2> order{};
  std::array<int, 2> done{};
  if (pipe(order.data()) != 0 || pipe(done.data()) != 0) return kCannotBeTested;
  const pid_t owner = fork();
  if (owner == 0) {
    pid_t wanted = 0;
    if (read(order[0], &wanted, sizeof wanted) != sizeof wanted) _exit(1);
    const pid_t below = ForkAs(wanted);
    if (below == 0) {
      pause();
      _exit(0);
    }
    if (write(done[1], &below, sizeof below) < 0) _exit(1);
    pause();
    _exit(0);
  }
  EventLoop loop;
  NestingServer server(name, ReadProcessStat(owner)->id);
  const pid_t stranger = fork();
  if (stranger == 0) {
    const UniqueFd socket = ConnectTo(name);
    SendText(socket.get(), FormatNesting(NestingRequest{Kind::kRun, kNode}));
    if (fork() == 0) pause();  // keeps the connection
    _exit(0);
  }
  int peer_process = 0;
  socklen_t size = sizeof peer_process;
  std::array<int, 2> pair{};
  const bool can_tell = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data()) == 0 &&
                        getsockopt(pair[0], SOL_SOCKET, 77, &peer_process, &size) == 0;
  pid_t below = 0;
  if (waitpid(stranger, nullptr, 0) != stranger ||
      write(order[1], &stranger, sizeof stranger) < 0 ||
      read(done[0], &below, sizeof below) != sizeof below || below != stranger || !can_tell) {
    return kCannotBeTested;
  }
  loop.Add(server);
  server.Open({kNode}, LeaseOf(30));
  loop.RunReady();
  loop.RunReady();
  return server.Runs().empty() ? kNone : kAdmitted;
}

TEST_CASE("A process that reuses the pid of one that has connected is refused") {
  test::Child child = test::Child::Start({.body = [] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) != 0) return int{kCannotBeTested};
    const pid_t first = fork();
    if (first == 0) _exit(ReusePid());
    int status = 0;
    waitpid(first, &status, 0);
    return WEXITSTATUS(status);
  }});
  const test::Exit exit = child.Wait();
  if (exit == test::Exited(kCannotBeTested)) {
    test::Skip("user namespaces and Linux 6.5");
  } else {
    CHECK(exit == test::Exited(kNone));
  }
}

}  // namespace
}  // namespace zklock::process
