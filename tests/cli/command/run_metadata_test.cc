// The command's environment: the same as without zklock, except for the changes that the manual
// documents. Most tests run a probe with and without zklock and compare the results.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// The conditions under which a probe starts.
struct Setting {
  std::function<void()> prepare = ResetSignals;
  std::vector<int> inherit{};
  std::string directory{};
};

ChildOptions Apply(const Setting& setting, ChildOptions options) {
  options.prepare = setting.prepare;
  options.inherit = setting.inherit;
  options.directory = setting.directory;
  return options;
}

std::string Alone(const Setting& setting, const Words& probe) {
  const Finished finished = Run(Apply(setting, {.argv = probe}));
  REQUIRE(finished.exit == Exited(0));
  REQUIRE_FALSE(finished.out.empty());
  return finished.out;
}

std::string UnderZklock(const Setting& setting, const Words& probe, const Words& options = {}) {
  Words arguments = Words{"exclusive", NewLock("surroundings")} + options;
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), probe.begin(), probe.end());
  const Finished finished = Run(Apply(setting, Zklock(arguments)));
  CAPTURE(finished.err);
  REQUIRE(finished.exit == Exited(0));
  return finished.out;
}

const Words kStatus = {"grep", "-E",
                       "^(Umask|Sig[BICP]|Shd|Cap|NoNewPrivs|Uid|Gid|Groups|Seccomp:)",
                       "/proc/self/status"};

/// Returns the value of a line `NAME:\tVALUE`.
std::string ValueOf(const std::string& text, const std::string& name) {
  for (const std::string& line : Lines(text)) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

}  // namespace

TEST_CASE("the arguments reach the command unchanged") {
  const Words odd = {"sh",        "-c",    "for word; do printf '<%s>\\n' \"$word\"; done",
                     "zero",      "a b",   "",
                     "--",        "-q",    "--wait",
                     "it's",      "\"",    "$HOME",
                     "`id`",      "*",     "back\\slash",
                     "new\nline", "tab\t", "\xc3\xa4\xff",
                     "--help",    "-c",    "{}",
                     "[a,b]",     "%h",    ""};
  std::string wanted;
  for (std::size_t i = 4; i < odd.size(); ++i) wanted += "<" + odd[i] + ">\n";
  CHECK(UnderZklock({}, odd) == wanted);
}

TEST_CASE("the command's argv[0] is the name as typed") {
  const Words probe = {"sh", "-c", "tr '\\0' '\\n' </proc/$$/cmdline | head -n 1"};
  CHECK(UnderZklock({}, probe) == "sh\n");
}

TEST_CASE("the environment is unchanged except for the lock variables") {
  const std::string lock = NewLock("environment");
  ChildOptions options =
      Zklock({"write", "--acl", "open", lock, "--", "cat", "/proc/self/environ"});
  Words before = {"PATH=" + std::string(getenv("PATH")),
                  "LAST=first",
                  "LAST=again",
                  "EMPTY=",
                  "ODD=a=b\nc \xff",
                  "HOME=/nowhere",
                  "ZKLOCK_SERVERS=" + TestServers(),
                  "ZKLOCK_LABEL=a label",
                  "no value"};
  options.environment = before;
  options.also_environment = {"ZKLOCK_AUTH=digest:user:secret", "ZKLOCK_AUTH_FILE=/none"};
  const Finished finished = Run(options);
  REQUIRE(finished.exit == Exited(0));

  Words after;
  for (std::size_t begin = 0; begin < finished.out.size();) {
    after.emplace_back(finished.out.c_str() + begin);
    begin += after.back().size() + 1;
  }
  REQUIRE(after.size() == before.size() + 5);
  CHECK(Words(after.begin(), after.begin() + static_cast<long>(before.size())) == before);
  after.erase(after.begin(), after.begin() + static_cast<long>(before.size()));
  CHECK(after[0] == "ZKLOCK_LOCK=" + lock);
  CHECK(after[1] == "ZKLOCK_MODE=write");
  CHECK_THAT(after[2], Catch::StartsWith("ZKLOCK_NODE=" + lock + "/") &&
                           Catch::EndsWith("-__WRIT__0000000000"));
  CHECK(std::regex_match(after[3], std::regex("ZKLOCK_TOKEN=[1-9][0-9]*")));
  CHECK_THAT(after[4], Catch::StartsWith("ZKLOCK_HELD="));
}

