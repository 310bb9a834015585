// A process that runs as another user, such as one started with sudo, and cannot be signalled.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "support/skip.h"
#include "support/sudo.h"
#include "support/temporary.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::Child;
using test::Exited;
using test::Sudo;

// Runs a script as nobody under a supervisor, ends it, and prints the result. `prepare` is called
// in that process beforehand.
Child EndAsNobody(
    const std::string& script, EndCause cause, const std::function<void()>& prepare = [] {},
    bool is_lost_later = false) {
  return Child::Start(
      {.body =
           [script, cause, is_lost_later] {
             Signals signals;
             const auto command =
                 MustStart(Script(script, {.kill_after = milliseconds(50)}), signals);
             dprintf(1, "started\n");
             char go = 0;
             Check(read(STDIN_FILENO, &go, 1), "read");
             command->End(cause);
             EventLoop loop;
             loop.Add(*command);
             test::RunUntil(loop, [&] {
               if (const auto awaited = command->TakeAwaited()) {
                 dprintf(1, "awaited %d %s\n", awaited->is_survivor, awaited->process.name.c_str());
                 if (is_lost_later) command->End(EndCause::kRemoved);
               }
               return command->ended() != nullptr;
             });
             const Ended& ended = *command->ended();
             for (const Survivor& survivor : ended.survivors) {
               dprintf(1, "survivor %d %s\n", survivor.pid, survivor.name.c_str());
             }
             dprintf(1, "ended %d %d\n", ended.wait_status, ended.guard_failed);
             return 0;
           },
       .also_environment = {"REPORT=1"},
       .keep_stdin = true,
       .prepare =
           [prepare] {
             prepare();
             Sudo::BecomeNobody();
           }});
}

/// Reads the line of EndAsNobody(), that of a script that prints one pid, and `others` more, in any
/// order. Returns that pid.
pid_t ReadSurvivor(Child& child, int others = 0) {
  pid_t survivor = 0;
  for (int line = 0; line < 2 + others; ++line) {
    const std::string text = child.ReadLine();
    if (text != "up" && text != "started") survivor = std::stoi(text);
  }
  // The shell has written its pid, but may not have executed sleep yet.
  test::WaitUntil([survivor] { return ReadProcessStat(survivor).value().name == "sleep"; });
  return survivor;
}

TEST_CASE(
    "if the lock is lost, zklock names a process that cannot be signalled, and does not wait for "
    "it") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  Child child =
      EndAsNobody("sh -c 'echo up >&$REPORT; exec sleep 1000' & " + sudo.command() +
                      "sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & " + kWaitForEver,
                  EndCause::kRemoved);
  const pid_t survivor = ReadSurvivor(child, 1);
  child.Write("x");
  CHECK(child.ReadLine() == "survivor " + std::to_string(survivor) + " sleep");
  CHECK(child.ReadLine() == "ended 15 0");
  CHECK(child.Wait() == Exited(0));
  CHECK(ReadProcessStat(survivor));
  kill(survivor, SIGKILL);
  child.ReadToEnd();  // it was the last process
}

TEST_CASE("a command that cannot be signalled itself is named, and counts as killed") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  Child child =
      EndAsNobody("exec " + sudo.command() + "sh -c 'trap \"\" TERM; echo $$; exec sleep 1000'",
                  EndCause::kRemoved);
  const pid_t survivor = ReadSurvivor(child);
  child.Write("x");
  CHECK(child.ReadLine() == "survivor " + std::to_string(survivor) + " sleep");
  CHECK(child.ReadLine() == "ended 9 0");
  CHECK(child.Wait() == Exited(0));
  kill(survivor, SIGKILL);
  child.ReadToEnd();
}

