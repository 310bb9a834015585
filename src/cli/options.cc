#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/duration.h"
#include "cli/help.h"
#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

constexpr std::string_view kDefaultServers = "127.0.0.1:2181";
constexpr std::string_view kDefaultRoot = "/zklock";
constexpr std::array<std::string_view, 6> kSubcommands = {"exclusive", "read",    "write",
                                                          "try",       "inspect", "release"};

/// The words of one subcommand as they came: texts, not yet judged.
struct Words {
  std::vector<std::string> locks;
  std::string servers{kDefaultServers};
  std::string root{kDefaultRoot};
  std::string wait;
  bool nonblock = false;
  std::string conflict_exit_code = "75";
  std::string connect_timeout = "15s";
  std::string session_timeout = "30s";
  std::string kill_after = "5s";
  std::string stop_signal = "TERM";
  std::string on_lost = "stop";
  std::string descendants = "leave";
  std::string label;
  std::string shell_line;
  bool publish_command = false;
  bool quiet = false;
  bool verbose = false;
  bool read = false;
  bool write = false;
  std::string contender;
  bool force = false;
  bool yes = false;
};

/// The usage line is ours; the rest is CLI11's.
class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) { column_width(34); }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return usage_;
  }
  std::string make_positionals(const CLI::App* /*app*/) const override { return ""; }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_items_expected_max() == 0 ? "" : " " + option->get_type_name();
  }

 private:
  std::string usage_;
};

