#include "process/loop/signals.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "process/loop/event_loop.h"
#include "process/loop/timer.h"
#include "support/child.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using test::Child;
using test::Exited;
using test::Killed;

SignalEvent NextOf(Signals& signals) {
  EventLoop loop;
  loop.Add(signals);
  std::optional<SignalEvent> event;
  test::RunUntil(loop, [&] { return (event = signals.Next()).has_value(); });
  return *event;
}

void Say(const std::string& line) { dprintf(STDOUT_FILENO, "%s\n", line.c_str()); }

void SayNext(Signals& signals) {
  const SignalEvent event = NextOf(signals);
  Say(std::to_string(event.number) + (event.from_terminal ? " from the terminal" : " sent"));
}

bool IsBlocked(int number) {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, number) == 1;
}

TEST_CASE("a signal sent by a process is not reported as the terminal's") {
  Signals signals;
  CHECK_FALSE(signals.Next());
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP}) {
    kill(getpid(), number);
    const SignalEvent event = NextOf(signals);
    CHECK(event.number == number);
    CHECK_FALSE(event.from_terminal);
  }
  CHECK_FALSE(signals.Next());
}

TEST_CASE("the destructor restores the mask, and drops signals that were not taken") {
  REQUIRE_FALSE(IsBlocked(SIGTERM));
  {
    const Signals signals;
    CHECK(IsBlocked(SIGTERM));
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGPIPE);
    kill(getpid(), SIGTSTP);
  }
  CHECK_FALSE(IsBlocked(SIGTERM));
  CHECK_FALSE(IsBlocked(SIGPIPE));
}

TEST_CASE("TTIN and TTOU do not stop zklock by themselves") {
  Signals signals;
  for (const int number : {SIGTTIN, SIGTTOU}) {
    kill(getpid(), number);
    CHECK(NextOf(signals).number == number);
  }
}