TEST_CASE(
    "while the lock is held, zklock waits for a command that cannot be signalled, and names it") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  const EndCause cause = GENERATE(EndCause::kReleaseRequested, EndCause::kRunTooLong);
  Child child = EndAsNobody("exec " + sudo.command() + "sh -c 'echo $$; exec sleep 1000'", cause);
  const pid_t survivor = ReadSurvivor(child);
  child.Write("x");
  CHECK(child.ReadLine() == "awaited 1 sleep");
  CHECK_FALSE(child.HasEnded());
  kill(survivor, SIGINT);
  CHECK(child.ReadLine() == "ended " + std::to_string(SIGINT) + " 0");
  CHECK(child.Wait() == Exited(0));
}

TEST_CASE("once the lock is lost, zklock no longer waits for a command that cannot be signalled") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  Child child = EndAsNobody(
      "exec " + sudo.command() + "sh -c 'echo $$; exec sleep 1000'", EndCause::kRunTooLong, [] {},
      true);
  const pid_t survivor = ReadSurvivor(child);
  child.Write("x");
  CHECK(child.ReadLine() == "awaited 1 sleep");
  CHECK(child.ReadLine() == "survivor " + std::to_string(survivor) + " sleep");
  CHECK(child.ReadLine() == "ended 9 0");
  CHECK(child.Wait() == Exited(0));
  kill(survivor, SIGKILL);
}

TEST_CASE("hidepid does not hide a process of the same user whose parent is another user's") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  const std::string stubborn = "trap \"\" TERM; echo $$; exec sleep 1000";
  Child child = EndAsNobody(sudo.command() +
                                "sh -c 'setpriv --reuid=65534 --regid=65534 --clear-groups sh -c " +
                                "\"trap \\\"\\\" TERM; echo below \\$\\$; exec sleep 1000\" & " +
                                stubborn + "' & " + kWaitForEver,
                            EndCause::kRemoved, [] {
                              if (!MountOverProc("proc", "hidepid=2")) ThrowErrno("mounting /proc");
                            });
  pid_t below = 0;
  pid_t survivor = 0;
  for (int i = 0; i < 3; ++i) {
    const std::string line = child.ReadLine();
    if (line == "started" || sscanf(line.c_str(), "below %d", &below) == 1) continue;
    survivor = std::stoi(line);
  }
  REQUIRE(below != 0);
  child.Write("x");
  CHECK(child.ReadLine() == "survivor " + std::to_string(survivor) + " ?");
  CHECK(child.ReadLine() == "ended 15 0");
  CHECK(child.Wait() == Exited(0));
  CHECK((!ReadProcessStat(below) || ReadProcessStat(below)->is_dead));
  kill(below, SIGKILL);
  kill(survivor, SIGKILL);
  child.ReadToEnd();
}

TEST_CASE("the session is not closed while a process survives zklock's death") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  const std::string notice = (fs::path(sudo.path()).parent_path() / "closed").string();
  Child child =
      Child::Start({.body =
                        [&] {
                          Signals signals;
                          TestCommand spec =
                              Script(sudo.command() + "sh -c 'echo $$ $PPID; exec sleep 1000' & " +
                                     kWaitForEver);
                          spec.when_orphaned = [&] { close(creat(notice.c_str(), 0644)); };
                          Sudo::BecomeNobody();
                          const auto command = MustStart(spec, signals);
                          dprintf(1, "guard %d\n", test::ParentOf(command->command_pid()));
                          WaitForEnd(*command);
                          return 0;
                        },
                    .also_environment = {"REPORT=1"}});
  fs::permissions(fs::path(notice).parent_path(), fs::perms(0777));
  pid_t survivor = 0;
  pid_t guard = 0;
  for (int i = 0; i < 2; ++i) {
    const std::string line = child.ReadLine();
    if (sscanf(line.c_str(), "guard %d", &guard) != 1) survivor = std::stoi(line);
  }
  child.Signal(SIGKILL);
  test::WaitUntilGone(guard);
  CHECK_FALSE(fs::exists(notice));
  kill(survivor, SIGKILL);
  child.ReadToEnd();
}

}  // namespace
}  // namespace zklock::process
