// Two attributes that zklock inherits: its processes leave the working directory, and the command
// gets the parent-death signal.

#include <sys/prctl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <string>

#include "cli/zklock.h"
#include "support/process.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

namespace fs = std::filesystem;

std::string DirectoryOf(pid_t pid) {
  return fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd").string();
}

TEST_CASE("zklock and its guard keep no directory busy while the command runs") {
  const TemporaryDirectory directory;
  const auto run = [&](const Words& words) {
    ChildOptions options = Zklock(words);
    options.directory = directory.path();
    options.keep_stdin = true;
    Child zklock = Child::Start(options);
    const pid_t command = std::stoi(zklock.ReadLine());
    const pid_t guard = ParentOf(command);
    CHECK(DirectoryOf(command) == fs::canonical(directory.path()));
    CHECK(DirectoryOf(guard) == "/");
    CHECK(DirectoryOf(ParentOf(guard)) == "/");
    CHECK(Finish(zklock) == Exited(0));
  };
  const std::string lock = NewLock("directory");
  const Words command = {"--", "sh", "-c", "echo $$; read x || exit 0"};
  Words words = {"exclusive", lock};
  SECTION("under its own lock") {}
  SECTION("nested") { words.insert(words.end(), {"--", Binary(), "exclusive", lock}); }
  words.insert(words.end(), command.begin(), command.end());
  run(words);
}

TEST_CASE("the parent-death signal set for zklock reaches the command") {
  ChildOptions options = Zklock({});
  options.argv.clear();
  options.body = [lock = NewLock("orphan")] {
    const pid_t zklock = fork();
    if (zklock == 0) {
      ResetSignals();
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      execl(Binary().c_str(), "zklock", "exclusive", lock.c_str(), "--", "sh", "-c",
            // The job reports once it is executing: a shell that has only forked may miss the TERM.
            "trap 'echo TERM; kill $!; exit' TERM; sh -c 'echo ready; exec sleep 1000' & wait",
            nullptr);
      _exit(127);
    }
    for (;;) pause();
    return 0;
  };
  options.environment.reset();
  options.also_environment = {"ZKLOCK_SERVERS=" + TestServers(), "ZKLOCK_CONFIG=/dev/null"};
  Child parent = Child::Start(std::move(options));
  REQUIRE(parent.ReadLine() == "ready");
  parent.Signal(SIGKILL);
  CHECK(parent.ReadLine() == "TERM");
  parent.ReadToEnd();
}

}  // namespace
}  // namespace zklock::test
