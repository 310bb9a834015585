#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "cli/grammar.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "cli/subcommands.h"

namespace zklock::cli {
namespace {

void CheckTarget(const Grammar& grammar, const ReleaseOptions& options) {
  constexpr const char* kTargets[] = {"--contender", "--position", "--host",
                                      "--holders",   "--all",      "--reserve"};
  const auto targets = std::count_if(std::begin(kTargets), std::end(kTargets),
                                     [&](const char* one) { return grammar.WasGiven(one); });
  if (targets > 1) throw grammar.Error(message::kOneTarget);
  // Between inspect and this call the queue may have moved.
  if (options.target == ReleaseOptions::Target::kPosition && options.yes) {
    throw grammar.Error(message::kPositionAsks);
  }
  if (options.target == ReleaseOptions::Target::kReservation) {
    for (const char* option : {"--force", "--wait-released", "--reason"}) {
      if (!grammar.WasGiven(option)) continue;
      throw grammar.Error(fmt::format(message::kReleasedAtOnce, option));
    }
  }
  if (options.force && options.wait) throw grammar.Error(message::kForceDoesNotWait);
  if (options.target != ReleaseOptions::Target::kOwn) return;
  if (options.force || options.wait || !options.reason.empty()) {
    throw grammar.Error(message::kWhose);
  }
}

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
  ReleaseOptions& options = fields.release;
  options.server = std::move(fields.server);
  options.verbosity = fields.verbosity;
  if (options.target == ReleaseOptions::Target::kReservation) {
    options.locks = ReadLocks(grammar, options.server.root);
  } else {
    options.lock = grammar.ReadLock(options.server.root);
  }
  CheckTarget(grammar, options);
  return std::move(options);
}

}  // namespace zklock::cli
