// --contain: the command has a cgroup of its own, zklock uses it to end processes that a walk over
// /proc cannot, and no cgroup is left behind.

#include <grp.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cli/zklock.h"
#include "process/tree/process_tree.h"
#include "support/cgroup.h"
#include "support/process.h"
#include "support/skip.h"
#include "support/sudo.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

void BecomeNobody() {
  const bool is_nobody = setgroups(0, nullptr) == 0 && setresgid(kNobody, kNobody, kNobody) == 0 &&
                         setresuid(kNobody, kNobody, kNobody) == 0;
  if (!is_nobody) throw std::runtime_error("setuid");
}

/// Returns `zklock WORDS LOCK -- sh -c SCRIPT` in the test's cgroup.
ChildOptions In(const TestCgroup& cgroup, Words words, const std::string& lock,
                const std::string& script) {
  for (const std::string& word : Words{lock, "--", "sh", "-c", script}) words.push_back(word);
  ChildOptions options = Zklock(words);
  options.also_environment = {"PARENT=" + cgroup.path(), "ZKLOCK=" + Binary()};
  options.prepare = [&cgroup] {
    ResetSignals();
    cgroup.Enter();
  };
  return options;
}

/// Runs zklock as the user nobody, who owns the cgroup, from a copy that this user can execute.
class Nobody {
 public:
  explicit Nobody(const TestCgroup& cgroup) {
    cgroup.GiveTo(kNobody);
    std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
    std::filesystem::copy_file(Binary(), directory_.Path("zklock"));
    // Like sudo, this copy of setpriv sets all of its user IDs to root.
    std::filesystem::copy_file("/usr/bin/setpriv", directory_.Path("sudo"));
    chmod(directory_.Path("sudo").c_str(), 04755);
  }
  [[nodiscard]] std::string sudo() const {
    return directory_.Path("sudo") + " --reuid=0 --regid=0 --clear-groups ";
  }
  [[nodiscard]] bool has_sudo() const {
    return Run({.argv = {"sh", "-c", sudo() + "true"}, .prepare = BecomeNobody}).exit == Exited(0);
  }
  [[nodiscard]] ChildOptions Options(ChildOptions options) const {
    options.argv.front() = directory_.Path("zklock");
    options.prepare = [prepare = options.prepare] {
      prepare();
      BecomeNobody();
    };
    return options;
  }

 private:
  const TemporaryDirectory directory_;
};

void DeleteContender(const std::string& lock) {
  Tree tree;
  tree.Delete(lock + "/" + tree.WaitForChildren(lock, 1).front());
}

std::string CgroupOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return BaseName(line);
  }
  return "";
}

/// A script that ignores TERM and starts a double-forked daemon, in its own session, that does too.
const std::string kStubborn =
    "trap '' TERM; ( setsid sh -c 'echo $$; exec sleep 1000' & ); echo $$; exec sleep 1000";

/// Waits until a process has gone to sleep `rounds` more times: a guard polls until the processes
/// that it has killed are gone.
void AwaitRounds(pid_t pid, int rounds) {
  const auto switches = [pid] {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string word; status >> word;) {
      if (long count = 0; word == "voluntary_ctxt_switches:" && status >> count) return count;
    }
    throw std::runtime_error("a process has ended");
  };
  const long begin = switches();
  WaitUntil([&] { return switches() >= begin + rounds; });
}

/// Returns whether KILL is pending for a process.
bool IsToBeKilled(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  unsigned long long all = 0;
  for (std::string word; status >> word;) {
    unsigned long long pending = 0;
    if ((word == "SigPnd:" || word == "ShdPnd:") && status >> std::hex >> pending) all |= pending;
  }
  return ((all >> (SIGKILL - 1)) & 1U) != 0;
}

/// Kills zklock and its guard so that neither can act after the death of the other.
void KillWithGuard(Child& holder) {
  const pid_t guard = process::ChildrenOf(holder.pid()).at(0);
  holder.Signal(SIGSTOP);
  holder.WaitUntilStopped();
  kill(guard, SIGSTOP);
  kill(guard, SIGKILL);
  holder.Signal(SIGKILL);
  CHECK(holder.Wait() == Killed(SIGKILL));
  WaitUntilGone(guard);
}

/// Returns the member `contained` of each contender in `inspect --json`: true, false or null.
Words ContainedOf(const std::string& lock) {
  const Finished finished = RunZklock({"inspect", "--json", lock}, Exited(0));
  Words found;
  const std::string key = "\"contained\":";
  for (std::size_t at = 0; (at = finished.out.find(key, at)) != std::string::npos;) {
    at += key.size();
    found.push_back(finished.out.substr(at, finished.out.find(',', at) - at));
  }
  return found;
}

/// Reads the pids that the command prints, one per line.
std::vector<pid_t> ReadPids(Child& child, int count) {
  std::vector<pid_t> pids;
  for (int i = 0; i < count; ++i) pids.push_back(std::stoi(child.ReadLine()));
  return pids;
}

}  // namespace

