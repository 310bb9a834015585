#include <sched.h>
#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/hold/hold_script.h"
#include "cli/zklock.h"
#include "process/loop/system_error.h"
#include "protocol/held.h"
#include "support/skip.h"
#include "support/sudo.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

TEST_CASE(
    "A zklock nested under a lock that excludes others continues at once, whatever it requests") {
  const auto outer = GENERATE(as<std::string>{}, "exclusive", "write");
  const auto inner = GENERATE(as<std::string>{}, "exclusive", "write", "read", "try");
  CAPTURE(outer, inner);
  const std::string lock = NewLock("nesting");
  CHECK(Run(Script(lock, "$Z " + outer + " $L -- $Z " + inner + " $L -- sh -c 'echo ran; exit 7'"),
            Exited(7))
            .out == "ran\n");
}

TEST_CASE(
    "A nested run runs under the outer lock: same contender, same token, no second contender") {
  const std::string lock = NewLock("nesting");
  const Finished finished =
      Run(Script(lock,
                 "$Z exclusive $L -- sh -c 'echo $ZKLOCK_NODE $ZKLOCK_TOKEN;"
                 " $Z exclusive $L -- sh -c \"echo \\$ZKLOCK_NODE \\$ZKLOCK_TOKEN\"'"));
  REQUIRE(finished.exit == Exited(0));
  const std::size_t end = finished.out.find('\n');
  CHECK(finished.out.substr(0, end) == finished.out.substr(end + 1, end));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("The same path below another chroot is another LOCK, for a nested run and for --hold") {
  const std::string top = NewLock("nesting");
  const auto at = [&](const std::string& chroot) {
    return " -z " + TestServers() + top + chroot + " /l";
  };
  const std::string outer = "$Z exclusive" + at("/a") + " -- ";
  Run(Script(top, outer + "$Z exclusive" + at("/a") + " -- true"), Exited(0));
  const std::string is_held = "$Z inspect -q" + at("/b") + "; echo $?";
  CHECK(Run(Script(top, outer + "$Z exclusive" + at("/b") + " -- sh -c '" + is_held + "'")).out ==
        "75\n");
  CHECK(Run(Script(top, outer + "sh -c '$Z exclusive --hold" + at("/b") + "; " + is_held +
                            "; $Z release" + at("/b") + "'"))
            .out == "75\n");
}

/// Prints the command's lock variables on one line, without shell quoting.
const std::string kPrintVariables = "echo $ZKLOCK_LOCK, $ZKLOCK_MODE, $ZKLOCK_NODE, $ZKLOCK_TOKEN";

/// Runs `words` under `zklock exclusive $L` and returns the variables of the outer and the inner
/// command.
Words LockVariables(const std::string& lock, const std::string& words) {
  ChildOptions options = With(Script(lock, "$Z exclusive $L -- sh -c '" + kPrintVariables + "; " +
                                               words + " -- sh -c \"$PRINT\"'"),
                              {"PRINT=" + kPrintVariables});
  const Finished finished = Run(options);
  CAPTURE(finished.err);
  REQUIRE(finished.exit == Exited(0));
  Words lines = Lines(finished.out);
  REQUIRE(lines.size() == 2);
  return lines;
}

TEST_CASE("The command's variables name every LOCK asked for, whoever holds it, and no other") {
  const std::string lock = NewLock("nesting");
  const Words again = LockVariables(lock, "$Z read $L");
  CHECK(again[1] == again[0]);
  const Words through = LockVariables(lock, "$Z exclusive $L-b -- $Z exclusive $L");
  CHECK(through[1] == through[0]);
  const Words both = LockVariables(lock, "$Z read $L-b $L");
  CHECK_THAT(both[1], Catch::StartsWith(lock + " " + lock + "-b, exclusive read, "));
  const std::string node = both[0].substr(both[0].find(lock + "/"));
  const std::string token = node.substr(node.find(", ") + 2);
  CHECK_THAT(both[1], Catch::Contains(node.substr(0, node.find(", ")) + " " + lock + "-b/") &&
                          Catch::Contains(", " + token + " "));
}

TEST_CASE("A reader may nest a reader, and is told why it can never nest a writer") {
  const std::string lock = NewLock("nesting");
  Run(Script(lock, "$Z read $L -- $Z read $L -- true"), Exited(0));
  for (const std::string inner : {"write", "try --write"}) {
    CHECK_THAT(Run(Script(lock, "$Z read $L -- $Z " + inner + " $L -- true"), Exited(64)).err,
               Catch::Contains("write cannot run under it"));
  }
}

TEST_CASE(
    "--no-nest queues a reader under a reader, and refuses a run that would wait for itself") {
  const std::string lock = NewLock("nesting");
  const Finished finished = Run(Script(lock,
                                       "$Z read $L -- sh -c 'echo $ZKLOCK_NODE; "
                                       "$Z read --no-nest $L -- sh -c \"echo \\$ZKLOCK_NODE\"'"),
                                Exited(0));
  const std::size_t end = finished.out.find('\n');
  CHECK(finished.out.substr(0, end + 1) != finished.out.substr(end + 1));
  for (const std::string inner : {"exclusive", "write", "read"}) {
    CAPTURE(inner);
    CHECK_THAT(
        Run(Script(lock, "$Z exclusive $L -- $Z " + inner + " --no-nest $L -- true"), Exited(64))
            .err,
        Catch::Contains("forever"));
  }
  Run(Script(lock, "$Z exclusive $L -- $Z try -q --no-nest $L -- true"), Exited(75));
}

TEST_CASE("A --no-nest reader is refused when a writer waits for the reader above it") {
  const auto outer = GENERATE(as<std::string>{}, "exec $Z read $L -- sh -c 'echo in; read x; ",
                              "$Z read --hold $L || exit; sh -c 'echo in; read x; ");
  CAPTURE(outer);
  const std::string lock = NewLock("nesting");
  Child reader = Child::Start(
      Script(lock, outer + "$Z read -q --no-nest --wait 0.1 $L -- true; echo $?; "
                           "$Z try -q --read --no-nest $L -- true; echo $?; "
                           "$Z read --no-nest $L -- true; echo $?; $Z read $L -- echo nested'"));
  REQUIRE(reader.ReadLine() == "in");
  Child writer = StartWaiter({"write"}, lock);
  reader.Write("\n");
  CHECK(reader.ReadLine() == "75");
  CHECK(reader.ReadLine() == "75");
  CHECK(reader.ReadLine() == "64");
  CHECK(reader.ReadLine() == "nested");
  CHECK(reader.Wait() == Exited(0));
  CHECK_THAT(reader.err(), Catch::Contains("a writer waits for it"));
  CHECK(writer.ReadLine() == "held");
}

TEST_CASE("One permit does not replace another, and no run may wait for its own permit") {
  const std::string lock = NewLock("nesting");
  const std::string two = "$Z exclusive --permits 2 $L -- ";
  Run(Script(lock, two + two + "true"), Exited(0));
  const Finished refused = Run(Script(lock, two + two + two + "true"), Exited(64));
  CHECK_THAT(refused.err, Catch::Contains("forever"));
  const std::string whole = NewLock("nesting");
  Run(Script(whole, "$Z exclusive $L -- " + two + "true"), Exited(0));
  // A run with a time limit is not refused: it ends by itself.
  Run(Script(lock, two + two + "$Z try -q --permits 2 $L -- true"), Exited(75));
  Run(Script(lock, two + two + "$Z exclusive -q -w 0.1 --permits 2 $L -- true"), Exited(75));
}

TEST_CASE("A nested run acquires its own permit if that of the outer zklock was deleted") {
  // The outer zklock is stopped so that it cannot react to its loss before the inner one asks.
  const std::string lock = NewLock("nesting");
  Child outer =
      Child::Start(Script(lock,
                          "exec $Z exclusive --permits 1 $L -- sh -c 'echo $ZKLOCK_NODE; read go; "
                          "$Z exclusive -q --permits 1 $L -- echo ours; echo $?'"));
  const std::string node = outer.ReadLine();
  outer.Signal(SIGSTOP);
  outer.WaitUntilStopped();
  Tree().Delete(node);
  outer.Write("go\n");
  CHECK(outer.ReadLine() == "ours");
  CHECK(outer.ReadLine() == "0");
  outer.Signal(SIGCONT);
}

TEST_CASE("A run of another LOCK between the outer and the nested run changes nothing") {
  const std::string lock = NewLock("nesting");
  Run(Script(lock, "$Z exclusive $L -- $Z exclusive $L-other -- $Z exclusive $L -- true"),
      Exited(0));
}

TEST_CASE("Without the environment a nested run queues, and warns that it may wait for itself") {
  const std::string warning = "ZKLOCK_HELD is missing";
  const auto without = [&](const std::string& program) {
    CAPTURE(program);
    const auto nested = [&](const std::string& run) {
      return Script(NewLock("nesting"), "exec $Z exclusive $L -- " + program + " $Z " + run +
                                            " -z $ZKLOCK_SERVERS $L -- true");
    };
    for (const std::string run :
         {"try", "exclusive --wait 0.1", "exclusive --preempt all --wait 0.3",
          "exclusive --max-queue 0"}) {
      CHECK_THAT(Run(nested(run), Exited(75)).err, Catch::Contains("is held by"));
    }
    CHECK_THAT(Run(nested("try"), Exited(75)).err, !Catch::Contains(warning));
    CHECK_THAT(Run(nested("exclusive --any $L-other"), Exited(0)).err, !Catch::Contains(warning));
    CHECK_THAT(Run(nested("read --dry-run"), Exited(75)).err, Catch::Contains(warning));
    Child waiting = Child::Start(nested("exclusive"));
    waiting.ReadErrUntil(warning);
    waiting.Signal(SIGTERM);
    waiting.Wait();
  };
  without("env -u ZKLOCK_HELD");
  without("env -i");
  if (Run({.argv = {"sudo", "-n", "true"}}).exit == Exited(0)) {
    without("sudo -n");
  } else {
    Skip("sudo without a password");
  }
}

TEST_CASE("A nested run of root that hidepid hides from the outer zklock is refused") {
  const Sudo sudo;
  if (!sudo.works()) return Skip("root and setuid files");
  const TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  const std::string binary = directory.Path("zklock");
  std::filesystem::copy_file(Binary(), binary);
  const std::string lock = NewLock("nesting");
  ChildOptions options = Script(
      lock, binary + " exclusive $L -- " + sudo.command() + binary + " exclusive $L -- echo inner");
  options.prepare = [] {
    process::Check(unshare(CLONE_NEWNS), "unshare");
    process::Check(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount");
    process::Check(mount("proc", "/proc", "proc", 0, "hidepid=2"), "mount");
    Sudo::BecomeNobody();
  };
  const Finished finished = Run(options, Exited(64));
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err, Catch::Contains("might wait for itself forever"));
}

TEST_CASE("A stale claim in the environment does not hide a live one") {
  const std::string lock = NewLock("nesting");
  const Finished finished = Run(
      Script(lock,
             "$Z exclusive $L -- sh -c '"
             "ZKLOCK_HELD=\"$ZKLOCK_HELD read:2147483647:$(stat -L -c %i /proc/self/ns/pid):1:1:s:"
             "$L/x-__READ__0000000009\" "
             "$Z try $L -- echo ours'"));
  CAPTURE(finished.err);
  CHECK(finished.out == "ours\n");
}

TEST_CASE("A copied environment has no effect on a lock that another zklock holds") {
  const std::string lock = NewLock("nesting");
  Child holder =
      Child::Start(Script(lock, "$Z exclusive $L -- sh -c 'echo $ZKLOCK_HELD; read x; :'"));
  const std::string held = holder.ReadLine();
  REQUIRE_FALSE(held.empty());
  auto options = Script(lock, "$Z try -q $L -- true");
  options.also_environment.push_back("ZKLOCK_HELD=" + held);
  Run(options, Exited(75));
  CHECK(Finish(holder) == Exited(0));
}

TEST_CASE("When the outer lock was deleted but the outer zklock still lives, a nested run queues") {
  // The outer zklock is stopped so that it cannot react to its loss before the inner one asks.
  const std::string lock = NewLock("nesting");
  Child outer =
      Child::Start(Script(lock,
                          "exec $Z exclusive $L -- sh -c '"
                          "echo $ZKLOCK_NODE; read go; $Z try -q $L -- echo ours; echo $?'"));
  const std::string node = outer.ReadLine();
  Tree tree;
  outer.Signal(SIGSTOP);
  outer.WaitUntilStopped();
  tree.Delete(node);
  // Another zklock takes the lock, so that a `try` that joins the queue finds it taken.
  Child next = Child::Start(Script(lock, "$Z exclusive $L -- sh -c 'echo next; read x; :'"));
  REQUIRE(next.ReadLine() == "next");
  outer.Write("go\n");
  CHECK(outer.ReadLine() == "75");
  outer.Signal(SIGCONT);
  CHECK(Finish(next) == Exited(0));
}

TEST_CASE("A nested run ends when the outer lock is deleted") {
  const std::string lock = NewLock("nesting");
  Child outer = Child::Start(Script(
      lock,
      "exec $Z exclusive $L -- $Z exclusive $L -- sh -c 'echo $ZKLOCK_NODE; exec sleep 1000'"));
  const std::string node = outer.ReadLine();
  Tree().Delete(node);
  CHECK(outer.Wait() == Exited(76));
  outer.ReadToEnd();  // no process of the tree still has its output open
}

TEST_CASE("A nested run ends when the outer lock is released on request") {
  const std::string lock = NewLock("nesting");
  Child outer = Child::Start(
      Script(lock, "exec $Z exclusive $L -- $Z exclusive $L -- sh -c 'echo in; exec sleep 1000'"));
  REQUIRE(outer.ReadLine() == "in");
  RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  CHECK(outer.Wait() == Exited(76));
  outer.ReadToEnd();
  CHECK(Tree().Children(lock).empty());
}

/// A stopped outer zklock whose command runs `words`, and another program that has filled the
/// connection queue of the outer zklock's socket.
struct Flooded {
  const std::string lock = NewLock("flooded");
  Child outer;
  Child flood;

  explicit Flooded(const std::string& words)
      : outer(Child::Start(Script(
            lock,
            "exec $Z exclusive $L -- sh -c 'echo $ZKLOCK_HELD; read x; exec " + words + "'"))),
        flood(StartFloodOf(outer)) {}
  static Child StartFloodOf(Child& outer) {
    const auto held = protocol::ParseHeld(outer.ReadLine());
    outer.Signal(SIGSTOP);
    Child flood = StartFlood(held.at(0).socket);
    REQUIRE(flood.ReadLine() == "full");
    outer.Write("\n");
    return flood;
  }
};

TEST_CASE("A flood of strangers' connections does not hide the outer zklock from a nested run") {
  Flooded flooded("$Z try $L -- echo ran");
  flooded.outer.Signal(SIGCONT);
  CHECK(flooded.outer.ReadLine() == "ran");
  CHECK(flooded.outer.Wait() == Exited(0));
}

TEST_CASE("A nested run that cannot ask because of others' connections is refused, not queued") {
  Flooded flooded("sh -c \"$Z try --connect-timeout 5s $L -- echo ran; echo ended \\$?\"");
  // Wait for the end first: CONT could cancel the STOP with which the leak sanitizer stops a
  // process at its end.
  CHECK(flooded.outer.ReadLine() == "ended 64");
  flooded.outer.Signal(SIGCONT);
  CHECK(flooded.outer.Wait() == Exited(0));
  CHECK_THAT(flooded.outer.err(), Catch::Contains("cannot be asked: too many connections"));
}

const std::string kPidNamespace = "unshare --user --map-root-user --pid --fork --mount-proc ";
const std::string kTimeNamespace =
    "unshare --user --map-root-user --time --boottime 100000 --fork ";

/// Returns whether commands can be run in such a namespace.
bool Works(const std::string& in_namespace) {
  if (Run({.argv = {"/bin/sh", "-c", in_namespace + "true"}}).exit == Exited(0)) return true;
  Skip("namespaces");
  return false;
}

TEST_CASE("A run below an outer zklock in another PID or time namespace is refused, not queued") {
  const auto in_namespace = GENERATE(kPidNamespace, kTimeNamespace);
  if (!Works(in_namespace)) return;
  const auto inner = GENERATE(as<std::string>{}, "exclusive", "read", "try", "write --wait 99s");
  CAPTURE(in_namespace, inner);
  const Finished finished = Run(Script(NewLock("elsewhere"), "$Z exclusive $L -- " + in_namespace +
                                                                 "$Z " + inner + " $L -- echo ran"),
                                Exited(64));
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err, Catch::Contains("outer zklock in another PID or time namespace"));
}

