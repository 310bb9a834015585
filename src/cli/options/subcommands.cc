#include "cli/options/subcommands.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "cli/options/help.h"
#include "cli/options/option_reader.h"
#include "cli/text/messages.h"
#include "lock/data/contender_data.h"
#include "protocol/contender_name.h"
#include "protocol/lock_path.h"
#include "protocol/run_records.h"

namespace zklock::cli {
namespace {

std::vector<std::string> ReadCommand(const OptionReader& reader,
                                     const std::optional<std::vector<std::string>>& command) {
  if (reader.WasGiven("--hold")) {
    if (command || reader.WasGiven("-c")) throw reader.Error(message::kHoldsOnly);
    return {};
  }
  if (reader.WasGiven("-c")) {
    if (command) throw reader.Error(message::kTwoCommands);
    return {"/bin/sh", "-c", reader.Value("-c").text};
  }
  if (!command && reader.WasGiven("--reserve")) {
    for (const char* option : {"--kill-after", "--max-run", "--stop-signal", "--descendants",
                               "--contain", "--publish-command"}) {
      if (!reader.IsArgument(option)) continue;
      throw reader.Error(fmt::format(message::kOfNoCommand, option));
    }
    return {};
  }
  // A shell turns "$COMMAND" into an empty word if the variable is not set.
  if (!command || command->empty() || command->front().empty()) {
    throw reader.Error(message::kNoCommand);
  }
  return *command;
}

protocol::Mode ModeOf(const OptionReader& reader, Subcommands subcommand) {
  using protocol::Mode;
  if (subcommand == kRead || reader.WasGiven("--read")) return Mode::kRead;
  const bool writes = subcommand == kWrite || reader.WasGiven("--write");
  return writes ? Mode::kWrite : Mode::kExclusive;
}

/// Refuses a LOCK whose znode would be mistaken for a part of a LOCK above it: that would make the
/// upper LOCK unusable. The other children that zklock creates in a LOCK (`lock`, `leases`,
/// `locks`) are valid names for LOCKs; only a run with --dialect simple or --permits refuses a LOCK
/// that has such a LOCK below it.
///
/// `path`: of the LOCK, chroot included: others may use the znodes above the chroot as LOCKs.
void RefusePartOfLock(const OptionReader& reader, const std::string& word, std::string path) {
  for (std::string above = protocol::ParentOf(path); above != "/";
       path = std::exchange(above, protocol::ParentOf(above))) {
    const std::string_view name = protocol::BaseOf(path);
    const auto contender = protocol::ViewContenderName(name);
    const bool is_record = protocol::IsRecordChild(name);
    if (!is_record && (!contender || contender->mark == protocol::Mark::kNone)) continue;
    const std::string what = fmt::format(
        fmt::runtime(is_record ? message::kIsRecord : message::kIsContender), path, above);
    throw reader.Error(fmt::format(message::kBadLock, word, what));
  }
}

/// Checks the LOCKs of --any. `wanted`: in order of preference.
void CheckAlternatives(const OptionReader& reader, const std::vector<WantedLock>& wanted) {
  constexpr std::size_t kMost = lock::kMostAny + 1;
  if (wanted.size() > kMost) {
    throw reader.Error(fmt::format(message::kManyAlternatives, kMost, wanted.size()));
  }
  for (auto one = wanted.begin(); one != wanted.end(); ++one) {
    if (std::find(wanted.begin(), one, *one) == one) continue;
    throw reader.Error(fmt::format(message::kAlternativeTwice, one->path));
  }
}

/// Returns the LOCKs, each with its mode, sorted by path; with --any, in the order given.
std::vector<WantedLock> ReadLocks(const OptionReader& reader, Subcommands subcommand,
                                  const ServerOptions& server) {
  std::vector<WantedLock> wanted;
  const auto add = [&](const std::vector<std::string>& words, protocol::Mode mode) {
    for (const std::string& word : words) {
      // The space is hard to see, but makes the word name another lock.
      if (word.starts_with(' ') || word.ends_with(' ')) {
        throw reader.Error(fmt::format(message::kBadLock, word, message::kBlankAtEnd));
      }
      wanted.push_back({reader.ResolveLock(word, server.root), mode});
      RefusePartOfLock(reader, word, server.servers.chroot + wanted.back().path);
    }
  };
  add(reader.locks(), ModeOf(reader, subcommand));
  if (subcommand != kTry) {
    add(reader.Value("--also-read").list, protocol::Mode::kRead);
    add(reader.Value("--also-write").list, protocol::Mode::kWrite);
  }
  if (reader.WasGiven("--any")) {
    CheckAlternatives(reader, wanted);
    return wanted;
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const WantedLock& a, const WantedLock& b) { return a.path < b.path; });
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    if (wanted[i].path == wanted[i - 1].path && wanted[i].mode != wanted[i - 1].mode) {
      throw reader.Error(fmt::format(message::kTwoModes, wanted[i].path));
    }
  }
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

bool HasMode(const RunOptions& options, protocol::Mode mode) {
  return std::any_of(options.locks.begin(), options.locks.end(),
                     [&](const WantedLock& wanted) { return wanted.mode == mode; });
}

void CheckDialect(const OptionReader& reader, const RunOptions& options) {
  using protocol::Mode;
  if (options.dialect != protocol::Dialect::kSimple) return;
  if (HasMode(options, Mode::kRead) || HasMode(options, Mode::kWrite)) {
    reader.Reject("--dialect", message::kSimpleShared);
  }
  if (!options.supersede && !options.max_queue) return;
  // Blame the option that the user may not know to be set.
  const char* const other = options.supersede ? "--supersede" : "--max-queue";
  const bool is_other_farther = reader.Value(other).origin < reader.Value("--dialect").origin;
  reader.Reject(is_other_farther ? other : "--dialect", message::kSimpleQueue);
}

void CheckAny(const OptionReader& reader, const RunOptions& options) {
  if (!options.any) return;
  if (options.dialect == protocol::Dialect::kSimple) {
    reader.Reject("--dialect", fmt::format(message::kReserveDialect, "--any"));
  }
  if (options.try_only && !options.reserve.empty() && !options.resumes) {
    throw reader.Error(message::kReserveAnyWaits);
  }
}

void CheckIntervals(const OptionReader& reader, const RunOptions& options) {
  if (!HasMode(options, protocol::Mode::kRead)) return;
  for (const std::string_view option : options.Intervals()) {
    reader.Reject(option, fmt::format(message::kNotForReaders, option));
  }
}

/// A configuration file may set --history for every run: runs that cannot keep a history ignore it.
void CheckHistory(const OptionReader& reader, RunOptions& options) {
  if (options.history == 0) return;
  const bool only_reads =
      std::all_of(options.locks.begin(), options.locks.end(),
                  [](const WantedLock& wanted) { return wanted.mode == protocol::Mode::kRead; });
  const std::string wrong = only_reads ? fmt::format(message::kNotForReaders, "--history")
                            : options.dialect == protocol::Dialect::kSimple
                                ? message::kHistorySimple
                                : "";
  if (wrong.empty()) return;
  if (reader.IsArgument("--history")) throw reader.Error(wrong);
  options.history = 0;
}

/// A configuration file may set --max-run for every run: runs with --on-lost warn ignore it.
void CheckMaxRun(const OptionReader& reader, RunOptions& options) {
  // --on-lost is for commands that run under a lease: other runs ignore it if a file sets it.
  if (options.hold || !options.reserve.empty()) options.on_lost = OnLost::kStop;
  if (!options.max_run || options.on_lost != OnLost::kWarn) return;
  if (reader.IsArgument("--max-run")) {
    reader.Reject("--on-lost", fmt::format(message::kExclude, "--max-run", "--on-lost warn"));
  }
  options.max_run.reset();
  if (options.verbosity == Verbosity::kVerbose && options.server.unused_config.empty()) {
    options.server.unused_config =
        fmt::format(message::kMaxRunUnused, reader.Value("--max-run").OriginText());
  }
}

/// Without a command, only the exit status shows whether the LOCK is held or reserved, so the
/// status for a conflict must not be 0. If a configuration file sets 0, to keep cron from sending
/// mail, such runs ignore that.
void CheckConflictStatus(const OptionReader& reader, RunOptions& options) {
  if (!options.command.empty() || options.conflict_exit_code != kExitOk) return;
  if (reader.IsArgument("--conflict-exit-code")) throw reader.Error(message::kConflictUnseen);
  options.conflict_exit_code = kExitConflict;
}

void CheckReserve(const OptionReader& reader, RunOptions& options) {
  if (options.reserve.empty()) return;
  if (options.dialect == protocol::Dialect::kSimple) {
    const char* const name = options.resumes ? "--resume" : "--reserve";
    reader.Reject("--dialect", fmt::format(message::kReserveDialect, name));
  }
  options.no_nest = true;  // a lock that an outer zklock holds is not reserved
}

void CheckPreempt(const OptionReader& reader, const RunOptions& options) {
  if (options.preempt == Preempt::kNobody) return;
  if (options.try_only) {
    const bool by_name = reader.WasGiven("--nonblock");
    reader.Reject(by_name ? "--nonblock" : "--wait",
                  fmt::format(message::kExclude, "--preempt", by_name ? "--nonblock" : "--wait 0"));
  }
  if (options.dialect == protocol::Dialect::kSimple) {
    throw reader.Error(fmt::format(message::kReserveDialect, "--preempt"));
  }
}

void CheckPermits(const OptionReader& reader, const RunOptions& options) {
  if (!options.permits) return;
  const bool is_shared =
      HasMode(options, protocol::Mode::kRead) || HasMode(options, protocol::Mode::kWrite);
  const std::string wrong = options.locks.size() > 1 ? message::kPermitsOneLock
                            : is_shared              ? message::kPermitsShared
                            : options.dialect != protocol::Dialect::kCurator
                                ? message::kPermitsDialect
                                : "";
  if (!wrong.empty()) reader.Reject("--permits", wrong);
  if (options.take > *options.permits) {
    reader.Reject("--take", fmt::format(message::kTakesTooMany, options.take, *options.permits));
  }
}

/// Returns the LOCKs, absolute and checked, sorted by path.
std::vector<std::string> ReadLocks(const OptionReader& reader, const std::string& root) {
  std::vector<std::string> locks;
  for (const std::string& word : reader.locks()) locks.push_back(reader.ResolveLock(word, root));
  std::sort(locks.begin(), locks.end());
  locks.erase(std::unique(locks.begin(), locks.end()), locks.end());
  return locks;
}

}  // namespace

