#include <fmt/core.h>

#include "cli/grammar.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "cli/subcommands.h"

namespace zklock::cli {
ParsedCommandLine ReadInspect(const std::vector<std::string>& arguments, bool has_command) {
  const SubcommandSpec& subcommand = *FindSubcommand("inspect");
  Grammar grammar(subcommand);
  if (!grammar.Read(arguments)) return Text{HelpText(subcommand, arguments)};
  if (has_command) throw grammar.Error(fmt::format(message::kRunsNoCommand, "inspect"));
  OptionFields fields;
  grammar.Store(fields);
  grammar.CheckRules();
  if (grammar.WasGiven("--servers-report") && !grammar.locks().empty()) {
    throw grammar.Error(message::kReportTakesNoLock);
  }
  InspectOptions& options = fields.inspect;
  options.server = std::move(fields.server);
  options.verbosity = fields.verbosity;
  // As arguments these two are also about what is printed; in a file, which is about every
  // subcommand, only about what is reported on standard error.
  options.by_status = grammar.IsArgument("--quiet");
  options.with_names = grammar.IsArgument("--verbose");
  const auto path_of = [&](const std::string& word) {
    return word == "/" ? word : grammar.ResolveLock(word, options.server.root);
  };
  if (options.form == InspectOptions::Form::kCheck) {
    for (const std::string& word : grammar.locks()) options.paths.push_back(path_of(word));
    if (options.paths.empty()) options.paths.push_back(options.server.root);
    return std::move(options);
  }
  if (options.history) {
    grammar.RequireLock();
    options.path = grammar.ReadLock(options.server.root);
  } else if (!grammar.locks().empty()) {
    const bool everything = grammar.locks().front() == "/";
    options.path = everything ? "/" : grammar.ReadLock(options.server.root);
  } else if (!options.mine) {
    options.path = options.server.root;
  }
  return std::move(options);
}

}  // namespace zklock::cli
