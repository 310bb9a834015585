#include "cli/grammar.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdlib>

#include "cli/credentials.h"
#include "cli/duration.h"
#include "cli/messages.h"
#include "cli/printable.h"
#include "cli/report_reasons.h"
#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

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

/// From the last to the first; and `--name=` as two words, since CLI11 would take the next one
/// for its value.
std::vector<std::string> AsCli11Takes(std::vector<std::string> arguments) {
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

/// The client library doubles the time-out in an int of milliseconds, which overflows above 12 days
/// and 10 hours: it then never connects.
constexpr Duration kLongestSessionTimeout = std::chrono::days(12);

constexpr std::string_view kHelpNames = "-h,--help";

/// Whether CLI11 may take one of `words` for the option: those that it does take, and some more.
bool MayBeNamed(std::string_view names, const std::vector<std::string>& words) {
  const std::string_view name = names.substr(names.find(',') + 1);
  const bool is_long = name.substr(0, 2) == "--";
  const char letter = names[1];
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    if (word.size() < 2 || word[0] != '-') return false;
    if (word[1] == '-') return is_long && word.substr(0, name.size()) == name;
    return letter != '-' && word.find(letter) != std::string_view::npos;  // maybe one of several
  });
}

}  // namespace

struct Grammar::Parser {
  explicit Parser(const std::string& name) : app("", name) {}
  CLI::App app;
};

/// One of value, flag and list is set.
struct Grammar::Option {
  Literal names;  ///< as in `-w,--wait`
  Literal type;
  Literal help;
  Literal environment;
  bool is_configurable = true;  ///< by a line of its name, if there may be one
  std::string* value = nullptr;
  bool* flag = nullptr;
  std::vector<std::string>* list = nullptr;
  std::string default_value;
  const CLI::Option* declared = nullptr;
  Origin origin = Origin::kDefault;
  std::string place;  ///< of a configuration: file and line

  /// As in `--wait`, or `-c`.
  [[nodiscard]] Literal name() const { return names.substr(names.find(',') + 1); }

  void Forget() {
    origin = Origin::kDefault;
    if (value != nullptr) *value = default_value;
    if (flag != nullptr) *flag = false;
  }

  void DeclareTo(CLI::App& app) {
    const std::string all(names);
    const std::string text(help);
    if (flag != nullptr) {
      declared =
          app.add_flag(all, *flag, text)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    } else if (list != nullptr) {
      declared = app.add_option(all, *list, text)
                     ->type_name(std::string(type))
                     ->expected(1)
                     ->allow_extra_args(false)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      declared = app.add_option(all, *value, text)->type_name(std::string(type));
    }
  }
};

