#include <fmt/core.h>

#include <string_view>

#include "cli/grammar.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "cli/subcommands.h"

namespace zklock::cli {
namespace {

/// `form` has an output of its own, which no other option changes.
void CheckAlone(const Grammar& grammar, const char* form) {
  if (!grammar.WasGiven(form)) return;
  for (const char* const other : {"--json", "--dot", "--watch", "--mine", "--servers-report",
                                  "--history", "--check", "--prometheus"}) {
    if (other != std::string_view(form) && grammar.WasGiven(other)) {
      throw grammar.Error(fmt::format(message::kExclude, other, form));
    }
  }
  if (grammar.IsArgument("--quiet")) {
    throw grammar.Error(fmt::format(message::kExclude, "--quiet", form));
  }
}

void CheckForms(const Grammar& grammar) {
  const bool json = grammar.WasGiven("--json");
  const bool dot = grammar.WasGiven("--dot");
  const bool watch = grammar.WasGiven("--watch");
  if (json && dot) throw grammar.Error(fmt::format(message::kExclude, "--json", "--dot"));
  if (dot && watch) throw grammar.Error(fmt::format(message::kExclude, "--dot", "--watch"));
  for (const char* const form : {"--check", "--prometheus"}) CheckAlone(grammar, form);
  for (const char* const limit :
       {"--max-held", "--max-wait", "--max-waiting", "--max-age", "--last-run"}) {
    if (grammar.WasGiven(limit) && !grammar.WasGiven("--check")) {
      throw grammar.Error(fmt::format(message::kForCheck, limit));
    }
  }
  if (grammar.WasGiven("--output") && !grammar.WasGiven("--prometheus")) {
    throw grammar.Error(fmt::format(message::kForPrometheus, "--output"));
  }
  const bool history = grammar.WasGiven("--history");
  if (grammar.WasGiven("--runs") && !history) {
    throw grammar.Error(fmt::format(message::kForHistory, "--runs"));
  }
  for (const char* other : {"--dot", "--watch"}) {
    if (!history || !grammar.WasGiven(other)) continue;
    throw grammar.Error(fmt::format(message::kExclude, "--history", other));
  }
  if (!json && !dot && !watch && !history) return;
  if (grammar.IsArgument("--quiet")) {
    throw grammar.Error(fmt::format(message::kPrintsNothing, "--quiet"));
  }
  if (grammar.WasGiven("--mine")) {
    throw grammar.Error(fmt::format(message::kPrintsNothing, "--mine"));
  }
}

void CheckServersReport(const Grammar& grammar) {
  if (!grammar.WasGiven("--servers-report")) return;
  for (const char* other : {"--dot", "--watch", "--mine", "--history"}) {
    if (grammar.WasGiven(other)) {
      throw grammar.Error(fmt::format(message::kExclude, "--servers-report", other));
    }
  }
  if (!grammar.locks().empty()) throw grammar.Error(message::kReportTakesNoLock);
}

}  // namespace

ParsedCommandLine ReadInspect(const std::vector<std::string>& arguments, bool has_command) {
  const SubcommandSpec& subcommand = *FindSubcommand("inspect");
  Grammar grammar(subcommand);
  if (!grammar.Read(arguments)) return Text{HelpText(subcommand, arguments)};
  if (has_command) throw grammar.Error(fmt::format(message::kRunsNoCommand, "inspect"));
  OptionFields fields;
  grammar.Store(fields);
  CheckForms(grammar);
  CheckServersReport(grammar);
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
