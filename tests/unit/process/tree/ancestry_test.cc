#include "process/tree/ancestry.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>

#include "unit/process/supervised.h"

namespace zklock::process {
namespace {

using test::Child;

TEST_CASE("a lineage begins with the process, and names each parent") {
  Child child = Child::Start({.argv = {"sh", "-c", "sleep 1000 & echo $!; wait"}});
  const pid_t below = std::stoi(child.ReadLine());
  const std::vector<ProcessId> lineage = Lineage(below);
  REQUIRE(lineage.size() >= 3);
  CHECK(lineage[0].pid == below);
  CHECK(lineage[1].pid == child.pid());
  CHECK(lineage[2] == ReadProcessStat(getpid())->id);
}

// Otherwise a nested run whose parent ends at that moment, `(zklock ... &)`, would not recognise
// the lock as its ancestor's, and would wait for it.
TEST_CASE("a lineage is complete although an ancestor ends while it is read") {
  Check(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
  const int ends = GENERATE(1, 2);  // how many of the processes in between end
  // The outer process is a subreaper: it adopts the child of the middle one.
  Child outer = Child::Start({.body = [] {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const std::string command = "sh -c 'sleep 1000 & echo $! $$; wait; :' & wait";
    return execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  }});
  const std::string line = outer.ReadLine();
  const pid_t below = std::stoi(line);
  const pid_t middle = std::stoi(line.substr(line.find(' ')));
  const auto end = [](pid_t pid) {
    kill(pid, SIGKILL);
    test::WaitUntilGone(pid);
  };
  const std::vector<ProcessId> lineage = Lineage(below, [&](pid_t pid) {
    if (pid == middle) end(middle);
    if (pid == outer.pid() && ends == 2) end(outer.pid());
    return ReadProcessStat(pid);
  });
  CHECK(lineage.front().pid == below);
  CHECK(std::count(lineage.begin(), lineage.end(), ReadProcessStat(getpid())->id) == 1);
  for (const pid_t pid : {below, middle}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);  // reaps it if this process has adopted it
  }
  Check(prctl(PR_SET_CHILD_SUBREAPER, 0), "prctl");
}

TEST_CASE("a lineage ends at a process that cannot be read") {
  const Child child = Child::Start({.argv = {"sleep", "1000"}});
  const std::vector<ProcessId> lineage = Lineage(child.pid(), [&](pid_t pid) {
    return pid == child.pid() ? ReadProcessStat(pid) : std::nullopt;
  });
  REQUIRE(lineage.size() == 1);
  CHECK(lineage.front().pid == child.pid());
}

}  // namespace
}  // namespace zklock::process
