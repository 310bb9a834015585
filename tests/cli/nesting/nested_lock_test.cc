// A nested run never outlives the lock that it runs under, and a lock is not released before the
// runs nested under it have ended.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>

#include "cli/command/forks.h"
#include "cli/hold/hold_script.h"
#include "cli/zklock.h"
#include "protocol/held.h"
#include "support/child.h"
#include "support/peer.h"
#include "support/process.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// A command for nested runs: writes "in" and the path of its contender, and ends when it can read
/// from the FIFO $F.
constexpr char kNested[] = "sh -c 'echo in $ZKLOCK_NODE; read x <$F; echo out'";

/// A FIFO that nested commands read before they end.
class Gate {
 public:
  explicit Gate(const std::string& directory) : path_(directory + "/gate") {
    if (mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
  }
  [[nodiscard]] std::string variable() const { return "F=" + path_; }
  /// Lets one command continue.
  void Open() const { std::ofstream(path_) << "\n"; }

 private:
  std::string path_;
};

ChildOptions WithGate(ChildOptions options, const Gate& gate) {
  options.also_environment.push_back(gate.variable());
  return options;
}

/// Returns the contender's path from the line "in PATH".
std::string NodeIn(const std::string& line) {
  if (line.rfind("in /", 0) != 0) throw std::runtime_error("not started: " + line);
  return line.substr(3);
}

/// A zklock whose command has exited with 3 while a nested run continues. The exit status of the
/// nested run will be printed.
struct Outlived {
  explicit Outlived(const std::string& lock, const std::string& options = "",
                    const std::string& servers = TestServers())
      : outer(Child::Start(Options(lock, options, servers))), node(NodeIn(outer.ReadLine())) {
    outer.Write("\n");
    outer.ReadErrUntil("is held until");
  }
  static ChildOptions Options(const std::string& lock, const std::string& options,
                              const std::string& servers) {
    ChildOptions script =
        Script(lock, "exec $Z exclusive " + options +
                         " $L -- sh -c '($Z exclusive $L -- sh -c \"echo in \\$ZKLOCK_NODE; "
                         "exec sleep 1000\"; echo $?) & read go; exit 3'");
    script.also_environment.push_back("ZKLOCK_SERVERS=" + servers);
    return script;
  }
  Child outer;
  const std::string node;  ///< of the outer contender
};

TEST_CASE("A lock is held until a nested run that outlives the command has ended") {
  const TemporaryDirectory directory;
  const Gate gate(directory.path());
  const std::string lock = NewLock("nested");
  Child outer = Child::Start(WithGate(
      Script(lock, std::string("exec $Z exclusive $L -- sh -c '$Z exclusive $L -- sh -c \"") +
                       "echo in \\$ZKLOCK_NODE; read x <$F; echo out\" & read go; exit 3'"),
      gate));
  (void)NodeIn(outer.ReadLine());
  Child next = StartWaiter(lock);
  outer.Write("\n");
  outer.ReadErrUntil("is held until");
  CHECK_FALSE(outer.HasEnded());
  RunZklock({"try", "-q", lock, "--", "true"}, Exited(75));
  gate.Open();
  CHECK(outer.ReadLine() == "out");
  CHECK(next.ReadLine() == "held");
  CHECK(outer.Wait() == Exited(3));
  CHECK(outer.err().find("outlived") == std::string::npos);
}

TEST_CASE("A run nested in a nested run starts even after the outer command has ended") {
  const TemporaryDirectory directory;
  const Gate gate(directory.path());
  const std::string lock = NewLock("nested");
  Child outer = Child::Start(WithGate(
      Script(lock,
             "exec $Z exclusive $L -- sh -c '$Z exclusive $L -- sh -c \""
             "echo in \\$ZKLOCK_NODE; read x <$F; $Z exclusive $L -- echo deeper\" & read go; :'"),
      gate));
  (void)NodeIn(outer.ReadLine());
  outer.Write("\n");
  outer.ReadErrUntil("is held until");
  gate.Open();
  CHECK(outer.ReadLine() == "deeper");
  CHECK(outer.Wait() == Exited(0));
}

TEST_CASE("A signal to the outer zklock ends the nested runs that it waits for") {
  const auto number = GENERATE(SIGTERM, SIGINT, SIGHUP, SIGQUIT);
  CAPTURE(number);
  const std::string lock = NewLock("nested");
  Outlived outlived(lock);
  Child& outer = outlived.outer;
  outer.Signal(number);
  CHECK(outer.ReadLine() == "76");
  CHECK(outer.Wait() == Exited(3));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("A nested run that outlives the command ends when the lock is deleted") {
  const std::string lock = NewLock("nested");
  Outlived outlived(lock);
  Child& outer = outlived.outer;
  Tree().Delete(outlived.node);
  CHECK(outer.ReadLine() == "76");
  CHECK(outer.Wait() == Exited(76));
}

TEST_CASE("A run whose lease ends its nested runs has lost the lock, even without a command") {
  // Nested runs have a --kill-after of their own, so they may end earlier than a command here
  // would.
  const auto options = GENERATE(as<std::string>{}, "", "--kill-after 0", "--on-lost warn");
  CAPTURE(options);
  const std::string lock = NewLock("nested");
  Proxy proxy(TestServers());
  Outlived outlived(lock, "--session-timeout 4s " + options, proxy.address());
  Child& outer = outlived.outer;
  proxy.Freeze();
  CHECK(outer.ReadLine() == "76");
  CHECK(outer.Wait() == Exited(76));
  CHECK_THAT(outer.err(), Catch::Contains("zklock: lost " + lock));
}

TEST_CASE("A nested run that outlives the command ends when the outer zklock is killed") {
  const std::string lock = NewLock("nested");
  Outlived outlived(lock);
  Child& outer = outlived.outer;
  outer.Signal(SIGKILL);
  CHECK(outer.ReadLine() == "76");
  outer.ReadToEnd();
}

TEST_CASE("When the outer zklock is stopped, a nested run ends before the lease") {
  const std::string lock = NewLock("nested");
  Outlived outlived(lock, "--session-timeout 10s");
  Child& outer = outlived.outer;
  Child next = StartWaiter(lock);
  outer.Signal(SIGSTOP);
  CHECK(outer.ReadLine() == "76");
  CHECK(Tree().Children(lock).size() == 2);
  outer.Signal(SIGKILL);
  CHECK(next.ReadLine() == "held");
}

TEST_CASE("A release waits for nested runs of the shell that holds the lock") {
  const TemporaryDirectory directory;
  const Gate gate(directory.path());
  const std::string lock = NewLock("nested");
  Child script = Child::Start(
      WithGate(Script(lock, std::string("$Z exclusive --hold $L || exit; $Z exclusive $L -- ") +
                                kNested + " & read x; $Z release $L; echo $?; wait; echo all"),
               gate));
  (void)NodeIn(script.ReadLine());
  Child next = StartWaiter(lock);
  script.Write("\n");
  script.ReadErrUntil("will be released when");
  RunZklock({"try", "-q", lock, "--", "true"}, Exited(75));
  gate.Open();
  CHECK(script.ReadLine() == "out");
  CHECK(script.ReadLine() == "0");
  CHECK(next.ReadLine() == "held");
}

TEST_CASE("A lock held by --hold is kept until a nested run that outlives the shell has ended") {
  const TemporaryDirectory directory;
  const Gate gate(directory.path());
  const std::string lock = NewLock("nested");
  Child script = Child::Start(
      WithGate(Script(lock, std::string("$Z exclusive --hold $L || exit; $Z exclusive $L -- ") +
                                kNested + " & read x; exit 0"),
               gate));
  (void)NodeIn(script.ReadLine());
  script.Write("\n");
  CHECK(script.Wait() == Exited(0));
  RunZklock({"exclusive", "-q", "--wait", "1s", lock, "--", "true"}, Exited(75));
  gate.Open();
  CHECK(script.ReadLine() == "out");
  RunZklock({"exclusive", "-q", lock, "--", "true"}, Exited(0));
}

TEST_CASE("A nested run exits with 76 when the lock of --hold is lost or must be released") {
  const std::string lock = NewLock("nested");
  const auto how = GENERATE(as<std::string>{}, "deleted", "asked for", "told to end", "killed");
  CAPTURE(how);
  Child script = Child::Start(
      Script(lock,
             "trap : TERM; $Z exclusive --hold $L || exit; $Z exclusive $L -- sh -c 'echo in "
             "$ZKLOCK_NODE; exec sleep 1000'; echo $?; exit 0"));
  const std::string node = NodeIn(script.ReadLine());
  const pid_t keeper = KeeperOf(lock);
  if (how == "deleted") {
    RunZklock({"release", "--force", "--yes", "--contender", BaseName(node), lock}, Exited(0));
  } else if (how == "asked for") {
    RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  } else {
    kill(keeper, how == "killed" ? SIGKILL : SIGTERM);
  }
  CHECK(script.ReadLine() == "76");
  CHECK(script.Wait() == Exited(0));
  CHECK_THAT(script.err(), Catch::Contains("zklock: lost "));
}

TEST_CASE("A nested command does not begin if the outer lock is lost while it is forked") {
  const std::string on_lost = GENERATE("stop", "warn");
  const std::string lock = NewLock("nested");
  const Forks forks;
  ChildOptions options =
      Zklock({"exclusive", "--on-lost", "warn", lock, "--", "sh", "-c",
              "echo held; read x; " + Binary() + " exclusive --on-lost " + on_lost + " " + lock +
                  " -- echo began & echo $!; wait $!; echo status $?"});
  options.keep_stdin = true;
  Child outer = Child::Start(forks.Use(std::move(options)));
  REQUIRE(outer.ReadLine() == "held");
  forks.HoldGuards();
  outer.Write("\n");
  (void)WaitForChild(std::stoi(outer.ReadLine()));
  Tree tree;
  tree.Delete(lock + "/" + tree.Children(lock).at(0));
  outer.ReadErrUntil("lost " + lock);  // nested runs have been notified by now
  forks.LetGuardsGo();
  CHECK(outer.ReadLine() == "status 75");
  outer.ReadErrUntil("lost before the command could be run");
}

namespace {

/// Starts a run whose command has ended and has left a nested run with --on-lost warn, whose
/// arguments for LOCKs are `nested`.
Child StartWithWarnLeft(const std::string& lock, const std::string& nested,
                        const std::string& max_run = "1h") {
  ChildOptions options =
      Zklock({"exclusive", "--max-run", max_run, lock, "--", "sh", "-c",
              Binary() + " exclusive --on-lost warn " + nested +
                  " -- sh -c 'echo began; exec sleep 1000' </dev/null & read x; exit 0"});
  options.keep_stdin = true;
  Child outer = Child::Start(std::move(options));
  REQUIRE(outer.ReadLine() == "began");
  outer.Write("\n");
  outer.ReadErrUntil("nested runs have ended");
  return outer;
}

}  // namespace

TEST_CASE("Even with --on-lost warn a nested run ends when the outer lock has to be released") {
  const std::string how = GENERATE("a request", "TERM", "--max-run");
  const std::string lock = NewLock("nested");
  Child outer = StartWithWarnLeft(lock, lock, how == "--max-run" ? "3s" : "1h");
  if (how == "a request") RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  if (how == "TERM") outer.Signal(SIGTERM);
  CHECK(outer.Wait() == Exited(how == "TERM" ? 0 : how == "--max-run" ? 124 : 76));
  CHECK_THAT(outer.err(), !Catch::Contains("others may run too"));
}

TEST_CASE("A nested run that continues without its own lock says why the outer one ends it") {
  const std::string lock = NewLock("nested");
  const std::string own = lock + "-own";
  Child outer = StartWithWarnLeft(lock, lock + " " + own);
  Tree tree;
  tree.Delete(own + "/" + tree.Children(own).at(0));
  outer.ReadErrUntil("others may run too");
  outer.Signal(SIGTERM);
  outer.ReadErrUntil("lost " + lock + ": ");
  CHECK(outer.Wait() == Exited(0));
}

/// Returns how many accepted connections to the abstract socket `socket` are still open, in the
/// listening process or its guard.
std::ptrdiff_t ConnectionsTo(const std::string& socket) {
  std::ifstream file("/proc/net/unix");
  std::ptrdiff_t count = -1;  // the socket itself
  for (std::string line; std::getline(file, line);) count += line.ends_with("@" + socket) ? 1 : 0;
  return count;
}

TEST_CASE("A nested run that wakes late exits with its command's status, not that of a lost lock") {
  const std::string own = GENERATE("", "--also-write $L-own ");
  const TemporaryDirectory directory;
  const Gate gate(directory.path());
  Child outer = Child::Start(WithGate(
      Script(NewLock("nested"),
             "exec $Z exclusive $L -- sh -c 'echo $ZKLOCK_HELD; $Z exclusive --descendants kill " +
                 own +
                 "$L -- sh -c \"echo in; read x <$F; sleep 1000 & exit 3\" & echo nested $!; "
                 "wait $!; echo status $?'"),
      gate));
  const std::string socket = protocol::ParseHeld(outer.ReadLine()).at(0).socket;
  const std::string lines = outer.ReadLine() + outer.ReadLine();
  const pid_t nested = Number(lines, "nested ");
  CHECK(ConnectionsTo(socket) > 0);
  kill(nested, SIGSTOP);
  gate.Open();
  WaitUntil([&] { return ConnectionsTo(socket) == 0; }, "the end of the nested run's connection");
  kill(nested, SIGCONT);
  CHECK(outer.ReadLine() == "status 3");
  CHECK(outer.Wait() == Exited(0));
  CHECK(outer.err().find("lost") == std::string::npos);
}

TEST_CASE("When a keeper is stopped, a nested run ends before the lease") {
  const std::string lock = NewLock("nested");
  Child script = Child::Start(Script(
      lock,
      "trap : TERM; $Z exclusive --hold --session-timeout 10s $L || exit; $Z exclusive $L -- "
      "sh -c 'echo in $ZKLOCK_NODE; exec sleep 1000'; echo $?; exit 0"));
  (void)NodeIn(script.ReadLine());
  const pid_t keeper = KeeperOf(lock);
  Child next = StartWaiter(lock);
  kill(keeper, SIGSTOP);
  CHECK(script.ReadLine() == "76");
  CHECK(Tree().Children(lock).size() == 2);
  kill(keeper, SIGKILL);
  CHECK(next.ReadLine() == "held");
}

TEST_CASE("A killed keeper's session lasts as long as a nested run may rely on it") {
  // The nested zklock is stopped and cannot act: its guard ends the command before the lease ends.
  // It runs in its own session; otherwise the shell's exit would continue it.
  // The command survives the signal, even if the processes that it starts get it too.
  const std::string lock = NewLock("nested");
  Child script = Child::Start(Script(
      lock,
      "$Z exclusive --hold --session-timeout 10s $L || exit; setsid $Z exclusive $L -- sh -c "
      "'echo in $PPID; trap \"echo told; while :; do sleep 1; done\" TERM; sleep 1000 & "
      "wait' & echo nested $!; read x; exit 0"));
  pid_t nested = 0;
  for (int line = 0; line < 2; ++line) {
    const std::string text = script.ReadLine();
    if (text.rfind("nested ", 0) == 0) nested = Number(text, "nested ");
  }
  const pid_t keeper = KeeperOf(lock);
  Child next = StartWaiter(lock);
  kill(nested, SIGSTOP);
  kill(keeper, SIGKILL);
  script.CloseInput();  // ends the shell, if its signal for the lost lock has not done so already
  CHECK(script.ReadLine() == "told");
  CHECK(Tree().Children(lock).size() == 2);
  CHECK(next.ReadLine() == "held");  // the command is dead
  kill(nested, SIGKILL);
}

TEST_CASE("A release from within a nested run is refused, because it would wait for itself") {
  const std::string lock = NewLock("nested");
  const Finished finished =
      Run(Script(lock,
                 "$Z exclusive --hold $L || exit; $Z exclusive $L -- sh -c '$Z release $L; "
                 "echo $?'; $Z release $L; echo $?"));
  CHECK(finished.out == "64\n0\n");
  CHECK_THAT(finished.err, Catch::Contains("cannot be released from here"));
}

TEST_CASE("With several LOCKs, losing the nested one ends the command and releases the others") {
  const std::string lock = NewLock("nested");
  Child script = Child::Start(
      Script(lock,
             "trap : TERM; $Z exclusive --hold $L || exit; $Z exclusive $L $L-b -- sh -c 'echo in "
             "$ZKLOCK_NODE; exec sleep 1000'; echo $?; exit 0"));
  (void)NodeIn(script.ReadLine());
  kill(KeeperOf(lock), SIGTERM);
  CHECK(script.ReadLine() == "76");
  CHECK(script.Wait() == Exited(0));
  Tree tree;
  tree.WaitForChildren(lock, 0);
  CHECK(tree.Children(lock + "-b").empty());
}

TEST_CASE("A run waiting for a second LOCK leaves when the first is no longer held for it") {
  const std::string lock = NewLock("nested");
  Child holder = StartHolder(lock + "-b");
  Child script = Child::Start(Script(
      lock,
      "trap : TERM; $Z exclusive --hold $L || exit; $Z exclusive -v $L $L-b -- echo ran; echo $?"));
  script.ReadErrUntil("waiting for " + lock + "-b");
  kill(KeeperOf(lock), SIGTERM);
  CHECK(script.ReadLine() == "75");
  CHECK_THAT(script.err(), Catch::Contains("was lost before"));
}

}  // namespace
}  // namespace zklock::test
