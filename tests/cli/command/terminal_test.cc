#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

TEST_CASE("Ctrl-C ends the command, releases the lock and ends the shell's loop") {
  Terminal terminal("terminal");
  terminal.Type(
      "for i in 1 2 3; do $Z exclusive $L -- sh -c 'echo tu\"\"rn; exec sleep 1000'; done");
  terminal.ReadUntil("turn");
  terminal.Press('C');
  CHECK(terminal.Status() == "130.");
  CHECK(terminal.screen().find("turn", terminal.screen().find("turn") + 1) == std::string::npos);
  CHECK(Tree().Children(terminal.lock()).empty());
}

/// A script that writes "then STATUS." after a command that has written "begun".
struct ScriptCase {
  std::string shell;
  std::string first_line;
  std::string status;  // how the shell spells $?
};
const std::vector<ScriptCase> kScripts = {
    {"bash", "", "$?"},
    // Without this, fish ends a script on Ctrl-C regardless of how its commands end.
    {"fish", "status job-control full\n", "$status"}};

/// Loops until Ctrl-C, handled by `handler`.
std::string Looping(const std::string& handler) {
  return "perl -e '$| = 1; $SIG{INT} = " + handler +
         "; print \"begun\\n\"; select(undef, undef, undef, 0.2) while 1'";
}

TEST_CASE("A script continues after a command that handles Ctrl-C, whatever its exit status") {
  const auto script = GENERATE(from_range(kScripts));
  const std::string status = GENERATE("130", "7");
  CAPTURE(script.shell, status);
  const TemporaryDirectory at;
  const std::string path = at.Write(
      "script", script.first_line + "$Z exclusive $L -- " + Looping("sub { exit " + status + " }") +
                    "\necho \"then " + script.status + ".\"\nexit 5\n");
  Terminal terminal("terminal");
  terminal.Type(script.shell + " " + path);
  terminal.ReadUntil("begun");
  terminal.Press('C');
  terminal.ReadUntil("then " + status + ".");
  CHECK(terminal.Status() == "5.");
}

TEST_CASE("A script ends when Ctrl-C kills the command") {
  const auto script = GENERATE(from_range(kScripts));
  CAPTURE(script.shell);
  const TemporaryDirectory at;
  const std::string path =
      at.Write("script", script.first_line + "$Z exclusive $L -- " + Looping("\"DEFAULT\"") +
                             "\necho \"then " + script.status + ".\"\nexit 5\n");
  Terminal terminal("terminal");
  terminal.Type(script.shell + " " + path);
  terminal.ReadUntil("begun");
  terminal.Press('C');
  CHECK(terminal.Status() == "130.");
  CHECK(terminal.screen().find("then ") == std::string::npos);
}

TEST_CASE("Ctrl-C ends a command that has left the process group") {
  const std::string leaver = GENERATE("setsid", "timeout 1000");
  CAPTURE(leaver);
  Terminal terminal("terminal");
  terminal.Type("$Z exclusive $L -- " + leaver + " sh -c 'echo be\"\"gun; exec sleep 1000'");
  terminal.ReadUntil("begun");
  terminal.Press('C');
  terminal.AwaitPrompt();
  CHECK(Tree().Children(terminal.lock()).empty());
}

TEST_CASE("Ctrl-C ends the processes that zklock waits for after the command has ended") {
  Terminal terminal("terminal");
  terminal.Type("$Z exclusive --descendants wait $L -- setsid --fork sleep 1000");
  terminal.ReadUntil("which it left behind");
  terminal.Press('C');
  CHECK(terminal.Status() == "0.");
}