TEST_CASE(
    "In another namespace, another LOCK's run in between changes nothing, and --no-nest queues") {
  if (!Works(kPidNamespace)) return;
  const std::string lock = NewLock("elsewhere");
  Run(Script(lock, "$Z exclusive $L -- " + kPidNamespace + "$Z exclusive $L-b -- $Z try $L-b " +
                       "-- true"),
      Exited(0));
  Run(Script(lock, "$Z exclusive $L -- " + kPidNamespace +
                       "$Z exclusive $L-b -- $Z exclusive "
                       "$L -- true"),
      Exited(64));
  Run(Script(lock, "$Z exclusive $L -- " + kPidNamespace + "$Z try --no-nest $L -- true"),
      Exited(75));
}

TEST_CASE("A run is refused if outer zklocks in another namespace hold all permits") {
  if (!Works(kPidNamespace)) return;
  CHECK_THAT(Run(Script(NewLock("elsewhere"), "$Z exclusive --permits 1 $L -- " + kPidNamespace +
                                                  "$Z exclusive --permits 1 $L -- true"),
                 Exited(64))
                 .err,
             Catch::Contains("outer zklocks hold all permits"));
}

TEST_CASE("A run below a shell that holds the lock in another PID or time namespace is refused") {
  const auto in_namespace = GENERATE(kPidNamespace, kTimeNamespace);
  if (!Works(in_namespace)) return;
  CAPTURE(in_namespace);
  const Finished finished =
      Run(Script(NewLock("elsewhere"), "$Z exclusive --hold $L || exit; " + in_namespace +
                                           "$Z exclusive $L -- echo ran; echo $?"));
  CHECK(finished.out == "64\n");
  CHECK_THAT(finished.err, Catch::Contains("outer zklock in another PID or time namespace"));
}

TEST_CASE("Processes outside a shell's PID namespace wait for the lock that the shell holds") {
  if (!Works(kPidNamespace)) return;
  const std::string lock = NewLock("elsewhere");
  Child shell = Child::Start(
      Script(lock, "exec " + kPidNamespace +
                       "sh -c '$Z exclusive --hold --owner-pid $$ $L || exit; echo held; "
                       "read x; $Z release $L'"));
  CHECK(shell.ReadLine() == "held");
  RunZklock({"try", lock, "--", "true"}, Exited(75));
  Child waiter = StartWaiter(lock);
  shell.CloseInput();
  CHECK(waiter.ReadLine() == "held");
}

}  // namespace
}  // namespace zklock::test
