#include "process/guard/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "support/temporary.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

namespace fs = std::filesystem;
using test::Child;
using test::Exited;
using test::ExitFrom;
using test::Killed;

std::string ReadWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

fs::path Proc(pid_t pid) { return "/proc/" + std::to_string(pid); }

// Returns a process's open descriptors: "NUMBER FILE", sorted as text.
std::set<std::string> Descriptors(pid_t pid) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(Proc(pid) / "fd")) {
    std::error_code closed;
    const std::string file = fs::read_symlink(entry.path(), closed).string();
    if (!closed) found.insert(entry.path().filename().string() + " " + file);
  }
  return found;
}

// Returns a command that does nothing. It has been executed when Begin() returns.
TestCommand Sleep() {
  TestCommand spec;
  spec.executable = "/bin/sleep";
  spec.arguments = {"sleep", "1000"};
  return spec;
}

int ExecError(const std::string& path, const Signals& signals) {
  TestCommand spec = Sleep();
  spec.executable = path;
  return Begin(*Supervisor::Prepare(spec, signals), spec).value().error;
}

TEST_CASE("every exit status of the command is returned") {
  const Signals signals;
  for (int status = 0; status < 256; ++status) {
    const auto command = MustStart(Script("exit " + std::to_string(status)), signals);
    const Ended ended = WaitForEnd(*command);
    CHECK(ExitFrom(ended.wait_status) == Exited(status));
    CHECK_FALSE(command->cause());
    CHECK_FALSE(ended.guard_failed);
  }
}

TEST_CASE("a forwarded signal reaches the command") {
  Supervised command(
      "for s in TERM INT HUP QUIT USR1 USR2 CONT; do trap \"echo $s >&$REPORT\" $s; done; "
      "sleep 1000 & echo ready >&$REPORT; while :; do wait; done");
  ReportPipe& report = command.report;
  CHECK(report.ReadLine() == "ready");
  const std::pair<int, const char*> signals[] = {
      {SIGTERM, "TERM"}, {SIGINT, "INT"},   {SIGHUP, "HUP"},  {SIGQUIT, "QUIT"},
      {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGCONT, "CONT"}};
  for (const auto& [number, name] : signals) {
    command->Forward(number);
    CHECK(report.ReadLine() == name);
  }
}

TEST_CASE("a signal forwarded after the command's end has no effect") {
  Supervised command("exit 3");
  CHECK(ExitFrom(command.WaitForEnd().wait_status) == Exited(3));
  command->Forward(SIGTERM);
  command->End(EndCause::kReleaseRequested);
  CHECK(ExitFrom(command->ended()->wait_status) == Exited(3));
}

TEST_CASE("a command that cannot be executed returns execve's errno, and leaves nothing behind") {
  const Signals signals;
  const test::TemporaryDirectory at;
  const std::string no_interpreter =
      at.WriteProgram("no-interpreter", "#!/nonexistent/interpreter\n");
  const std::string not_executable = at.Write("not-executable", "#!/bin/sh\n");
  const auto before = ChildrenOf(getpid());
  CHECK(ExecError("/nonexistent/command", signals) == ENOENT);
  CHECK(ExecError(no_interpreter, signals) == ENOENT);
  CHECK(ExecError(not_executable, signals) == EACCES);
  CHECK(ExecError("/", signals) == EACCES);
  CHECK(ChildrenOf(getpid()) == before);
}

TEST_CASE("the command gets the descriptors that zklock was given and no others") {
  ReportPipe inherited;
  const UniqueFd zklocks_own(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  std::set<std::string> expected;
  inherited.Inherit(true);
  for (const std::string& descriptor : Descriptors(getpid())) {
    const int flags = fcntl(std::stoi(descriptor), F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) expected.insert(descriptor);
  }
  const Signals signals;
  // perl reports "up" after the dynamic linker has closed its files, and opens nothing to do so.
  TestCommand spec =
      Script("exec perl -e 'open(F, \">&=\", $ENV{REPORT}); syswrite(F, \"up\\n\"); sleep 1000'");
  spec.environment.push_back(inherited.variable());
  const auto command = MustStart(spec, signals);
  inherited.CloseWriteEnd();
  WaitForTree(inherited, 1);
  CHECK(Descriptors(command->command_pid()) == expected);
}

TEST_CASE("the guard keeps none of the user's descriptors and none of zklock's connections open") {
  ReportPipe inherited;
  const UniqueFd connection(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  inherited.Inherit(true);
  const Signals signals;
  const auto command = MustStart(Sleep(), signals);
  const pid_t guard = test::ParentOf(command->command_pid());
  int others = 0;
  for (const std::string& descriptor : Descriptors(guard)) {
    CAPTURE(descriptor);
    const std::string file = descriptor.substr(descriptor.find(' ') + 1);
    if (std::stoi(descriptor) <= STDERR_FILENO) {
      CHECK(file == "/dev/null");
    } else {
      ++others;
      CHECK((file.starts_with("socket:") || file.starts_with("anon_inode:") ||
             file.ends_with("/children")));
    }
  }
  CHECK(others == 4);  // the socket, the signalfd, the timerfd, and the list of its children
}

TEST_CASE("pkill, pidof and a signal to zklock's group spare the guard", "[native]") {
  const Signals signals;
  const auto command = MustStart(Sleep(), signals);
  const auto stat = ReadProcessStat(test::ParentOf(command->command_pid())).value();
  CHECK(stat.parent == getpid());
  CHECK(stat.name == "lock-guard");
  const std::string own_name = ReadWhole(Proc(getpid()) / "cmdline").c_str();
  const std::string its_name = ReadWhole(Proc(stat.id.pid) / "cmdline").c_str();
  CHECK(its_name == std::string("guard").substr(0, own_name.size()));
  CHECK(own_name != its_name);
  CHECK(getpgid(stat.id.pid) != getpgid(0));
  CHECK(getsid(stat.id.pid) != getsid(0));
}

TEST_CASE("Ctrl-C reaches the command once, and zklock recognises it as the terminal's") {
  Child child = Child::StartOnTerminal({.body = [] {
    Signals signals;
    const auto command = MustStart(
        Script("trap 'echo interrupted' INT; trap 'exit 4' TERM; sleep 1000 & echo ready; " +
               kWaitForEver),
        signals);
    EventLoop loop;
    loop.Add(signals);
    loop.Add(*command);
    while (!command->ended()) {
      loop.RunOnce();
      while (const auto event = signals.Next()) {
        dprintf(1, "%d %s\n", event->number, event->from_terminal ? "terminal" : "sent");
        if (!event->from_terminal) command->Forward(event->number);
        command->Forward(SIGTERM);  // which ends this test
      }
    }
    return WEXITSTATUS(command->ended()->wait_status);
  }});
  child.ReadUntil("ready");
  child.Write("\x03");
  CHECK(child.Wait() == Exited(4));
  child.ReadToEnd();
  const std::string& screen = child.out();
  CHECK(screen.find("2 terminal") != std::string::npos);
  CHECK(screen.find("interrupted") != std::string::npos);
  CHECK(screen.find("interrupted") == screen.rfind("interrupted"));
}

}  // namespace
}  // namespace zklock::process
