#include "cli/subcommands.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <limits>

#include "cli/grammar.h"
#include "cli/help.h"
#include "cli/messages.h"

namespace zklock::cli {
namespace {

/// The words as they came: texts, not yet judged.
struct Words {
  bool read = false;
  bool write = false;
  std::vector<std::string> read_locks;
  std::vector<std::string> write_locks;
  std::string wait;
  std::string permits;
  std::string min_interval;
  std::string max_queue;
  bool supersede = false;
  bool nonblock = false;
  std::string conflict_exit_code = "75";
  std::string kill_after = "5s";
  std::string stop_signal = "TERM";
  std::string on_lost = "stop";
  std::string descendants = "leave";
  std::string dialect = "curator";
  bool no_nest = false;
  std::string progress = "auto";
  std::string events;
  std::string shell_line;
  std::string acl;
  bool hold = false;
  std::string owner_pid;
  std::string on_lost_signal = "TERM";
  std::string label;
  bool publish_command = false;
};

/// "TERM", "SIGTERM", "term" or "15".
std::optional<int> ParseSignal(std::string text) {
  if (const auto number = ParseNumber(text, 1, SIGRTMAX)) return number;
  for (char& letter : text) letter = static_cast<char>(std::toupper(letter));
  if (text.rfind("SIG", 0) == 0) text.erase(0, 3);
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* name = sigabbrev_np(number);
    if (name != nullptr && text == name) return number;
  }
  return std::nullopt;
}

void AddOptions(Grammar& grammar, Words& words, const std::string& name) {
  const bool is_try = name == "try";
  if (is_try) {
    grammar.AddFlag("--read", words.read, "as one of several readers");
    grammar.AddFlag("--write", words.write, "as a writer");
  } else {
    grammar.AddValue("-w,--wait", words.wait, "DURATION", "give up after this long in the queue");
    grammar.AddFlag("-n,--nonblock", words.nonblock, "do not wait at all: the same as 'try'");
    grammar.AddValue("--max-queue", words.max_queue, "N", "leave at once if N wait already");
    grammar.AddFlag("--supersede", words.supersede, "leave when a newer one with it comes");
    grammar.AddList("--read", words.read_locks, "LOCK", "this one too, as a reader");
    grammar.AddList("--write", words.write_locks, "LOCK", "this one too, as a writer");
  }
  grammar.AddValue("--permits", words.permits, "N", "a semaphore: N holders together at most");
  grammar.AddValue("--min-interval", words.min_interval, "DURATION",
                   "not if it succeeded less than this ago");
  grammar.AddValue("-E,--conflict-exit-code", words.conflict_exit_code, "N",
                   "status when somebody else was in the way (75)");
  grammar.AddServerOptions();
  grammar.AddValue("--acl", words.acl, "open|creator",
                   "on znodes it makes (creator with credentials)");
  grammar.AddValue("-k,--kill-after", words.kill_after, "DURATION",
                   "from the stop signal to KILL (5s)");
  grammar.AddValue("--stop-signal", words.stop_signal, "SIGNAL",
                   "sent first when the lock is lost (TERM)");
  grammar.AddValue("--on-lost", words.on_lost, "stop|warn", "when the lock is lost (stop)");
  grammar.AddValue("--descendants", words.descendants, "leave|wait|kill",
                   "what outlives the command (leave)");
  grammar.AddValue("--dialect", words.dialect, "curator|kazoo|simple",
                   "whose programs share the LOCK (curator)", "ZKLOCK_DIALECT");
  grammar.AddFlag("--no-nest", words.no_nest, "queue although a zklock above us holds it");
  grammar.AddValue("-c", words.shell_line, "'SHELL LINE'", "run /bin/sh -c 'SHELL LINE'");
  grammar.AddFlag("--hold", words.hold, "no command: hold for this shell");
  grammar.AddValue("--owner-pid", words.owner_pid, "PID", "hold for this process (the parent)");
  grammar.AddValue("--on-lost-signal", words.on_lost_signal, "SIGNAL",
                   "with --hold: tells the owner of a loss (TERM)");
  grammar.AddValue("-l,--label", words.label, "TEXT", "shown by inspect", "ZKLOCK_LABEL");
  grammar.AddFlag("--publish-command", words.publish_command,
                  "show the arguments too, not only the name");
  grammar.AddValue("--events", words.events, "FD|FILE", "each step as a line of JSON, to there");
  grammar.AddValue("--progress", words.progress, "auto|bar|plain|none",
                   "how a wait is shown (auto)");
  grammar.AddVerbosity();
}

std::vector<std::string> ReadCommand(const Grammar& grammar, const Words& words,
                                     const std::optional<std::vector<std::string>>& command) {
  if (words.hold) {
    if (command || grammar.WasGiven("-c")) {
      throw grammar.Error(message::kHoldsOnly);
    }
    for (const char* option :
         {"--stop-signal", "--on-lost", "--descendants", "--publish-command", "--events"}) {
      if (!grammar.IsArgument(option)) continue;
      throw grammar.Error(fmt::format(message::kForCommand, option));
    }
    return {};
  }
  for (const char* option : {"--owner-pid", "--on-lost-signal"}) {
    if (grammar.WasGiven(option)) throw grammar.Error(fmt::format(message::kForHold, option));
  }
  if (grammar.WasGiven("-c")) {
    if (command) throw grammar.Error(message::kTwoCommands);
    return {"/bin/sh", "-c", words.shell_line};
  }
  if (!command || command->empty()) {
    throw grammar.Error(message::kNoCommand);
  }
  return *command;
}

/// The LOCKs, each in its mode, in the order of their paths.
std::vector<WantedLock> ReadLocks(const Grammar& grammar, const Words& words,
                                  const std::string& name) {
  if (words.read && words.write)
    throw grammar.Error(fmt::format(message::kExclude, "--read", "--write"));
  const protocol::Mode mode = name == "read" || words.read     ? protocol::Mode::kRead
                              : name == "write" || words.write ? protocol::Mode::kWrite
                                                               : protocol::Mode::kExclusive;
  std::vector<WantedLock> wanted;
  for (const std::string& word : grammar.locks()) {
    wanted.push_back({grammar.ResolveLock(word), mode});
  }
  for (const std::string& word : words.read_locks) {
    wanted.push_back({grammar.ResolveLock(word), protocol::Mode::kRead});
  }
  for (const std::string& word : words.write_locks) {
    wanted.push_back({grammar.ResolveLock(word), protocol::Mode::kWrite});
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const WantedLock& a, const WantedLock& b) { return a.path < b.path; });
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    if (wanted[i].path == wanted[i - 1].path && wanted[i].mode != wanted[i - 1].mode) {
      throw grammar.Error(fmt::format(message::kTwoModes, wanted[i].path));
    }
  }
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

