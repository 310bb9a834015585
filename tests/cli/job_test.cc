// The command and zklock are one job: they stop together, and go on together.

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "cli/zklock.h"
#include "process/process_tree.h"

namespace zklock::test {
namespace {

/// The pid of zklock, from its contender's data.
pid_t HolderOf(const std::string& lock) {
  const std::string data = Tree().Get(lock + "/" + Tree().Children(lock).at(0))->data;
  const std::string mark = "\"pid\":";
  return std::stoi(data.substr(data.find(mark) + mark.size()));
}

/// What the shell calls a job that reads the terminal from the background.
struct ShellCase {
  std::string name;
  Words words;
  std::string stopped;
};
const std::vector<ShellCase> kShells = {{"bash", Terminal::Bash(), "Stopped"},
                                        {"zsh", Terminal::Zsh(), "suspended"}};

/// Starts `line` in the background, where it is to stop, and brings it back.
void StopAndBringBack(Terminal& terminal, const std::string& line, const std::string& stopped) {
  terminal.Type("set -b");  // the shell tells of its jobs at once
  terminal.Type(line + " &");
  terminal.ReadUntil("stays ours for");
  terminal.ReadUntil(stopped);
  // What is typed before the prompt may be read by the shell's line editor.
  terminal.Type("echo \"read\"ing");
  terminal.ReadUntil("reading");
  terminal.AwaitPrompt();
  terminal.Type("fg");
  terminal.ReadUntil("exclusive");  // the shell shows the line again
}

void TypeToCat(Terminal& terminal) {
  terminal.Type("the word");
  terminal.ReadUntil("the word");  // the echo
  terminal.ReadUntil("the word");  // and cat's
}

TEST_CASE("A background command that reads the terminal is brought back by fg") {
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

TEST_CASE("A nested job is brought back by fg") {
  Terminal terminal("job");
  StopAndBringBack(terminal, "$Z exclusive $L -- $Z exclusive $L -- cat", "Stopped");
  TypeToCat(terminal);
  terminal.Press('D');
  CHECK(terminal.Status() == "0.");
}

/// A job in the foreground of a terminal, whose command says its pid, and answers USR1.
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
    terminal.ReadUntil("stays ours for");
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

TEST_CASE("zklock stops when its command alone is stopped, and goes on with it") {
  Job job;
  REQUIRE(kill(job.command, SIGSTOP) == 0);
  job.AwaitStop();
  SECTION("by the shell") {
    job.BringBack();
    job.CheckThatBothRun();
    job.terminal.Press('C');
    CHECK(job.terminal.Status() == "130.");
  }
  SECTION("when somebody continues the command alone") {
    REQUIRE(kill(job.command, SIGCONT) == 0);
    job.CheckThatBothRun();
  }
  SECTION("when somebody continues zklock alone") {
    REQUIRE(kill(job.zklock, SIGCONT) == 0);
    job.CheckThatBothRun();
  }
}

TEST_CASE("A command that is killed while it is stopped ends the job") {
  Job job;
  REQUIRE(kill(job.command, SIGSTOP) == 0);
  job.AwaitStop();
  REQUIRE(kill(job.command, SIGKILL) == 0);
  Tree().WaitForChildren(job.terminal.lock(), 0);
  job.terminal.Type("wait %1; echo \"en\"ded $?.");
  job.terminal.ReadUntil("ended 137.");
}

TEST_CASE("TSTP sent to zklock alone stops the command too") {
  Job job;
  REQUIRE(kill(job.zklock, SIGTSTP) == 0);
  job.AwaitStop();
  CHECK(process::ReadProcessStat(job.command).value().state == 'T');
  job.BringBack();
  job.CheckThatBothRun();
}

TEST_CASE("A command that ignores Ctrl-Z goes on, and zklock with it") {
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

TEST_CASE("A command that is stopped for longer than its lease is ended, and the lock let go") {
  Terminal terminal("job");
  terminal.Type("$Z exclusive --session-timeout 4s -k 200ms $L -- cat &");
  terminal.ReadUntil("stays ours for");
  Child next = StartHolder(terminal.lock());
  terminal.Type("fg");
  CHECK(terminal.Status() == "76.");
}

TEST_CASE("A command that is stopped alone for longer than its lease ends its zklock too") {
  // No shell knows of the job: nobody would continue zklock.
  const std::string lock = NewLock("job");
  Child child = Child::Start(Zklock({"exclusive", "--session-timeout", "4s", lock, "--", "sh", "-c",
                                     "echo $$; exec sleep 1000"}));
  const pid_t command = std::stoi(child.ReadLine());
  REQUIRE(kill(command, SIGSTOP) == 0);
  child.WaitUntilStopped();
  CHECK(child.Wait() == Exited(76));
}

TEST_CASE("Where nobody would continue it, zklock goes on without its stopped command") {
  // A session's leader is an orphaned process group.
  const std::string lock = NewLock("job");
  Child child = Child::StartOnTerminal(
      Zklock({"exclusive", lock, "--", "sh", "-c", "echo \"pid $$.\"; read x; echo \"got $x\""}));
  child.ReadUntil("pid ");
  const pid_t command = std::stoi(child.ReadUntil("."));
  REQUIRE(kill(command, SIGSTOP) == 0);
  // It answers who asks for the lock: the stopped command is ended.
  CHECK(RunZklock({"release", "--holders", "--yes", lock}).exit == Exited(0));
  CHECK(child.Wait() == Exited(76));
  CHECK(child.out().find("stays ours") == std::string::npos);
}

}  // namespace
}  // namespace zklock::test
