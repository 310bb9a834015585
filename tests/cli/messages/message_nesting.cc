// Messages about runs nested in a zklock that holds the same LOCK.

#include <catch2/catch.hpp>
#include <csignal>

#include "cli/command/forks.h"
#include "cli/hold/hold_script.h"
#include "cli/messages/provocation.h"
#include "lock/data/contender_data.h"
#include "support/process.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// A run nested below one whose command has ended; it continues until told to end.
std::string NestedRunOutlived() {
  Child outer = Child::Start(
      Script(NewLock("said"),
             "exec $Z exclusive $L -- sh -c '$Z exclusive $L -- sh -c \"echo in; exec sleep 1000\" "
             "& read go; :'"));
  CHECK(outer.ReadLine() == "in");
  outer.Write("\n");
  outer.ReadErrUntil("is held until");
  outer.Signal(SIGTERM);
  CHECK(outer.Wait() == Exited(0));
  outer.ReadToEnd();
  return outer.err();
}

/// A signal ends a nested run while its command is forked.
std::string InterruptedBeforeRun() {
  const TemporaryDirectory directory;
  const std::string events = directory.Path("events");
  const Forks forks;
  Child outer = Child::Start(forks.Use(Script(
      NewLock("said"), "exec $Z exclusive $L -- sh -c 'echo held; read x; $Z exclusive --events " +
                           events + " $L -- echo began & echo $!; wait $!; echo status $?'")));
  CHECK(outer.ReadLine() == "held");
  forks.HoldGuards();
  outer.Write("\n");
  const pid_t nested = std::stoi(outer.ReadLine());
  (void)WaitForChild(nested);
  kill(nested, SIGTERM);
  forks.LetGuardsGo();
  CHECK(outer.ReadLine() == "status 143");
  CHECK(outer.Wait() == Exited(0));
  CHECK_THAT(directory.Read("events"),
             Catch::Contains(R"("status":143)") && Catch::Contains(R"("reason":"interrupted")"));
  return outer.err();
}

/// zklock is suspended while it waits for a nested run.
std::string SuspendedWithNested() {
  Child outer = Child::Start(Script(NewLock("said"),
                                    "exec $Z exclusive $L -- sh -c '$Z exclusive $L -- sh "
                                    "-c \"echo held; exec sleep 1000\" & read x'"));
  CHECK(outer.ReadLine() == "held");
  outer.Write("\n");
  outer.ReadErrUntil("is held until its nested runs have ended");
  outer.Signal(SIGTSTP);
  outer.ReadErrUntil("nested runs will be terminated before then\n");
  outer.WaitUntilStopped();
  outer.Signal(SIGCONT);
  outer.Signal(SIGTERM);
  CHECK(outer.Wait() == Exited(0));
  return outer.err();
}

/// Runs `words` in a shell that holds the lock and whose keeper is stopped.
std::string WhileStopped(const std::string& words, int status) {
  const std::string lock = NewLock("said");
  Child script = Child::Start(
      Script(lock, "$Z exclusive --hold $L || exit; echo held; read x; " + words + "; echo $?"));
  CHECK(script.ReadLine() == "held");
  const pid_t keeper = KeeperOf(lock);
  kill(keeper, SIGSTOP);
  script.Write("\n");
  CHECK(script.ReadLine() == std::to_string(status));
  kill(keeper, SIGCONT);
  CHECK(script.Wait() == Exited(0));
  return script.err();
}

/// Runs `words` in a shell that holds the lock and whose keeper is stopped and has more connections
/// than it can queue.
std::string WhileFlooded(const std::string& words, int status) {
  const std::string lock = NewLock("said");
  Child script = Child::Start(
      Script(lock, "$Z exclusive --hold $L || exit; echo held; read x; " + words + "; echo $?"));
  CHECK(script.ReadLine() == "held");
  Tree tree;
  const std::string data = tree.Get(lock + "/" + tree.Children(lock).at(0))->data;
  const pid_t keeper = KeeperOf(lock, tree);
  kill(keeper, SIGSTOP);
  Child flood = StartFlood(zklock::lock::ParseContenderData(data)->owner->socket);
  CHECK(flood.ReadLine() == "full");
  script.Write("\n");
  CHECK(script.ReadLine() == std::to_string(status));
  kill(keeper, SIGCONT);
  CHECK(script.Wait() == Exited(0));
  return script.err();
}