TEST_CASE("the lock variables match the servers' data") {
  const std::string lock = NewLock("told");
  Child holder = Child::Start([&] {
    ChildOptions options =
        Zklock({"exclusive", lock, "--", "sh", "-c", "echo $ZKLOCK_NODE $ZKLOCK_TOKEN; read x"});
    options.keep_stdin = true;
    return options;
  }());
  const std::string told = holder.ReadLine();
  const std::string node = told.substr(0, told.find(' '));
  Tree tree;
  CHECK(tree.Children(lock) == Words{BaseName(node)});
  const auto znode = tree.Get(node);
  REQUIRE(znode);
  CHECK(std::to_string(znode->created_zxid) == told.substr(node.size() + 1));
  CHECK(znode->ephemeral_owner != 0);
}

TEST_CASE("stale variables of another lock are replaced") {
  const std::string lock = NewLock("stale");
  ChildOptions options = Zklock({"read", lock, "--", "sh", "-c", "echo $ZKLOCK_MODE $ZKLOCK_LOCK"});
  options.also_environment = {"ZKLOCK_MODE=write", "ZKLOCK_LOCK=/other", "ZKLOCK_TOKEN=7",
                              "ZKLOCK_NODE=/other/x"};
  CHECK(Run(options).out == "read " + lock + "\n");
}

TEST_CASE("the tokens of successive holders increase") {
  const std::string lock = NewLock("tokens");
  long long last = 0;
  for (int i = 0; i < 5; ++i) {
    const Finished finished =
        RunZklock({"exclusive", lock, "--", "sh", "-c", "echo $ZKLOCK_TOKEN"});
    const long long token = std::stoll(finished.out);
    CHECK(token > last);
    last = token;
  }
}

TEST_CASE("the command has the same descriptors open, and none of zklock's") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("file", "through descriptor nine\n");
  const UniqueFd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd nine(fcntl(opened.get(), F_DUPFD_CLOEXEC, 9));
  const std::string number = std::to_string(nine.get());
  const Setting setting{.inherit = {nine.get()}};
  const Words probe = {"sh", "-c", "for fd in /proc/$$/fd/*; do echo ${fd##*/}; done"};
  CHECK(UnderZklock(setting, probe) == Alone(setting, probe));
  const Words reading = {"sh", "-c", "cat <&" + number};
  REQUIRE(nine.get() == 9);
  CHECK(UnderZklock(setting, reading) == "through descriptor nine\n");
}