TEST_CASE("the command runs in a cgroup of its own, which is removed") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  const Finished finished =
      Run(In(cgroup, {"exclusive", "-v"}, lock,
             "grep ^0:: /proc/self/cgroup; stat -c %a " + cgroup.path() + "/zklock-*"),
          Exited(0));
  // Anyone who could open the cgroup could lock it, and so keep it from being cleaned up.
  CHECK(Lines(finished.out).at(1) == "700");
  const std::string name = BaseName(Lines(finished.out).at(0));
  CHECK(name.size() == std::string("zklock-").size() + 36);
  CHECK(name.starts_with("zklock-"));
  CHECK_THAT(finished.err, Catch::Contains("the command runs in the cgroup " + cgroup.path() + "/" +
                                           name + "\n"));
  CHECK(cgroup.Below().empty());
}

TEST_CASE("with --contain off the command stays in the cgroup of zklock") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const Finished finished = Run(In(cgroup, {"exclusive", "-v", "--contain", "off"},
                                   NewLock("contain"), "grep ^0:: /proc/self/cgroup"));
  CHECK(BaseName(Lines(finished.out).at(0)) == BaseName(cgroup.path()));
  CHECK_THAT(finished.err, !Catch::Contains("cgroup"));
}

TEST_CASE("a try that finds the lock busy leaves no cgroup") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  auto [lock, holder] = HoldNewLock("contain", {"exclusive", "--contain", "off"});
  Run(In(cgroup, {"try"}, lock, "true"), Exited(75));
  Run(In(cgroup, {"exclusive", "--wait", "100ms"}, lock, "true"), Exited(75));
  CHECK(cgroup.Below().empty());
}

TEST_CASE("a command that cannot be executed leaves no cgroup") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const TemporaryDirectory directory;
  const std::string program = directory.WriteProgram("program", "#!/nowhere\n");
  ChildOptions options = In(cgroup, {"exclusive"}, NewLock("contain"), "");
  options.argv.resize(options.argv.size() - 3);
  options.argv.push_back(program);
  Run(options, Exited(127));
  CHECK(cgroup.Below().empty());
}

TEST_CASE("a command that ignores the stop signal and leaves daemons ends with its cgroup") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  Child holder = Child::Start(In(cgroup, {"exclusive", "-k", "50ms"}, lock, kStubborn));
  ReadPids(holder, 2);
  SECTION("the lock is lost") {
    DeleteContender(lock);
    CHECK(holder.Wait() == Exited(76));
    CHECK(cgroup.Below().empty());
  }
  SECTION("zklock is killed") {
    holder.Signal(SIGKILL);
    // The guard removes the cgroup before it closes the session.
    Tree().WaitForChildren(lock, 0, 10s);
    CHECK(cgroup.Below().empty());
  }
  SECTION("the guard is killed") {
    const pid_t guard = process::ChildrenOf(holder.pid()).at(0);
    kill(guard, SIGKILL);
    CHECK(holder.Wait() == Exited(128 + SIGKILL));
    CHECK(cgroup.Below().empty());
  }
  holder.ReadToEnd();  // no process is left
}

TEST_CASE("an ordinary user's command ends along with everything that it ran through sudo") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const Nobody nobody(cgroup);
  if (!nobody.has_sudo()) return Skip("sudo");
  const std::string lock = NewLock("contain");
  const std::string script =
      nobody.sudo() + "sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & exec sleep 1000";
  Child holder = Child::Start(nobody.Options(
      In(cgroup, {"exclusive", "-k", "50ms", "--session-timeout", "40s"}, lock, script)));
  const pid_t pid = ReadPids(holder, 1).front();
  SECTION("the lock is lost") {
    DeleteContender(lock);
    CHECK(holder.Wait() == Exited(76));
    CHECK_THAT(holder.err(), !Catch::Contains("could not be signalled"));
    CHECK_FALSE(IsAlive(pid));
  }
  SECTION("zklock is killed: the guard closes the session, since nothing survives") {
    holder.Signal(SIGKILL);
    Tree().WaitForChildren(lock, 0, 20s);
    CHECK_FALSE(IsAlive(pid));
  }
  SECTION("the guard is killed") {
    kill(process::ChildrenOf(holder.pid()).at(0), SIGKILL);
    CHECK(holder.Wait() == Exited(128 + SIGKILL));
    CHECK_FALSE(IsAlive(pid));
  }
  holder.ReadToEnd();
  CHECK(cgroup.Below().empty());
}

namespace {

/// A version 1 cgroup, if the host has a hierarchy with this controller.
class OldCgroup {
 public:
  explicit OldCgroup(const std::string& controller) {
    std::ifstream mounts("/proc/self/mounts");
    for (std::string device, point, type, options, rest;
         mounts >> device >> point >> type >> options;) {
      std::getline(mounts, rest);
      if (type != "cgroup" ||
          ("," + options + ",").find("," + controller + ",") == std::string::npos)
        continue;
      path_ = point + "/test-" + std::to_string(getpid());
      works_ = mkdir(path_.c_str(), 0755) == 0;
      return;
    }
  }
  ~OldCgroup() {
    while (works_ && rmdir(path_.c_str()) != 0 && errno == EBUSY) usleep(1000);
  }
  OldCgroup(const OldCgroup&) = delete;
  OldCgroup& operator=(const OldCgroup&) = delete;

  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool works_ = false;
};

/// A frozen cgroup: even killed processes in it do not die before it is thawed.
class Freezer {
 public:
  Freezer() = default;
  ~Freezer() {
    if (works()) Thaw();
  }
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;

