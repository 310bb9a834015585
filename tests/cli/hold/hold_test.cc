// --hold and release: scripts that lock part of their run, and every way such a script can end.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>

#include "cli/hold/hold_script.h"
#include "cli/mark.h"
#include "cli/servers/one_connection.h"
#include "cli/zklock.h"
#include "process/tree/process_tree.h"
#include "support/frames.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/process.h"
#include "support/skip.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

TEST_CASE("A script holds a lock for part of its run and releases it") {
  const auto shell = GENERATE(as<std::string>{}, "bash", "dash");
  const std::string lock = NewLock("hold");
  Child script = Child::Start(Script(
      lock, "$Z exclusive --hold $L || exit; echo held; read x; $Z release $L; echo $?; read x",
      shell));
  CHECK(script.ReadLine() == "held");
  CHECK(Tree().Children(lock).size() == 1);
  RunZklock({"try", "-q", lock, "--", "true"}, Exited(75));
  script.Write("\n");
  CHECK(script.ReadLine() == "0");
  CHECK(Tree().Children(lock).empty());
  CHECK(script.err().empty());
  CHECK_FALSE(script.HasEnded());
}

#ifndef ZKLOCK_SANITIZED  // the sanitizers' runtime needs /proc before zklock does
TEST_CASE("Without /proc, --hold is refused with the reason") {
  if (geteuid() != 0) return Skip("root");
  const Finished finished = Run(
      Script(NewLock("hold"),
             "exec unshare -m sh -c 'mount -t tmpfs none /proc; $Z exclusive --hold $L; exit $?'"));
  CHECK(finished.exit == Exited(71));
  CHECK_THAT(finished.err, Catch::Contains("in /proc: mount it readable\n"));
}
#endif

TEST_CASE("However the script ends, the lock is released") {
  const auto end = GENERATE(as<std::string>{}, "exit 0", "exit 3", "kill -KILL $$", "kill $$",
                            "exec true", "set -u; echo $unset_variable", "return_from_nothing");
  CAPTURE(end);
  const std::string lock = NewLock("hold");
  Child script =
      Child::Start(Script(lock, "$Z exclusive --hold $L || exit; echo held; read x; " + end));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  script.Write("\n");
  script.Wait();
  tree.WaitForChildren(lock, 0);
}

TEST_CASE("An owner that executes another program is the same owner") {
  const std::string lock = NewLock("hold");
  Child script = Child::Start(Script(lock, "$Z exclusive --hold $L && exec cat"));
  Tree tree;
  script.Write("through\n");
  REQUIRE(script.ReadLine() == "through");  // cat is running
  CHECK(tree.Children(lock).size() == 1);
  CHECK(Finish(script) == Exited(0));
  tree.WaitForChildren(lock, 0);
}

TEST_CASE("A shell that executes zklock does not wait for the lock it holds itself") {
  const std::string lock = NewLock("hold");
  CHECK(Run(Script(lock, "$Z exclusive --hold $L && exec $Z exclusive $L -- echo ran"), Exited(0))
            .out == "ran\n");
}

TEST_CASE("--max-queue counts the shell's hold for others, but not for runs below the shell") {
  const auto mode = GENERATE(as<std::string>{}, "exclusive", "write");
  CAPTURE(mode);
  const std::string lock = NewLock("hold");
  Child script = Child::Start(
      Script(lock, "$Z " + mode +
                       " --hold $L || exit; $Z exclusive --max-queue 0 $L -- echo ran; "
                       "$Z exclusive --hold --max-queue 0 $L; echo $?; read x; :"));
  CHECK(script.ReadLine() == "ran");
  CHECK(script.ReadLine() == "0");
  CHECK_THAT(RunZklock({"exclusive", "--max-queue", "0", lock, "--", "true"}, Exited(75)).err,
             Catch::Contains("a limit of 0 allows no waiters"));
  CHECK(Finish(script) == Exited(0));
}

TEST_CASE("A shell that executes zklock may still inspect and release what it holds") {
  const auto last = GENERATE(as<std::string>{}, "inspect --mine -q $L", "release $L");
  CAPTURE(last);
  const std::string lock = NewLock("hold");
  Run(Script(lock, "$Z exclusive --hold $L && exec $Z " + last), Exited(0));
  Tree().WaitForChildren(lock, 0);
}

