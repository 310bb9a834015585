// Tests of the helper on which all other tests rely.

#include "support/child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "unit/process/supervised.h"

namespace zklock::test {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a program's output, errors and status are collected") {
  const Finished finished = Run({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  CHECK(finished.out == "out\n");
  CHECK(finished.err == "err\n");
  CHECK(finished.exit == Exited(3));
}

TEST_CASE("a program that does not exist exits with 99 and reports it") {
  const Finished finished = Run({.argv = {"/nonexistent/program"}});
  CHECK(finished.exit == Exited(99));
  CHECK(finished.err.find("/nonexistent/program") != std::string::npos);
}

TEST_CASE("more input and output than a pipe holds is transferred") {
  const std::string text(1'000'000, 'x');
  CHECK(Run({.argv = {"cat"}, .stdin_text = text}).out == text);
}

TEST_CASE("input that nobody reads does no harm") {
  CHECK(Run({.argv = {"true"}, .stdin_text = std::string(1'000'000, 'x')}).exit == Exited(0));
}

TEST_CASE("the environment is extended or replaced") {
  const std::vector<std::string> print = {"/usr/bin/env"};
  CHECK(Run({.argv = print, .environment = {{"A=1", "B=2"}}, .also_environment = {"A=3"}}).out ==
        "B=2\nA=3\n");
  CHECK(Run({.argv = print, .also_environment = {"A=3"}}).out.find("PATH=") != std::string::npos);
}

TEST_CASE("a conversation runs line by line until the end") {
  Child child = Child::Start({.argv = {"cat"}, .keep_stdin = true});
  child.Write("one\ntwo\nth");
  CHECK(child.ReadLine() == "one");
  CHECK(child.ReadLine() == "two");
  child.Write("ree\n");
  CHECK(child.ReadUntil("e\n") == "three\n");
  child.CloseInput();
  CHECK_FALSE(child.TryReadLine());
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("a wait that fails reports what the child wrote, and its processes") {
  Child child = Child::Start({.argv = {"sh", "-c", "echo only this; exec sleep 1000"}});
  CHECK(child.ReadLine() == "only this");
  const std::string process = "processes:\n" + std::to_string(child.pid()) + " (s";  // sh or sleep
  CHECK_THROWS_WITH(child.ReadLine(milliseconds(1)),
                    Catch::Contains("only this") && Catch::Contains(process));
  CHECK_THROWS_AS(child.Wait(milliseconds(1)), std::runtime_error);
  CHECK_FALSE(child.HasEnded());
  child.Signal(SIGKILL);
  CHECK(child.Wait() == Killed(SIGKILL));
}

TEST_CASE("the pid of an ended child is not reused while its Child object exists") {
  std::optional<Child> child = Child::Start({.argv = {"true"}});
  const pid_t pid = child->pid();
  CHECK(child->Wait() == Exited(0));
  CHECK(kill(-pid, 0) == 0);
  child.reset();
  CHECK(kill(-pid, 0) == -1);
}

TEST_CASE("the output ends when the last process that has it open ends") {
  Child child = Child::Start({.argv = {"sh", "-c", "(read line; echo late) <&3 3<&- & exit 4"},
                              .keep_stdin = true,
                              .prepare = [] { dup2(STDIN_FILENO, 3); }});
  CHECK(child.Wait() == Exited(4));
  CHECK(child.out().empty());
  child.Write("go\n");
  child.ReadToEnd();
  CHECK(child.out() == "late\n");
}

TEST_CASE("a child that is destroyed is killed with its process group") {
  process::ReportPipe report;
  {
    Child child = Child::Start(
        {.argv = {"sh", "-c", "sleep 1000 & echo ready; wait"}, .inherit = {report.write_end()}});
    CHECK(child.ReadLine() == "ready");
    report.CloseWriteEnd();
    CHECK_FALSE(report.HasEnded());
  }
  CHECK(report.ReadToEnd().empty());
}

TEST_CASE("a body has the descriptors that an executed program would have") {
  const UniqueFd own(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd given(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Child child = Child::Start({.body =
                                  [&] {
                                    if (fcntl(own.get(), F_GETFD) >= 0) return 1;
                                    return fcntl(given.get(), F_GETFD) == 0 ? 0 : 2;
                                  },
                              .inherit = {given.get()}});
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("a body that throws exits with 99") {
  Child child = Child::Start({.body = []() -> int { throw std::runtime_error("no"); }});
  CHECK(child.Wait() == Exited(99));
  CHECK(child.err() == "child: no\n");
}

TEST_CASE("a terminal echoes, interrupts and hangs up") {
  Child child =
      Child::StartOnTerminal({.argv = {"sh", "-c", "tty >/dev/null && echo tty; exec cat"}});
  child.ReadUntil("tty");
  child.Write("typed\n");
  child.ReadUntil("typed");  // echoed
  child.ReadUntil("typed");  // by cat
  child.Write("\x03");
  CHECK(child.Wait() == Killed(SIGINT));

  Child other = Child::StartOnTerminal({.argv = {"sh", "-c", "echo ready; exec cat"}});
  other.ReadUntil("ready");
  other.HangUp();
  CHECK(other.Wait() == Killed(SIGHUP));
}

TEST_CASE("a wait for a stop ends once the child is stopped") {
  Child child = Child::Start({.argv = {"sh", "-c", "kill -STOP $$; exit 5"}});
  child.WaitUntilStopped();
  child.Signal(SIGCONT);
  CHECK(child.Wait() == Exited(5));
}

}  // namespace
}  // namespace zklock::test