Grammar::Grammar(std::string subcommand)
    : name_(std::move(subcommand)),
      parser_(std::make_unique<Parser>(name_)),
      servers_("127.0.0.1:2181"),
      root_("/zklock"),
      connect_timeout_("15s"),
      session_timeout_("30s") {
  parser_->app.allow_extras();
  parser_->app.set_help_flag(std::string(kHelpNames), "this text");
  parser_->app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

Grammar::~Grammar() = default;

void Grammar::AddValue(Literal names, std::string& value, Literal type, Literal help,
                       Literal environment) {
  options_.push_back({.names = names,
                      .type = type,
                      .help = help,
                      .environment = environment,
                      .value = &value,
                      .default_value = value});
}

void Grammar::AddList(Literal names, std::vector<std::string>& values, Literal type, Literal help) {
  options_.push_back({.names = names, .type = type, .help = help, .list = &values});
}

void Grammar::AddFlag(Literal names, bool& value, Literal help) {
  options_.push_back({.names = names, .help = help, .flag = &value});
}

void Grammar::AddOwnFlag(Literal names, bool& value, Literal help) {
  AddFlag(names, value, help);
  options_.back().is_configurable = false;
}

void Grammar::AddServerOptions() {
  AddValue("-z,--servers", servers_, "HOST:PORT[,...][/CHROOT]",
           "the servers (default 127.0.0.1:2181)", "ZKLOCK_SERVERS");
  AddValue("--root", root_, "PATH", "where LOCKs without a slash are (/zklock)", "ZKLOCK_ROOT");
  AddValue("--connect-timeout", connect_timeout_, "DURATION", "how long to look for a server (15s)",
           "ZKLOCK_CONNECT_TIMEOUT");
  AddValue("--session-timeout", session_timeout_, "DURATION", "asked of the servers (30s)",
           "ZKLOCK_SESSION_TIMEOUT");
  AddValue("--auth-file", auth_file_, "FILE", "credentials, one scheme:credential a line",
           "ZKLOCK_AUTH_FILE");
  AddValue("--tls-ca", tls_ca_, "FILE", "refused: zklock speaks no TLS, stunnel does",
           "ZKLOCK_TLS_CA");
  AddValue("--tls-cert", tls_cert_, "FILE", "refused likewise", "ZKLOCK_TLS_CERT");
  AddValue("--tls-key", tls_key_, "FILE", "refused likewise", "ZKLOCK_TLS_KEY");
  AddValue("--config", config_, "FILE", "options by name (/etc/zklock.conf)", "ZKLOCK_CONFIG");
}

void Grammar::AddVerbosity() {
  AddFlag("-q,--quiet", quiet_, "say nothing but defects and lost locks");
  AddFlag("-v,--verbose", verbose_, "say each step");
}

// To tell CLI11 of an option takes it as long as an exec takes the kernel: of forty only those
// that are asked for, and all where their list is.
void Grammar::Declare(const std::vector<std::string>& arguments) {
  const bool all = MayBeNamed(kHelpNames, arguments);
  for (Option& option : options_) {
    if (all || MayBeNamed(option.names, arguments)) option.DeclareTo(parser_->app);
  }
}

std::optional<Text> Grammar::Read(const std::vector<std::string>& arguments,
                                  const std::string& usage, const std::string& footer) {
  Declare(arguments);
  CLI::App& app = parser_->app;
  app.formatter(std::make_shared<HelpFormatter>(usage));
  app.footer(footer);
  try {
    app.parse(AsCli11Takes(arguments));
  } catch (const CLI::CallForHelp&) {
    return Text{app.help()};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    throw Error(fmt::format(message::kNeedsValue, what.substr(0, what.find_first_of(": "))));
  } catch (const CLI::ParseError& error) {
    std::string what = error.what();
    if (!what.empty()) what[0] = static_cast<char>(std::tolower(what[0]));
    throw Error(fmt::format(message::kUnreadable, what));
  }
  for (Option& option : options_) {
    if (option.declared != nullptr && option.declared->count() > 0)
      option.origin = Origin::kArgument;
  }
  ReadLocks(arguments);
  ReadEnvironment();
  const auto named = WasGiven("--config") ? std::optional(config_) : std::nullopt;
  const Config config = ReadConfig(named);
  for (const Setting& setting : config.settings) Apply(setting);
  unused_config_ = config.unused_file;
  KeepStronger("--quiet", "--verbose");
  return std::nullopt;
}

void Grammar::ReadLocks(const std::vector<std::string>& arguments) {
  // LOCKs are no positional of CLI11's: it would take `[a,b]` for a list.
  for (const std::string& extra : parser_->app.remaining()) {
    if (extra.starts_with("-=")) {
      // What CLI11 has left of `-v=1`.
      const auto typed =
          std::find_if(arguments.begin(), arguments.end(), [&](const std::string& word) {
            return word.starts_with('-') && !word.starts_with("--") &&
                   word.ends_with(extra.substr(1));
          });
      throw Error(fmt::format(message::kUnreadable, typed != arguments.end() ? *typed : extra));
    }
    if (extra.size() > 1 && extra.front() == '-') {
      throw Error(fmt::format(message::kUnknownOption, extra));
    }
    locks_.push_back(extra);
  }
}

void Grammar::ReadEnvironment() {
  for (Option& option : options_) {
    if (option.environment.empty() || option.origin == Origin::kArgument) continue;
    const char* text = getenv(option.environment.data());
    if (text == nullptr || *text == '\0') continue;
    *option.value = text;
    option.origin = Origin::kEnvironment;
  }
}

void Grammar::Apply(const Setting& setting) {
  const auto option = std::find_if(options_.begin(), options_.end(), [&](const Option& one) {
    return one.is_configurable && one.name() == "--" + setting.name;
  });
  // One of another subcommand's is none of ours; a stronger one stands.
  if (option == options_.end() || option->origin > Origin::kConfig) return;
  const std::string place = setting.file + ":" + std::to_string(setting.line);
  option->origin = Origin::kConfig;
  option->place = place;
  if (option->value != nullptr) {
    *option->value = setting.value;
  } else if (setting.value == "yes") {
    *option->flag = true;
  } else if (setting.value == "no") {
    option->Forget();
  } else {
    throw ConfigError(place + ": " +
                      fmt::format(message::kNeitherYesNorNo, setting.name, setting.value));
  }
}

const Grammar::Option* Grammar::Find(std::string_view name) const {
  const auto option = std::find_if(options_.begin(), options_.end(),
                                   [&](const Option& one) { return one.name() == name; });
  return option != options_.end() ? &*option : nullptr;
}

bool Grammar::WasGiven(std::string_view name) const {
  const Option* option = Find(name);
  return option != nullptr && option->origin != Origin::kDefault;
}

bool Grammar::IsArgument(std::string_view name) const {
  const Option* option = Find(name);
  return option != nullptr && option->origin == Origin::kArgument;
}

std::string Grammar::PlaceOf(std::string_view name) const {
  const Option* option = Find(name);
  return option != nullptr && option->origin == Origin::kConfig ? option->place : "";
}

void Grammar::KeepStronger(const std::string& one, const std::string& other) {
  if (!WasGiven(one) || !WasGiven(other)) return;
  const Origin first = Find(one)->origin;
  const Origin second = Find(other)->origin;
  if (first == second) Reject(one, fmt::format(message::kExclude, one, other));
  const std::string& weaker = first < second ? one : other;
  for (Option& option : options_) {
    if (option.name() == weaker) option.Forget();
  }
}

void Grammar::Reject(const std::string& option, const std::string& what) const {
  const Option* given = Find(option);
  if (given != nullptr && given->origin == Origin::kConfig) {
    throw ConfigError(given->place + ": " + what);
  }
  if (given != nullptr && given->origin == Origin::kEnvironment) {
    throw Error(fmt::format(message::kFromVariable, what, given->environment));
  }
  throw Error(what);
}

std::string Grammar::ShowConfig() const {
  std::string text;
  if (!unused_config_.empty()) text = "# " + Printable(unused_config_) + "\n";
  for (const std::string_view name : ConfigurableNames()) {
    const Option* option = Find("--" + std::string(name));
    if (option == nullptr) continue;
    const std::string value = option->value != nullptr ? *option->value
                              : *option->flag          ? "yes"
                                                       : "no";
    const bool is_set = option->origin != Origin::kDefault || !value.empty();
    const auto written = ConfigText(value);
    // What is printed can be a file: what that would take for something else is a comment.
    std::string line = is_set && written ? "" : "# ";
    line += name;
    line += " = " + written.value_or(Printable(value));
    line.resize(std::max<std::size_t>(line.size(), 38), ' ');
    switch (option->origin) {
      case Origin::kDefault:
        line += "  # default";
        break;
      case Origin::kConfig:
        line += "  # " + option->place;
        break;
      case Origin::kEnvironment:
        line += fmt::format("  # ${}", option->environment);
        break;
      case Origin::kArgument:
        line += "  # argument";
        break;
    }
    if (!written) line += ", and no file can say it";
    text += line + "\n";
  }
  return text;
}

Duration Grammar::ReadDuration(const std::string& option, const std::string& text,
                               bool zero_is_fine) const {
  const auto span = ParseDuration(text);
  if (!span) {
    Reject(option, fmt::format(message::kNoDuration, option, text));
  }
  if (!zero_is_fine && *span == Duration::zero())
    Reject(option, fmt::format(message::kZero, option));
  return *span;
}

ServerOptions Grammar::ReadServerOptions() const {
  ServerOptions options;
  options.unused_config = unused_config_;
  auto list = zookeeper::ParseServerList(servers_);
  if (const auto* bad = std::get_if<zookeeper::BadServerList>(&list)) {
    Reject("--servers", fmt::format(message::kBadServers, servers_, ServersText(*bad)));
  }
  options.servers = std::get<zookeeper::ServerList>(std::move(list));
  if (!options.servers.chroot.empty()) CheckPath("--servers", "the chroot", options.servers.chroot);
  options.connect_timeout = ReadDuration("--connect-timeout", connect_timeout_, false);
  options.session_timeout = ReadDuration("--session-timeout", session_timeout_, false);
  if (options.session_timeout > kLongestSessionTimeout) {
    Reject("--session-timeout",
           fmt::format(message::kTooLong, "--session-timeout", session_timeout_,
                       FormatDuration(kLongestSessionTimeout)));
  }
  RefuseTls();
  options.access.credentials = ReadCredentials();
  return options;
}

std::vector<zookeeper::AuthInfo> Grammar::ReadCredentials() const {
  const auto text = TakeSecret("ZKLOCK_AUTH");
  unsetenv("ZKLOCK_AUTH_FILE");
  const Origin file = Find("--auth-file")->origin;
  if (text && file != Origin::kArgument) return ParseCredentials(*text, "ZKLOCK_AUTH");
  if (file == Origin::kDefault) return {};
  return ReadCredentialsFile(auth_file_);
}

void Grammar::RefuseTls() const {
  for (const char* name : {"--tls-ca", "--tls-cert", "--tls-key"}) {
    if (!WasGiven(name)) continue;
    // Not a warning: who asks for TLS must not be served without.
    const std::string place = PlaceOf(name);
    throw ConfigError((place.empty() ? "" : place + ": ") + fmt::format(message::kNoTls, name));
  }
}

std::string Grammar::ReadRoot() const {
  if (root_ != "/") CheckPath("--root", "--root", root_);
  return root_;
}

void Grammar::RequireLock() const {
  if (!locks_.empty()) return;
  for (const Option& option : options_) {
    const bool has_path = option.value != nullptr && option.value->rfind('/', 0) == 0;
    if (option.origin != Origin::kArgument || !has_path) continue;
    throw Error(fmt::format(message::kLockTaken, *option.value, option.name()));
  }
  throw Error(message::kNoLock);
}

std::string Grammar::ReadLock() const {
  RequireLock();
  if (locks_.size() > 1) {
    throw Error(fmt::format(message::kSeveralLocks, locks_[0], locks_[1], name_));
  }
  return ResolveLock(locks_.front());
}

std::string Grammar::ResolveLock(const std::string& word) const {
  const auto resolved = protocol::ResolveLock(word, ReadRoot());
  if (const auto* bad = std::get_if<protocol::BadPath>(&resolved)) {
    throw Error(fmt::format(message::kBadLock, word, PathText(*bad)));
  }
  return std::get<std::string>(resolved);
}

Verbosity Grammar::ReadVerbosity() const {
  if (quiet_) return Verbosity::kQuiet;
  return verbose_ ? Verbosity::kVerbose : Verbosity::kNormal;
}

void Grammar::CheckPath(const std::string& option, const std::string& what,
                        const std::string& path) const {
  const auto checked = protocol::CheckAbsolutePath(path);
  if (const auto* bad = std::get_if<protocol::BadPath>(&checked)) {
    Reject(option, fmt::format(message::kBadPath, what, path, PathText(*bad)));
  }
}

std::optional<int> ParseNumber(std::string_view text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < least || number > most) return std::nullopt;
  return number;
}

}  // namespace zklock::cli
