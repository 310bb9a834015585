#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/skip.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// Returns a command that writes "ready", then the name of each signal it gets, until its input
/// ends. A command that checks for signals only before each blocking call could sleep through
/// one that arrives between the check and the call.
Words Echoing() {
  return {"python3", "-c",
          "import os, select, signal\n"
          "heard, tell = os.pipe()\n"
          "os.set_blocking(tell, False)\n"
          "signal.set_wakeup_fd(tell)\n"
          "for name in 'TERM INT HUP QUIT USR1 USR2 CONT'.split():\n"
          "  signal.signal(getattr(signal, 'SIG' + name), lambda *_: None)\n"
          "print('ready', flush=True)\n"
          "while True:\n"
          "  ready = select.select([heard, 0], [], [])[0]\n"
          "  if heard in ready:\n"
          "    print(signal.Signals(os.read(heard, 1)[0]).name[3:], flush=True)\n"
          "  elif not os.read(0, 1):\n"
          "    break\n"};
}

ChildOptions EchoingUnder(const Words& words) {
  Words arguments = words;
  arguments.emplace_back("--");
  for (const std::string& word : Echoing()) arguments.push_back(word);
  ChildOptions options = Zklock(arguments);
  options.keep_stdin = true;
  return options;
}

struct NamedSignal {
  int number;
  std::string name;
};

/// Starts a run with --descendants wait whose command exits with 3. A process that the command
/// leaves behind then gets the command's pid, prints a line that says so, and runs `action`, shell
/// text in which $z is zklock's pid and descriptor 3 is the run's standard input.
Child StartReuser(const std::string& action) {
  ChildOptions options =
      Zklock({"exclusive", "--descendants", "wait", NewLock("command"), "--", "sh", "-c",
              "exec 3<&0; c=$$ g=$PPID; read -r p n s z r </proc/$g/stat; export c g z;"
              "(while test -e /proc/$c; do sleep 0.01; done;"
              " echo $((c - 1)) >/proc/sys/kernel/ns_last_pid;"
              // As a child of the guard, which is a subreaper.
              " sh -c 'until test $p = $g; do read -r i n s p r </proc/$$/stat; done 2>/dev/null;"
              " echo $$ is $c; " +
                  action + "' &) & exit 3"});
  options.keep_stdin = true;
  options.argv.insert(options.argv.begin(), {"unshare", "--pid", "--fork", "--mount-proc",
                                             "--kill-child", "sh", "-c", "\"$@\"; exit $?", "sh"});
  Child child = Child::Start(options);
  const std::string line = child.ReadLine();
  const std::string pid = line.substr(0, line.find(' '));
  REQUIRE(line == pid + " is " + pid);
  return child;
}

bool CanReusePids() {
  return geteuid() == 0 && Run({.argv = {"unshare", "--pid", "--fork", "--mount-proc", "test", "-w",
                                         "/proc/sys/kernel/ns_last_pid"}})
                                   .exit == Exited(0);
}

}  // namespace

TEST_CASE("every exit status of the command is passed on") {
  // The runs are readers, so that they do not wait for each other.
  const std::string lock = NewLock("status");
  constexpr int kAtOnce = 16;
  for (int first = 0; first < 256; first += kAtOnce) {
    std::vector<Child> children;
    for (int status = first; status < first + kAtOnce; ++status) {
      children.push_back(
          Child::Start(Zklock({"read", lock, "--", "sh", "-c", "exit " + std::to_string(status)})));
    }
    for (int i = 0; i < kAtOnce; ++i) {
      Child& child = children[static_cast<std::size_t>(i)];
      CHECK(child.Wait() == Exited(first + i));
      CHECK(child.err().empty());
    }
  }
  Tree().WaitForChildren(lock, 0, 20s);  // well before the sessions would expire
}

TEST_CASE("a command killed by signal N exits with 128 + N") {
  const std::string lock = NewLock("killed");
  const std::vector<int> signals = {SIGHUP,  SIGINT,  SIGQUIT,  SIGILL,  SIGTRAP,   SIGABRT,
                                    SIGBUS,  SIGFPE,  SIGKILL,  SIGUSR1, SIGSEGV,   SIGUSR2,
                                    SIGPIPE, SIGALRM, SIGTERM,  SIGXCPU, SIGVTALRM, SIGPROF,
                                    SIGIO,   SIGSYS,  SIGRTMIN, SIGRTMAX};
  for (const int number : signals) {
    CAPTURE(number);
    CHECK(
        RunZklock({"exclusive", lock, "--", "sh", "-c", "kill -" + std::to_string(number) + " $$"},
                  Exited(128 + number))
            .err.empty());
  }
}

TEST_CASE("a command that is not found exits with 127 without queueing") {
  const Peer peer(Peer::Manner::kSaysNothing);
  const std::string lock = NewLock("typo");
  const std::string not_found = "command not found; ";
  const std::string no_file = "No such file or directory; ";
  for (const auto& [command, why] :
       {std::pair("no-such-command-anywhere", not_found), std::pair("/no/such/command", no_file),
        std::pair("./no-such-command", no_file)}) {
    CAPTURE(command);
    const Finished finished = RunZklock(
        {"exclusive", "--servers", peer.address(), lock, "--", command, "argument"}, Exited(127));
    CHECK(finished.out.empty());
    CHECK(Lines(finished.err).size() == 1);
    CHECK_THAT(finished.err, Catch::StartsWith(std::string("zklock: ") + command + ": " + why));
  }
  CHECK(peer.connections() == 0);
}

