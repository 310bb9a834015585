#include "cli/options/completion.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "support/temporary.h"

namespace zklock::cli {
namespace {

using Words = std::vector<std::string>;

Completion CompleteHere(const Words& words) {
  setenv("ZKLOCK_CONFIG", "/dev/null", 1);  // ignore this machine's own configuration
  return Complete(words);
}

/// Returns the words that fit, or `<files>`, `<command N>` or `<lock>` for the other kinds of
/// completion.
Words Fitting(const Words& words) {
  const Completion completion = CompleteHere(words);
  if (std::holds_alternative<CompleteFile>(completion)) return {"<files>"};
  if (std::holds_alternative<CompleteLock>(completion)) return {"<lock>"};
  if (const auto* queue = std::get_if<CompleteFromQueue>(&completion)) {
    const bool are_names = queue->what == CompleteFromQueue::What::kContenders;
    return {"<" + queue->before + queue->typed + (are_names ? " of " : " in ") + queue->lock + ">"};
  }
  if (const auto* command = std::get_if<CompleteCommand>(&completion)) {
    return {"<command " + std::to_string(command->first_word) + ">"};
  }
  Words fitting;
  for (const Candidate& candidate : std::get<CompleteWords>(completion).candidates) {
    fitting.push_back(candidate.word);
  }
  return fitting;
}

TEST_CASE("The first word is a subcommand") {
  CHECK(Fitting({""}).size() == 9);
  CHECK(Fitting({}).size() == 9);
  CHECK(Fitting({"re"}) == Words{"read", "release"});
  CHECK(Fitting({"--v"}) == Words{"--version"});
  CHECK(Fitting({"nothing"}).empty());
  CHECK(Fitting({"nothing", ""}).empty());
}

TEST_CASE("Only the options of the subcommand are offered") {
  CHECK(Fitting({"exclusive", "--con"}) ==
        Words{"--conflict-exit-code", "--connect-timeout", "--config", "--contain"});
  CHECK(Fitting({"try", "--wa"}).empty());
  CHECK(Fitting({"try", "--wr"}) == Words{"--write"});
  CHECK(Fitting({"release", "--con"}) == Words{"--contender", "--connect-timeout", "--config"});
  CHECK(Fitting({"exclusive", "/l", "-w", "5", "--lab"}) == Words{"--label"});
}

TEST_CASE("A value is completed according to its type") {
  CHECK(Fitting({"exclusive", "--on-lost", ""}) == Words{"stop", "warn"});
  CHECK(Fitting({"exclusive", "--on-lost", "w"}) == Words{"warn"});
  CHECK(Fitting({"exclusive", "--on-lost=w"}) == Words{"--on-lost=warn"});
  CHECK(Fitting({"exclusive", "--on-lost=w", "--quie"}) == Words{"--quiet"});
  CHECK(Fitting({"exclusive", "--stop-signal", "US"}) == Words{"USR1", "USR2"});
  CHECK(Fitting({"exclusive", "--config", "/et"}) == Words{"<files>"});
  CHECK(Fitting({"exclusive", "--wait", ""}).empty());
  CHECK(Fitting({"release", "--reserve", ""}) == Words{"< in >"});
  CHECK(Fitting({"exclusive", "/l", "--resume", "ci"}) == Words{"<ci in /l>"});
  CHECK(Fitting({"release", "/l", "--contender", "web1"}) == Words{"<web1 of /l>"});
  CHECK(Fitting({"release", "-v", "/l", "/m", "--reserve", "fr"}) == Words{"<fr in /l>"});
  CHECK(Fitting({"try", "-E", "1", "--root", "/r", "l", "--reserve=fr"}) ==
        Words{"<--reserve=fr in /r/l>"});
  CHECK(Fitting({"exclusive", "-w", ""}).empty());
  CHECK(Fitting({"exclusive", "--none=x"}).empty());
}

TEST_CASE("After -- the shell completes a command") {
  CHECK(Fitting({"exclusive", "/l", "--", ""}) == Words{"<command 3>"});
  CHECK(Fitting({"try", "-q", "/l", "--", "tar", "--wai"}) == Words{"<command 4>"});
  CHECK(Fitting({"inspect", "--", ""}).empty());
  CHECK(Fitting({"exclusive", "/l", "--"}).size() > 10);  // still an option
}

TEST_CASE("A LOCK is looked up on the servers and below the root that the line names") {
  const Completion completion =
      CompleteHere({"exclusive", "-w", "5m", "--servers=zk9:7/chroot", "--root", "/r", "-q", "ba"});
  const auto* lock = std::get_if<CompleteLock>(&completion);
  REQUIRE(lock != nullptr);
  CHECK(lock->typed == "ba");
  CHECK(lock->server.root == "/r");
  CHECK(lock->server.servers.chroot == "/chroot");
  REQUIRE(lock->server.servers.servers.size() == 1);
  CHECK(lock->server.servers.servers.front().host == "zk9");
  CHECK(Fitting({"release", ""}) == Words{"<lock>"});
  CHECK(Fitting({"read", "-z", "no:port", "/l"}).empty());
}

TEST_CASE("Servers are queried with the line's options, or not at all") {
  const Completion completion = CompleteHere({"exclusive", "--tls", "-qn", "-z", "zk9:7", ""});
  const auto* lock = std::get_if<CompleteLock>(&completion);
  REQUIRE(lock != nullptr);
  CHECK(lock->server.transport.tls);
  CHECK(lock->server.servers.servers.front().host == "zk9");
  for (const Words& words : {Words{"exclusive", "-zzk9:7", ""}, Words{"exclusive", "-nzzk9:7", ""},
                             Words{"exclusive", "-nz", "zk9:7", "-w30", ""}}) {
    CAPTURE(words);
    const Completion found = CompleteHere(words);
    REQUIRE(std::holds_alternative<CompleteLock>(found));
    CHECK(std::get<CompleteLock>(found).server.servers.servers.front().host == "zk9");
  }
  for (const char* const word : {"--tsl", "-nY"}) {
    CAPTURE(word);
    CHECK(Fitting({"exclusive", word, "/l"}).empty());
    CHECK(Fitting({"exclusive", word, "/l", "--reserve", ""}).empty());
  }
}

TEST_CASE("A proxy command that is being typed is not run to find LOCKs") {
  CHECK(Fitting({"inspect", "--proxy-command", "touch /tmp/x", "/l"}).empty());
  CHECK(Fitting({"inspect", "--proxy-command=touch /tmp/x", "/l"}).empty());
  const test::TemporaryDirectory directory;
  const std::string file = directory.Path("config");
  std::ofstream(file) << "proxy-command = touch /tmp/x\n";
  CHECK(Fitting({"release", "--config", file, "/l"}).empty());
}

TEST_CASE("An option is offered under its own name, with its help and default") {
  const Completion completion = CompleteHere({"exclusive", "--stop-s"});
  CHECK(std::get<CompleteWords>(completion).candidates ==
        std::vector<Candidate>{{"--stop-signal", "the first signal sent to end it (TERM)"}});
  CHECK(Fitting({"exclusive", "--time"}).empty());
  CHECK(Fitting({"exclusive", "-c", ""}).empty());
}

}  // namespace
}  // namespace zklock::cli
