#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cli/zklock.h"
#include "support/source.h"

// Parsers for the project's manual pages and help texts.

namespace zklock::test {

using Set = std::set<std::string>;

inline std::string ReadSource(const std::string& path) {
  CAPTURE(path);
  std::ifstream file(SourcePath(path));
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string HelpOf(const std::string& subcommand) {
  const Finished finished =
      Run({.argv = {Binary(), subcommand, "--help"}, .environment = PlainEnvironment()});
  REQUIRE(finished.exit == Exited(0));
  return finished.out;
}

/// Returns manual text as the reader sees it, without roff escapes.
inline std::string WithoutEscapes(const std::string& text) {
  std::string plain = std::regex_replace(text, std::regex(R"(\\&)"), "");
  plain = std::regex_replace(plain, std::regex(R"(\\-)"), "-");
  plain = std::regex_replace(plain, std::regex(R"(\\\(aq)"), "'");
  return std::regex_replace(plain, std::regex(R"(\\e)"), "\\");
}

/// Returns the lines between the line `begin` and the next line that starts with `end`.
inline Words Section(const std::string& text, const std::string& begin, const std::string& end) {
  const Words lines = Lines(text);
  auto first = std::find(lines.begin(), lines.end(), begin);
  CAPTURE(begin);
  REQUIRE(first != lines.end());
  ++first;
  return {first, std::find_if(first, lines.end(),
                              [&](const std::string& line) { return line.starts_with(end); })};
}

inline Set Union(Set set, const Set& more) {
  set.insert(more.begin(), more.end());
  return set;
}

/// Returns the options in a help text, spelled as there: "-w,--wait DURATION".
inline Set HelpOptions(const std::string& help) {
  Set options;
  for (const std::string& line : Lines(help)) {
    if (!line.starts_with("  -")) continue;
    // The description follows two spaces, or is on its own line.
    const std::string option = line.substr(2);
    options.insert(option.substr(0, option.find("  ")));
  }
  REQUIRE(!options.empty());
  return options;
}

/// Returns the options of mdoc's `.It Fl` lines, spelled as the help text spells them.
inline Set ManualOptions(const Words& lines) {
  Set options;
  for (const std::string& line : lines) {
    if (!line.starts_with(".It Fl ")) continue;
    std::istringstream words(line.substr(4));
    std::string option;
    bool attached = true;  // to the previous word
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

/// Returns the options that zklock(1) describes for a subcommand: those under each heading "Options
/// of ..." that names the subcommand or says "all four".
inline Set OptionsFor(const std::string& subcommand) {
  const std::string manual = ReadSource("man/zklock.1");
  const std::regex names("\\.Ss Options of .*\\b(" + subcommand + "|all four)\\b.*");
  Set options;
  for (const std::string& line : Lines(manual)) {
    if (!std::regex_match(line, names)) continue;
    const Set here = ManualOptions(Section(manual, line, ".S"));
    CAPTURE(line);
    CHECK(!here.empty());
    options.insert(here.begin(), here.end());
  }
  return options;
}

/// Returns the number in the first group of each line that matches `pattern`.
inline Set Numbers(const Words& lines, const std::string& pattern) {
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

/// Returns the first group of each match of `pattern`.
inline Set Matches(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  Set found;
  for (std::sregex_iterator it(text.begin(), text.end(), wanted), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

}  // namespace zklock::test