TEST_CASE("Ctrl-C ends the script and releases the lock") {
  const std::string lock = NewLock("hold");
  ChildOptions options = Script(lock, "$Z exclusive --hold $L && echo held; sleep 1000");
  options.keep_stdin = false;
  Child script = Child::StartOnTerminal(options);
  script.ReadUntil("held");
  script.Write("\x03");
  CHECK(script.Wait() == Killed(SIGINT));
  Tree().WaitForChildren(lock, 0);
}

TEST_CASE("After Ctrl-C during the wait zklock leaves the queue, and the script ends") {
  auto [lock, holder] = HoldNewLock("hold");
  ChildOptions options = Script(lock, "$Z exclusive -v --hold $L; echo went on");
  options.keep_stdin = false;
  Child script = Child::StartOnTerminal(options);
  script.ReadUntil("waiting for");
  script.Write("\x03");
  CHECK(script.Wait() == Killed(SIGINT));
  CHECK(Tree().Children(lock).size() == 1);
  CHECK(script.out().find("went on") == std::string::npos);
}

TEST_CASE("The keeper keeps no pipe open and prints nothing") {
  const std::string lock = NewLock("hold");
  // cat ends only when the last writer has closed the pipe.
  const Finished finished =
      Run(Script(lock,
                 "exec 7>&1; x=$($Z exclusive --hold --owner-pid $$ $L 2>&1 7>&1 | cat);"
                 "echo \"[$x]\"; $Z release $L; echo $?"));
  CHECK(finished.out == "[]\n0\n");
  CHECK(finished.err.empty());
}

TEST_CASE("One shell holds two LOCKs, and releases them one by one") {
  const std::string lock = NewLock("hold");
  const Finished finished =
      Run(Script(lock,
                 "$Z exclusive --hold $L-a && $Z exclusive --hold $L-b && echo both;"
                 "$Z release $L-a; $Z try -q $L-a -- echo free;"
                 "env -i ZKLOCK_SERVERS=$ZKLOCK_SERVERS $Z release $L-b && echo done"));
  CAPTURE(finished.err);
  CHECK(finished.out == "both\nfree\ndone\n");
}

TEST_CASE("The LOCKs of one --hold are released together, and the release says so") {
  const std::string lock = NewLock("hold");
  const Finished finished = Run(Script(lock,
                                       "$Z exclusive --hold $L-a $L-b || exit;"
                                       "$Z release --dry-run $L-a >/dev/null; $Z release $L-a;"
                                       "$Z try $L-b -- echo free; $Z release -q $L-b; echo $?"));
  CHECK(finished.out == "free\n75\n");
  const std::string says =
      "zklock: " + lock + "-a is one of 2 LOCKs of the same --hold, which are released together\n";
  CHECK(finished.err == says + says);
}

TEST_CASE("With --permits each --hold takes its own permit, and a release releases one") {
  const std::string lock = NewLock("hold");
  const Finished finished =
      Run(Script(lock,
                 "hold='exclusive --hold --permits 2'; $Z $hold $L && $Z $hold $L && echo two;"
                 "$Z try -q --permits 2 $L -- true; echo $?; $Z release $L; echo $?;"
                 "$Z try --permits 2 $L -- echo one; $Z release $L; echo $?;"
                 "$Z release -q $L; echo $?"));
  CAPTURE(finished.err);
  CHECK(finished.out == "two\n75\n0\none\n0\n75\n");
}

TEST_CASE("A run below the shell, with --hold or a command, does not wait for the shell's hold") {
  const std::string lock = NewLock("hold");
  const Finished finished =
      Run(Script(lock,
                 "$Z exclusive --hold $L; $Z exclusive --hold $L && echo twice;"
                 "$Z exclusive $L -- echo below; (sh -c '$Z try $L -- echo deeper; :');"
                 "$Z release $L; $Z release -q $L; echo $?"));
  CAPTURE(finished.err);
  CHECK(finished.out == "twice\nbelow\ndeeper\n75\n");
}

TEST_CASE("A run below the shell gets the contender that holds the lock for the shell") {
  const std::string lock = NewLock("hold");
  Child script = Child::Start(
      Script(lock,
             "$Z exclusive --hold $L || exit; "
             "for more in '' $L-b; do $Z exclusive $L $more -- sh -c "
             "'echo $ZKLOCK_LOCK; echo $ZKLOCK_NODE; echo $ZKLOCK_TOKEN'; done; read x; :"));
  Tree tree;
  for (const std::string& more : Words{"", " " + lock + "-b"}) {
    CAPTURE(more);
    CHECK(script.ReadLine() == lock + more);
    const std::string nodes = script.ReadLine();
    const std::string tokens = script.ReadLine();
    const std::string holder = lock + "/" + tree.Children(lock).at(0);
    const std::string token = std::to_string(tree.Get(holder)->created_zxid);
    CHECK_THAT(nodes + " ", Catch::StartsWith(holder + " "));
    CHECK_THAT(tokens + " ", Catch::StartsWith(token + " "));
    CHECK((nodes.find(" " + lock + "-b/") != std::string::npos) == !more.empty());
  }
  CHECK(Finish(script) == Exited(0));
}