TEST_CASE("closed standard streams stay closed and do no harm") {
  const auto closed = GENERATE(range(1, 8));  // one bit per stream
  CAPTURE(closed);
  Setting setting;
  setting.prepare = [closed] {
    ResetSignals();
    for (int stream = 0; stream < 3; ++stream) {
      if ((closed & 1 << stream) != 0) close(stream);
    }
  };
  // The exit status shows which streams are open.
  const std::string probe =
      "status=0; for fd in 0 1 2; do"
      "  if [ -e /proc/$$/fd/$fd ]; then status=$((status + (1 << fd))); fi;"
      "done; exit $((status + 100))";
  const std::string lock = NewLock("closed");
  CHECK(Run(Apply(setting, Zklock({"exclusive", "-v", lock, "--", "sh", "-c", probe})),
            Exited(100 + (7 - closed)))
            .out.empty());
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("standard input and output belong to the command") {
  const std::string lock = NewLock("streams");
  ChildOptions options = Zklock({"exclusive", "-v", lock, "--", "sh", "-c", "cat; echo E >&2"});
  std::string much;
  for (int i = 0; i < 30'000; ++i) much += std::to_string(i) + "\n";
  options.stdin_text = much;
  const Finished finished = Run(options, Exited(0));
  CHECK(finished.out == much);
  CHECK_THAT(finished.err, Catch::Contains("\nE\n"));
}

TEST_CASE("a message that exceeds the file size limit does not end the run") {
  const TemporaryDirectory directory;
  const std::string log = directory.Write("log", std::string(2000, 'x'));
  const std::string lock = NewLock("full");
  // A unit is 512 bytes in some shells, 1024 in others.
  CHECK(Run({.argv = {"sh", "-c", "ulimit -f 1; exec \"$@\" 2>>" + log, "sh", Binary(), "exclusive",
                      "--verbose", lock, "--", "sh", "-c", "ulimit -f; exit 7"},
             .also_environment = {"ZKLOCK_SERVERS=" + TestServers()}},
            Exited(7))
            .out == "1\n");
  CHECK(Tree().Children(lock).empty());
}

#ifndef ZKLOCK_SANITIZED  // the sanitizer needs descriptors of its own
TEST_CASE("a shortage of descriptors at any point leaves nothing in the queue") {
  const std::string lock = NewLock("short");
  int refused = 0;
  for (int limit = 7; limit < 24; ++limit) {
    CAPTURE(limit);
    const Finished finished =
        Run({.argv = {"sh", "-c", "ulimit -n " + std::to_string(limit) + "; exec \"$@\"", "sh",
                      Binary(), "exclusive", "--session-timeout", "40s", lock, "--", "true"},
             .also_environment = {"ZKLOCK_SERVERS=" + TestServers()}});
    CAPTURE(finished.err);
    if (finished.exit != Exited(0)) ++refused;
    CHECK((finished.exit == Exited(0) || finished.exit == Exited(71)));
    Tree().WaitForChildren(lock, 0, std::chrono::seconds(20));  // too early for a session to expire
  }
  CHECK(refused > 0);
  CHECK(refused < 17);
}
#endif

TEST_CASE("signal mask, dispositions and umask are unchanged") {
  Setting setting;
  SECTION("defaults") {}
  SECTION("some blocked, some ignored") {
    setting.prepare = [] {
      ResetSignals();
      for (const int number : {SIGHUP, SIGCHLD, SIGPIPE, SIGUSR1, SIGTSTP, SIGRTMIN + 3}) {
        std::signal(number, SIG_IGN);
      }
      sigset_t blocked;
      sigemptyset(&blocked);
      for (const int number : {SIGTERM, SIGUSR2, SIGALRM, SIGCHLD, SIGRTMAX}) {
        sigaddset(&blocked, number);
      }
      sigprocmask(SIG_SETMASK, &blocked, nullptr);
      umask(0137);
    };
  }
  SECTION("all that can be blocked and ignored") {
    setting.prepare = [] {
      ResetSignals();
      for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_IGN);
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_SETMASK, &all, nullptr);
      umask(0);
    };
  }
  const std::string alone = Alone(setting, kStatus);
  CHECK(UnderZklock(setting, kStatus) == alone);
  CHECK_FALSE(ValueOf(alone, "SigBlk").empty());
  CHECK_FALSE(ValueOf(alone, "Umask").empty());
}

TEST_CASE("working directory, priority and limits are unchanged") {
  const TemporaryDirectory directory;
  Setting setting{.directory = directory.path()};
  setting.prepare = [] {
    ResetSignals();
    if (nice(7) == -1) throw std::runtime_error("nice");
    const rlimit files{200, 300};
    setrlimit(RLIMIT_NOFILE, &files);
  };
  CHECK(UnderZklock(setting, {"pwd", "-P"}) == directory.path() + "\n");
  CHECK(UnderZklock(setting, {"nice"}) == Alone(setting, {"nice"}));
  const Words limits = {"cat", "/proc/self/limits"};
  CHECK(UnderZklock(setting, limits) == Alone(setting, limits));
  const Words timer_slack = {"cat", "/proc/self/timerslack_ns", "/proc/self/oom_score_adj"};
  CHECK(UnderZklock(setting, timer_slack) == Alone(setting, timer_slack));
  // Without this, the command gets a cgroup of its own where zklock may create one.
  const Words cgroups = {"cat", "/proc/self/cgroup"};
  CHECK(UnderZklock(setting, cgroups, {"--contain", "off"}) == Alone(setting, cgroups));
}

TEST_CASE("the command stays in zklock's process group and session") {
  // pid (comm) state ppid pgrp session
  Child child =
      Child::Start(Zklock({"exclusive", NewLock("group"), "--", "cat", "/proc/self/stat"}));
  const std::string stat = child.ReadLine();
  std::smatch fields;
  REQUIRE(std::regex_search(stat, fields, std::regex(R"(\) [A-Z] \d+ (\d+) (\d+) )")));
  CHECK(fields[1] == std::to_string(child.pid()));
  CHECK(fields[2] == std::to_string(getsid(0)));
  CHECK(child.Wait() == Exited(0));
}

}  // namespace zklock::test
