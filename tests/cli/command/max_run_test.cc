// --max-run.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/read_file.h"
#include "cli/hold/hold_script.h"
#include "cli/zklock.h"
#include "support/skip.h"
#include "support/sudo.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// Returns a command that runs too long. `trap` is shell text to run on TERM.
std::string Endless(const std::string& trap = "") {
  return (trap.empty() ? "" : "trap '" + trap + "' TERM; ") +
         "sleep 1000 & echo held; while :; do wait; done";
}

Words Limited(const Words& options, const std::string& lock, const std::string& script) {
  Words words = {"exclusive", "--max-run", "500ms"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {lock, "--", "sh", "-c", script});
  return words;
}

// A run whose command runs as another user, so that zklock cannot signal it.
class UnsignalledRun {
 public:
  explicit UnsignalledRun(const Words& options = {"--max-run", "200ms"}) {
    if (!works()) return;
    process::Check(chmod(directory_.path().c_str(), 0755), "chmod");
    const std::string binary = directory_.Path("zklock");
    std::filesystem::copy_file(Binary(), binary);
    ChildOptions zklock =
        Zklock(Words{"exclusive", "--contain", "off", "--kill-after", "100ms"} + options +
               Words{lock, "--", sudo_.path(), "--reuid=0", "--regid=0", "--clear-groups", "sh",
                     "-c", "echo $$; exec sleep 1000"});
    zklock.argv.front() = binary;
    zklock.prepare = Sudo::BecomeNobody;
    holder.emplace(Child::Start(std::move(zklock)));
    command_ = std::stoi(holder->ReadLine());
  }
  ~UnsignalledRun() { EndCommand(); }

  void AwaitMessage() { holder->ReadErrUntil("but could not be signalled; end it yourself"); }
  [[nodiscard]] bool works() const { return sudo_.works(); }
  [[nodiscard]] std::string command() const { return sudo_.path(); }
  void EndCommand() {
    if (const pid_t command = std::exchange(command_, 0)) kill(command, SIGINT);
  }

  const std::string lock = NewLock("max-run-sudo");
  std::optional<Child> holder;

 private:
  const Sudo sudo_;
  const TemporaryDirectory directory_;
  pid_t command_ = 0;
};

}  // namespace

TEST_CASE("a run that lasts too long is terminated as a whole, with status 124") {
  struct Case {
    std::string trap;
    std::string fate;
  };
  const auto [trap, fate] = GENERATE(values<Case>({
      {"", "sh was terminated with TERM"},
      {"exit 3", "sh was terminated with TERM"},
      {":", "sh was killed, since TERM did not end it in time"},
  }));
  CAPTURE(trap);
  const TemporaryDirectory directory;
  const std::string events = directory.Path("events");
  const std::string lock = NewLock("max-run");
  Child holder = Child::Start(
      Zklock(Limited({"--kill-after", "100ms", "--events", events}, lock, Endless(trap))));
  CHECK(holder.Wait() == Exited(124));
  holder.ReadToEnd();  // every process with its standard output is gone
  CHECK(holder.err() ==
        "zklock: " + lock + ": the run has lasted 500ms (--max-run); " + fate + "\n");
  CHECK_THAT(ReadFile(events).value_or(""), Catch::Contains(R"("reason":"max-run","status":124)"));
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("a command that ends before it is signalled keeps its status") {
  for (const std::string limit : {"1h", "none"}) {
    const Finished finished = RunZklock(
        {"exclusive", "--max-run", limit, NewLock("max-run"), "--", "sh", "-c", "exit 3"});
    CHECK(finished.exit == Exited(3));
    CHECK(finished.err.empty());
  }
  // Whether the command or the time limit ends first, the status and the message must agree. The
  // command may also end between the limit and the signal.
  for (int i = 0; i < 20; ++i) {
    const Finished finished =
        RunZklock({"exclusive", "--max-run", "5ms", NewLock("max-run"), "--", "sleep", "0.0045"});
    CAPTURE(finished.err);
    CHECK(finished.exit == Exited(finished.err.empty() ? 0 : 124));
    CHECK_THAT(finished.err, !Catch::Contains("could not be signalled"));
  }
}

TEST_CASE("while zklock is stopped, the guard ends a run that lasts too long") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("file", "");
  Child holder =
      Child::Start(Zklock({"exclusive", "--max-run", "1s", "--session-timeout", "40s",
                           NewLock("max-run"), "--", "flock", file, "sh", "-c", Endless()}));
  REQUIRE(holder.ReadLine() == "held");
  holder.Signal(SIGSTOP);
  holder.WaitUntilStopped();
  CHECK(Run({.argv = {"flock", file, "true"}}).exit == Exited(0));
  holder.Signal(SIGCONT);
  CHECK(holder.Wait() == Exited(124));
}