TEST_CASE("a signal inherited as ignored is not reported, blocked or not") {
  Child child = Child::Start({.body =
                                  [] {
                                    Signals signals;
                                    if (!signals.IsIgnored(SIGHUP)) return 1;
                                    if (signals.IsIgnored(SIGTERM)) return 2;
                                    kill(getpid(), SIGHUP);
                                    kill(getpid(), SIGINT);
                                    kill(getpid(), SIGTERM);
                                    if (NextOf(signals).number != SIGTERM) return 3;
                                    return signals.Next() ? 4 : 0;
                                  },
                              .prepare =
                                  [] {
                                    signal(SIGHUP, SIG_IGN);
                                    signal(SIGINT, SIG_IGN);
                                    sigset_t blocked;
                                    sigemptyset(&blocked);
                                    sigaddset(&blocked, SIGINT);
                                    sigprocmask(SIG_BLOCK, &blocked, nullptr);
                                  }});
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("children can be waited for although CHLD was inherited as ignored") {
  Child child = Child::Start({.body =
                                  [] {
                                    const Signals signals;
                                    const pid_t pid = fork();
                                    if (pid == 0) {
                                      signals.RestoreDispositions();
                                      struct sigaction action {};
                                      sigaction(SIGCHLD, nullptr, &action);
                                      _exit(action.sa_handler == SIG_IGN ? 7 : 8);
                                    }
                                    int status = 0;
                                    if (waitpid(pid, &status, 0) != pid) return 1;
                                    return WEXITSTATUS(status);
                                  },
                              .prepare = [] { signal(SIGCHLD, SIG_IGN); }});
  CHECK(child.Wait() == Exited(7));
}

TEST_CASE("Ctrl-C, Ctrl-backslash and Ctrl-Z come from the terminal") {
  Child child = Child::StartOnTerminal({.body = [] {
    Signals signals;
    Say("ready");
    for (int i = 0; i < 3; ++i) SayNext(signals);
    return 0;
  }});
  child.ReadUntil("ready");
  child.Write("\x03");
  child.ReadUntil(std::to_string(SIGINT) + " from the terminal");
  child.Write("\x1c");
  child.ReadUntil(std::to_string(SIGQUIT) + " from the terminal");
  child.Write("\x1a");
  child.ReadUntil(std::to_string(SIGTSTP) + " from the terminal");
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("a hangup is sent to the session leader alone, so it is not the terminal's") {
  int ends[2];
  Check(pipe2(ends, O_CLOEXEC), "pipe2");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  Child child = Child::StartOnTerminal({.body =
                                            [&] {
                                              Signals signals;
                                              Say("ready");
                                              const SignalEvent event = NextOf(signals);
                                              dprintf(write_end.get(), "%d %d", event.number,
                                                      event.from_terminal);
                                              return 0;
                                            },
                                        .inherit = {ends[1]}});
  write_end.Reset();
  child.ReadUntil("ready");
  child.HangUp();
  CHECK(child.Wait() == Exited(0));
  char text[16] = {};
  Check(read(read_end.get(), text, sizeof text - 1), "read");
  CHECK(std::string(text) == "1 0");
}

TEST_CASE("zklock stops itself, and reports its signals again once it is continued") {
  Child child = Child::Start({.body = [] {
    Signals signals;
    Say("ready");
    SayNext(signals);
    signals.SuspendSelf();
    SayNext(signals);  // the CONT that continued it
    kill(getpid(), SIGTSTP);
    SayNext(signals);  // blocked again: the signal is reported, and does not stop zklock
    return 0;
  }});
  CHECK(child.ReadLine() == "ready");
  child.Signal(SIGTSTP);
  CHECK(child.ReadLine() == "20 sent");
  child.WaitUntilStopped();
  child.Signal(SIGCONT);
  CHECK(child.ReadLine() == "18 sent");
  CHECK(child.ReadLine() == "20 sent");
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("a CONT that arrives between the stop signal and the stop is not lost") {
  Child child = Child::Start({.body = [] {
    Signals signals;
    kill(getpid(), SIGTSTP);
    if (NextOf(signals).number != SIGTSTP) return 1;
    kill(getpid(), SIGCONT);
    signals.SuspendSelf();
    return NextOf(signals).number == SIGCONT ? 0 : 2;
  }});
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("zklock's own faults end it, but the same signals from outside are reported",
          "[native]") {
  const auto plain = [] {
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
  };
  Child told = Child::Start({.body =
                                 [] {
                                   Signals signals;
                                   for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGTRAP}) {
                                     kill(getpid(), number);
                                     if (NextOf(signals).number != number) return 1;
                                   }
                                   return 0;
                                 },
                             .prepare = plain});
  CHECK(told.Wait() == Exited(0));
  Child aborting = Child::Start({.body =
                                     [] {
                                       const Signals signals;
                                       abort();
                                       return 0;
                                     },
                                 .prepare = plain});
  CHECK(aborting.Wait() == Killed(SIGABRT));
  Child faulty = Child::Start({.body =
                                   [] {
                                     const Signals signals;
                                     void* page = mmap(nullptr, 1, PROT_NONE,
                                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                                     return static_cast<int>(*static_cast<volatile char*>(page));
                                   },
                               .prepare = plain});
  CHECK(faulty.Wait() == Killed(SIGSEGV));
}

TEST_CASE("signals caused by zklock's own writes are not reported") {
  Child child = Child::Start({.body = [] {
    Signals signals;
    int ends[2];
    if (pipe(ends) != 0 || close(ends[0]) != 0) return 1;
    if (write(ends[1], "x", 1) >= 0 || errno != EPIPE) return 2;
    if (signals.Next()) return 3;
    const rlimit small{1, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &small);
    const UniqueFd file(memfd_create("file", MFD_CLOEXEC));
    if (write(file.get(), "xx", 2) != 1) return 4;
    if (write(file.get(), "xx", 2) >= 0 || errno != EFBIG) return 5;
    return signals.Next() ? 6 : 0;
  }});
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("zklock does not stop if no process would continue it") {
  // A session leader's process group is orphaned: no shell would continue it.
  Child child = Child::StartOnTerminal({.body = [] {
    Signals signals;
    signals.SuspendSelf();
    return 0;
  }});
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("a process that is stopped after its ContinueTimer has fired is continued all the same") {
  Child child = Child::Start({.body = [] {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCONT);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    const ContinueTimer timer;
    timer.Set(BootClock::now());
    sigwaitinfo(&watched, nullptr);
    raise(SIGSTOP);
    return 5;
  }});
  CHECK(child.Wait() == test::Exited(5));
}

}  // namespace
}  // namespace zklock::process