  [[nodiscard]] bool works() const { return cgroup_.works(); }
  void Freeze(pid_t pid) const {
    std::ofstream(cgroup_.path() + "/cgroup.procs") << pid << std::flush;
    Set("FROZEN");
    std::string state;
    while (state != "FROZEN") std::ifstream(cgroup_.path() + "/freezer.state") >> state;
  }
  void Thaw() const { Set("THAWED"); }

 private:
  void Set(const char* state) const {
    std::ofstream(cgroup_.path() + "/freezer.state") << state << std::flush;
  }
  const OldCgroup cgroup_{"freezer"};
};

}  // namespace

TEST_CASE("the lock is not released before the last process in the cgroup has ended") {
  const TestCgroup cgroup;
  const Freezer freezer;
  if (!cgroup.works() || !freezer.works()) return Skip("root and a cgroup hierarchy");
  const Nobody nobody(cgroup);
  if (!nobody.has_sudo()) return Skip("sudo");
  const std::string lock = NewLock("contain");
  // zklock is not permitted to signal this process, so a walk over /proc would not wait for its
  // end.
  const std::string script = nobody.sudo() + "sh -c 'echo $$; exec sleep 1000' & exec sleep 1000";
  Child holder = Child::Start(nobody.Options(
      In(cgroup, {"exclusive", "-k", "50ms", "--session-timeout", "40s"}, lock, script)));
  const pid_t frozen = ReadPids(holder, 1).front();
  freezer.Freeze(frozen);
  const pid_t guard = process::ChildrenOf(holder.pid()).at(0);
  SECTION("while zklock lives") {
    const pid_t command = process::ChildrenOf(guard).at(0);
    DeleteContender(lock);
    WaitUntil([&] { return !IsAlive(command) && IsToBeKilled(frozen); });
    AwaitRounds(guard, 10);
    CHECK_FALSE(holder.HasEnded());
    CHECK(IsAlive(frozen));
    freezer.Thaw();
    CHECK(holder.Wait() == Exited(76));
  }
  SECTION("after zklock's death") {
    holder.Signal(SIGKILL);
    WaitUntil([&] { return IsToBeKilled(frozen); });
    AwaitRounds(guard, 10);
    CHECK(Tree().Children(lock).size() == 1);
    CHECK(IsAlive(frozen));
    freezer.Thaw();
    Tree().WaitForChildren(lock, 0, 20s);
  }
  CHECK_FALSE(IsAlive(frozen));
  holder.ReadToEnd();
  CHECK(cgroup.Below().empty());
}

TEST_CASE("a process that hidepid hides behind two others ends with its cgroup") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const Nobody nobody(cgroup);
  if (!nobody.has_sudo()) return Skip("sudo");
  const std::string lock = NewLock("contain");
  const TemporaryDirectory directory;
  // A process that has dropped its privileges without an exec can be signalled, but its /proc
  // entries cannot be read.
  const std::string hidden =
      directory.WriteProgram("hidden",
                             "#!/bin/sh\nperl -e 'use POSIX; POSIX::setgid(65534); "
                             "POSIX::setuid(65534); $SIG{TERM} = \"IGNORE\"; $| = 1; "
                             "print \"up\\n\"; sleep 1000' &\nexec sleep 1000\n");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  const std::string script =
      nobody.sudo() + "sh -c '" + hidden + " & exec sleep 1000' & exec sleep 1000";
  ChildOptions options = nobody.Options(In(cgroup, {"exclusive", "-k", "50ms"}, lock, script));
  options.prepare = [prepare = options.prepare] {
    if (unshare(CLONE_NEWNS) != 0 || mount("proc", "/proc", "proc", 0, "hidepid=2") != 0) {
      throw std::runtime_error("mounting /proc");
    }
    prepare();
  };
  Child holder = Child::Start(options);
  CHECK(holder.ReadLine() == "up");
  SECTION("the lock is lost") {
    DeleteContender(lock);
    CHECK(holder.Wait() == Exited(76));
  }
  SECTION("the guard is killed, and zklock does not reap what the guard would have reaped") {
    kill(process::ChildrenOf(holder.pid()).at(0), SIGKILL);
    CHECK(holder.Wait() == Exited(128 + SIGKILL));
  }
  CHECK_THAT(holder.err(), !Catch::Contains("could not be signalled"));
  holder.ReadToEnd();
  CHECK(cgroup.Below().empty());
}

