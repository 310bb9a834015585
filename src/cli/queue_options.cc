#include "cli/grammar.h"

#include <fmt/core.h>

#include "cli/help.h"
#include "cli/messages.h"
#include "cli/subcommands.h"

namespace zklock::cli {
namespace {

struct ReleaseWords {
  std::string contender;
  bool holders = false;
  bool all = false;
  bool force = false;
  std::string reason;
  bool wait = false;
  bool yes = false;
};

ReleaseOptions::Target ReadTarget(const Grammar& grammar, const ReleaseWords& words) {
  using Target = ReleaseOptions::Target;
  const bool contender = grammar.WasGiven("--contender");
  if (int{contender} + int{words.holders} + int{words.all} > 1) {
    throw grammar.Error(message::kOneTarget);
  }
  if (contender && (words.contender.empty() || words.contender == "." || words.contender == ".." ||
                    words.contender.find('/') != std::string::npos)) {
    throw grammar.Error(fmt::format(message::kNoName, words.contender));
  }
  if (words.force && words.wait) {
    throw grammar.Error(message::kForceDoesNotWait);
  }
  if (contender) return Target::kContender;
  if (words.holders) return Target::kHolders;
  if (words.all) return Target::kAll;
  if (words.force || words.wait || !words.reason.empty()) {
    throw grammar.Error(message::kWhose);
  }
  return Target::kOwn;
}

}  // namespace

CommandLine ReadInspect(const std::vector<std::string>& arguments, bool has_command) {
  Grammar grammar("inspect");
  bool json = false;
  bool dot = false;
  bool watch = false;
  bool mine = false;
  grammar.AddFlag("--json", json, "print JSON, for jq");
  grammar.AddFlag("--dot", dot, "print the graph of who waits for whom, for dot");
  grammar.AddFlag("--watch", watch, "show it anew whenever it changes");
  grammar.AddFlag("--mine", mine, "only whether what is held for us still is");
  grammar.AddServerOptions();
  grammar.AddVerbosity();
  const auto help =
      grammar.Read(arguments, "usage: zklock inspect [OPTIONS] [LOCK]\n", InspectFooter());
  if (help) return *help;
  if (has_command) throw grammar.Error(fmt::format(message::kRunsNoCommand, "inspect"));
  InspectOptions options;
  options.server = grammar.ReadServerOptions();
  options.verbosity = grammar.ReadVerbosity();
  if (json && dot) throw grammar.Error(fmt::format(message::kExclude, "--json", "--dot"));
  if (dot && watch) throw grammar.Error(fmt::format(message::kExclude, "--dot", "--watch"));
  // As arguments they are about what is printed too; in a file, where they are about every
  // subcommand, only about what is said on standard error.
  options.by_status = grammar.IsArgument("--quiet");
  options.with_names = grammar.IsArgument("--verbose");
  if (options.by_status && (json || dot || watch)) {
    throw grammar.Error(fmt::format(message::kPrintsNothing, "--quiet"));
  }
  if (mine && (json || dot || watch)) {
    throw grammar.Error(fmt::format(message::kPrintsNothing, "--mine"));
  }
  options.mine = mine;
  options.form = json  ? InspectOptions::Form::kJson
                 : dot ? InspectOptions::Form::kDot
                       : InspectOptions::Form::kText;
  options.watch = watch;
  const bool whole = grammar.locks().empty();
  const bool everything = !whole && grammar.locks().front() == "/";
  if (whole && mine) return options;
  options.path = whole ? grammar.ReadRoot() : everything ? "/" : grammar.ReadLock();
  return options;
}

CommandLine ReadRelease(const std::vector<std::string>& arguments, bool has_command) {
  Grammar grammar("release");
  ReleaseWords words;
  grammar.AddValue("--contender", words.contender, "NAME", "whose: a name that inspect -v shows");
  grammar.AddFlag("--holders", words.holders, "of whoever holds");
  grammar.AddFlag("--all", words.all, "of whoever holds or waits");
  grammar.AddFlag("--force", words.force, "delete the contender, do not ask its program");
  grammar.AddValue("--reason", words.reason, "TEXT", "shown to who loses it");
  grammar.AddOwnFlag("--wait", words.wait, "until those who were asked have let go");
  grammar.AddFlag("--yes", words.yes, "do not ask for confirmation");
  grammar.AddServerOptions();
  grammar.AddVerbosity();
  const auto help = grammar.Read(
      arguments, "usage: zklock release [OPTIONS] LOCK [--contender NAME|--holders|--all]\n",
      ReleaseFooter());
  if (help) return *help;
  if (has_command) throw grammar.Error(fmt::format(message::kRunsNoCommand, "release"));
  ReleaseOptions options;
  options.lock = grammar.ReadLock();
  options.server = grammar.ReadServerOptions();
  options.verbosity = grammar.ReadVerbosity();
  options.target = ReadTarget(grammar, words);
  options.contender = words.contender;
  options.force = words.force;
  options.reason = words.reason;
  options.wait = words.wait;
  options.yes = words.yes;
  return options;
}

}  // namespace zklock::cli
