#include <fmt/core.h>

#include "cli/grammar.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "cli/subcommands.h"

namespace zklock::cli {
namespace {

void CheckTarget(const Grammar& grammar, const ReleaseOptions& options) {
  const int targets = int{grammar.WasGiven("--contender")} + int{grammar.WasGiven("--holders")} +
                      int{grammar.WasGiven("--all")};
  if (targets > 1) throw grammar.Error(message::kOneTarget);
  if (options.force && options.wait) throw grammar.Error(message::kForceDoesNotWait);
  if (options.target != ReleaseOptions::Target::kOwn) return;
  if (options.force || options.wait || !options.reason.empty()) {
    throw grammar.Error(message::kWhose);
  }
}

}  // namespace

ParsedCommandLine ReadRelease(const std::vector<std::string>& arguments, bool has_command) {
  const SubcommandSpec& subcommand = *FindSubcommand("release");
  Grammar grammar(subcommand);
  if (!grammar.Read(arguments)) return Text{HelpText(subcommand)};
  if (has_command) throw grammar.Error(fmt::format(message::kRunsNoCommand, "release"));
  grammar.RequireLock();
  OptionFields fields;
  grammar.Store(fields);
  ReleaseOptions& options = fields.release;
  options.server = std::move(fields.server);
  options.verbosity = fields.verbosity;
  options.lock = grammar.ReadLock(options.server.root);
  CheckTarget(grammar, options);
  return std::move(options);
}

}  // namespace zklock::cli
