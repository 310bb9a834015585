// Help, manual pages, completions, README and the code have what users were promised, and no other:
// subcommands, options, exit statuses. The list is here.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "cli/documents.h"
#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// Each option with what it takes and the subcommands that have it: q for exclusive, read and
/// write, t for try, i for inspect, r for release.
struct Promised {
  const char* option;
  const char* subcommands;
};

constexpr Promised kPromised[] = {
    {"-h,--help", "qtir"},
    {"-z,--servers HOST:PORT[,...][/CHROOT]", "qtir"},
    {"--root PATH", "qtir"},
    {"--connect-timeout DURATION", "qtir"},
    {"--session-timeout DURATION", "qtir"},
    {"--auth-file FILE", "qtir"},
    {"--tls-ca FILE", "qtir"},
    {"--tls-cert FILE", "qtir"},
    {"--tls-key FILE", "qtir"},
    {"--config FILE", "qtir"},
    {"-q,--quiet", "qtir"},
    {"-v,--verbose", "qtir"},
    {"-w,--wait DURATION", "q"},
    {"-n,--nonblock", "q"},
    {"--max-queue N", "q"},
    {"--supersede", "q"},
    {"--read LOCK", "q"},
    {"--write LOCK", "q"},
    {"--read", "t"},
    {"--write", "t"},
    {"--permits N", "qt"},
    {"--min-interval DURATION", "qt"},
    {"-E,--conflict-exit-code N", "qt"},
    {"--acl open|creator", "qt"},
    {"-k,--kill-after DURATION", "qt"},
    {"--stop-signal SIGNAL", "qt"},
    {"--on-lost stop|warn", "qt"},
    {"--descendants leave|wait|kill", "qt"},
    {"--dialect curator|kazoo|simple", "qt"},
    {"--no-nest", "qt"},
    {"-c 'SHELL LINE'", "qt"},
    {"--hold", "qt"},
    {"--owner-pid PID", "qt"},
    {"--on-lost-signal SIGNAL", "qt"},
    {"-l,--label TEXT", "qt"},
    {"--publish-command", "qt"},
    {"--events FD|FILE", "qt"},
    {"--progress auto|bar|plain|none", "qt"},
    {"--json", "i"},
    {"--dot", "i"},
    {"--watch", "i"},
    {"--mine", "i"},
    {"--contender NAME", "r"},
    {"--holders", "r"},
    {"--all", "r"},
    {"--force", "r"},
    {"--reason TEXT", "r"},
    {"--wait", "r"},
    {"--yes", "r"},
};

const Set kPromisedStatuses = {"64", "69", "70", "71", "75", "76", "77", "78", "126", "127", "128"};

struct Subcommand {
  std::string name;
  char letter;
};

const Subcommand kSubcommands[] = {{"exclusive", 'q'}, {"read", 'q'},    {"write", 'q'},
                                   {"try", 't'},       {"inspect", 'i'}, {"release", 'r'}};

Set PromisedTo(char letter) {
  Set options;
  for (const Promised& one : kPromised) {
    if (std::string(one.subcommands).find(letter) != std::string::npos) options.insert(one.option);
  }
  return options;
}

/// What completion offers for it: the long name where there is one.
std::string NameOf(const std::string& option) {
  const std::size_t comma = option.find(",--");
  const std::string from = comma == std::string::npos ? option : option.substr(comma + 1);
  return from.substr(0, from.find(' '));
}

Set FirstWords(const std::string& text) {
  Set words;
  for (const std::string& line : Lines(text))
    words.insert(line.substr(0, line.find_first_of(" \t")));
  return words;
}

/// What bash and fish offer for `zklock SUBCOMMAND -`. (zsh has the same from the same source, and
/// is typed at in completion_test.)
Set Offered(const std::string& shell, const std::string& subcommand) {
  const std::string completions = std::string(getenv("ZKLOCK_SOURCE_DIR")) + "/completions/";
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
                                 .also_environment = {"PATH=" + path, "HOME=" + home.path()}});
  CAPTURE(finished.err);
  CHECK(finished.exit == Exited(0));
  return FirstWords(finished.out);
}

TEST_CASE("help, manual pages and completions have the options that were promised, and no other") {
  const Set common = OptionsUnder("Options of all four");
  std::map<char, Set> manual = {
      {'q', Union(common, OptionsUnder("Options of exclusive, read and write"))},
      {'t', Union(common, OptionsUnder("Options of try"))},
      {'i', ManualOptions(Lines(ReadSource("man/zklock-inspect.1")))},
      {'r', ManualOptions(Lines(ReadSource("man/zklock-release.1")))}};
  // None stands where no subcommand's list is.
  CHECK(ManualOptions(Lines(ReadSource("man/zklock.1"))) == Union(manual['q'], manual['t']));
  for (const auto& [subcommand, letter] : kSubcommands) {
    CAPTURE(subcommand);
    const Set promised = PromisedTo(letter);
    Set names;
    for (const std::string& option : promised) names.insert(NameOf(option));
    CHECK(HelpOptions(HelpOf(subcommand)) == promised);
    CHECK(manual[letter] == promised);
    for (const std::string shell : {"bash", "fish"}) {
      CAPTURE(shell);
      CHECK(Offered(shell, subcommand) == names);
    }
  }
}

TEST_CASE("each subcommand is in help, in the completions and has a manual page's synopsis") {
  Set names;
  for (const Subcommand& one : kSubcommands) names.insert(one.name);
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

TEST_CASE("zklock(1), README, help and code have the exit statuses that were promised") {
  Set code = Numbers(Lines(ReadSource("src/base/exit_status.h")), "kExit[A-Za-z]+ = ([0-9]+)");
  code.erase("0");
  CHECK(code == kPromisedStatuses);
  CHECK(Numbers(Section(ReadSource("man/zklock.1"), ".Sh EXIT STATUS", ".Sh"), "^\\.It (.*)") ==
        kPromisedStatuses);
  CHECK(Numbers(Section(ReadSource("README.md"), "## Exit status", "## "), "^\\| ([^|]*) \\|") ==
        kPromisedStatuses);
  for (const std::string subcommand : {"exclusive", "read", "write", "try"}) {
    CAPTURE(subcommand);
    CHECK(Numbers(Section(HelpOf(subcommand), "exit status:", "$"), "^  (\\S.*?)  ") ==
          kPromisedStatuses);
  }
}

}  // namespace
}  // namespace zklock::test