bool AllExclude(const RunOptions& options) {
  return std::none_of(options.locks.begin(), options.locks.end(), [](const WantedLock& wanted) {
    return wanted.mode == protocol::Mode::kRead;
  });
}

void ReadDialect(const Grammar& grammar, const Words& words, RunOptions& options) {
  options.dialect = grammar.ReadChoice<protocol::Dialect>("--dialect", words.dialect,
                                                          {{"curator", protocol::Dialect::kCurator},
                                                           {"kazoo", protocol::Dialect::kKazoo},
                                                           {"simple", protocol::Dialect::kSimple}});
  if (options.dialect != protocol::Dialect::kSimple) return;
  const bool shared = std::any_of(
      options.locks.begin(), options.locks.end(),
      [](const WantedLock& wanted) { return wanted.mode != protocol::Mode::kExclusive; });
  if (shared) grammar.Reject("--dialect", message::kSimpleShared);
  if (words.supersede || grammar.WasGiven("--max-queue")) {
    grammar.Reject("--dialect", message::kSimpleQueue);
  }
}

/// A number of at least `least`, if it was given.
std::optional<std::size_t> ReadCount(const Grammar& grammar, const std::string& option,
                                     const std::string& text, int least) {
  if (!grammar.WasGiven(option)) return std::nullopt;
  constexpr int kMost = std::numeric_limits<int>::max();
  const auto number = ParseNumber(text, least, kMost);
  if (!number) {
    grammar.Reject(option, fmt::format(message::kNoNumber, option, text, least, kMost));
  }
  return static_cast<std::size_t>(*number);
}

void ReadPermits(const Grammar& grammar, const Words& words, RunOptions& options) {
  options.permits = ReadCount(grammar, "--permits", words.permits, 1);
  if (!options.permits) return;
  const auto exclude = [](const char* other) {
    return fmt::format(message::kExclude, "--permits", other);
  };
  const std::string wrong =
      options.locks.size() > 1                                   ? message::kPermitsOneLock
      : options.locks.front().mode != protocol::Mode::kExclusive ? message::kPermitsShared
      : options.dialect != protocol::Dialect::kCurator           ? message::kPermitsDialect
      : options.supersede                                        ? exclude("--supersede")
      : options.min_interval                                     ? exclude("--min-interval")
                                                                 : "";
  if (!wrong.empty()) grammar.Reject("--permits", wrong);
}

/// How the queue is joined and left: waiting, limits, the conflict's status.
void ReadQueueing(Grammar& grammar, const Words& words, const std::string& name,
                  RunOptions& options) {
  options.no_nest = words.no_nest;
  options.supersede = words.supersede;
  grammar.KeepStronger("--nonblock", "--wait");
  if (grammar.WasGiven("--wait")) {
    options.wait = grammar.ReadDuration("--wait", words.wait, true);
  }
  options.try_only = name == "try" || words.nonblock || options.wait == Duration::zero();
  // A deadline that is over at once would come before the answer that the lock is free.
  if (options.try_only) options.wait.reset();
  if (grammar.WasGiven("--min-interval")) {
    options.min_interval = grammar.ReadDuration("--min-interval", words.min_interval, false);
    if (!AllExclude(options)) {
      grammar.Reject("--min-interval", message::kIntervalShared);
    }
  }
  options.max_queue = ReadCount(grammar, "--max-queue", words.max_queue, 0);
  const auto conflict = ParseNumber(words.conflict_exit_code, 0, 255);
  if (!conflict) {
    grammar.Reject("--conflict-exit-code", fmt::format(message::kNoStatus, "--conflict-exit-code",
                                                       words.conflict_exit_code));
  }
  options.conflict_exit_code = *conflict;
}