TEST_CASE(
    "Ctrl-Z stops the job and says how long it may stay stopped; fg resumes it within the lease") {
  Terminal terminal("terminal");
  terminal.Type("$Z exclusive $L -- sh -c 'echo be\"\"gun; read x; echo \"go\"t $x'");
  terminal.ReadUntil("begun");
  terminal.Press('Z');
  terminal.ReadUntil("stays held for");
  terminal.ReadUntil("Stopped");
  terminal.AwaitPrompt();
  CHECK(Tree().Children(terminal.lock()).size() == 1);
  terminal.Type("fg");
  terminal.ReadUntil("exclusive");  // the shell repeats the command line
  terminal.Type("the word");
  terminal.ReadUntil("got the word");
  CHECK(terminal.Status() == "0.");
}

TEST_CASE(
    "A job stopped for longer than its lease has lost its lock and its command when it continues") {
  Terminal terminal("terminal");
  terminal.Type(
      "$Z exclusive --session-timeout 4s -k 200ms $L -- "
      "sh -c 'echo be\"\"gun; read x; echo \"sur\"vived'");
  terminal.ReadUntil("begun");
  terminal.Press('Z');
  terminal.ReadUntil("Stopped");
  terminal.AwaitPrompt();
  Child next = StartHolder(terminal.lock());  // returns once another contender holds the lock
  terminal.Type("fg");
  CHECK(terminal.Status() == "76.");
  CHECK(terminal.screen().find("survived") == std::string::npos);
}

TEST_CASE("A command can read the terminal as it can without zklock") {
  Terminal terminal("terminal");
  terminal.Type("$Z exclusive $L -- sh -c 'echo be\"\"gun; cat'");
  terminal.ReadUntil("begun");
  terminal.Type("a line");
  terminal.ReadUntil("a line");  // the echo
  terminal.ReadUntil("a line");  // and cat's copy
  terminal.Press('D');
  CHECK(terminal.Status() == "0.");
}

TEST_CASE("In a pipeline zklock is a process of the job like the others") {
  Terminal terminal("terminal");
  terminal.Type("yes | $Z exclusive $L -- sed 's/y/&&&&/' | head -n 1");
  terminal.ReadUntil("yyyy");
  CHECK(terminal.Status() == "0.");
  terminal.AwaitPrompt();
  terminal.Type("cat | $Z exclusive $L -- sh -c 'echo be\"\"gun >&2; cat' | cat");
  terminal.ReadUntil("begun");
  terminal.Press('C');
  CHECK(terminal.Status() == "130.");
  CHECK(Tree().Children(terminal.lock()).empty());
}

TEST_CASE("A terminal that hangs up ends the command and releases the lock") {
  Terminal terminal("terminal");
  terminal.Type("$Z exclusive $L -- sh -c 'echo be\"\"gun; exec sleep 1000'");
  terminal.ReadUntil("begun");
  terminal.shell().HangUp();
  RunZklock({"exclusive", terminal.lock(), "--", "true"}, Exited(0));
}

TEST_CASE("With nohup a terminal that hangs up does not end the command") {
  Terminal terminal("terminal");
  const std::string fifo = "/tmp/zklock-nohup-" + BaseName(terminal.lock());
  REQUIRE(Run({.argv = {"mkfifo", fifo}}).exit == Exited(0));
  terminal.Type("nohup $Z exclusive $L -- sh -c 'cat " + fifo + " >" + fifo +
                "-copy' >/dev/null 2>" + fifo + "-log &");
  Child writer =
      Child::Start({.argv = {"sh", "-c", "exec >" + fifo + "; echo open >&2; read x; echo after"},
                    .keep_stdin = true});
  writer.ReadErrUntil("open");  // the command reads the other end, so it is running
  terminal.shell().HangUp();
  terminal.shell().Wait();
  writer.CloseInput();
  writer.Wait();
  RunZklock({"exclusive", terminal.lock(), "--", "true"}, Exited(0));
  CHECK(Run({.argv = {"cat", fifo + "-copy"}}).out == "after\n");
  Run({.argv = {"rm", "-f", fifo, fifo + "-copy", fifo + "-log"}});
}

}  // namespace
}  // namespace zklock::test
