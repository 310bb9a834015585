// Help, manual pages, completions, README and the code agree on the options in the table, the
// subcommands, and the exit statuses, which are listed here.

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <string>
#include <vector>

#include "cli/documents/documents.h"
#include "cli/options/option_table.h"
#include "cli/zklock.h"
#include "support/source.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

const Set kStatuses = {"64", "69", "70", "71", "75", "76", "77", "78", "124", "126", "127", "128"};

/// Returns the option table's rows for a subcommand, as help prints them: "-w,--wait DURATION".
Set TableOptions(const cli::SubcommandSpec& subcommand) {
  Set options;
  for (const cli::OptionSpec* option : cli::OptionsOf(subcommand.bit)) {
    const std::string letter = option->letter != '\0' && !option->name.empty()
                                   ? std::string{'-', option->letter, ','}
                                   : "";
    const std::string value = option->IsFlag() ? "" : " " + std::string(option->metavar);
    options.insert(letter + option->Name() + value);
  }
  return options;
}

Set TableNames(const cli::SubcommandSpec& subcommand) {
  Set names;
  for (const cli::OptionSpec* option : cli::OptionsOf(subcommand.bit)) names.insert(option->Name());
  return names;
}

/// Returns the options that the manual pages describe for a subcommand.
Set ManualOptionsOf(const cli::SubcommandSpec& subcommand) {
  const std::string name(subcommand.name);
  if (subcommand.RunsCommand()) return OptionsFor(name);
  return ManualOptions(Lines(ReadSource("man/zklock-" + name + ".1")));
}

Set FirstWords(const std::string& text) {
  Set words;
  for (const std::string& line : Lines(text))
    words.insert(line.substr(0, line.find_first_of(" \t")));
  return words;
}

/// Returns the words that bash and fish offer for `zklock SUBCOMMAND -`. (completion_test covers
/// zsh, whose completion asks zklock in the same way.)
Set Offered(const std::string& shell, const std::string& subcommand) {
  const std::string completions = SourcePath("completions/");
  const std::string line = "zklock " + subcommand + " -";
  const Words argv =
      shell == "bash" ? Words{"bash", "--norc", "-c",
                              "source " + completions + "zklock.bash; COMP_WORDS=(" + line +
                                  ") COMP_CWORD=2 COMP_LINE='" + line +
                                  "' COMP_POINT=" + std::to_string(line.size()) +
                                  "; _zklock; printf '%s\n' \"${COMPREPLY[@]}\""}
                      : Words{"fish", "--no-config", "-c",
                              "source " + completions + "zklock.fish; complete -C '" + line + "'"};
  const TemporaryDirectory home;  // fish wants to write there
  const std::string path = Binary().substr(0, Binary().rfind('/')) + ":/usr/bin:/bin";
  const Finished finished = Run({.argv = argv,
                                 .environment = PlainEnvironment(),
                                 .also_environment = {"PATH=" + path, "HOME=" + home.path()}},
                                Exited(0));
  return FirstWords(finished.out);
}

TEST_CASE("manual pages, help and completions have the options of the table, and no other") {
  Set runs;
  for (const cli::SubcommandSpec& subcommand : cli::SubcommandTable()) {
    const std::string name(subcommand.name);
    CAPTURE(name);
    const Set manual = ManualOptionsOf(subcommand);
    CHECK(manual == TableOptions(subcommand));
    CHECK(manual.size() > 10);
    if (subcommand.RunsCommand()) runs = Union(runs, manual);
    CHECK(HelpOptions(HelpOf(name)) == manual);
    for (const std::string shell : {"bash", "fish"}) {
      CAPTURE(shell);
      CHECK(Offered(shell, name) == TableNames(subcommand));
    }
  }
  // zklock(1) describes options only in the lists of the subcommands.
  CHECK(ManualOptions(Lines(ReadSource("man/zklock.1"))) == runs);
}