TEST_CASE("a fork bomb ends with its cgroup") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  // Twenty processes, each replaced at once by its child: a walk finds none of them alive.
  Child holder = Child::Start(
      In(cgroup, {"exclusive", "--session-timeout", "40s"}, lock,
         "exec perl -e '$| = 1; for (1 .. 20) { if (!fork) { while (1) { exit if fork } } } "
         "print \"up\\n\"; sleep 1000'"));
  CHECK(holder.ReadLine() == "up");
  holder.Signal(SIGKILL);
  Tree().WaitForChildren(lock, 0, 20s);
  CHECK(cgroup.Below().empty());
  holder.ReadToEnd();
}

TEST_CASE("processes that outlive the command are moved to the cgroup of zklock") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  Child holder =
      Child::Start(In(cgroup, {"exclusive"}, lock,
                      "own=$(echo $PARENT/zklock-*)/own; mkdir $own; (sleep 1000 & echo $!; "
                      "echo $! > $own/cgroup.procs); sleep 1000 & echo $!"));
  const std::vector<pid_t> left = ReadPids(holder, 2);
  CHECK(holder.Wait() == Exited(0));
  for (const pid_t pid : left) {
    CHECK(IsAlive(pid));
    CHECK(CgroupOf(pid) == BaseName(cgroup.path()));
    kill(pid, SIGKILL);
  }
  CHECK(cgroup.Below().empty());
}

TEST_CASE("with --descendants kill, what the command leaves ends with its cgroup") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  Child holder = Child::Start(In(cgroup, {"exclusive", "--descendants", "kill", "-k", "50ms"},
                                 NewLock("contain"), "trap '' TERM; sleep 1000 & exit 3"));
  CHECK(holder.Wait() == Exited(3));
  holder.ReadToEnd();
  CHECK(cgroup.Below().empty());
}

TEST_CASE("processes in cgroups that the command creates end with those in its own") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  Child holder = Child::Start(In(cgroup, {"exclusive", "-k", "50ms"}, lock,
                                 "own=$(echo $PARENT/zklock-*); mkdir -p $own/a/b; "
                                 "(trap '' TERM; exec setsid sleep 1000) & "
                                 "echo $! > $own/a/b/cgroup.procs; echo $!; exec sleep 1000"));
  const pid_t pid = ReadPids(holder, 1).front();
  CHECK(CgroupOf(pid) == "b");
  SECTION("the lock is lost") {
    DeleteContender(lock);
    CHECK(holder.Wait() == Exited(76));
  }
  SECTION("zklock is killed") {
    holder.Signal(SIGKILL);
    Tree().WaitForChildren(lock, 0, 20s);
  }
  SECTION("zklock and its guard are killed") {
    KillWithGuard(holder);
    CHECK(IsAlive(pid));
    Run(In(cgroup, {"try"}, NewLock("contain"), "true"), Exited(0));
  }
  CHECK_FALSE(IsAlive(pid));
  CHECK(cgroup.Below().empty());
}

namespace {

/// Limits the number of processes with the version 1 controller, or with that of version 2 if it
/// can be enabled for the test's cgroup.
class ProcessLimit {
 public:
  explicit ProcessLimit(const TestCgroup& cgroup) {
    path_ = old_.path();
    works_ = old_.works();
    if (!path_.empty()) return;
    std::ofstream(cgroup.path() + "/../cgroup.subtree_control") << "+pids" << std::flush;
    path_ = cgroup.path();
    works_ = std::filesystem::exists(path_ + "/pids.max");
  }

  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] ChildOptions Around(ChildOptions options, int most) const {
    std::ofstream(path_ + "/pids.max") << most << std::flush;
    // The leak detector forks.
    options.also_environment.push_back("ASAN_OPTIONS=detect_leaks=0");
    options.prepare = [prepare = options.prepare, this] {
      prepare();
      std::ofstream(path_ + "/cgroup.procs") << "0" << std::flush;
    };
    return options;
  }

 private:
  const OldCgroup old_{"pids"};
  std::string path_;
  bool works_ = false;
};

}  // namespace

TEST_CASE("where no more processes may be created, nothing is left, whichever fork is refused") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const ProcessLimit limit(cgroup);
  if (!limit.works()) return Skip("a cgroup with a limit of processes");
  const std::string contain = GENERATE("auto", "require");
  CAPTURE(contain);
  // Raise the limit step by step, so that zklock, its guard and the command fail to start in turn.
  bool has_failed = false;
  for (int most = 1;; ++most) {
    CAPTURE(most);
    REQUIRE(most < 10);
    const std::string lock = NewLock("contain");
    const Finished finished =
        Run(limit.Around(In(cgroup, {"exclusive", "--contain", contain}, lock, ":"), most));
    CAPTURE(finished.err);
    CHECK(cgroup.Below().empty());
    if (finished.exit == Exited(0)) break;
    has_failed = true;
    CHECK(finished.exit == Exited(71));
    CHECK_THAT(finished.err, Catch::Contains("Resource temporarily unavailable"));
    Tree().WaitForChildren(lock, 0, 20s);
  }
  CHECK(has_failed);
}

