// The command and zklock are one job: they stop together and continue together.

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "cli/zklock.h"
#include "process/tree/process_tree.h"

namespace zklock::test {
namespace {

/// Returns the pid of the holder, from its contender's data.
pid_t HolderOf(const std::string& lock) {
  const std::string data = Tree().Get(lock + "/" + Tree().Children(lock).at(0))->data;
  const std::string mark = "\"pid\":";
  return std::stoi(data.substr(data.find(mark) + mark.size()));
}

/// A shell, and the text with which it reports a job that was stopped for reading the terminal in
/// the background.
struct ShellCase {
  std::string name;
  Words words;
  std::string stopped;
};
const std::vector<ShellCase> kShells = {{"bash", Terminal::Bash(), "Stopped"},
                                        {"zsh", Terminal::Zsh(), "suspended"}};

/// Starts `line` in the background, waits until it stops, and brings it to the foreground.
void StopAndBringBack(Terminal& terminal, const std::string& line, const std::string& stopped) {
  terminal.Type("set -b");  // makes the shell report its jobs' state changes at once
  terminal.Type(line + " &");
  terminal.ReadUntil("stays held for");
  terminal.ReadUntil(stopped);
  // Text typed before the prompt may be read by the shell's line editor.
  terminal.Type("echo \"read\"ing");
  terminal.ReadUntil("reading");
  terminal.AwaitPrompt();
  terminal.Type("fg");
  terminal.ReadUntil("exclusive");  // the shell repeats the command line
}

void TypeToCat(Terminal& terminal) {
  terminal.Type("the word");
  terminal.ReadUntil("the word");  // the echo
  terminal.ReadUntil("the word");  // and cat's copy
}

TEST_CASE("fg resumes a background command that read the terminal") {
  const auto shell = GENERATE(from_range(kShells));
  const bool ends_by_key = GENERATE(true, false);
  CAPTURE(shell.name, ends_by_key);
  Terminal terminal("job", shell.words);
  StopAndBringBack(terminal, "$Z exclusive $L -- cat", shell.stopped);
  CHECK(Tree().Children(terminal.lock()).size() == 1);
  TypeToCat(terminal);
  terminal.Press(ends_by_key ? 'D' : 'C');
  CHECK(terminal.Status() == (ends_by_key ? "0." : "130."));
  CHECK(Tree().Children(terminal.lock()).empty());
}

TEST_CASE("fg resumes a nested job") {
  Terminal terminal("job");
  StopAndBringBack(terminal, "$Z exclusive $L -- $Z exclusive $L -- cat", "Stopped");
  TypeToCat(terminal);
  terminal.Press('D');
  CHECK(terminal.Status() == "0.");
}

/// A foreground job on a terminal. Its command prints its pid and answers USR1.
class Job {
 public:
  Job() : terminal("job") {
    terminal.Type(
        "$Z exclusive $L -- perl -e '$| = 1; $SIG{USR1} = sub { print \"her\".\"e\\n\" }; "
        "print \"p\".\"id $$.\\n\"; select(undef, undef, undef, 0.2) while 1'");
    terminal.ReadUntil("pid ");
    command = std::stoi(terminal.ReadUntil("."));
    zklock = HolderOf(terminal.lock());
  }
  void AwaitStop() {
    terminal.ReadUntil("stays held for");
    terminal.ReadUntil("Stopped");
    terminal.AwaitPrompt();
  }
  void BringBack() {
    terminal.Type("fg");
    terminal.ReadUntil("exclusive");
  }
  void CheckThatBothRun() {
    REQUIRE(kill(zklock, SIGUSR1) == 0);
    terminal.ReadUntil("here");
  }
  Terminal terminal;
  pid_t command = 0;
  pid_t zklock = 0;
};

TEST_CASE("zklock stops when only its command is stopped, and continues with it") {
  Job job;
  REQUIRE(kill(job.command, SIGSTOP) == 0);
  job.AwaitStop();
  SECTION("continued by the shell") {
    job.BringBack();
    job.CheckThatBothRun();
    job.terminal.Press('C');
    CHECK(job.terminal.Status() == "130.");
  }
  SECTION("continued through the command alone") {
    REQUIRE(kill(job.command, SIGCONT) == 0);
    job.CheckThatBothRun();
    kill(job.zklock, SIGTERM);  // a job in the background gets no HUP
  }
  SECTION("continued through zklock alone") {
    REQUIRE(kill(job.zklock, SIGCONT) == 0);
    job.CheckThatBothRun();
    kill(job.zklock, SIGTERM);
  }
}

TEST_CASE("A command killed while stopped ends the job") {
  Job job;
  REQUIRE(kill(job.command, SIGSTOP) == 0);
  job.AwaitStop();
  REQUIRE(kill(job.command, SIGKILL) == 0);
  Tree().WaitForChildren(job.terminal.lock(), 0);
  job.terminal.Type("wait %1; echo \"en\"ded $?.");
  job.terminal.ReadUntil("ended 137.");
}

TEST_CASE("TSTP sent only to zklock stops the command too") {
  Job job;
  REQUIRE(kill(job.zklock, SIGTSTP) == 0);
  job.AwaitStop();
  CHECK(process::ReadProcessStat(job.command).value().state == 'T');
  job.BringBack();
  job.CheckThatBothRun();
}

TEST_CASE("A command that ignores Ctrl-Z keeps running, and so does zklock") {
  Terminal terminal("job");
  terminal.Type(
      "$Z exclusive $L -- sh -c 'trap \"\" TSTP; echo be\"\"gun; read x; echo \"go\"t $x'");
  terminal.ReadUntil("begun");
  terminal.Press('Z');
  terminal.ReadUntil("^Z");
  terminal.Type("the word");
  terminal.ReadUntil("got the word");
  CHECK(terminal.Status() == "0.");
}

TEST_CASE("A command stopped for longer than its lease is killed, and the lock is released") {
  Terminal terminal("job");
  terminal.Type("$Z exclusive --session-timeout 4s -k 200ms $L -- cat &");
  terminal.ReadUntil("stays held for");
  Child next = StartHolder(terminal.lock());
  terminal.Type("fg");
  CHECK(terminal.Status() == "76.");
}

TEST_CASE("A command stopped alone for longer than its lease ends zklock too") {
  // No shell controls this job, so nothing would continue zklock.
  const std::string lock = NewLock("job");
  Child child = Child::Start(Zklock({"exclusive", "--session-timeout", "4s", lock, "--", "sh", "-c",
                                     "echo $$; exec sleep 1000"}));
  const pid_t command = std::stoi(child.ReadLine());
  REQUIRE(kill(command, SIGSTOP) == 0);
  child.WaitUntilStopped();
  CHECK(child.Wait() == Exited(76));
}

TEST_CASE("zklock does not stop with its command if nothing would continue it") {
  // The process group of a session leader is orphaned.
  const std::string lock = NewLock("job");
  Child child = Child::StartOnTerminal(
      Zklock({"exclusive", lock, "--", "sh", "-c", "echo \"pid $$.\"; read x; echo \"got $x\""}));
  child.ReadUntil("pid ");
  const pid_t command = std::stoi(child.ReadUntil("."));
  REQUIRE(kill(command, SIGSTOP) == 0);
  // zklock still responds to a release request: it ends the stopped command.
  RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  CHECK(child.Wait() == Exited(76));
  CHECK(child.out().find("stays held") == std::string::npos);
}

}  // namespace
}  // namespace zklock::test