TEST_CASE("each option has help, and a variable or a place in a file only with a long name") {
  for (const cli::OptionSpec& option : cli::OptionTable()) {
    CAPTURE(option.Name());
    CHECK_FALSE(option.help.empty());
    CHECK(option.subcommands != 0);
    CHECK((option.letter != '\0' || !option.name.empty()));
    if (option.in_file || !option.environment.empty()) CHECK_FALSE(option.name.empty());
    if (option.IsFlag()) CHECK((option.fallback.empty() && option.environment.empty()));
  }
}

TEST_CASE("every option that zklock(1) says excludes others is a rule of the table") {
  const auto is_rule = [](const std::string& one, const std::string& other) {
    const auto names = [](std::string_view list, const std::string& name) {
      const auto all = cli::NamesIn(list);
      return std::find(all.begin(), all.end(), name) != all.end();
    };
    return std::any_of(cli::OptionRules().begin(), cli::OptionRules().end(),
                       [&](const cli::OptionRule& rule) {
                         return rule.kind == cli::OptionRule::Kind::kExcludes &&
                                ((names(rule.options, one) && names(rule.others, other)) ||
                                 (names(rule.options, other) && names(rule.others, one)));
                       });
  };
  // These conflicts depend on values: --nonblock also counts as --wait 0, and --also-read as
  // reading.
  const Set by_value = {"--nonblock", "--also-read"};
  std::size_t pairs = 0;
  std::string option;
  const Words lines = Lines(ReadSource("man/zklock.1"));
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::smatch item;
    if (std::regex_search(lines[i], item, std::regex("^\\.It (?:Fl . , )?Fl (-[a-z-]+)"))) {
      option = "-" + item[1].str();
    }
    if (lines[i - 1] != "Not with" || !lines[i].starts_with(".Fl ")) continue;
    for (const std::string& other : Matches(lines[i], "(-[a-z-]+)")) {
      CAPTURE(option, other);
      if (by_value.contains("-" + other)) continue;
      CHECK(is_rule(option, "-" + other));
      ++pairs;
    }
  }
  CHECK(pairs > 12);
}

TEST_CASE("no two options of a subcommand have the same name") {
  for (const cli::SubcommandSpec& subcommand : cli::SubcommandTable()) {
    Set names;
    for (const cli::OptionSpec* option : cli::OptionsOf(subcommand.bit)) {
      CAPTURE(subcommand.name, option->Name());
      if (option->letter != '\0') CHECK(names.insert(std::string(1, option->letter)).second);
      if (!option->name.empty()) CHECK(names.insert(std::string(option->name)).second);
      if (!option->alias.empty()) CHECK(names.insert(std::string(option->alias)).second);
    }
  }
}

TEST_CASE("zklock(1) lists the long option names taken from flock") {
  Set aliases;
  for (const cli::OptionSpec& option : cli::OptionTable()) {
    if (!option.alias.empty()) aliases.insert(std::string(option.alias));
  }
  std::string manual;
  for (const std::string& line : Lines(ReadSource("man/zklock.1"))) manual += line + "\n";
  for (const std::string& alias : aliases) {
    CAPTURE(alias);
    CHECK_THAT(manual, Catch::Contains("\n.Fl -" + alias));
  }
  CHECK(aliases == Set{"nb", "timeout"});
}

TEST_CASE("each subcommand is in the help, the completions and the synopsis of zklock(1)") {
  const Set names = {"exclusive", "read", "write", "try", "inspect", "release"};
  const Finished help = Run({.argv = {Binary(), "--help"}, .environment = PlainEnvironment()});
  CHECK(Matches(help.out, "zklock ([a-z]+) +\\[OPTIONS\\]") == names);
  Set offered = FirstWords(Run({.argv = {Binary(), "--complete", ""}}).out);
  std::erase_if(offered, [](const std::string& word) { return word.starts_with("-"); });
  CHECK(offered == names);
  Set synopsis;
  for (const std::string& line : Section(ReadSource("man/zklock.1"), ".Sh SYNOPSIS", ".Sh")) {
    if (line.starts_with(".Cm ")) synopsis.merge(Matches(line.substr(4), "([a-z]+)"));
  }
  CHECK(synopsis == names);
}