TEST_CASE("a command that has reached the limit on processes ends with its cgroup") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const ProcessLimit limit(cgroup);
  if (!limit.works()) return Skip("a cgroup with a limit of processes");
  const std::string lock = NewLock("contain");
  Child holder = Child::Start(
      limit.Around(In(cgroup, {"exclusive", "--session-timeout", "40s", "-k", "50ms"}, lock,
                      "exec perl -e '$SIG{TERM} = \"IGNORE\"; $| = 1; fork // last for 1 .. 100; "
                      "print \"up\\n\"; sleep 1000'"),
                   30));
  CHECK(holder.ReadLine() == "up");
  SECTION("the lock is lost") {
    DeleteContender(lock);
    CHECK(holder.Wait() == Exited(76));
  }
  SECTION("zklock is killed") {
    holder.Signal(SIGKILL);
    Tree().WaitForChildren(lock, 0, 20s);
  }
  SECTION("the guard is killed") {
    kill(process::ChildrenOf(holder.pid()).at(0), SIGKILL);
    CHECK(holder.Wait() == Exited(128 + SIGKILL));
  }
  holder.ReadToEnd();
  CHECK(cgroup.Below().empty());
}

TEST_CASE("a process that has moved to another cgroup is found by the walk") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  Child holder = Child::Start(In(cgroup, {"exclusive", "-k", "50ms"}, lock,
                                 "trap '' TERM; echo $$ > $PARENT/cgroup.procs; "
                                 "sh -c 'echo $$; exec sleep 1000' & echo $$; exec sleep 1000"));
  const std::vector<pid_t> pids = ReadPids(holder, 2);
  for (const pid_t pid : pids) CHECK(CgroupOf(pid) == BaseName(cgroup.path()));
  DeleteContender(lock);
  CHECK(holder.Wait() == Exited(76));
  for (const pid_t pid : pids) CHECK_FALSE(IsAlive(pid));
  CHECK(cgroup.Below().empty());
}

TEST_CASE("a command that has made its cgroup threaded is killed by the walk") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  Child holder =
      Child::Start(In(cgroup, {"exclusive", "-k", "50ms"}, lock,
                      // The shell moves out of the cgroup while it makes the cgroup threaded.
                      "trap '' TERM; own=$(echo $PARENT/zklock-*); echo $$ > $PARENT/cgroup.procs; "
                      "echo threaded > $own/cgroup.type && echo $$ > $own/cgroup.threads && "
                      "echo $$; exec sleep 1000"));
  const pid_t pid = ReadPids(holder, 1).front();
  DeleteContender(lock);
  CHECK(holder.Wait() == Exited(76));
  CHECK_FALSE(IsAlive(pid));
  CHECK(cgroup.Below().empty());
}

TEST_CASE("a command that has frozen its cgroup is killed") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  Child holder = Child::Start(In(cgroup, {"exclusive", "-k", "50ms"}, lock,
                                 "echo up; echo 1 > $(echo $PARENT/zklock-*)/cgroup.freeze"));
  CHECK(holder.ReadLine() == "up");
  DeleteContender(lock);
  CHECK(holder.Wait() == Exited(76));
  CHECK(cgroup.Below().empty());
}

TEST_CASE(
    "the next zklock kills the processes left when a zklock and its guard are killed together") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  const std::string other = NewLock("contain");
  Child holder = Child::Start(In(cgroup, {"exclusive"}, lock, kStubborn));
  const std::vector<pid_t> pids = ReadPids(holder, 2);
  const pid_t daemon = getsid(pids[0]) == pids[0] ? pids[0] : pids[1];
  KillWithGuard(holder);
  CHECK(IsAlive(daemon));
  CHECK(cgroup.Below().size() == 1);

  // The daemon has ended before the next command begins, though it might not have been reaped yet.
  const std::string status = "/proc/" + std::to_string(daemon) + "/status";
  const Finished next = Run(In(cgroup, {"try"}, other,
                               "grep -q '^State:.[ZX]' " + status + " 2>/dev/null || test ! -e " +
                                   status + " && echo gone"),
                            Exited(0));
  CHECK(next.out == "gone\n");
  CHECK_THAT(next.err, Catch::Contains("killed processes in " + cgroup.path() + "/zklock-"));
  CHECK(cgroup.Below().empty());
}

namespace {

/// A cgroup below the test's, delegated like a systemd scope, in which a run starts.
struct Scope {
  Scope(const TestCgroup& cgroup, const std::string& name) : path(cgroup.path() + "/" + name) {
    if (mkdir(path.c_str(), 0755) != 0) throw std::runtime_error("mkdir");
    setxattr(path.c_str(), "user.delegate", "1", 1, 0);
  }
  [[nodiscard]] ChildOptions Into(ChildOptions options) const {
    options.prepare = [prepare = options.prepare, this] {
      prepare();
      std::ofstream(path + "/cgroup.procs") << "0" << std::flush;
    };
    return options;
  }
  const std::string path;
};

}  // namespace