ParsedCommandLine ReadRun(const SubcommandSpec& subcommand,
                          const std::vector<std::string>& arguments,
                          const std::optional<std::vector<std::string>>& command) {
  OptionReader reader(subcommand);
  if (!command) reader.RequireSeparator(arguments);
  if (!reader.Read(arguments)) return Text{HelpText(subcommand, arguments)};
  if (!reader.WasGiven("--also-read") && !reader.WasGiven("--also-write")) {
    reader.RequireLock();
  }
  const std::vector<std::string> command_words = ReadCommand(reader, command);
  reader.KeepStronger("--nonblock", "--wait");

  OptionFields fields;
  reader.Store(fields);
  reader.CheckRules();
  RunOptions& options = fields.run;
  options.command = command_words;
  options.server = std::move(fields.server);
  options.verbosity = fields.verbosity;
  options.dry_run = fields.dry_run;
  options.locks = ReadLocks(reader, subcommand.bit, options.server);
  options.subcommand = subcommand.name;
  options.try_only = options.try_only || subcommand.bit == kTry || options.wait == Duration::zero();
  // With a deadline that passes at once, the run would end before it learns that the lock is free.
  if (options.try_only) options.wait.reset();
  CheckDialect(reader, options);
  CheckAny(reader, options);
  options.any = options.any && options.locks.size() > 1;
  CheckIntervals(reader, options);
  if (subcommand.bit != kRead) CheckHistory(reader, options);
  CheckMaxRun(reader, options);
  CheckConflictStatus(reader, options);
  CheckPermits(reader, options);
  CheckReserve(reader, options);
  CheckPreempt(reader, options);
  return std::move(options);
}