TEST_CASE("zklock(1), README, help and code have the same exit statuses") {
  Set code = Numbers(Lines(ReadSource("src/base/exit_status.h")), "kExit[A-Za-z]+ = ([0-9]+)");
  code.erase("0");
  CHECK(code == kStatuses);
  CHECK(Numbers(Section(ReadSource("man/zklock.1"), ".Sh EXIT STATUS", ".Sh"), "^\\.It (.*)") ==
        kStatuses);
  CHECK(Numbers(Section(ReadSource("README.md"), "## Exit status", "## "), "^\\| ([^|]*) \\|") ==
        kStatuses);
  for (const std::string subcommand : {"exclusive", "read", "write", "try"}) {
    CAPTURE(subcommand);
    CHECK(Numbers(Section(HelpOf(subcommand), "exit status:", "$"), "^  (\\S.*?)  ") == kStatuses);
  }
}

TEST_CASE("src/README.md lists each cause of a command's end") {
  Set causes;
  for (const std::string& line : Lines(ReadSource("src/base/end_cause.h"))) {
    causes.merge(Matches(line, "^  (k[A-Za-z]+),"));
  }
  CHECK(causes.size() > 10);
  Set listed;
  for (const std::string& line :
       Section(ReadSource("src/README.md"), "## Who may end a command", "## ")) {
    listed.merge(Matches(line, "^\\| `(k[A-Za-z]+)` \\|"));
  }
  CHECK(listed == causes);
}

/// Returns the words in column `place` of the table of names in zklock(1).
Set NamesForPrograms(std::size_t place) {
  Set names;
  for (const std::string& line :
       Section(ReadSource("man/zklock.1"), ".Sh NAMES THAT PROGRAMS READ", ".Sh")) {
    if (!line.starts_with(".It ") || line.starts_with(".It Sy")) continue;
    std::string rest = line.substr(4) + " Ta ";
    for (std::size_t i = 0; i < place; ++i) rest.erase(0, rest.find(" Ta ") + 4);
    std::string cell = rest.substr(0, rest.find(" Ta ")) + ", ";
    if (cell.starts_with("\\&")) continue;
    for (; !cell.empty(); cell.erase(0, cell.find(", ") + 2)) {
      names.insert(cell.substr(0, cell.find(", ")));
    }
  }
  return names;
}

TEST_CASE("zklock(1) has one table of the names that programs read") {
  const std::string sources =
      ReadSource("src/cli/views/queue_text.cc") + ReadSource("src/cli/views/history_text.cc");
  CHECK(NamesForPrograms(1) == Matches(sources, R"re(\.title = "([A-Z ]+)")re"));
  const auto words = [](const std::string& page, const std::string& section,
                        const std::string& pattern) {
    std::string text = "\n";
    for (const std::string& line : Section(ReadSource(page), section, ".Sh")) text += line + "\n";
    return Matches(text, pattern);
  };
  Set variables =
      words("man/zklock.1", ".Ss Environment of the command", R"(\n\.It Ev (ZKLOCK_[A-Z]+))");
  CHECK(variables.erase("ZKLOCK_HELD") == 1);  // its format may change
  variables.insert("ZKLOCK_LABEL");
  CHECK(NamesForPrograms(2) == variables);
  CHECK(NamesForPrograms(3) ==
        Matches(ReadSource("src/cli/views/queue_metrics.cc"), R"re(\{"(zklock_[a-z_]+)")re"));

  const Set in_events = words("man/zklock.1", ".Sh EVENTS", R"(\n\.(?:It )?Va ([A-Za-z]+))");
  const Set in_objects = words("man/zklock-inspect.1", ".Sh JSON", R"(\n\.It Li ([A-Za-z]+) Pq)");
  const Set members = NamesForPrograms(0);
  const Set known = Union(in_events, in_objects);
  for (const std::string& name : members) {
    CAPTURE(name);
    CHECK(known.contains(name));
  }
  for (const std::string& name : in_events) {
    CAPTURE(name);
    CHECK((!in_objects.contains(name) || members.contains(name)));
  }
}

}  // namespace
}  // namespace zklock::test