TEST_CASE("processes left by a crash in one scope are killed by the next zklock in another") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const Scope first(cgroup, "session-1.scope");
  const Scope second(cgroup, "session-2.scope");
  const Scope service(cgroup, "cron.service");
  Child holder = Child::Start(first.Into(In(cgroup, {"exclusive"}, NewLock("contain"), kStubborn)));
  const std::vector<pid_t> pids = ReadPids(holder, 2);
  const auto alive = [&] { return IsAlive(pids[0]) || IsAlive(pids[1]); };
  const auto run_in = [&](const Scope& scope) {
    return Run(scope.Into(In(cgroup, {"try"}, NewLock("contain"), "true")));
  };
  SECTION("the run is alive: it is not touched") {
    CHECK(run_in(second).err.empty());
    CHECK((IsAlive(pids[0]) && IsAlive(pids[1])));
  }
  SECTION("zklock and its guard were killed") {
    KillWithGuard(holder);
    CHECK(run_in(service).err.empty());
    CHECK(alive());  // a service keeps its cgroup, so zklock in it looks only there
    const Finished next = run_in(second);
    CHECK(next.exit == Exited(0));
    CHECK_THAT(next.err, Catch::Contains("killed processes in " + first.path + "/zklock-"));
    CHECK_FALSE(alive());
  }
}

TEST_CASE("processes left by another user's crash are not killed") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const Nobody nobody(cgroup);
  Child holder = Child::Start(In(cgroup, {"exclusive"}, NewLock("contain"), kStubborn));
  const std::vector<pid_t> pids = ReadPids(holder, 2);
  KillWithGuard(holder);
  CHECK(
      Run(nobody.Options(In(cgroup, {"try"}, NewLock("contain"), "true")), Exited(0)).err.empty());
  CHECK((IsAlive(pids[0]) || IsAlive(pids[1])));
  CHECK(cgroup.Below().size() == 1);
}

TEST_CASE("another user cannot prevent the cleanup of a run's cgroup by locking it") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  Child holder = Child::Start(In(cgroup, {"exclusive"}, NewLock("contain"), kStubborn));
  ReadPids(holder, 2);
  const std::string path = cgroup.path() + "/" + cgroup.Below().at(0);
  const Finished attack = Run({.argv = {"flock", "--shared", "--nonblock", path, "echo", "locked"},
                               .prepare = BecomeNobody});
  CHECK(attack.out.empty());
  CHECK_THAT(attack.err, Catch::Contains("Permission denied"));
}

TEST_CASE("the cgroup of a run that is alive is not taken for an orphan") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  Child holder = Child::Start(In(cgroup, {"exclusive"}, NewLock("contain"), kStubborn));
  const std::vector<pid_t> pids = ReadPids(holder, 2);
  SECTION("zklock and its guard are alive") {}
  SECTION("its zklock is stopped") { holder.Signal(SIGSTOP); }
  Run(In(cgroup, {"try"}, NewLock("contain"), "true"), Exited(0));
  for (const pid_t pid : pids) CHECK(IsAlive(pid));
  CHECK(cgroup.Below().size() == 1);
}

TEST_CASE("an empty cgroup that a crash has left is removed, and others are not touched") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string orphan = cgroup.path() + "/zklock-6fa459ea-ee8a-4ca4-894e-db77e160355e";
  REQUIRE(mkdir(orphan.c_str(), 0755) == 0);
  REQUIRE(mkdir((orphan + "/below").c_str(), 0755) == 0);
  REQUIRE(mkdir((cgroup.path() + "/zklock-mine").c_str(), 0755) == 0);
  CHECK(Run(In(cgroup, {"exclusive"}, NewLock("contain"), "true"), Exited(0)).err.empty());
  CHECK(cgroup.Below() == Words{"zklock-mine"});
}

TEST_CASE("a nested run's cgroup is inside the outer command's, and none is left") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string inner = NewLock("contain");
  SECTION("it ends first") {
    const Finished finished =
        Run(In(cgroup, {"exclusive"}, NewLock("contain"),
               "$ZKLOCK exclusive " + inner + " -- grep ^0:: /proc/self/cgroup"),
            Exited(0));
    const std::string path = Lines(finished.out).at(0);
    CHECK(path.find("/zklock-") != path.rfind("/zklock-"));
  }
  SECTION("it outlives the outer run") {
    Child outer = Child::Start(In(cgroup, {"exclusive"}, NewLock("contain"),
                                  "setsid $ZKLOCK exclusive " + inner +
                                      " -- sh -c 'echo $$; exec sleep 1000' & read x < /dev/null; "
                                      "while test $(ls -d $PARENT/zklock-*/zklock-* | wc -l) = 0; "
                                      "do sleep 0.1; done; echo $!"));
    const std::vector<pid_t> pids = ReadPids(outer, 2);
    CHECK(outer.Wait() == Exited(0));
    const pid_t command = CgroupOf(pids[0]) == BaseName(cgroup.path()) ? pids[1] : pids[0];
    CHECK(IsAlive(command));
    CHECK(CgroupOf(command).starts_with("zklock-"));  // the command is still contained
    // Another run does not mistake the two processes for orphans and kill them.
    Run(In(cgroup, {"try"}, NewLock("contain"), "true"), Exited(0));
    CHECK(IsAlive(command));
    kill(command, SIGKILL);
    Tree().WaitForChildren(inner, 0, 20s);
  }
  cgroup.WaitUntilEmpty();
}