TEST_CASE("a run that lasted too long is a failure, even if its command exits with 0") {
  const std::string lock = NewLock("max-run");
  const Words options = {"--min-interval", "1h", "--history", "5"};
  CHECK(RunZklock(Limited(options, lock, Endless("exit 0"))).exit == Exited(124));
  CHECK_THAT(RunZklock({"inspect", "--history", lock}).out, Catch::Contains(" 124 "));
  CHECK(RunZklock({"inspect", "--check", "--last-run", lock}).exit == Exited(2));
  CHECK(RunZklock(Limited(options, lock, "exit 0")).exit == Exited(0));
}

TEST_CASE("the limit includes the time that zklock waits for processes after the command") {
  const std::string lock = NewLock("max-run");
  SECTION("descendants") {
    const Finished finished =
        RunZklock(Limited({"--descendants", "wait"}, lock, "sleep 1000 & exit 0"));
    CHECK(finished.exit == Exited(124));
    CHECK_THAT(finished.err,
               Catch::EndsWith("(--max-run); what sh left behind was terminated with TERM\n"));
  }
  SECTION("descendants that ignore TERM") {
    const Finished finished = RunZklock(
        Limited({"--descendants", "wait", "-k", "4s"}, lock, "trap '' TERM; sleep 1000 & exit 0"));
    CHECK(finished.exit == Exited(124));
    CHECK_THAT(finished.err,
               Catch::Contains("(--max-run); what sh left behind was sent TERM\n") &&
                   Catch::EndsWith("what sh left behind was killed, since TERM did not "
                                   "end it in time\n"));
  }
  SECTION("a nested run") {
    const TemporaryDirectory directory;
    const std::string begun = directory.Path("begun");
    const std::string status = directory.Path("status");
    const std::string nested =
        directory.Write("nested", Binary() + " exclusive " + lock + " -- sh -c 'echo >" + begun +
                                      "; exec sleep 1000'; echo $? >" + status + "\n");
    Child holder = Child::Start(
        Zklock({"exclusive", "--max-run", "2s", lock, "--", "sh", "-c",
                "setsid sh " + nested + " & while ! [ -e " + begun + " ]; do sleep 0.01; done"}));
    CHECK(holder.Wait() == Exited(124));
    CHECK_THAT(holder.err(), Catch::Contains("lasted 2s (--max-run); sh had already ended"));
    holder.ReadToEnd();
    CHECK(ReadFile(status) == "76\n");
  }
}

TEST_CASE("a nested run knows that the outer run's limit has ended it") {
  const std::string lock = NewLock("max-run");
  const std::string own = NewLock("max-run");
  const Finished finished =
      RunZklock({"exclusive", "--max-run", "1s", lock, "--", Binary(), "exclusive", "--history",
                 "3", lock, own, "--", "sleep", "1000"});
  CHECK(finished.exit == Exited(124));
  CHECK_THAT(finished.err, Catch::Contains("the outer zklock that held it released it"));
  CHECK_THAT(RunZklock({"inspect", "--json", own}).out, Catch::Contains("\"status\":76"));
}

TEST_CASE("the limit of a nested run ends only that run's command") {
  const std::string lock = NewLock("max-run");
  const Finished finished = RunZklock(
      {"exclusive", lock, "--", "sh", "-c",
       Binary() + " exclusive --max-run 100ms " + lock + " -- sleep 1000; echo $?; exit 5"});
  CHECK(finished.out == "124\n");
  CHECK(finished.exit == Exited(5));
}

TEST_CASE("a run under a reservation has a limit, and the reservation stays") {
  const std::string lock = NewLock("max-run");
  CHECK(RunZklock(Limited({"--reserve", "job"}, lock, Endless())).exit == Exited(124));
  CHECK(RunZklock({"release", "--reserve", "job", lock}).exit == Exited(0));
}

TEST_CASE("with --hold, the owner is signalled after --max-run, and the run has failed") {
  const std::string lock = NewLock("max-run");
  Child script = Child::Start(
      Script(lock,
             "trap 'echo told; exit 9' USR1;"
             "$Z exclusive --hold --max-run 500ms --history 3 --on-lost-signal USR1 $L;"
             "echo held; while :; do read -t 1000 x; done"));
  REQUIRE(script.ReadLine() == "held");
  CHECK(script.ReadLine() == "told");
  CHECK(script.Wait() == Exited(9));
  Tree().WaitForChildren(lock, [](const Words& children) { return children == Words{"last-run"}; });
  const Finished check = RunZklock({"inspect", "--check", "--last-run", lock});
  CHECK(check.exit == Exited(2));
  CHECK_THAT(check.out, Catch::Contains("failed with status 124"));
}

