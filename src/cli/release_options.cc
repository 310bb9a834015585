#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/grammar.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "cli/subcommands.h"

namespace zklock::cli {
namespace {

/// The LOCKs, absolute and checked, in the order of their paths.
std::vector<std::string> ReadLocks(const Grammar& grammar, const std::string& root) {
  std::vector<std::string> locks;
  for (const std::string& word : grammar.locks()) locks.push_back(grammar.ResolveLock(word, root));
  std::sort(locks.begin(), locks.end());
  locks.erase(std::unique(locks.begin(), locks.end()), locks.end());
  return locks;
}

}  // namespace

ParsedCommandLine ReadRelease(const std::vector<std::string>& arguments, bool has_command) {
  const SubcommandSpec& subcommand = *FindSubcommand("release");
  Grammar grammar(subcommand);
  if (!grammar.Read(arguments)) return Text{HelpText(subcommand, arguments)};
  if (has_command) throw grammar.Error(fmt::format(message::kRunsNoCommand, "release"));
  grammar.RequireLock();
  OptionFields fields;
  grammar.Store(fields);
  grammar.CheckRules();
  ReleaseOptions& options = fields.release;
  options.server = std::move(fields.server);
  options.verbosity = fields.verbosity;
  options.dry_run = fields.dry_run;
  if (options.target == ReleaseOptions::Target::kReservation) {
    options.locks = ReadLocks(grammar, options.server.root);
  } else {
    options.lock = grammar.ReadLock(options.server.root);
  }
  return std::move(options);
}

}  // namespace zklock::cli
