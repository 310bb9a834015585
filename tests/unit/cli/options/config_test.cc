#include "cli/options/config.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/option_table.h"

namespace zklock::cli {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs PairsIn(const std::string& text) {
  Pairs pairs;
  for (const Setting& setting : ParseConfig(text, "f", ConfigurableNames()))
    pairs.emplace_back(setting.name, setting.value);
  return pairs;
}

std::string ConfigErrorOf(const std::string& text) {
  try {
    PairsIn(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("A line sets an option by its name, with or without white space") {
  CHECK(PairsIn("servers = a:1,b:2/c\n\twait=10m\r\nlabel =\n") ==
        Pairs{{"servers", "a:1,b:2/c"}, {"wait", "10m"}, {"label", ""}});
  CHECK(PairsIn("root = /locks") == Pairs{{"root", "/locks"}});
  CHECK(PairsIn("").empty());
  CHECK(PairsIn("\n\n \t\n").empty());
}

TEST_CASE("A comment starts a line or follows white space") {
  CHECK(PairsIn(
            "# servers = a:1\n  # more\nwait = 5s # or so\nlabel = http://ci/#42\nroot = # none") ==
        Pairs{{"wait", "5s"}, {"label", "http://ci/#42"}, {"root", ""}});
}

TEST_CASE("A quoted value is used as it is") {
  CHECK(PairsIn(R"(label = " a # b = \n "  # the label)") == Pairs{{"label", R"( a # b = \n )"}});
  CHECK(PairsIn(R"(label = "")") == Pairs{{"label", ""}});
  CHECK(PairsIn(R"(label = a "b" c)") == Pairs{{"label", R"(a "b" c)"}});
}

TEST_CASE("A written value is read back unchanged, even before a comment") {
  CHECK(ConfigText("") == "");
  CHECK(ConfigText("a:1,b:2/c") == "a:1,b:2/c");
  CHECK(ConfigText("http://ci/#42") == "http://ci/#42");
  CHECK(ConfigText("a \"b\" c") == "a \"b\" c");
  CHECK(ConfigText("nightly run, #2") == "\"nightly run, #2\"");
  CHECK(ConfigText("#") == "\"#\"");
  CHECK(ConfigText(" a\t") == "\" a\t\"");
  for (const char* none : {"a\nb", "\033[2J", "\"a", "\"a\"", "\"a\" b", "\"", "a \" # b", " \""}) {
    CAPTURE(none);
    CHECK_FALSE(ConfigText(none).has_value());
  }
}

TEST_CASE("A setting contains its file and line") {
  const auto settings =
      ParseConfig("\n# one\nwait = 5s\n\nroot = /r\n", "/etc/x.conf", ConfigurableNames());
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].file == "/etc/x.conf");
  CHECK(settings[0].line == 3);
  CHECK(settings[1].line == 5);
}

TEST_CASE("An error names the file and the line") {
  CHECK(ConfigErrorOf("wait = 5s\nservers\n") == "f:2: is not of the form 'name = value'");
  CHECK(
      ConfigErrorOf("= x") ==
      "f:1: unknown option ''; 'zklock --print-config' lists the options that a file can contain");
  CHECK(ConfigErrorOf("\nserver = a:1") == "f:2: unknown option 'server'; did you mean 'servers'?");
  CHECK(ConfigErrorOf("--wait = 5s") == "f:1: unknown option '--wait'; did you mean 'wait'?");
  CHECK(ConfigErrorOf("wait = 5s\n# wait = 6s\nlabel = x\n\nwait = 7s") ==
        "f:5: 'wait' is already set in line 1; remove one of the two");
  CHECK(ConfigErrorOf("[zklock]") == "f:1: is not of the form 'name = value'");
  CHECK(ConfigErrorOf("label = \"a") ==
        "f:1: the quotes do not enclose the whole value: put one at each end, or none");
  CHECK(ConfigErrorOf("label = \"a\" b") ==
        "f:1: the quotes do not enclose the whole value: put one at each end, or none");
  CHECK(ConfigErrorOf("label = a\033[2J") == "f:1: the line contains a control character");
  CHECK(ConfigErrorOf(std::string("label = a\0b", 11)) ==
        "f:1: the line contains a control character");
}

TEST_CASE("A file cannot set the options for a single run") {
  const auto& names = ConfigurableNames();
  for (const std::string name :
       {"nonblock", "config", "help", "c", "hold", "force", "yes", "contender"}) {
    CAPTURE(name);
    CHECK(std::find(names.begin(), names.end(), name) == names.end());
  }
}

}  // namespace
}  // namespace zklock::cli