/// A nested run tries to release the lock; then the shell releases it while a nested run is
/// running.
std::string Released() {
  Child script = Child::Start(
      Script(NewLock("said"),
             "$Z exclusive --hold $L || exit; $Z exclusive $L -- sh -c '$Z release $L'; echo $?; "
             "$Z exclusive $L -- sh -c 'echo in; exec sleep 1000' & read x; $Z release $L & "
             "read y; kill $!; kill %1; wait"));
  CHECK(script.ReadLine() == "64");
  CHECK(script.ReadLine() == "in");
  script.Write("\n");
  script.ReadErrUntil("will be released when");
  script.Write("\n");
  CHECK(script.Wait() == Exited(0));
  return script.err();
}

/// A nested reader queued after a writer that waits for the outer reader.
std::string BehindWriter() {
  const std::string lock = NewLock("said");
  Child reader = Child::Start(Script(
      lock, "exec $Z read $L -- sh -c 'echo in; read x; $Z read --no-nest $L -- true; echo $?'"));
  CHECK(reader.ReadLine() == "in");
  const Child writer = StartWaiter({"write"}, lock);
  reader.Write("\n");
  CHECK(reader.ReadLine() == "64");
  CHECK(reader.Wait() == Exited(0));
  return reader.err();
}

/// Two LOCKs of one --hold.
std::string ReleasedTogether() {
  return Said(Run(Script(NewLock("said"), "$Z exclusive --hold $L $L-b && $Z release $L")),
              Exited(0));
}

/// Returns the message of `zklock WORDS` below a run that holds the LOCK.
std::string Below(const std::string& words) {
  return Said(Run(Script(NewLock("said"), "$Z exclusive $L -- $Z " + words)), Exited(64));
}

/// Returns the same message for a run in another PID namespace.
std::string BelowElsewhere(const std::string& subcommand) {
  return Run(Script(NewLock("said"),
                    "$Z exclusive $L -- unshare --user --map-root-user --pid --fork --mount-proc "
                    "$Z " +
                        subcommand + " $L -- true"))
      .err;
}

}  // namespace

Provocations NestingProvocations() {
  return {
      {{Saying("kKeptForNested").With({"", "1", "\\d+"}), Part("kOuterReleased")},
       NestedRunOutlived},
      {{"kReleaseBelow", Saying("kReleaseWaits").With({"", "1", "\\d+"}),
        Saying("kReleaseUnseen").With({"", "\\d+"})},
       Released},
      {{"kNotReleased"},
       [] {
         return Said(Run(ZklockAt("127.0.0.1:1", {"release", "--connect-timeout", "1s", "/said"})),
                     Exited(69));
       }},
      {{Saying("kReleasesAll").With({"", "2"})}, ReleasedTogether},
      {{"kInterruptedBeforeRun"}, InterruptedBeforeRun},
      {{"kSuspendingNested"}, SuspendedWithNested},
      {{"kWaitsBehindWriter"}, BehindWriter},
      {{"kWaitsByNoNest"}, [] { return Below("exclusive --no-nest $L -- true"); }},
      {{"kWaitsByReserve"}, [] { return Below("exclusive --reserve ci $L"); }},
      {{"kKeeperSilent"}, [] { return WhileStopped("$Z release --connect-timeout 3s $L", 69); }},
      {{"kMineUnconfirmed"},
       [] { return WhileStopped("$Z inspect --mine --connect-timeout 3s $L", 69); }},
      {{"kHolderSilent"},
       [] { return WhileStopped("$Z exclusive --connect-timeout 3s $L -- true", 64); }},
      {{"kHeldByAncestor"},
       [] {
         return Run(Script(NewLock("said"),
                           "$Z exclusive $L -- env -u ZKLOCK_HELD $Z exclusive --dry-run $L -- "
                           "true"))
             .err;
       }},
      {{"kHeldElsewhere", Part("kAndWait", " and --wait")},
       [] { return BelowElsewhere("exclusive"); }},
      {{"kHeldElsewhere"},
       [] {
         const std::string said = BelowElsewhere("try");
         CHECK_THAT(said, Catch::Contains("or give --no-nest\n"));
         return said;
       }},
      {{"kReservedAbove"},
       [] {
         return Run(Script(NewLock("said"),
                           "$Z exclusive --reserve ci $L -- $Z exclusive $L -- true"))
             .err;
       }},
      {{"kHolderCrowded"},
       [] { return WhileFlooded("$Z inspect --mine --connect-timeout 3s $L", 69); }},
  };
}

}  // namespace zklock::test
