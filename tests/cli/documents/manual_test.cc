// The manual pages agree with README and the code about variables and examples.

#include <catch2/catch.hpp>
#include <regex>
#include <string>

#include "cli/documents/documents.h"
#include "cli/zklock.h"
#include "support/source.h"

namespace zklock::test {
namespace {

/// Returns the blocks after README's `<!-- example: NAME -->` comments.
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

TEST_CASE("zklock(1) names the variables that replace options") {
  Set read = Matches(ReadSource("src/cli/options/option_table.cc"), "\"(ZKLOCK_[A-Z_]+)\"");
  REQUIRE(!read.empty());
  std::string section;
  for (const std::string& line :
       Section(ReadSource("man/zklock.1"), ".Sh ENVIRONMENT", ".Ss Environment of the command")) {
    section += line + "\n";
  }
  CHECK(Matches(section, "\\.It Ev ([A-Z_]+)") == read);
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

TEST_CASE("no line of a manual page is lost because it looks like a macro") {
  const std::regex macro(R"(\.([A-Z][a-z0-9]( .*)?|\\".*))");
  for (const std::string page : {"zklock.1", "zklock-inspect.1", "zklock-release.1",
                                 "zklock-protocol.7", "zklock-recipes.7"}) {
    for (const std::string& line : Lines(ReadSource("man/" + page))) {
      if (!line.starts_with(".") && !line.starts_with("'")) continue;
      CAPTURE(page, line);
      CHECK(std::regex_match(line, macro));
    }
  }
}

TEST_CASE("the recipes of zklock-recipes(7) work as they are printed") {
  Run({.argv = {"/usr/bin/python3", "-B", SourcePath("tests/cli/documents/recipes.py"), Binary(),
                TestServers()}},
      Exited(0));
}

}  // namespace
}  // namespace zklock::test