TEST_CASE("a limit in a configuration file does not apply with --on-lost warn") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "max-run = 100ms\n");
  const auto run = [&](const Words& options) {
    Words words = {"exclusive", "--config", file};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {NewLock("max-run"), "--", "sleep", "0.5"});
    return RunZklock(words);
  };
  CHECK(run({}).exit == Exited(124));
  const Finished unlimited = run({"--on-lost", "warn"});
  CHECK(unlimited.exit == Exited(0));
  CHECK(unlimited.err.empty());
  CHECK(Lines(run({"--on-lost", "warn", "--verbose"}).err).front() ==
        "zklock: --max-run (" + file +
            ":1) has no effect with --on-lost warn: the run has no limit");
  CHECK(run({"--max-run", "none"}).exit == Exited(0));
  const Finished refused = run({"--on-lost", "warn", "--max-run", "1h"});
  CHECK(refused.exit == Exited(64));
  CHECK(Lines(refused.err).front() ==
        "zklock: --max-run and --on-lost warn cannot be used together");
}

TEST_CASE(
    "a file's --on-lost warn, which a hold and a reservation ignore, does not lift the limit") {
  const TemporaryDirectory directory;
  const std::string lock = NewLock("max-run");
  REQUIRE(!directory.Write("warn.conf", "on-lost = warn\n").empty());
  REQUIRE(!directory.Write("both.conf", "on-lost = warn\nmax-run = 500ms\n").empty());
  SECTION("of a hold") {
    const std::string options = GENERATE("--config warn.conf --max-run 500ms", "--config both.conf",
                                         "--verbose --config both.conf");
    CAPTURE(options);
    ChildOptions shell =
        Script(lock, "trap 'echo told; exit 9' USR1; $Z exclusive --hold " + options +
                         " --on-lost-signal USR1 $L || exit;"
                         "echo held; while :; do read -t 1000 x; done");
    shell.directory = directory.path();
    Child script = Child::Start(std::move(shell));
    REQUIRE(script.TryReadLine() == "held");
    CHECK(script.ReadLine() == "told");
    CHECK(script.Wait() == Exited(9));
    CHECK_THAT(script.err(), !Catch::Contains("has no effect"));
  }
  SECTION("of a run under a reservation") {
    const auto run = [&](const Words& options) {
      ChildOptions zklock =
          Zklock(Words{"exclusive"} + options + Words{lock, "--", "sh", "-c", Endless()});
      zklock.directory = directory.path();
      return Run(std::move(zklock)).exit;
    };
    CHECK(run({"--config", "warn.conf", "--max-run", "500ms", "--reserve", "job"}) == Exited(124));
    CHECK(run({"--config", "both.conf", "--resume", "job"}) == Exited(124));
    CHECK(RunZklock({"release", "--reserve", "job", lock}).exit == Exited(0));
  }
}

TEST_CASE("the lock stays held until a command that runs as another user has ended by itself") {
  UnsignalledRun run;
  if (!run.works()) return Skip("root and setuid files");
  run.AwaitMessage();
  Run(Zklock({"try", run.lock, "--", "true"}), Exited(75));
  run.EndCommand();
  CHECK(run.holder->Wait() == Exited(124));
  CHECK_THAT(run.holder->err(),
             Catch::Contains("; " + run.command() + " could not be signalled\n") &&
                 !Catch::Contains("was killed"));
}

TEST_CASE("zklock does not wait for a command of another user once the lock is lost") {
  const std::string on_lost = GENERATE(as<std::string>{}, "stop", "warn");
  UnsignalledRun run({"--on-lost", on_lost});
  if (!run.works()) return Skip("root and setuid files");
  const Child release = Child::Start(Zklock({"release", "--holders", "--yes", run.lock}));
  run.AwaitMessage();
  Tree tree;
  tree.Delete(run.lock + "/" + tree.Children(run.lock).at(0));
  CHECK(run.holder->Wait() == Exited(76));
  CHECK_THAT(run.holder->err(), Catch::Contains("may still be running: end it yourself") &&
                                    !Catch::Contains("continues"));
}

}  // namespace zklock::test