TEST_CASE("The shell's hold is recognised and released in every dialect") {
  const auto dialect = GENERATE(as<std::string>{}, "curator", "kazoo", "simple");
  CAPTURE(dialect);
  const std::string lock = NewLock("hold");
  ChildOptions options =
      With(Script(lock,
                  "$Z exclusive --hold $L; $Z exclusive --hold $L && echo twice;"
                  "$Z exclusive $L -- echo below; $Z try $L -- echo tried;"
                  "$Z inspect --mine $L; echo $?; $Z release $L; echo $?; $Z try $L -- echo free"),
           {"ZKLOCK_DIALECT=" + dialect});
  const Finished finished = Run(std::move(options));
  CAPTURE(finished.err);
  CHECK(finished.out == "twice\nbelow\ntried\n0\n0\nfree\n");
}

TEST_CASE("A waiting writer does not block a reader whose shell holds the lock") {
  const std::string lock = NewLock("hold");
  Child script = Child::Start(Script(
      lock, "$Z read --hold $L && echo held; read x; $Z read $L -- echo below; $Z release $L; :"));
  REQUIRE(script.ReadLine() == "held");
  Child writer = StartWaiter({"write"}, lock);
  script.Write("\n");
  CHECK(script.ReadLine() == "below");
  CHECK(script.Wait() == Exited(0));
  CHECK(writer.ReadLine() == "held");
}

TEST_CASE("A run for several LOCKs skips the one that the shell holds and acquires the others") {
  const std::string held = GENERATE("a", "b");
  CAPTURE(held);
  const std::string lock = NewLock("hold");
  const Finished finished = Run(Script(
      lock, "$Z exclusive --hold $L-" + held +
                "; for how in exclusive try; do $Z $how $L-a $L-b -- sh -c 'echo $ZKLOCK_LOCK';"
                "done; $Z release $L-" +
                held));
  CAPTURE(finished.err);
  const std::string both = lock + "-a " + lock + "-b\n";  // as exported to the command
  CHECK(finished.out == both + both);
}

namespace {

/// Returns the requests sent through `proxy`, without pings.
Words RequestsThrough(const Proxy& proxy) {
  Words words = WordsOf(RequestsOf(proxy));
  std::erase(words, "ping");
  return words;
}

}  // namespace

TEST_CASE("try asks whether the shell holds the lock with its one session and one list request") {
  const bool ours = GENERATE(false, true);
  CAPTURE(ours);
  const std::string lock = NewLock("hold");
  Proxy proxy(TestServers());
  KeepToOneConnection(proxy);
  std::optional<Child> holder;
  if (!ours) holder.emplace(StartHolder(lock));
  ChildOptions options =
      With(Script(lock, "$HOLD; ZKLOCK_SERVERS=$VIA $Z try -q $L -- true; echo $?"),
           {"VIA=" + proxy.address(),
            ours ? "HOLD=" + Binary() + " exclusive --hold " + lock : "HOLD=true"});
  const Finished finished = Run(std::move(options));
  CHECK(finished.out == (ours ? "0\n" : "75\n"));
  CHECK(proxy.connections() == 1);
  Words requests = RequestsThrough(proxy);
  REQUIRE(requests.size() == (ours ? 5U : 4U));
  CHECK(requests[0] == "sync " + lock);
  CHECK(requests[1] == "list " + lock);
  CHECK(requests[2].starts_with("get " + lock + "/"));
  if (ours) CHECK(requests[3] == "check " + requests[2].substr(4));
  CHECK(requests.back() == "close");
}