/// How the command is ended, and what becomes of its processes.
void ReadEnding(const Grammar& grammar, const Words& words, RunOptions& options) {
  options.kill_after = grammar.ReadDuration("--kill-after", words.kill_after, true);
  const auto signal = ParseSignal(words.stop_signal);
  if (!signal)
    grammar.Reject("--stop-signal",
                   fmt::format(message::kNoSignal, "--stop-signal", words.stop_signal));
  options.stop_signal = *signal;
  options.on_lost = grammar.ReadChoice<OnLost>("--on-lost", words.on_lost,
                                               {{"stop", OnLost::kStop}, {"warn", OnLost::kWarn}});
  options.descendants =
      grammar.ReadChoice<process::Descendants>("--descendants", words.descendants,
                                               {{"leave", process::Descendants::kLeave},
                                                {"wait", process::Descendants::kWait},
                                                {"kill", process::Descendants::kKill}});
}

/// What others may do with the znodes that we create.
zookeeper::Acl ReadAcl(const Grammar& grammar, const Words& words, bool with_credentials) {
  using zookeeper::Acl;
  if (!grammar.WasGiven("--acl")) return with_credentials ? Acl::kCreator : Acl::kOpen;
  const auto acl = grammar.ReadChoice<Acl>("--acl", words.acl,
                                           {{"open", Acl::kOpen}, {"creator", Acl::kCreator}});
  if (acl == Acl::kCreator && !with_credentials) {
    grammar.Reject("--acl", message::kAclNeedsCredentials);
  }
  return acl;
}

/// For whom it is held, and how that one is told of a loss.
void ReadHold(const Grammar& grammar, const Words& words, RunOptions& options) {
  options.hold = words.hold;
  if (options.hold && options.min_interval) {
    grammar.Reject("--min-interval", fmt::format(message::kExclude, "--hold", "--min-interval"));
  }
  if (grammar.WasGiven("--owner-pid")) {
    options.owner_pid = ParseNumber(words.owner_pid, 1, std::numeric_limits<std::int32_t>::max());
    if (!options.owner_pid) {
      throw grammar.Error(fmt::format(message::kNoProcessNumber, words.owner_pid));
    }
  }
  const auto signal = ParseSignal(words.on_lost_signal);
  if (!signal) {
    throw grammar.Error(fmt::format(message::kNoSignal, "--on-lost-signal", words.on_lost_signal));
  }
  options.on_lost_signal = *signal;
}

}  // namespace

CommandLine ReadRun(const std::string& name, const std::vector<std::string>& arguments,
                    const std::optional<std::vector<std::string>>& command) {
  Grammar grammar(name);
  Words words;
  AddOptions(grammar, words, name);
  const auto help = grammar.Read(
      arguments, "usage: zklock " + name + " [OPTIONS] LOCK... -- COMMAND [ARG...]\n", RunFooter());
  if (help) return *help;

  RunOptions options;
  if (words.read_locks.empty() && words.write_locks.empty()) grammar.RequireLock();
  options.command = ReadCommand(grammar, words, command);
  options.locks = ReadLocks(grammar, words, name);
  options.server = grammar.ReadServerOptions();
  options.server.access.acl = ReadAcl(grammar, words, !options.server.access.credentials.empty());
  options.verbosity = grammar.ReadVerbosity();
  ReadDialect(grammar, words, options);
  ReadQueueing(grammar, words, name, options);
  ReadPermits(grammar, words, options);
  ReadEnding(grammar, words, options);
  if (grammar.WasGiven("--events") && words.events.empty()) {
    grammar.Reject("--events", message::kNoEvents);
  }
  options.events = words.events;
  options.events_place = grammar.PlaceOf("--events");
  options.progress = grammar.ReadChoice<ProgressStyle>("--progress", words.progress,
                                                       {{"auto", ProgressStyle::kAuto},
                                                        {"bar", ProgressStyle::kBar},
                                                        {"plain", ProgressStyle::kPlain},
                                                        {"none", ProgressStyle::kNone}});
  ReadHold(grammar, words, options);
  options.label = words.label;
  options.publish_command = words.publish_command;
  return options;
}

Text ReadPrintConfig(const std::vector<std::string>& arguments) {
  Grammar grammar("");
  Words words;
  AddOptions(grammar, words, "exclusive");
  const auto help = grammar.Read(arguments, "usage: zklock --print-config [OPTIONS]\n", "");
  if (help) return *help;
  if (!grammar.locks().empty()) {
    throw grammar.Error(fmt::format(message::kOnlyOptions, grammar.locks().front()));
  }
  return Text{grammar.ShowConfig()};
}

}  // namespace zklock::cli