/// Reads the words of one subcommand.
class Grammar {
 public:
  explicit Grammar(std::string subcommand) : name_(std::move(subcommand)), app_("", name_) {
    app_.allow_extras();
    app_.set_help_flag("-h,--help", "this text");
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  Words& words() { return words_; }

  CLI::Option* AddValue(const std::string& names, std::string& value, const std::string& type,
                        const std::string& help) {
    return app_.add_option(names, value, help)->type_name(type);
  }
  CLI::Option* AddFlag(const std::string& names, bool& value, const std::string& help) {
    return app_.add_flag(names, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  void AddServerOptions() {
    AddValue("-z,--servers", words_.servers, "HOST:PORT[,...][/CHROOT]",
             "the servers (default 127.0.0.1:2181)")
        ->envname("ZKLOCK_SERVERS");
    AddValue("--root", words_.root, "PATH", "where LOCKs without a slash are (/zklock)")
        ->envname("ZKLOCK_ROOT");
    AddValue("--connect-timeout", words_.connect_timeout, "DURATION",
             "how long to look for a server (15s)")
        ->envname("ZKLOCK_CONNECT_TIMEOUT");
    AddValue("--session-timeout", words_.session_timeout, "DURATION", "asked of the servers (30s)")
        ->envname("ZKLOCK_SESSION_TIMEOUT");
  }

  void AddVerbosity() {
    AddFlag("-q,--quiet", words_.quiet, "say nothing but defects and lost locks");
    AddFlag("-v,--verbose", words_.verbose, "say each step");
  }

  void RequireLock(bool required) { required_lock_ = required; }

  /// Reads `arguments`; the help text if that is what they ask for.
  std::optional<Text> Read(std::vector<std::string> arguments, const std::string& usage,
                           const std::string& footer) {
    app_.formatter(std::make_shared<HelpFormatter>(usage));
    app_.footer(footer);
    try {
      app_.parse(AsCli11Takes(std::move(arguments)));
    } catch (const CLI::CallForHelp&) {
      return Text{app_.help()};
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string what = error.what();
      throw Error("option " + what.substr(0, what.find_first_of(": ")) + " needs a value");
    } catch (const CLI::ParseError& error) {
      std::string what = error.what();
      if (!what.empty()) what[0] = static_cast<char>(std::tolower(what[0]));
      throw Error(what);
    }
    // LOCKs are no positional of CLI11's: it would take `[a,b]` for a list.
    for (const std::string& extra : app_.remaining()) {
      if (extra.size() > 1 && extra.front() == '-') {
        throw Error("there is no option '" + extra + "' here");
      }
      words_.locks.push_back(extra);
    }
    if (required_lock_ && words_.locks.empty()) throw Error("no LOCK was named");
    if (words_.quiet && words_.verbose) throw Error("--quiet and --verbose exclude each other");
    return std::nullopt;
  }

  [[nodiscard]] UsageError Error(const std::string& what) const { return {what, name_}; }

  [[nodiscard]] Duration ReadDuration(const std::string& option, const std::string& text,
                                      bool zero_is_fine) const {
    const auto span = ParseDuration(text);
    if (!span) {
      throw Error(option + " '" + text + "' is no DURATION (such as 90, 1.5, 500ms, 1h30m)");
    }
    if (!zero_is_fine && *span == Duration::zero()) throw Error(option + " must be more than 0");
    return *span;
  }

  template <typename T>
  [[nodiscard]] T ReadChoice(const std::string& option, const std::string& text,
                             const std::vector<std::pair<std::string, T>>& choices) const {
    std::string known;
    for (const auto& [word, value] : choices) {
      if (text == word) return value;
      known += (known.empty() ? "" : ", ") + word;
    }
    throw Error(option + " '" + text + "' is none of " + known);
  }

  [[nodiscard]] ServerOptions ReadServerOptions() const {
    ServerOptions options;
    auto list = zookeeper::ParseServerList(words_.servers);
    if (const auto* bad = std::get_if<zookeeper::BadServerList>(&list)) {
      throw Error("--servers '" + words_.servers + "': " + bad->reason);
    }
    options.servers = std::get<zookeeper::ServerList>(std::move(list));
    if (!options.servers.chroot.empty()) CheckPath("the chroot", options.servers.chroot);
    options.connect_timeout = ReadDuration("--connect-timeout", words_.connect_timeout, false);
    options.session_timeout = ReadDuration("--session-timeout", words_.session_timeout, false);
    // The wire protocol counts milliseconds in 32 bits.
    if (options.session_timeout >
        std::chrono::milliseconds(std::numeric_limits<std::int32_t>::max())) {
      throw Error("--session-timeout '" + words_.session_timeout + "' is too long");
    }
    return options;
  }

  [[nodiscard]] std::string ReadRoot() const {
    if (words_.root != "/") CheckPath("--root", words_.root);
    return words_.root;
  }

  [[nodiscard]] std::string ReadLock() const {
    if (words_.locks.size() > 1) {
      throw Error("more than one LOCK ('" + words_.locks[0] + "' and '" + words_.locks[1] +
                  "'): this version takes one at a time");
    }
    const auto resolved = protocol::ResolveLock(words_.locks.front(), ReadRoot());
    if (const auto* bad = std::get_if<protocol::BadPath>(&resolved)) {
      throw Error("LOCK '" + words_.locks.front() + "' " + bad->reason);
    }
    return std::get<std::string>(resolved);
  }

  [[nodiscard]] Verbosity ReadVerbosity() const {
    if (words_.quiet) return Verbosity::kQuiet;
    return words_.verbose ? Verbosity::kVerbose : Verbosity::kNormal;
  }

 private:
  void CheckPath(const std::string& what, const std::string& path) const {
    const auto checked = protocol::CheckAbsolutePath(path);
    if (const auto* bad = std::get_if<protocol::BadPath>(&checked)) {
      throw Error(what + " '" + path + "' " + bad->reason);
    }
  }

  /// From the last to the first; and `--name=` as two words, since CLI11 would take the next one
  /// for its value.
  static std::vector<std::string> AsCli11Takes(std::vector<std::string> arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].rfind("--", 0) != 0 || arguments[i].find('=') + 1 != arguments[i].size()) {
        continue;
      }
      arguments[i].pop_back();
      arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(++i), "");
    }
    std::reverse(arguments.begin(), arguments.end());
    return arguments;
  }

  std::string name_;
  CLI::App app_;
  Words words_;
  bool required_lock_ = true;
};

