// The example units, checked by systemd.

#include <catch2/catch.hpp>
#include <regex>
#include <string>

#include "cli/documents/documents.h"
#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

const Words kUnits = {"zklock-example.service", "zklock-example-job.service",
                      "zklock-example-job.timer", "zklock-metrics.service", "zklock-metrics.timer"};

std::string Joined(const Words& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Replaces the programs in a unit with ones that exist on this host.
std::string ForThisHost(std::string unit) {
  unit = std::regex_replace(unit, std::regex("/usr/bin/zklock"), Binary());
  return std::regex_replace(unit, std::regex("/usr/bin/example[a-z-]*"), "/bin/true");
}

/// Returns `zklock` arguments of the unit's ExecStart, up to the command.
Words ExecStart(const std::string& unit) {
  std::smatch match;
  REQUIRE(std::regex_search(unit, match, std::regex("\nExecStart=(.*)\n")));
  Words words;
  const std::string line = match[1];
  std::regex word("[^ ]+");
  for (std::sregex_iterator one(line.begin(), line.end(), word), end; one != end; ++one) {
    words.push_back(one->str());
  }
  return words;
}

TEST_CASE("systemd accepts the example units") {
  const TemporaryDirectory directory;
  Words argv = {"systemd-analyze", "verify", "--man=no"};
  for (const std::string& name : kUnits) {
    const std::string unit = Joined(Lines(ReadSource("packaging/systemd/" + name)));
    argv.push_back(directory.Write(name, ForThisHost(unit)));
  }
  const Finished finished = Run({.argv = argv}, Exited(0));
  CHECK(finished.out + finished.err == "");
}

TEST_CASE("systemd-analyze finds a mistake in a unit") {
  const TemporaryDirectory directory;
  std::string unit = Joined(Lines(ReadSource("packaging/systemd/" + kUnits[0])));
  unit = std::regex_replace(unit, std::regex("KillMode=mixed"), "KillMode=mixture");
  const std::string file = directory.Write(kUnits[0], ForThisHost(unit));
  const Finished finished = Run({.argv = {"systemd-analyze", "verify", "--man=no", file}});
  CHECK_THAT(finished.err, Catch::Contains("mixture"));
}

TEST_CASE("zklock runs what the example units start") {
  for (const std::string& name : {kUnits[0], kUnits[1]}) {
    CAPTURE(name);
    const std::string unit = Joined(Lines(ReadSource("packaging/systemd/" + name)));
    Words words = ExecStart(ForThisHost(unit));
    REQUIRE(words.size() > 3);
    CHECK(words.front() == Binary());
    words.erase(words.begin());
    for (std::string& word : words) {
      if (word.starts_with("/svc/") || word.starts_with("/jobs/")) word = NewLock("unit");
    }
    RunZklock(words, Exited(0));
  }
}

}  // namespace
}  // namespace zklock::test