ParsedCommandLine ReadPrintConfig(const std::vector<std::string>& arguments) {
  OptionReader reader(PrintConfigSpec());
  if (!reader.Read(arguments)) return Text{HelpText(PrintConfigSpec(), arguments)};
  if (!reader.locks().empty()) {
    throw reader.Error(fmt::format(message::kOnlyOptions, reader.locks().front()));
  }
  // Every value shown must be one that a run accepts.
  OptionFields fields;
  reader.Store(fields);
  reader.CheckRules();
  CheckDialect(reader, fields.run);
  CheckPermits(reader, fields.run);
  return Text{reader.ShowConfig()};
}

ParsedCommandLine ReadInspect(const std::vector<std::string>& arguments, bool has_command) {
  const SubcommandSpec& subcommand = *FindSubcommand("inspect");
  OptionReader reader(subcommand);
  if (!reader.Read(arguments)) return Text{HelpText(subcommand, arguments)};
  if (has_command) throw reader.Error(fmt::format(message::kRunsNoCommand, "inspect"));
  OptionFields fields;
  reader.Store(fields);
  reader.CheckRules();
  if (reader.WasGiven("--servers-report") && !reader.locks().empty()) {
    throw reader.Error(message::kReportTakesNoLock);
  }
  InspectOptions& options = fields.inspect;
  options.server = std::move(fields.server);
  options.verbosity = fields.verbosity;
  // As arguments, these two also affect what is printed. In a file, which applies to every
  // subcommand, they only affect what is reported on standard error.
  options.by_status = reader.IsArgument("--quiet");
  options.with_names = reader.IsArgument("--verbose");
  const auto path_of = [&](const std::string& word) {
    return word == "/" ? word : reader.ResolveLock(word, options.server.root);
  };
  if (options.form == InspectOptions::Form::kCheck) {
    for (const std::string& word : reader.locks()) options.paths.push_back(path_of(word));
    if (options.paths.empty()) options.paths.push_back(options.server.root);
    return std::move(options);
  }
  if (options.history) {
    reader.RequireLock();
    options.path = reader.ReadLock(options.server.root);
  } else if (!reader.locks().empty()) {
    const bool everything = reader.locks() == std::vector<std::string>{"/"} && !options.mine;
    options.path = everything ? "/" : reader.ReadLock(options.server.root);
  } else if (!options.mine) {
    options.path = options.server.root;
    options.is_root = true;
  }
  return std::move(options);
}

ParsedCommandLine ReadRelease(const std::vector<std::string>& arguments, bool has_command) {
  const SubcommandSpec& subcommand = *FindSubcommand("release");
  OptionReader reader(subcommand);
  if (!reader.Read(arguments)) return Text{HelpText(subcommand, arguments)};
  if (has_command) throw reader.Error(fmt::format(message::kRunsNoCommand, "release"));
  reader.RequireLock();
  OptionFields fields;
  reader.Store(fields);
  reader.CheckRules();
  ReleaseOptions& options = fields.release;
  options.server = std::move(fields.server);
  options.verbosity = fields.verbosity;
  options.dry_run = fields.dry_run;
  if (options.target == ReleaseOptions::Target::kReservation) {
    options.locks = ReadLocks(reader, options.server.root);
  } else {
    options.lock = reader.ReadLock(options.server.root);
  }
  return std::move(options);
}

}  // namespace zklock::cli