TEST_CASE("A waiter queued after its own shell's hold checks it with its one session") {
  const std::string lock = NewLock("hold");
  Proxy proxy(TestServers());
  KeepToOneConnection(proxy);
  // A progress line would cause requests too.
  ChildOptions options = With(
      Script(lock,
             "$Z exclusive --hold $L; ZKLOCK_SERVERS=$VIA $Z exclusive --progress none $L -- true; "
             "echo $?; read x"),
      {"VIA=" + proxy.address()});
  Child script = Child::Start(std::move(options));
  CHECK(script.ReadLine() == "0");
  CHECK(proxy.connections() == 1);
  const std::string holder = lock + "/" + Tree().Children(lock).at(0);
  Words requests = RequestsThrough(proxy);
  REQUIRE(requests.size() == 7);
  CHECK(requests[0].starts_with("create "));
  CHECK(requests[1] == "get " + lock);
  CHECK(requests[2] == "list " + lock);
  CHECK(requests[4] == "get " + holder);
  CHECK(requests[5] == "check " + holder);
  CHECK(requests[6] == "close");
}

TEST_CASE(
    "A connection lost during the check for the shell's hold does not make the wait endless") {
  const std::string lock = NewLock("hold");
  Proxy proxy(TestServers());
  ChildOptions options = With(
      Script(lock, "$Z exclusive --hold $L; ZKLOCK_SERVERS=$VIA $Z exclusive -v $L -- echo below"),
      {"VIA=" + proxy.address()});
  proxy.Delay(std::chrono::milliseconds(50));  // so that the answer is still in transit
  Child script = Child::Start(std::move(options));
  script.ReadErrUntil("waiting for");
  proxy.Cut();
  CHECK(script.ReadLine() == "below");
  CHECK(script.Wait() == Exited(0));
}

TEST_CASE("A signal ends a wait before it is known whether the shell itself holds the lock") {
  const auto signal = GENERATE(SIGTERM, SIGINT);
  auto [lock, holder] = HoldNewLock("hold");
  Child between = StartWaiter(lock);
  Proxy proxy(TestServers());
  proxy.Delay(std::chrono::milliseconds(50));
  Child waiter = Child::Start(
      With(HolderOptions({"exclusive", "--verbose"}, lock), {"ZKLOCK_SERVERS=" + proxy.address()}));
  waiter.ReadErrUntil("waiting for " + lock);
  proxy.Freeze();
  waiter.Signal(signal);
  CHECK(waiter.Wait() == Exited(128 + signal));
  CHECK_THAT(waiter.err(), Catch::Contains("left the queue"));
}

TEST_CASE("A run waits for a hold whose data it cannot read") {
  const std::string lock = NewLock("hold");
  Child script = Child::Start(
      Script(lock,
             "$Z exclusive --hold $L; echo held; read x; $Z try -q $L -- true; echo $?;"
             "$Z exclusive -q --wait 1ms $L -- true; echo $?; read x; $Z try $L -- echo below"));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  const std::string contender = lock + "/" + tree.Children(lock).at(0);
  tree.SetAcl(contender, kWrite | kCreate | kDelete | kAdmin);
  script.Write("\n");
  CHECK(script.ReadLine() == "75");
  CHECK(script.ReadLine() == "75");
  tree.SetAcl(contender, kRead);
  script.Write("\n");
  CHECK(script.ReadLine() == "below");
}

TEST_CASE("With --no-nest a run waits for its own shell's hold, but not forever") {
  const std::string lock = NewLock("hold");
  const Finished finished =
      Run(Script(lock,
                 "$Z exclusive --hold $L; $Z exclusive --no-nest $L -- true; echo $?;"
                 "$Z try -q --no-nest $L -- true; echo $?;"
                 "$Z exclusive -q --no-nest --wait 1ms $L -- true; echo $?"));
  CHECK(finished.out == "64\n75\n75\n");
  CHECK_THAT(finished.err, Catch::Contains("forever"));
}

TEST_CASE("--hold acquires nothing and returns at once if a zklock above holds the LOCK") {
  const auto outer = GENERATE(as<std::string>{}, "exclusive", "write");
  const auto inner = GENERATE(as<std::string>{}, "exclusive", "write", "read", "try");
  CAPTURE(outer, inner);
  const std::string lock = NewLock("hold");
  ChildOptions options =
      Script(lock, "exec $Z " + outer + " $L -- bash -c '$Z " + inner +
                       " --hold -v $L $L-also; echo $?; read x; $Z release -q $L; echo $?'");
  Child script = Child::Start(std::move(options));
  CHECK(script.ReadLine() == "0");
  Tree tree;
  CHECK(tree.Children(lock).size() == 1);
  CHECK(tree.Children(lock + "-also").size() == 1);
  script.Write("\n");
  CHECK(script.ReadLine() == "75");  // it has nothing of its own to release
  CHECK(script.Wait() == Exited(0));
  CHECK_THAT(script.err(), Catch::Contains(lock + " is already held by an outer zklock"));
  CHECK(tree.Children(lock).empty());
  tree.WaitForChildren(lock + "-also", 0);
}