TEST_CASE("a zklock in a cgroup namespace of its own contains its command too") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  ChildOptions options = In(cgroup, {"exclusive", "--contain", "require"}, NewLock("contain"),
                            "cat /proc/self/cgroup");
  options.prepare = [prepare = options.prepare] {
    prepare();
    if (unshare(CLONE_NEWCGROUP) != 0) throw std::runtime_error("unshare");
  };
  SECTION("with the hierarchy mounted anew") {
    options.argv.insert(options.argv.begin(),
                        {"unshare", "-m", "sh", "-c",
                         "umount " + cgroup.mount_point() + " && mount -t cgroup2 cgroup2 " +
                             cgroup.mount_point() + " && exec \"$@\"",
                         "sh"});
    CHECK_THAT(Run(options, Exited(0)).out, Catch::Contains("0::/zklock-"));
  }
  SECTION("in a container, with a PID namespace too, as its first process") {
    options.argv.insert(options.argv.begin(),
                        {"unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c",
                         "umount " + cgroup.mount_point() + " && mount -t cgroup2 cgroup2 " +
                             cgroup.mount_point() + " && exec \"$@\"",
                         "sh"});
    options.argv.back() = "( setsid sleep 1000 & ); cat /proc/self/cgroup";
    CHECK_THAT(Run(options, Exited(0)).out, Catch::Contains("0::/zklock-"));
  }
  SECTION("where only the whole hierarchy is mounted") {
    // The hierarchy's root is outside the namespace, so zklock cannot find its own cgroup there by
    // name.
    CHECK_THAT(Run(options, Exited(71)).err, Catch::Contains("no cgroup v2 hierarchy is mounted"));
  }
  CHECK(cgroup.Below().empty());
}

namespace {

/// Checks that with --contain auto zklock falls back for this reason, and that with --contain
/// require it refuses (if `is_refused`) or runs the command. `is_foreseen`: zklock knows the reason
/// before it queues.
void MustFallBack(const TestCgroup& cgroup, const std::string& reason,
                  const std::function<void()>& prepare, bool is_refused = true,
                  const std::string& binary = Binary(), bool is_foreseen = true) {
  const std::string lock = NewLock("contain");
  const auto options_for = [&](const std::string& contain) {
    ChildOptions options =
        In(cgroup, {"exclusive", "-v", "--contain", contain}, lock, "echo ran; read x || :");
    options.argv.front() = binary;
    options.prepare = [prepare, enter = options.prepare] {
      enter();
      prepare();
    };
    return options;
  };
  ChildOptions options = options_for("auto");
  options.keep_stdin = true;
  Child automatic = Child::Start(options);
  CHECK(automatic.ReadLine() == "ran");
  CHECK(ContainedOf(lock) == Words{is_foreseen ? "false" : "true"});
  CHECK(Finish(automatic) == Exited(0));
  CAPTURE(automatic.err());
  CHECK_THAT(automatic.err(),
             Catch::Contains("\nzklock: the command runs without a cgroup of its own: " + reason));
  const Finished required = Run(options_for("require"));
  CAPTURE(required.err);
  if (is_refused) {
    CHECK(required.exit == Exited(71));
    CHECK(required.out.empty());
    CHECK(required.err.starts_with("zklock: --contain require: " + reason));
  } else {
    CHECK(required.exit == Exited(0));
  }
  CHECK(cgroup.Below().empty());
}

void MustMount(const char* source, const std::string& target, const char* type,
               unsigned long flags) {
  if (mount(source, target.c_str(), type, flags, nullptr) != 0) throw std::runtime_error("mount");
}

}  // namespace