std::optional<int> ParseNumber(std::string_view text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < least || number > most) return std::nullopt;
  return number;
}

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

std::vector<std::string> ReadCommand(Grammar& grammar, bool has_shell_line,
                                     const std::optional<std::vector<std::string>>& command) {
  if (has_shell_line) {
    if (command) throw grammar.Error("-c and a command after '--' exclude each other");
    return {"/bin/sh", "-c", grammar.words().shell_line};
  }
  if (!command || command->empty()) {
    throw grammar.Error("there is no command: write it after '--', or use -c 'SHELL LINE'");
  }
  return *command;
}

CommandLine ReadRun(const std::string& name, const std::vector<std::string>& arguments,
                    const std::optional<std::vector<std::string>>& command) {
  Grammar grammar(name);
  Words& words = grammar.words();
  const bool is_try = name == "try";
  grammar.RequireLock(true);
  const CLI::Option* wait = nullptr;
  if (is_try) {
    grammar.AddFlag("--read", words.read, "as one of several readers");
    grammar.AddFlag("--write", words.write, "as a writer");
  } else {
    wait = grammar.AddValue("-w,--wait", words.wait, "DURATION",
                            "give up after this long in the queue");
    grammar.AddFlag("-n,--nonblock", words.nonblock, "do not wait at all: the same as 'try'");
  }
  grammar.AddValue("-E,--conflict-exit-code", words.conflict_exit_code, "N",
                   "status when somebody else was in the way (75)");
  grammar.AddServerOptions();
  grammar.AddValue("-k,--kill-after", words.kill_after, "DURATION",
                   "from the stop signal to KILL (5s)");
  grammar.AddValue("--stop-signal", words.stop_signal, "SIGNAL",
                   "sent first when the lock is lost (TERM)");
  grammar.AddValue("--on-lost", words.on_lost, "stop|warn", "when the lock is lost (stop)");
  grammar.AddValue("--descendants", words.descendants, "leave|wait|kill",
                   "what outlives the command (leave)");
  const CLI::Option* shell =
      grammar.AddValue("-c", words.shell_line, "'SHELL LINE'", "run /bin/sh -c 'SHELL LINE'");
  grammar.AddValue("-l,--label", words.label, "TEXT", "shown by inspect")->envname("ZKLOCK_LABEL");
  grammar.AddFlag("--publish-command", words.publish_command,
                  "show the arguments too, not only the name");
  grammar.AddVerbosity();
  const auto help = grammar.Read(
      arguments, "usage: zklock " + name + " [OPTIONS] LOCK -- COMMAND [ARG...]\n", RunFooter());
  if (help) return *help;

  RunOptions options;
  options.command = ReadCommand(grammar, shell->count() > 0, command);
  options.server = grammar.ReadServerOptions();
  options.verbosity = grammar.ReadVerbosity();
  options.lock = grammar.ReadLock();
  if (words.read && words.write) throw grammar.Error("--read and --write exclude each other");
  options.mode = name == "read" || words.read     ? protocol::Mode::kRead
                 : name == "write" || words.write ? protocol::Mode::kWrite
                                                  : protocol::Mode::kExclusive;
  if (words.nonblock && wait != nullptr && wait->count() > 0) {
    throw grammar.Error("--nonblock and --wait exclude each other");
  }
  if (wait != nullptr && wait->count() > 0)
    options.wait = grammar.ReadDuration("--wait", words.wait, true);
  options.try_only = is_try || words.nonblock || options.wait == Duration::zero();
  const auto conflict = ParseNumber(words.conflict_exit_code, 0, 255);
  if (!conflict) {
    throw grammar.Error("--conflict-exit-code '" + words.conflict_exit_code +
                        "' is no status from 0 to 255");
  }
  options.conflict_exit_code = *conflict;
  options.kill_after = grammar.ReadDuration("--kill-after", words.kill_after, true);
  const auto signal = ParseSignal(words.stop_signal);
  if (!signal) throw grammar.Error("--stop-signal '" + words.stop_signal + "' is no signal");
  options.stop_signal = *signal;
  options.on_lost = grammar.ReadChoice<OnLost>("--on-lost", words.on_lost,
                                               {{"stop", OnLost::kStop}, {"warn", OnLost::kWarn}});
  options.descendants =
      grammar.ReadChoice<process::Descendants>("--descendants", words.descendants,
                                               {{"leave", process::Descendants::kLeave},
                                                {"wait", process::Descendants::kWait},
                                                {"kill", process::Descendants::kKill}});
  options.label = words.label;
  options.publish_command = words.publish_command;
  return options;
}