TEST_CASE("A --hold that would wait forever for a zklock above it is refused") {
  const std::string lock = NewLock("hold");
  const auto run = [&](const std::string& outer, const std::string& inner) {
    return Run(Script(
        lock, "export O=$$; $Z " + outer + " $L -- bash -c '$Z " + inner + " $L; echo $?'; :"));
  };
  // $O is the shell that runs the outer zklock.
  for (const std::string inner :
       {"exclusive --hold --no-nest", "read --no-nest --hold", "exclusive --hold --owner-pid $O"}) {
    CAPTURE(inner);
    const Finished refused = run("exclusive", inner);
    CHECK(refused.out == "64\n");
    CHECK_THAT(refused.err, Catch::Contains("forever"));
  }
  const Finished writer = run("read", "write --hold");
  CHECK(writer.out == "64\n");
  CHECK_THAT(writer.err, Catch::Contains("write cannot run under it"));
  CHECK(run("exclusive", "exclusive -q --hold --no-nest --wait 1ms").out == "75\n");
  CHECK(run("exclusive", "try -q --hold --no-nest").out == "75\n");
  CHECK(run("read", "read --hold --no-nest").out == "0\n");
}

TEST_CASE("A shell that holds the lock as a reader is told why it can never write") {
  const std::string lock = NewLock("hold");
  ChildOptions options = Script(lock,
                                "$Z read --hold $L; $Z write --hold $L; echo $?; "
                                "$Z write $L -- true; echo $?; read x");
  options.keep_stdin = true;
  Child script = Child::Start(options);
  CHECK(script.ReadLine() == "64");
  CHECK(script.ReadLine() == "64");
  CHECK(Tree().Children(lock).size() == 1);  // the refused run left nothing in the queue
  script.CloseInput();
  script.Wait();
  CHECK_THAT(script.err(), Catch::Contains("write cannot run under it"));
}

TEST_CASE("A run waits for another shell's hold") {
  const std::string lock = NewLock("hold");
  Child first = Child::Start(Script(lock, "$Z exclusive --hold $L; echo held; read x"));
  REQUIRE(first.ReadLine() == "held");
  const Finished other =
      Run(Script(lock, "$Z try -q --hold $L; echo $?; $Z release -q $L; echo $?"));
  CHECK(other.out == "75\n75\n");
}

TEST_CASE("When the lock is deleted, the owner and only the owner is signalled") {
  const std::string lock = NewLock("hold");
  Child script = Child::Start(Script(lock,
                                     "sleep 1000 & child=$!;"
                                     "trap 'kill $child; wait $child; echo told $?; exit 9' USR1;"
                                     "$Z exclusive --hold --on-lost-signal USR1 $L;"
                                     "echo held; while :; do read -t 1000 x; done"));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  tree.Delete(lock + "/" + tree.Children(lock).at(0));
  CHECK(script.ReadLine() == "told 143");  // the child was ended by TERM, not by USR1
  CHECK(script.Wait() == Exited(9));
}

TEST_CASE(
    "When one of several locks is lost, the others are held until nested commands have ended") {
  const std::string lock = NewLock("hold");
  Child script = Child::Start(
      Script(lock,
             "trap : TERM; $Z exclusive --hold $L $L-b; $Z exclusive -k 4s $L-b -- sh -c '"
             "trap \"sleep 1; exit\" TERM; echo $$; while :; do sleep 0.1; done'"));
  const std::string pid = script.ReadLine();
  Child waiter = Child::Start(Script(
      lock, "$Z exclusive $L-b -- sh -c 'kill -0 " + pid + " && echo overlap || echo alone'"));
  Tree tree;
  tree.WaitForChildren(lock + "-b", 2);
  tree.Delete(lock + "/" + tree.Children(lock).at(0));
  CHECK(waiter.ReadLine() == "alone");
}

TEST_CASE(
    "A nested run that is stopped does not keep the lock once its command has been terminated") {
  const std::string lock = NewLock("hold");
  Child script =
      Child::Start(Script(lock,
                          "trap : TERM; $Z exclusive --session-timeout 6s --hold $L;"
                          "setsid $Z exclusive $L -- sh -c 'echo $PPID; exec sleep 1000'; exit 0"));
  const pid_t nested = ParentOf(std::stoi(script.ReadLine()));
  REQUIRE(kill(nested, SIGSTOP) == 0);
  REQUIRE(kill(KeeperOf(lock), SIGTERM) == 0);
  Tree().WaitForChildren(lock, 0);
  kill(nested, SIGKILL);
}

