// --proxy-command: real helpers (socat, ssh through a real sshd) between zklock and a real server,
// and helpers that fail at each step. No helper may be left when its zklock has ended.

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cli/mark.h"
#include "cli/servers/unreached.h"
#include "cli/zklock.h"
#include "process/tree/process_tree.h"
#include "support/kept_port.h"
#include "support/peer.h"
#include "support/skip.h"
#include "support/temporary.h"
#include "support/wait.h"

namespace zklock::test {
namespace {

constexpr const char* kSocat = "exec socat - TCP:%h:%p";

ChildOptions Proxied(const std::string& line, Words words) {
  words.insert(words.begin() + 1, {"--proxy-command", line});
  return Zklock(words);
}

Child StartProxiedHolder(const Mark& mark, const std::string& line, const std::string& lock,
                         Words words = {"exclusive"}) {
  words.insert(words.begin() + 1, {"--proxy-command", line});
  Child holder = Child::Start(mark.On(HolderOptions(words, lock)));
  REQUIRE(holder.ReadLine() == "held");
  return holder;
}

/// Returns a zklock that cannot reach the tests' servers through the proxy command `line`.
Unreached UnreachedThrough(const std::string& line) {
  return {TestServers(), {"--proxy-command", line}};
}

}  // namespace

TEST_CASE("runs, inspect and release reach the servers through a proxy command") {
  const Mark mark;
  const std::string lock = NewLock("proxy");
  const Child holder = StartProxiedHolder(mark, kSocat, lock);
  CHECK_THAT(Run(mark.On(Proxied(kSocat, {"inspect", lock})), Exited(0)).out,
             Catch::Contains("held"));
  Child waiter = Child::Start(mark.On(Proxied(kSocat, {"exclusive", lock, "--", "echo", "after"})));
  Run(mark.On(Proxied(kSocat, {"release", lock, "--holders", "--yes"})), Exited(0));
  CHECK(waiter.Wait() == Exited(0));
  CHECK(waiter.out() == "after\n");
}

TEST_CASE("--hold and its release go through the proxy command, which ends with the hold") {
  const Mark mark;
  const std::string lock = NewLock("proxy-hold");
  ChildOptions options = Zklock({});
  options.argv = {"sh",
                  "-ec",
                  "zklock=$1; export ZKLOCK_PROXY_COMMAND=\"$2\"; $zklock exclusive --hold $3;"
                  "$zklock inspect --mine $3; $zklock release $3; ! $zklock inspect --mine $3",
                  "sh",
                  Binary(),
                  kSocat,
                  lock};
  Run(mark.On(std::move(options)), Exited(0));
  mark.WaitForEnd();
}

TEST_CASE("the proxy command gets host and port as written, and looks names up itself") {
  const TemporaryDirectory directory;
  const std::string line =
      "echo %h %p %% >>" + directory.Path("calls") + "; exec socat - TCP:" + TestServers();
  Run(Proxied(line,
              {"try", "-z", "only-the-bastion-knows.invalid:2182", "/t/proxy-names", "--", "true"}),
      Exited(0));
  CHECK(Lines(directory.Read("calls")).front() == "only-the-bastion-knows.invalid 2182 %");
}

TEST_CASE("'none' in place of a proxy command overrides a configured one") {
  Run(With(Proxied("none", {"try", NewLock("proxy-none"), "--", "true"}),
           {"ZKLOCK_PROXY_COMMAND=false"}),
      Exited(0));
}

TEST_CASE("a proxy command gets a session of its own and no descriptor or credential of zklock's") {
  const TemporaryDirectory directory;
  const std::string line = "ls /proc/self/fd >" + directory.Path("descriptors") + "; env >" +
                           directory.Path("environment") + "; pwd >" + directory.Path("place") +
                           "; ps -o tty= $$ >" + directory.Path("terminal") + "; " + kSocat;
  Child run =
      Child::StartOnTerminal(With(Proxied(line, {"try", NewLock("proxy-clean"), "--", "true"}),
                                  {"ZKLOCK_AUTH=digest:alice:tulip"}));
  CHECK(run.Wait() == Exited(0));
  // ls opens one of them itself, for the directory.
  CHECK(Lines(directory.Read("descriptors")).size() == 4);
  CHECK(directory.Read("environment").find("tulip") == std::string::npos);
  CHECK(directory.Read("place") == "/\n");
  CHECK(directory.Read("terminal") == "?\n");
}

TEST_CASE("the last output of a failing proxy command is the reason that zklock reports") {
  Unreached fails = UnreachedThrough("echo connecting >&2; exit 1");
  Unreached says_lines = UnreachedThrough("echo first >&2; printf 'one\\r\\ntwo' >&2; exit 1");
  Unreached unknown = UnreachedThrough("/nosuchprogram");
  Unreached refused = UnreachedThrough("socat - TCP:127.0.0.1:1");
  Unreached stuck = UnreachedThrough("echo stuck >&2; sleep 1000");
  Unreached ends = UnreachedThrough("false");
  Unreached silent = UnreachedThrough("sleep 1000");
  Unreached foreign = UnreachedThrough("echo something else entirely; sleep 1000");
  Unreached says_much = UnreachedThrough("yes much | head -n 50000 >&2; echo end >&2; exit 1");
  CHECK(fails.Reason() == "connecting");
  CHECK(says_lines.Reason() == "one; two");
  CHECK_THAT(unknown.Reason(), Catch::Contains("/nosuchprogram: not found"));
  CHECK_THAT(refused.Reason(), Catch::Contains("Connection refused"));
  CHECK(stuck.Reason() == "stuck");
  CHECK_THAT(ends.Reason(), Catch::Contains("closed the connection at once"));
  CHECK_THAT(silent.Reason(), Catch::Contains("no answer through the proxy command or TLS"));
  CHECK_THAT(foreign.Reason(), Catch::Contains("not as a ZooKeeper server"));
  CHECK_THAT(says_much.Reason(), Catch::Contains("end"));
}

TEST_CASE("escape sequences from a proxy command do not reach the terminal") {
  const TemporaryDirectory directory;
  const std::string said = directory.Path("said");
  const std::string line = "printf '\\033[2Jhi\\n' >&2; touch " + said + "; sleep 1000";
  Child child = Child::Start(Proxied(
      line, {"exclusive", "--connect-timeout", "1h", NewLock("proxy-escape"), "--", "true"}));
  WaitUntil([&] { return std::filesystem::exists(said); });
  child.Signal(SIGINT);
  CHECK(child.Wait() == Exited(128 + SIGINT));
  CHECK_THAT(child.err(), Catch::Contains("while looking for a server: ") &&
                              Catch::Contains("(\\x1b[2Jhi)") && !Catch::Contains("\x1b"));
}

TEST_CASE("the status of a proxy command that failed is part of the message") {
  const auto message = [](const std::string& line) {
    return Run(Proxied(line, {"inspect", "--connect-timeout", "2s", "/t/x"}), Exited(69)).err;
  };
  CHECK_THAT(message("echo no route >&2; exit 255"),
             Catch::Contains("(no route); the --proxy-command ended with status 255; try it by "
                             "itself: echo no route >&2; exit 255"));
  CHECK_THAT(
      message("kill -KILL $$"),
      Catch::Contains("; the --proxy-command ended with status 137; try it by itself: kill"));
  CHECK_THAT(message("exit 0"), !Catch::Contains("ended with status"));
  // zklock ends this helper, because each attempt gets only a share of the time.
  CHECK_THAT(message("trap 'exit 9' HUP; while :; do sleep 1; done"),
             !Catch::Contains("ended with status"));
}

TEST_CASE("a later loss is not blamed on a proxy command that failed before another one worked") {
  const TemporaryDirectory files;
  const std::string failed = files.Path("failed");
  const std::string gone = files.Path("gone");
  const Mark mark;
  const std::string lock = NewLock("proxy-earlier");
  Child holder = StartHolder(lock);
  Child waiter =
      Child::Start(mark.On(Proxied("[ ! -e " + gone + " ] || exec sleep 1000; [ -e " + failed +
                                       " ] || { touch " + failed + "; exit 9; }; " + kSocat,
                                   {"exclusive", "--verbose", "--connect-timeout", "3s",
                                    "--session-timeout", "4s", lock, "--", "true"})));
  waiter.ReadErrUntil("waiting");
  (void)files.Write("gone", "");
  kill(mark.One("socat"), SIGSTOP);
  CHECK(waiter.Wait() == Exited(69));
  CHECK_THAT(waiter.err(), !Catch::Contains("ended with status"));
  CHECK(Finish(holder) == Exited(0));
}

TEST_CASE("a server that stalls behind the proxy command does not keep zklock from the next one") {
  const Mark mark;
  const Peer silent(Peer::Manner::kSaysNothing);
  CHECK(Run(mark.On(Proxied(kSocat, {"try", "--session-timeout", "12s", "-z",
                                     silent.address() + "," + TestServers(), NewLock("proxy-stall"),
                                     "--", "echo", "ran"})),
            Exited(0))
            .out == "ran\n");
  mark.WaitForEnd();
}

// A lock is held through a helper that dies or falls silent. The command continues: its lease is
// renewed in time through a second helper.
namespace {

class HeldThroughHelper {
 public:
  HeldThroughHelper()
      : holder_(StartProxiedHolder(mark_, kSocat, NewLock("proxy-death"),
                                   {"exclusive", "--verbose", "--session-timeout", "20s"})),
        helper_(mark_.One("socat")) {}
  [[nodiscard]] pid_t helper() const { return helper_; }
  [[nodiscard]] pid_t monitor() const { return mark_.One("zklock-proxy"); }