TEST_CASE(
    "if no cgroup is available, the command runs without one, and --contain require is refused") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const auto in_own_mounts = [] {
    if (unshare(CLONE_NEWNS) != 0) throw std::runtime_error("unshare");
  };
  SECTION("no hierarchy of version 2 is mounted") {
    MustFallBack(cgroup, "no cgroup v2 hierarchy is mounted", [&] {
      in_own_mounts();
      const std::string mounts = [] {
        std::ifstream file("/proc/self/mounts");
        return std::string(std::istreambuf_iterator<char>(file), {});
      }();
      for (const std::string& line : Lines(mounts)) {
        const std::size_t begin = line.find(' ') + 1;
        const std::size_t end = line.find(' ', begin);
        if (line.substr(end, 9) == " cgroup2 ") {
          umount2(line.substr(begin, end - begin).c_str(), MNT_DETACH);
        }
      }
    });
  }
  SECTION("the hierarchy is mounted read-only") {
    MustFallBack(cgroup, "cannot create a cgroup in ", [&] {
      in_own_mounts();
      MustMount("none", cgroup.mount_point(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY);
      // The other hierarchies, if there are any.
      umount2("/sys/fs/cgroup", MNT_DETACH);
    });
  }
  SECTION("no permission") {
    const TemporaryDirectory directory;
    std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
    std::filesystem::copy_file(Binary(), directory.Path("zklock"));
    MustFallBack(cgroup, "cannot create a cgroup in " + cgroup.path() + ": Permission denied",
                 BecomeNobody, true, directory.Path("zklock"));
  }
  SECTION("too many cgroups") {
    cgroup.Write("cgroup.max.descendants", "0");
    MustFallBack(
        cgroup, "cannot create a cgroup in " + cgroup.path() + ": Resource temporarily unavailable",
        [] {}, true, Binary(), false);
  }
  SECTION("a threaded cgroup") {
    REQUIRE(mkdir((cgroup.path() + "/domain").c_str(), 0755) == 0);
    const std::string threaded = cgroup.path() + "/domain/threaded";
    REQUIRE(mkdir(threaded.c_str(), 0755) == 0);
    std::ofstream(threaded + "/cgroup.type") << "threaded";
    const std::string lock = NewLock("contain");
    for (const std::string contain : {"auto", "require"}) {
      ChildOptions options =
          In(cgroup, {"exclusive", "-v", "--contain", contain}, lock, "echo ran");
      options.prepare = [&] {
        ResetSignals();
        std::ofstream(cgroup.path() + "/domain/cgroup.procs") << "0" << std::flush;
        std::ofstream(threaded + "/cgroup.threads") << "0" << std::flush;
      };
      CHECK_THAT(Run(options, Exited(contain == "auto" ? 0 : 71)).err,
                 Catch::Contains(threaded + " is a threaded cgroup"));
    }
  }
  SECTION("systemd has not delegated it; --contain require uses it anyway") {
    cgroup.Undelegate();
    MustFallBack(
        cgroup, cgroup.path() + " is not delegated by systemd",
        [&] {
          in_own_mounts();
          MustMount("none", "/run", "tmpfs", 0);
          std::filesystem::create_directories("/run/systemd/system");
        },
        false);
  }
}

TEST_CASE("a delegated cgroup is used on a host with systemd too") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  ChildOptions options = In(cgroup, {"exclusive", "-v"}, NewLock("contain"), "true");
  const auto with_systemd = [&cgroup](const std::string& name, bool is_marked) {
    const std::string below = cgroup.path() + "/" + name;
    mkdir(below.c_str(), 0755);
    if (is_marked) setxattr(below.c_str(), "user.delegate", "1", 1, 0);
    return [below] {
      ResetSignals();
      if (unshare(CLONE_NEWNS) != 0) throw std::runtime_error("unshare");
      MustMount("none", "/run", "tmpfs", 0);
      std::filesystem::create_directories("/run/systemd/system");
      std::ofstream(below + "/cgroup.procs") << "0" << std::flush;
    };
  };
  const std::string contained = "the command runs in the cgroup ";
  SECTION("a plain cgroup below the delegated one") {
    options.prepare = with_systemd("mine", false);
    CHECK_THAT(Run(options).err, Catch::Contains(contained + cgroup.path() + "/mine/zklock-"));
  }
  SECTION("a unit of another manager below the delegated one, itself not delegated") {
    options.prepare = with_systemd("app.service", false);
    CHECK_THAT(Run(options).err, Catch::Contains("app.service is not delegated by systemd"));
  }
  SECTION("a delegated unit below the delegated one") {
    options.prepare = with_systemd("run-7.scope", true);
    CHECK_THAT(Run(options).err, Catch::Contains(contained + cgroup.path() + "/run-7.scope/"));
  }
}

TEST_CASE("inspect shows which commands have, or are to have, a cgroup of their own") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  const std::string lock = NewLock("contain");
  const auto start = [&](const Words& words) {
    ChildOptions options = In(cgroup, words, lock, "echo up; read x");
    options.keep_stdin = true;
    return Child::Start(options);
  };
  Child holder = start({"read"});
  CHECK(holder.ReadLine() == "up");
  Child second = start({"read", "--contain", "off"});
  CHECK(second.ReadLine() == "up");
  Child waiter = start({"write", "-v"});
  waiter.ReadErrUntil("waiting for");
  Child reserver = start({"exclusive", "-v", "--reserve", "ci"});
  reserver.ReadErrUntil("waiting for");
  CHECK(ContainedOf(lock) == Words{"true", "false", "true", "true"});
  CHECK_THAT(RunZklock({"inspect", "-v", lock}).out, Catch::Contains("CONTAINED"));
}

TEST_CASE("the end of a contained command is marked in the events") {
  const TestCgroup cgroup;
  if (!cgroup.works()) return Skip("root and a cgroup hierarchy");
  for (const std::string contain : {"auto", "off"}) {
    const Finished finished = Run(In(cgroup, {"exclusive", "--events", "2", "--contain", contain},
                                     NewLock("contain"), "true"));
    CHECK_THAT(finished.err,
               Catch::Contains(contain == "auto" ? "\"contained\":true" : "\"contained\":false"));
  }
}

}  // namespace zklock::test