TEST_CASE(
    "A nested command killed after its lock was released is reported as ended by the release") {
  const std::string lock = NewLock("hold");
  Child script = Child::Start(Script(
      lock,
      "trap 'echo told' TERM; $Z exclusive --hold $L;"
      "setsid $Z exclusive $L -- sh -c 'echo $PPID; exec sleep 1000' & wait; wait $!; echo $?"));
  const pid_t guard = std::stoi(script.ReadLine());
  const pid_t nested = ParentOf(guard);
  REQUIRE(kill(nested, SIGSTOP) == 0);
  REQUIRE(kill(KeeperOf(lock), SIGTERM) == 0);
  REQUIRE(script.ReadLine() == "told");
  // An outer guard, for example, signals the whole tree.
  REQUIRE(kill(process::ChildrenOf(guard).at(0), SIGTERM) == 0);
  WaitUntil([&] { return process::ChildrenOf(guard).empty(); });
  REQUIRE(kill(nested, SIGCONT) == 0);
  CHECK(script.ReadLine() == "76");
  script.Wait();
  CHECK_THAT(script.err(), Catch::Contains("the outer zklock that held it released it"));
}

TEST_CASE(
    "When the keeper is killed, the owner is signalled, and the session ends when the owner ends") {
  const auto signal = GENERATE(SIGKILL, SIGTERM);
  const std::string lock = NewLock("hold");
  Child script = Child::Start(Script(lock, "$Z exclusive --hold $L; echo held; read x"));
  REQUIRE(script.ReadLine() == "held");
  REQUIRE(kill(KeeperOf(lock), signal) == 0);
  CHECK(script.Wait() == Killed(SIGTERM));
  Tree().WaitForChildren(lock, 0, std::chrono::seconds(15));  // well before the session's 30 s
}