  void CheckThatCommandLivesOn() {
    holder_.ReadErrUntil("confirmed");
    const std::vector<pid_t> now = mark_.Processes("socat");
    CHECK(std::any_of(now.begin(), now.end(), [&](pid_t pid) { return pid != helper_; }));
    CHECK_FALSE(holder_.HasEnded());
    CHECK(Finish(holder_) == Exited(0));
    mark_.WaitForEnd();
  }

 private:
  const Mark mark_;
  Child holder_;
  const pid_t helper_;
};

}  // namespace

TEST_CASE("a command survives the KILL of its helper") {
  HeldThroughHelper held;
  kill(held.helper(), SIGKILL);
  held.CheckThatCommandLivesOn();
}

TEST_CASE("a command survives the KILL of its helper's monitor") {
  HeldThroughHelper held;
  kill(held.monitor(), SIGKILL);
  held.CheckThatCommandLivesOn();
}

TEST_CASE("a command survives the stop of its helper") {
  HeldThroughHelper held;
  kill(held.helper(), SIGSTOP);
  held.CheckThatCommandLivesOn();
}

TEST_CASE("a command survives the stop of its helper and the helper's monitor") {
  HeldThroughHelper held;
  kill(held.monitor(), SIGSTOP);
  kill(held.helper(), SIGSTOP);
  held.CheckThatCommandLivesOn();
}

TEST_CASE("after KILL of zklock the guard closes the session through a proxy command of its own") {
  const Mark mark;
  const std::string lock = NewLock("proxy-kill");
  Child holder = StartProxiedHolder(mark, kSocat, lock);
  Child next = StartWaiter(lock);
  const auto killed = std::chrono::steady_clock::now();
  holder.Signal(SIGKILL);
  CHECK(next.ReadLine() == "held");
  // This is well before the session timeout of 30 s, which would otherwise end the session.
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(20));
  mark.WaitForEnd();
}

