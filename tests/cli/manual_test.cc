// The manual pages and the rest of the project say the same: options, variables, exit statuses,
// examples.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/zklock.h"

namespace zklock::test {
namespace {

using Set = std::set<std::string>;

std::string ReadSource(const std::string& path) {
  const char* source = getenv("ZKLOCK_SOURCE_DIR");
  REQUIRE(source != nullptr);
  CAPTURE(path);
  std::ifstream file(std::filesystem::path(source) / path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string HelpOf(const std::string& subcommand) {
  const Finished finished =
      Run({.argv = {Binary(), subcommand, "--help"}, .environment = PlainEnvironment()});
  REQUIRE(finished.exit == Exited(0));
  return finished.out;
}

/// From the line `begin` to the next one that starts with `end`, both left out.
Words Section(const std::string& text, const std::string& begin, const std::string& end) {
  const Words lines = Lines(text);
  auto first = std::find(lines.begin(), lines.end(), begin);
  CAPTURE(begin);
  REQUIRE(first != lines.end());
  ++first;
  return {first, std::find_if(first, lines.end(),
                              [&](const std::string& line) { return line.starts_with(end); })};
}

Set Union(Set set, const Set& more) {
  set.insert(more.begin(), more.end());
  return set;
}

/// The options of a help text: "-w,--wait DURATION", as it writes them.
Set HelpOptions(const std::string& help) {
  Set options;
  for (const std::string& line : Section(help, "Options:", "LOCK is")) {
    if (!line.starts_with("  -")) continue;
    // What the option does is set off by two blanks, or on a line of its own.
    const std::string option = line.substr(2);
    options.insert(option.substr(0, option.find("  ")));
  }
  REQUIRE(!options.empty());
  return options;
}

/// The options of mdoc's `.It Fl` lines, as the help text would write them.
Set ManualOptions(const Words& lines) {
  Set options;
  for (const std::string& line : lines) {
    if (!line.starts_with(".It Fl ")) continue;
    std::istringstream words(line.substr(4));
    std::string option;
    bool attached = true;  // to what is before it
    for (std::string word; words >> word;) {
      if (word == "Fl") {
        option += "-";
        attached = true;
      } else if (word == ",") {
        option += ",";
      } else if (word != "Ar") {
        option += (attached ? "" : " ") + word;
        attached = false;
      }
    }
    CAPTURE(line);
    CHECK(options.insert(option).second);
  }
  return options;
}

Set OptionsUnder(const std::string& heading) {
  const Set options = ManualOptions(Section(ReadSource("man/zklock.1"), ".Ss " + heading, ".S"));
  REQUIRE(!options.empty());
  return options;
}

/// All numbers in the first `group` of each line that matches.
Set Numbers(const Words& lines, const std::string& pattern) {
  static const std::regex number("[0-9]+");
  const std::regex wanted(pattern);
  Set numbers;
  for (const std::string& line : lines) {
    std::smatch match;
    if (!std::regex_search(line, match, wanted)) continue;
    const std::string part = match[1];
    for (std::sregex_iterator it(part.begin(), part.end(), number), end; it != end; ++it) {
      numbers.insert(it->str());
    }
  }
  return numbers;
}

/// What `pattern`'s first group is in each match.
Set Matches(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  Set found;
  for (std::sregex_iterator it(text.begin(), text.end(), wanted), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

std::string WithoutEscapes(const std::string& text) {
  return std::regex_replace(std::regex_replace(text, std::regex(R"(\\-)"), "-"),
                            std::regex(R"(\\\(aq)"), "'");
}

/// The blocks behind README's `<!-- example: NAME -->` marks.
Words ReadmeExamples() {
  const std::string readme = ReadSource("README.md");
  Words examples;
  for (std::size_t at = 0; (at = readme.find("<!-- example: ", at)) != std::string::npos;) {
    const std::size_t fence = readme.find("```", at);
    const std::size_t begin = readme.find('\n', fence) + 1;
    at = readme.find("```", begin);
    examples.push_back(readme.substr(begin, at - begin));
  }
  REQUIRE(!examples.empty());
  return examples;
}

TEST_CASE("zklock(1) has the options that help shows, no other, with the same arguments") {
  const Set common = OptionsUnder("Options of all four");
  const Set queued = Union(common, OptionsUnder("Options of exclusive, read and write"));
  const Set tried = Union(common, OptionsUnder("Options of try"));
  CHECK(HelpOptions(HelpOf("exclusive")) == queued);
  CHECK(HelpOptions(HelpOf("read")) == queued);
  CHECK(HelpOptions(HelpOf("write")) == queued);
  CHECK(HelpOptions(HelpOf("try")) == tried);
  // None stands where no subcommand's list is.
  CHECK(ManualOptions(Lines(ReadSource("man/zklock.1"))) == Union(queued, tried));
}

TEST_CASE("zklock-inspect(1) and zklock-release(1) have the options that help shows") {
  for (const std::string subcommand : {"inspect", "release"}) {
    CAPTURE(subcommand);
    CHECK(ManualOptions(Lines(ReadSource("man/zklock-" + subcommand + ".1"))) ==
          HelpOptions(HelpOf(subcommand)));
  }
}

TEST_CASE("zklock(1) names the variables that stand in for options") {
  Set read;
  for (const std::string file : {"grammar", "run_options", "queue_options"}) {
    read.merge(Matches(ReadSource("src/cli/" + file + ".cc"), "\"(ZKLOCK_[A-Z_]+)\""));
  }
  REQUIRE(!read.empty());
  std::string section;
  for (const std::string& line :
       Section(ReadSource("man/zklock.1"), ".Sh ENVIRONMENT", ".Ss What the command gets")) {
    section += line + "\n";
  }
  CHECK(Matches(section, "\\.It Ev ([A-Z_]+)") == read);
}

TEST_CASE("zklock(1), README and help have the exit statuses that the code has") {
  const Set code = [] {
    Set numbers = Numbers(Lines(ReadSource("src/base/exit_status.h")), "kExit[A-Za-z]+ = ([0-9]+)");
    numbers.erase("0");
    return numbers;
  }();
  REQUIRE(code.size() > 5);
  CHECK(Numbers(Section(ReadSource("man/zklock.1"), ".Sh EXIT STATUS", ".Sh"), "^\\.It (.*)") ==
        code);
  CHECK(Numbers(Section(ReadSource("README.md"), "## Exit status", "## "), "^\\| ([^|]*) \\|") ==
        code);
  for (const std::string subcommand : {"exclusive", "read", "write", "try"}) {
    CAPTURE(subcommand);
    CHECK(Numbers(Section(HelpOf(subcommand), "exit status:", "$"), "^  (\\S.*?)  ") == code);
  }
}

TEST_CASE("zklock(1) has README's examples") {
  std::string manual;
  for (const std::string& line : Section(ReadSource("man/zklock.1"), ".Sh EXAMPLES", ".Sh")) {
    manual += WithoutEscapes(line) + "\n";
  }
  for (const std::string& example : ReadmeExamples()) {
    CHECK_THAT(manual, Catch::Contains(".Bd -literal") && Catch::Contains("\n" + example + ".Ed"));
  }
}

}  // namespace
}  // namespace zklock::test
