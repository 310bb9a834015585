// A process that runs as another user, such as one started with sudo, and cannot be signalled.

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "support/skip.h"
#include "support/temporary.h"
#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::Child;
using test::Exited;

constexpr uid_t kNobody = 65534;

// A setuid copy of setpriv(1), which becomes root for good, as sudo does. The test cannot make one
// without root, or if setuid files do not work.
class Sudo {
 public:
  Sudo() {
    fs::permissions(directory_.path(), fs::perms(0755));
    std::error_code error;
    fs::copy_file("/usr/bin/setpriv", path(), error);
    if (error || geteuid() != 0) return;
    Check(chmod(path().c_str(), 04755), "chmod");
    works_ = test::Run({.argv = {path(), "--reuid=0", "--regid=0", "--clear-groups", "true"},
                        .prepare = BecomeNobody})
                 .exit == Exited(0);
  }
  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] std::string path() const { return directory_.Path("becomer"); }
  [[nodiscard]] std::string command() const {
    return path() + " --reuid=0 --regid=0 --clear-groups ";
  }

  static void BecomeNobody() {
    Check(setgroups(0, nullptr), "setgroups");
    Check(setresgid(kNobody, kNobody, kNobody), "setresgid");
    Check(setresuid(kNobody, kNobody, kNobody), "setresuid");
  }

 private:
  test::TemporaryDirectory directory_;
  bool works_ = false;
};

// Runs a script as nobody under a supervisor, ends it, and prints the result. `prepare` is called
// in that process beforehand.
Child EndAsNobody(
    const std::string& script, const std::function<void()>& prepare = [] {}) {
  return Child::Start({.body =
                           [script] {
                             Signals signals;
                             const auto command = MustStart(
                                 Script(script, {.kill_after = milliseconds(50)}), signals);
                             dprintf(1, "started\n");
                             char go = 0;
                             Check(read(STDIN_FILENO, &go, 1), "read");
                             command->End(EndCause::kReleaseRequested);
                             const Ended ended = WaitForEnd(*command);
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

TEST_CASE("a process that cannot be signalled is named and not waited for") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  Child child = EndAsNobody("sh -c 'echo up >&$REPORT; exec sleep 1000' & " + sudo.command() +
                            "sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & " + kWaitForEver);
  pid_t survivor = 0;
  for (int i = 0; i < 3; ++i) {
    const std::string line = child.ReadLine();
    if (line != "up" && line != "started") survivor = std::stoi(line);
  }
  REQUIRE(survivor != 0);
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
      EndAsNobody("exec " + sudo.command() + "sh -c 'trap \"\" TERM; echo $$; exec sleep 1000'");
  pid_t survivor = 0;
  for (int i = 0; i < 2; ++i) {
    const std::string line = child.ReadLine();
    if (line != "started") survivor = std::stoi(line);
  }
  child.Write("x");
  CHECK(child.ReadLine() == "survivor " + std::to_string(survivor) + " sleep");
  CHECK(child.ReadLine() == "ended 9 0");
  CHECK(child.Wait() == Exited(0));
  kill(survivor, SIGKILL);
  child.ReadToEnd();
}

TEST_CASE("hidepid does not hide a process of the same user that is a child of another user's") {
  const Sudo sudo;
  if (!sudo.works()) return test::Skip("root and setuid files");
  const std::string stubborn = "trap \"\" TERM; echo $$; exec sleep 1000";
  Child child = EndAsNobody(sudo.command() +
                                "sh -c 'setpriv --reuid=65534 --regid=65534 --clear-groups sh -c " +
                                "\"trap \\\"\\\" TERM; echo below \\$\\$; exec sleep 1000\" & " +
                                stubborn + "' & " + kWaitForEver,
                            [] {
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