TEST_CASE("a guard that closes the session gives a proxy command the time that ssh needs") {
  const Mark mark;
  const TemporaryDirectory directory;
  const std::string calls = directory.Path("calls");
  // The second helper, the guard's first one, never connects.
  const std::string line = "date +%%s%%3N >>" + calls + "; [ $(wc -l <" + calls +
                           ") != 2 ] || exec sleep 1000; " + kSocat;
  const std::string lock = NewLock("proxy-guard");
  Child holder = StartProxiedHolder(mark, line, lock);
  Child next = StartWaiter(lock);
  holder.Signal(SIGKILL);
  CHECK(next.ReadLine() == "held");
  const Words times = Lines(directory.Read("calls"));
  REQUIRE(times.size() > 2);
  CHECK(std::stoll(times[2]) - std::stoll(times[1]) > 500);
  mark.WaitForEnd();
}

TEST_CASE("Ctrl-C and a hangup of the terminal do not cut the connection before the release") {
  const Mark mark;
  const std::string lock = NewLock("proxy-terminal");
  Child run = Child::StartOnTerminal(mark.On(
      Proxied(kSocat, {"exclusive", lock, "--", "sh", "-c",
                       "trap 'sleep 0.5; echo ended; exit 3' INT; echo held; sleep 1000 & wait"})));
  run.ReadUntil("held");
  run.Write("\x03");
  run.ReadUntil("ended");
  CHECK(run.Wait() == Exited(3));
  CHECK(Tree().Children(lock).empty());
  mark.WaitForEnd();
}

TEST_CASE("helpers that ignore HUP or leave children still end with zklock") {
  const Mark mark;
  const std::string line = "trap '' HUP TERM; sleep 1000 & socat - TCP:%h:%p; sleep 1000";
  Run(mark.On(Proxied(line, {"try", NewLock("proxy-deaf"), "--", "true"})), Exited(0));
  mark.WaitForEnd();
}