TEST_CASE("a command that cannot be executed exits with 126 without queueing") {
  const Peer peer(Peer::Manner::kSaysNothing);
  const TemporaryDirectory directory;
  const std::string script = directory.Write("script", "#!/bin/sh\n");  // not executable
  for (const std::string& command : {script, directory.path(), std::string("/etc/passwd")}) {
    CAPTURE(command);
    const Finished finished =
        RunZklock({"try", "--servers", peer.address(), "/t/x", "--", command}, Exited(126));
    CHECK_THAT(finished.err, Catch::StartsWith("zklock: " + command + ": cannot execute: "));
    CHECK(Lines(finished.err).size() == 1);
  }
  CHECK(peer.connections() == 0);
}

TEST_CASE("an error found only by exec leaves the queue empty") {
  Tree tree;
  const TemporaryDirectory directory;
  const std::string no_interpreter = directory.WriteProgram("missing", "#!/no/such/interpreter\n");
  const std::string lock = NewLock("interpreter");
  const Finished finished = RunZklock({"exclusive", lock, "--", no_interpreter}, Exited(127));
  CHECK(Lines(finished.err).size() == 1);
  CHECK(tree.Children(lock).empty());

  // As with execvp(3), the shell runs a text file without an interpreter line.
  const std::string bare = directory.WriteProgram("bare", "echo \"by a shell: $1\"\n");
  CHECK(RunZklock({"exclusive", lock, "--", bare, "a b"}, Exited(0)).out == "by a shell: a b\n");
}

TEST_CASE("-c runs a shell command line") {
  const std::string lock = NewLock("shell");
  CHECK(
      RunZklock({"exclusive", "-c", "echo \"$0 $#\" | tr a-z A-Z; exit 3", lock}, Exited(3)).out ==
      "/BIN/SH 0\n");
  RunZklock({"exclusive", lock, "-c", ""}, Exited(0));
}

TEST_CASE("a signal ends a wait, and zklock leaves the queue before it ends") {
  const std::string lock = NewLock("ended");
  Tree tree;
  Child holder = StartHolder(lock);
  const auto alone = tree.Children(lock);
  const std::vector<NamedSignal> signals = {
      {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}, {SIGQUIT, "SIGQUIT"}};
  for (const NamedSignal& signal : signals) {
    Proxy proxy(TestServers());
    Child waiter = StartWaiter({"exclusive", "-z", proxy.address()}, lock);
    CHECK(tree.Children(lock).size() == 2);
    proxy.Delay(60ms);  // leaving takes a while
    const auto before = std::chrono::steady_clock::now();
    waiter.Signal(signal.number);
    CHECK(waiter.Wait() == Exited(128 + signal.number));
    CHECK(tree.Children(lock) == alone);
    CHECK(std::chrono::steady_clock::now() - before >= 120ms);
    CHECK(waiter.out().empty());
    CHECK_THAT(waiter.err(),
               Catch::Contains("\nzklock: " + signal.name + " while waiting for " + lock));
  }
  CHECK(Finish(holder) == Exited(0));
}

TEST_CASE("a signal ends the search for a server") {
  const Peer peer(Peer::Manner::kSaysNothing);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    const int before = peer.connections();
    Child child = Child::Start(Zklock({"exclusive", "-z", peer.address(), "/t/x", "--", "true"}));
    peer.WaitForConnections(before + 1);
    child.Signal(number);
    CHECK(child.Wait() == Exited(128 + number));
    CHECK(Lines(child.err()).size() == 1);
  }
}

TEST_CASE("a signal ignored since zklock started does not end its wait") {
  auto [lock, holder] = HoldNewLock("nohup");
  ChildOptions options = HolderOptions({"exclusive", "-v"}, lock);
  options.prepare = [] {
    ResetSignals();
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
  };
  Child waiter = Child::Start(options);
  waiter.ReadErrUntil("waiting for");
  waiter.Signal(SIGHUP);
  waiter.Signal(SIGINT);
  waiter.Signal(SIGQUIT);
  // The lower of two pending signals is delivered first: if an ignored signal counted, it would
  // determine the status.
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
}

TEST_CASE("a signal ignored since zklock started is not forwarded") {
  ChildOptions options = EchoingUnder({"exclusive", NewLock("nohup")});
  options.prepare = [] {
    ResetSignals();
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGUSR1, SIG_IGN);
  };
  Child child = Child::Start(options);  // the command itself ignores no signal
  REQUIRE(child.ReadLine() == "ready");
  child.Signal(SIGHUP);
  child.Signal(SIGUSR1);
  child.Signal(SIGUSR2);
  CHECK(child.ReadLine() == "USR2");
  child.Signal(SIGTERM);
  CHECK(child.ReadLine() == "TERM");
  CHECK(Finish(child) == Exited(0));
}

TEST_CASE("a descendant that gets the command's pid does not change the status") {
  if (!CanReusePids()) return Skip("root and PID namespaces");
  CHECK(StartReuser("exit 0").Wait() == Exited(3));
}

TEST_CASE("a signal from a process that has reused the command's pid is forwarded") {
  if (!CanReusePids()) return Skip("root and PID namespaces");
  Child child = StartReuser(
      "trap \"echo passed; exit 0\" TERM; read -r x <&3; kill -TERM $z;"
      "while :; do sleep 0.01; done");
  child.ReadErrUntil("which it left behind");  // zklock has seen that the command has ended
  child.Write("\n");
  CHECK(child.ReadLine() == "passed");
  CHECK(child.Wait() == Exited(3));
}

}  // namespace zklock::test