std::size_t DescriptorsOf(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST_CASE("A keeper sleeps while it waits for a nested run after its owner's end") {
  const std::string lock = NewLock("hold");
  Child script =
      Child::Start(Script(lock,
                          "$Z exclusive --hold $L || exit; $Z exclusive $L -- sh -c 'echo in; "
                          "sleep 2; echo out; exec sleep 1000' & read x"));
  REQUIRE(script.ReadLine() == "in");
  const pid_t keeper = KeeperOf(lock);
  script.Write("\n");
  CHECK(script.Wait() == Exited(0));
  const auto used = process::ReadRunTime(keeper);
  CHECK(script.ReadLine() == "out");
  CHECK(process::ReadRunTime(keeper) - used < 200'000'000);
}

TEST_CASE("The session of a killed keeper is closed once nothing relies on the lock") {
  const std::string relies =
      GENERATE("$Z inspect --mine $L >&2", "$Z exclusive $L -- true", "$Z exclusive --hold $L");
  CAPTURE(relies);
  const std::string lock = NewLock("hold");
  Child script = Child::Start(
      Script(lock, "$Z exclusive --hold $L; echo held; read x; " + relies + "; echo over; read x"));
  REQUIRE(script.ReadLine() == "held");
  const pid_t keeper = KeeperOf(lock);
  const auto sleeps = [&] { return process::ReadProcessStat(keeper)->state == 'S'; };
  WaitUntil(sleeps);  // the connection of the first zklock is closed
  const std::size_t before = DescriptorsOf(keeper);
  script.Write("\n");
  REQUIRE(script.ReadLine() == "over");
  WaitUntil([&] { return DescriptorsOf(keeper) == before && sleeps(); });
  REQUIRE(kill(keeper, SIGKILL) == 0);
  CHECK(script.Wait() == Killed(SIGTERM));
  Tree().WaitForChildren(lock, 0, std::chrono::seconds(15));  // well before the session's 30 s
}

TEST_CASE("The session of a killed keeper is closed even if servers require credentials") {
  const OwnServer server({"enforce.auth.enabled=true", "enforce.auth.schemes=digest"});
  ChildOptions options =
      With(Script("/x", "$Z exclusive --hold --session-timeout 40s $L; echo held; read x"),
           {"ZKLOCK_SERVERS=" + server.address()});
  options.also_environment.emplace_back("ZKLOCK_AUTH=digest:alice:tulip");
  Child script = Child::Start(std::move(options));
  REQUIRE(script.ReadLine() == "held");
  Tree tree("alice:tulip", server.address());
  REQUIRE(kill(KeeperOf("/x", tree), SIGKILL) == 0);
  CHECK(script.Wait() == Killed(SIGTERM));
  // This is long before the session would expire.
  tree.WaitForChildren("/x", 0, std::chrono::seconds(30));
}

TEST_CASE("When the keeper is stopped, the owner is signalled before the lease ends") {
  const std::string lock = NewLock("hold");
  Child script =
      Child::Start(Script(lock, "$Z exclusive --hold --session-timeout 12s $L; echo held; read x"));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  const std::string contender = lock + "/" + tree.Children(lock).at(0);
  const pid_t keeper = KeeperOf(lock);
  REQUIRE(kill(keeper, SIGSTOP) == 0);
  CHECK(script.Wait() == Killed(SIGTERM));
  CHECK(tree.Exists(contender));  // the servers still keep it
  REQUIRE(kill(keeper, SIGKILL) == 0);
}

TEST_CASE("When the servers stop answering, the owner is signalled before the lease ends") {
  const std::string lock = NewLock("hold");
  Proxy proxy(TestServers());
  ChildOptions options = With(
      Script(lock,
             "trap 'echo told; exit 0' TERM; $Z exclusive --hold --session-timeout 12s $L || exit; "
             "echo held; while :; do read -t 1 x; done"),
      {"ZKLOCK_SERVERS=" + proxy.address()});
  Child script = Child::Start(std::move(options));
  REQUIRE(script.ReadLine() == "held");
  Tree tree;
  const std::string contender = lock + "/" + tree.Children(lock).at(0);
  proxy.Freeze();
  CHECK(script.ReadLine() == "told");
  CHECK(tree.Exists(contender));  // the servers still keep it
  CHECK(script.Wait() == Exited(0));
}

TEST_CASE("--hold works under cron, with no terminal, no input and almost no environment") {
  const std::string lock = NewLock("hold");
  ChildOptions options;
  options.argv = {"setsid", "-w", "/bin/sh", "-c",
                  "$Z exclusive --hold $L || exit; echo part; $Z release $L && echo released"};
  options.environment = {"HOME=/nonexistent",
                         "LOGNAME=cron",
                         "SHELL=/bin/sh",
                         "PATH=/usr/bin:/bin",
                         "Z=" + Binary(),
                         "L=" + lock,
                         "ZKLOCK_SERVERS=" + TestServers()};
  options.prepare = ResetSignals;
  const Finished finished = Run(options, Exited(0));
  CHECK(finished.out == "part\nreleased\n");  // the script's end closes the pipe to the mail
  CHECK(finished.err.empty());
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE(
    "--hold works under a CI agent that gives the script its own session and reads its output") {
  const std::string lock = NewLock("hold");
  Child agent = Child::Start(Script(
      lock,
      "setsid -w bash -ec '$Z exclusive --hold $L; echo held; read x; echo done' 2>&1 | cat"));
  REQUIRE(agent.ReadLine() == "held");
  CHECK(Tree().Children(lock).size() == 1);
  agent.Write("\n");
  CHECK(agent.ReadLine() == "done");
  CHECK(agent.Wait() == Exited(0));
  Tree().WaitForChildren(lock, 0);
}

TEST_CASE("A hold in a subshell ends with the subshell") {
  const std::string lock = NewLock("hold");
  Child script =
      Child::Start(Script(lock, "( $Z exclusive --hold $L && echo inside ); read x; echo after"));
  CHECK(script.ReadLine() == "inside");
  Tree().WaitForChildren(lock, 0);
  script.Write("\n");
  CHECK(script.ReadLine() == "after");
}

TEST_CASE("A release sends the owner no signal") {
  const std::string lock = NewLock("hold");
  const Finished finished = Run(
      Script(lock, "trap 'echo told' TERM; $Z exclusive --hold $L; $Z release $L; echo released"));
  CHECK(finished.out == "released\n");
}

TEST_CASE("A keeper that cannot fork a guard reports it and releases the lock") {
  auto [lock, holder] = HoldNewLock("guardless");
  const TemporaryDirectory directory;
  ChildOptions options =
      With(Script(lock, "$Z exclusive --hold $L; echo $?; read x"), {"ZKLOCK_CONFIG=/dev/null"});
  // The leak checker would need one more process.
  options.also_environment.push_back("ASAN_OPTIONS=detect_leaks=0");
  // Run as a user without other processes, limited to a shell, a zklock and its keeper, which forks
  // its guard while it waits. The limit does not apply to processes of root.
  std::vector<std::string> limited = {"/usr/bin/unshare", "--user"};
  if (geteuid() == 0) {
    REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
    std::filesystem::copy_file(Binary(), directory.Path("zklock"));
    std::erase(options.also_environment, "Z=" + Binary());
    options.also_environment.push_back("Z=" + directory.Path("zklock"));
    const std::string user = std::to_string(50'000 + getpid() % 10'000);
    limited = {"/usr/bin/setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups"};
  }
  limited.insert(limited.end(), {"/usr/bin/prlimit", "--nproc=3:3"});
  options.argv.insert(options.argv.begin(), limited.begin(), limited.end());
  Child script = Child::Start(std::move(options));
  Tree().WaitForChildren(lock, 2);
  holder.CloseInput();
  CHECK(script.ReadLine() == "71");
  CHECK(Tree().Children(lock).empty());
  CHECK_THAT(script.err(), Catch::Contains("fork"));
}

TEST_CASE("An impossible --hold is refused before any request to the servers") {
  const std::string lock = NewLock("hold");
  RunZklock({"exclusive", "--hold", lock, "--", "true"}, Exited(64));
  RunZklock({"exclusive", "--hold", "-c", "true", lock}, Exited(64));
  RunZklock({"exclusive", "--owner-pid", "1", lock, "--", "true"}, Exited(64));
  RunZklock({"exclusive", "--hold", "--owner-pid", "x", lock}, Exited(64));
  RunZklock({"exclusive", "--hold", "--owner-pid", "2147483647", lock}, Exited(64));
  const Finished wrapped = Run(Script(lock, "timeout 50 $Z exclusive --hold $L; echo $?"));
  CHECK(wrapped.out == "64\n");
  CHECK_THAT(wrapped.err, Catch::Contains("--owner-pid"));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("The ID of a thread other than its process's first is refused as an owner") {
  const std::string lock = NewLock("hold");
  Child threads = Child::Start({.argv = {"python3", "-c",
                                         "import sys, threading\n"
                                         "def run():\n"
                                         "  print(threading.get_native_id(), flush=True)\n"
                                         "  sys.stdin.read()\n"
                                         "threading.Thread(target=run).start()\n"},
                                .keep_stdin = true});
  const std::string thread = threads.ReadLine();
  CHECK_THAT(RunZklock({"exclusive", "--hold", "--owner-pid", thread, lock}, Exited(64)).err,
             Catch::Contains("there is no process " + thread));
}

TEST_CASE("With --hold, a conflict and unreachable servers have the same exit status as in a run") {
  auto [lock, holder] = HoldNewLock("hold");
  const Finished finished =
      Run(Script(lock,
                 "$Z try --hold $L; echo $?; $Z exclusive -E 3 --wait 1ms --hold $L; echo $?;"
                 "$Z try --hold -z 127.0.0.1:1 --connect-timeout 1s $L; echo $?"));
  CHECK(finished.out == "75\n3\n69\n");
  CHECK(Tree().Children(lock).size() == 1);
}

}  // namespace
TEST_CASE("the message about a conflict names the command only if the run has one") {
  auto [lock, holder] = HoldNewLock("hold-message");
  const auto said = [&lock = lock](const Words& words) {
    return RunZklock(words + Words{lock}, Exited(75)).err;
  };
  const std::string end = "; the command was not run\n";
  for (const Words& without : {Words{"try", "--hold"}, Words{"exclusive", "-w", "1ms", "--hold"},
                               Words{"try", "--reserve", "ci", "--for", "1h"}}) {
    CHECK_THAT(said(without), Catch::EndsWith(")\n"));
  }
  CHECK_THAT(said({"try", "-c", "true"}), Catch::EndsWith(")" + end));
}

TEST_CASE("a conflict status of 0 for all runs does not hide that a lock is not held") {
  auto [lock, holder] = HoldNewLock("hold-conflict");
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "conflict-exit-code = 0\n");
  const auto status = [&lock = lock, &file](const Words& words) {
    return RunZklock(Words{words.front(), "--config", file} +
                     Words(words.begin() + 1, words.end()) + Words{lock})
        .exit;
  };
  CHECK(status({"try", "--hold"}) == Exited(75));
  CHECK(status({"try", "--reserve", "ci"}) == Exited(75));
  CHECK(status({"try", "-c", "true"}) == Exited(0));
}

}  // namespace zklock::test