TEST_CASE(
    "processes that a proxy command has left are killed although its monitor runs only a second "
    "later") {
  const Mark mark;
  Child holder =
      StartProxiedHolder(mark, "sleep 1000 & exec socat - TCP:%h:%p", NewLock("proxy-late"));
  const pid_t monitor = mark.One("zklock-proxy");
  // A process stopped by ptrace(2) is not continued by the CONT that zklock sends.
  if (ptrace(PTRACE_SEIZE, monitor, nullptr, nullptr) != 0) return Skip("ptrace(2)");
  REQUIRE(ptrace(PTRACE_INTERRUPT, monitor, nullptr, nullptr) == 0);
  REQUIRE(waitpid(monitor, nullptr, __WALL) == monitor);
  holder.CloseInput();
  WaitUntil([&] { return mark.Processes("socat").empty(); });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  CHECK_FALSE(holder.HasEnded());
  CHECK(ptrace(PTRACE_DETACH, monitor, nullptr, nullptr) == 0);
  CHECK(holder.Wait() == Exited(0));
  mark.WaitForEnd();
}

TEST_CASE("the processes of a proxy command's shell end before zklock does") {
  const TemporaryDirectory directory;
  // After the shell has ended, the kernel takes a moment to free the memory of the Python process.
  const std::string line =
      "python3 -c 'import os, subprocess; memory = b\"x\" * (200 << 20); "
      "open(\"" +
      directory.Path("pid") +
      "\", \"w\").write(str(os.getpid())); "
      "subprocess.run([\"socat\", \"-\", \"TCP:%h:%p\"])'; true";
  Run(Proxied(line, {"try", NewLock("proxy-slow"), "--", "true"}), Exited(0));
  const auto stat = process::ReadProcessStat(std::stoi(directory.Read("pid")));
  CHECK((!stat || stat->is_dead));
}

TEST_CASE("zklock reaches the servers by ssh -W through a real sshd") {
  const TemporaryDirectory directory;
  const KeptPort port;
  ChildOptions prepare;
  prepare.argv = {"sh", "-ec", R"sh(
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    for key in host user; do ssh-keygen -q -t ed25519 -N '' -f $key; done
    cat >sshd_config <<END
ListenAddress 127.0.0.1:$1
HostKey $PWD/host
PidFile $PWD/pid
AuthorizedKeysFile $PWD/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
END
    cat >ssh_config <<END
Host bastion
  HostName 127.0.0.1
  Port $1
  User $(id -un)
  IdentityFile $PWD/user
  IdentitiesOnly yes
  BatchMode yes
  UserKnownHostsFile $PWD/known
  StrictHostKeyChecking yes
END
    echo "[127.0.0.1]:$1 $(cut -d ' ' -f 1,2 host.pub)" >known)sh",
                  "sh", port.number()};
  prepare.directory = directory.path();
  const Finished prepared = Run(std::move(prepare));
  CAPTURE(prepared.err);
  REQUIRE(prepared.exit == Exited(0));
  Child sshd =
      Child::Start({.argv = {"/usr/sbin/sshd", "-D", "-e", "-f", directory.Path("sshd_config")}});
  sshd.ReadErrUntil("Server listening");

  const Mark mark;
  const std::string ssh = "ssh -F " + directory.Path("ssh_config") + " -W %h:%p bastion";
  const std::string lock = NewLock("ssh");
  Child holder = StartProxiedHolder(mark, ssh, lock, {"exclusive", "--verbose"});
  const std::string bracketed = "ssh -F " + directory.Path("ssh_config") + " -W [%h]:%p bastion";
  for (const std::string& line : {ssh, bracketed}) {
    Run(mark.On(Proxied(line, {"try", lock, "--", "true"})), Exited(75));
  }
  CHECK(Finish(holder) == Exited(0));
  mark.WaitForEnd();

  // The runs are parallel, because each lasts until its --connect-timeout.
  const auto inspect = [&](const std::string& line, Words words) {
    words.insert(words.end(), {"--connect-timeout", "15s", "/t/x"});
    words.insert(words.begin(), "inspect");
    return Child::Start(Proxied(line, std::move(words)));
  };
  Run({.argv = {"sh", "-c", "sed 's,/user$,/nobody,' ssh_config >keyless_config"},
       .directory = directory.path()},
      Exited(0));
  Child refused = inspect(ssh, {"-z", "127.0.0.1:1"});
  Child denied = inspect("ssh -F " + directory.Path("keyless_config") + " -W %h:%p bastion", {});
  CHECK(refused.Wait() == Exited(69));
  CHECK_THAT(refused.err(), Catch::Contains("Connection refused"));
  CHECK(denied.Wait() == Exited(69));
  CHECK_THAT(denied.err(), Catch::Contains("Permission denied"));
}

}  // namespace zklock::test