CommandLine ReadInspect(const std::vector<std::string>& arguments, bool has_command) {
  Grammar grammar("inspect");
  grammar.RequireLock(false);
  grammar.AddServerOptions();
  grammar.AddVerbosity();
  const auto help =
      grammar.Read(arguments, "usage: zklock inspect [OPTIONS] [LOCK]\n", InspectFooter());
  if (help) return *help;
  if (has_command) throw grammar.Error("inspect runs no command");
  InspectOptions options;
  options.server = grammar.ReadServerOptions();
  options.verbosity = grammar.ReadVerbosity();
  const bool whole = grammar.words().locks.empty();
  const bool everything = !whole && grammar.words().locks.front() == "/";
  options.path = whole ? grammar.ReadRoot() : everything ? "/" : grammar.ReadLock();
  return options;
}

CommandLine ReadRelease(const std::vector<std::string>& arguments, bool has_command) {
  Grammar grammar("release");
  Words& words = grammar.words();
  grammar.RequireLock(true);
  const CLI::Option* contender = grammar.AddValue("--contender", words.contender, "NAME",
                                                  "whose: a name that inspect -v shows");
  grammar.AddFlag("--force", words.force, "delete the contender, do not ask its program");
  grammar.AddFlag("--yes", words.yes, "do not ask for confirmation");
  grammar.AddServerOptions();
  grammar.AddVerbosity();
  const auto help =
      grammar.Read(arguments, "usage: zklock release [OPTIONS] LOCK --contender NAME --force\n",
                   ReleaseFooter());
  if (help) return *help;
  if (has_command) throw grammar.Error("release runs no command");
  ReleaseOptions options;
  options.server = grammar.ReadServerOptions();
  options.verbosity = grammar.ReadVerbosity();
  options.lock = grammar.ReadLock();
  if (contender->count() == 0) throw grammar.Error("--contender NAME says whose; see inspect");
  const std::string& name = words.contender;
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw grammar.Error("--contender '" + name + "' is no znode's name");
  }
  if (!words.force) throw grammar.Error("this version can release only with --force");
  options.contender = name;
  options.yes = words.yes;
  return options;
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) throw UsageError("no subcommand was named", "");
  const std::string& name = words.front();
  if (name == "--help" || name == "-h") return Text{OverviewText()};
  if (name == "--version" || name == "-V") return Text{VersionText()};
  if (std::find(kSubcommands.begin(), kSubcommands.end(), name) == kSubcommands.end()) {
    throw UsageError(name.rfind('-', 0) == 0 ? "there is no option '" + name + "' here"
                                             : "there is no subcommand '" + name + "'",
                     "");
  }
  // The first `--` ends our words; what follows is never looked at.
  const auto end = std::find(words.begin() + 1, words.end(), "--");
  const std::vector<std::string> arguments(words.begin() + 1, end);
  std::optional<std::vector<std::string>> command;
  if (end != words.end()) command.emplace(end + 1, words.end());
  if (name == "inspect") return ReadInspect(arguments, command.has_value());
  if (name == "release") return ReadRelease(arguments, command.has_value());
  return ReadRun(name, arguments, command);
}

}  // namespace zklock::cli
