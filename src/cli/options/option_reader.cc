#include "cli/options/option_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <variant>

#include "cli/options/config.h"
#include "cli/options/option_values.h"
#include "cli/text/messages.h"
#include "cli/text/printable.h"
#include "cli/text/suggestion.h"
#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

/// Returns whether `name` equals option.Name(). Each start calls this a thousand times, so it
/// builds no strings, and compares only names of equal length.
bool IsNamed(const OptionSpec& option, std::string_view name) {
  if (option.name.empty()) return name.size() == 2 && name[0] == '-' && name[1] == option.letter;
  return name.size() == option.name.size() + 2 && name.starts_with("--") &&
         name.ends_with(option.name);
}

OptionValue DefaultOf(const OptionSpec& option) {
  return {.spec = &option, .text = std::string(option.fallback)};
}

/// Returns the value of a setting. A relative file name is resolved against the directory of the
/// configuration file, unless that is a pipe: the caller's directory, which may belong to others,
/// must not decide whose authority or credentials are used.
std::string ValueOf(const Setting& setting, const OptionSpec& option) {
  const bool is_number = setting.value.find_first_not_of("0123456789") == std::string::npos;
  const bool is_file = option.metavar == "FILE" || (option.metavar == "FD|FILE" && !is_number);
  const bool is_from_pipe = setting.file.starts_with("/dev/") || setting.file.starts_with("/proc/");
  if (!is_file || is_from_pipe || setting.value.empty() || setting.value.starts_with('/')) {
    return setting.value;
  }
  return setting.file.substr(0, setting.file.rfind('/') + 1) + setting.value;
}

}  // namespace

OptionReader::OptionReader(const SubcommandSpec& subcommand) : subcommand_(subcommand) {
  const auto options = OptionsOf(subcommand.bit);
  values_.reserve(options.size());
  for (const OptionSpec* option : options) values_.push_back(DefaultOf(*option));
}

bool OptionReader::Read(const Words& arguments) {
  const Words others = ReadArguments(arguments);
  if (WasGiven("--help")) return false;
  ReadOthers(others);
  ReadEnvironment();
  ReadFiles();
  KeepStronger("--quiet", "--verbose");
  return true;
}

void OptionReader::RequireSeparator(const Words& arguments) const {
  std::size_t locks = 0;
  std::string command;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.size() < 2 || word[0] != '-') {
      if (locks++ > 0 && command.empty() && !word.starts_with('/')) command = word;
      continue;
    }
    // The option that the word names. In a word of several letters, this is the first option that
    // takes a value; the value is the rest of the word, or the next word.
    const bool is_long = word[1] == '-';
    const OptionSpec* option = is_long ? SpecOf(word) : nullptr;
    bool is_last = is_long && word.find('=') == std::string::npos;
    for (std::size_t at = 1; !is_long && at < word.size(); ++at) {
      option = SpecOf(std::string{'-', word[at]});
      is_last = at + 1 == word.size();
      if (option != nullptr && (!option->IsFlag() || option->name == "help")) break;
    }
    if (option == nullptr) continue;
    for (const std::string_view name : {"-c", "--hold", "--reserve", "--help"}) {
      if (IsNamed(*option, name)) return;
    }
    if (!option->IsFlag() && is_last) ++i;
  }
  if (!command.empty()) throw Error(fmt::format(message::kNoSeparator, command, command));
  if (locks > 1) throw Error(message::kNoCommand);
}

OptionReader::Words OptionReader::ReadArguments(const Words& arguments) {
  Words others;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    std::string rest = *word;  // letters are taken from it one by one: `-qw5s` is `-q -w 5s`
    do {
      const bool is_long = rest.starts_with("--");
      const std::string name = is_long ? rest.substr(0, rest.find('=')) : rest.substr(0, 2);
      const std::string attached = rest.substr(name.size());
      const auto value = std::find_if(values_.begin(), values_.end(), [&](const OptionValue& one) {
        return one.spec->HasName(name);
      });
      if (value == values_.end()) {
        others.push_back(rest);
        break;
      }
      value->origin = Origin::kArgument;
      rest.clear();
      if (value->spec->IsFlag()) {
        // Letters follow; `-v-root` is not `-v --root`.
        if (attached.starts_with('=') || attached.starts_with('-')) {
          const std::string given = attached.substr(attached[0] == '=' ? 1 : 0);
          throw Error(fmt::format(message::kTakesNoValue, value->spec->Name(), given));
        }
        value->flag = true;
        if (!attached.empty()) rest = "-" + attached;
        continue;
      }
      if (attached.empty() && ++word == arguments.end()) {
        throw Error(fmt::format(message::kNeedsValue, value->spec->Name()));
      }
      const std::string text = attached.empty() ? *word : attached.substr(is_long ? 1 : 0);
      if (value->spec->repeatable) {
        value->list.push_back(text);
      } else {
        value->text = text;
      }
    } while (!rest.empty());
  }
  return others;
}

void OptionReader::ReadOthers(const Words& others) {
  for (const std::string& extra : others) {
    if (extra.size() > 1 && extra.front() == '-') throw Error(UnknownOption(extra));
    locks_.push_back(extra);
  }
}

std::string OptionReader::UnknownOption(const std::string& word) const {
  const std::string name = word.substr(0, word.find('='));
  if (const auto others = SubcommandsWith(name); !others.empty()) {
    return fmt::format(message::kOthersOption, name, subcommand_.name, fmt::join(others, ", "));
  }
  if (name == PrintConfigSpec().name || name == "--version" || name == "-V") {
    return fmt::format(message::kInPlaceOfSubcommand, name);
  }
  Words names;
  for (const OptionValue& value : values_) {
    names.push_back(value.spec->Name());
    if (!value.spec->alias.empty()) names.push_back("--" + std::string(value.spec->alias));
  }
  if (const std::string known = KnownElsewhere(name, subcommand_.name); !known.empty()) {
    return fmt::format(message::kUnknownOption, name, known);
  }
  const char* const otherwise = subcommand_.RunsCommand() ? message::kCommandsOptions : "";
  return fmt::format(message::kUnknownOption, name, DidYouMean(name, names, otherwise));
}

void OptionReader::ReadEnvironment() {
  for (OptionValue& value : values_) {
    if (value.spec->environment.empty() || value.origin == Origin::kArgument) continue;
    const char* text = getenv(value.spec->environment.data());
    if (text == nullptr || (*text == '\0' && !value.spec->decides_lock)) continue;
    value.text = text;
    value.origin = Origin::kEnvironment;
  }
}

void OptionReader::ReadFiles() {
  const OptionValue& named = Value("--config");
  const Config config =
      ReadConfig(named.WasGiven() ? std::optional(named.text) : std::nullopt, ConfigurableNames());
  unused_config_ = config.unused_file;
  for (const Setting& setting : config.settings) {
    const auto found = std::find_if(values_.begin(), values_.end(), [&](const OptionValue& value) {
      return value.spec->in_file && value.spec->name == setting.name;
    });
    // Options of other subcommands are ignored, and stronger origins win.
    if (found == values_.end() || found->origin > Origin::kConfig) continue;
    OptionValue& value = *found;
    value.origin = setting.is_systems ? Origin::kSystemConfig : Origin::kConfig;
    value.place = setting.file + ":" + std::to_string(setting.line);
    if (!value.spec->IsFlag()) {
      value.text = ValueOf(setting, *value.spec);
    } else if (setting.value == "yes" || setting.value == "true") {
      value.flag = true;
    } else if (setting.value == "no" || setting.value == "false") {
      value = DefaultOf(*value.spec);
    } else {
      throw ConfigError(value.place + ": " +
                        fmt::format(message::kNoChoice, setting.name, setting.value, "yes, no"));
    }
  }
}

const OptionSpec* OptionReader::SpecOf(std::string_view word) const {
  const auto found = std::find_if(values_.begin(), values_.end(), [&](const OptionValue& value) {
    return value.spec->HasName(word);
  });
  return found != values_.end() ? found->spec : nullptr;
}

const OptionValue* OptionReader::Find(std::string_view name) const {
  const auto found = std::find_if(values_.begin(), values_.end(), [&](const OptionValue& value) {
    return IsNamed(*value.spec, name);
  });
  return found != values_.end() ? &*found : nullptr;
}

const OptionValue& OptionReader::Value(std::string_view name) const {
  const OptionValue* value = Find(name);
  if (value == nullptr) throw std::logic_error("no such option: " + std::string(name));
  return *value;
}

bool OptionReader::WasGiven(std::string_view name) const {
  const OptionValue* value = Find(name);
  return value != nullptr && value->WasGiven();
}

bool OptionReader::IsArgument(std::string_view name) const {
  const OptionValue* value = Find(name);
  return value != nullptr && value->origin == Origin::kArgument;
}

bool OptionReader::IsOn(std::string_view name) const {
  const OptionValue* value = Find(name);
  return value != nullptr && value->WasGiven() && (!value->spec->IsFlag() || value->flag);
}

void OptionReader::KeepStronger(std::string_view one, std::string_view other) {
  if (!WasGiven(one) || !WasGiven(other)) return;
  const Origin first = Value(one).origin;
  const Origin second = Value(other).origin;
  if (first == second) Reject(one, fmt::format(message::kExclude, one, other));
  const std::string_view weaker = first < second ? one : other;
  for (OptionValue& value : values_) {
    if (value.spec->Name() == weaker) value = DefaultOf(*value.spec);
  }
}

void OptionReader::CheckRules() const {
  for (const OptionRule& rule : OptionRules()) {
    if ((rule.subcommands & subcommand_.bit) == 0) continue;
    for (const std::string_view option : NamesIn(rule.options)) {
      if (rule.only_arguments ? IsArgument(option) : IsOn(option)) CheckRule(rule, option);
    }
  }
}

/// Checks `rule` for `option`, which is one of the rule's options and was given.
void OptionReader::CheckRule(const OptionRule& rule, std::string_view option) const {
  const bool excludes = rule.kind == OptionRule::Kind::kExcludes;
  std::string missing;
  for (const std::string_view other : NamesIn(rule.others)) {
    const bool is_on = other != option && IsOn(other);
    if (excludes && is_on) {
      const std::string why = rule.why.empty() ? "" : ": " + std::string(rule.why);
      // Rejects the option from the weaker origin, so that the error names the file or variable
      // with a setting that the user may not be aware of.
      const bool is_stronger = Value(option).origin > Value(other).origin;
      Reject(is_stronger ? other : option, fmt::format(message::kExclude, option, other) + why);
    }
    if (!excludes && is_on) return;
    missing += (missing.empty() ? "" : " or ") + std::string(other);
  }
  if (!excludes) Reject(option, fmt::format(message::kRequires, option, missing));
}

void OptionReader::Store(OptionFields& fields) const {
  fields.server.unused_config = unused_config_;
  for (const OptionValue& value : values_) {
    if (value.spec->store == nullptr) continue;
    const std::string fault = value.spec->store(value, fields);
    if (!fault.empty()) Reject(value.spec->Name(), fault);
  }
}

UsageError OptionReader::Error(const std::string& what) const {
  const bool is_subcommand = FindSubcommand(subcommand_.name) != nullptr;
  return {what, is_subcommand ? std::string(subcommand_.name) : ""};
}

void OptionReader::Reject(std::string_view option, const std::string& what) const {
  const OptionValue& value = Value(option);
  const bool is_in_file = value.WasGiven() && value.origin <= Origin::kConfig;
  if (is_in_file) throw ConfigError(value.place + ": " + what);
  if (value.origin == Origin::kEnvironment) {
    throw Error(fmt::format(message::kFromVariable, what, value.spec->environment));
  }
  throw Error(what);
}

void OptionReader::RequireLock() const {
  if (!locks_.empty()) return;
  for (const OptionValue& value : values_) {
    if (value.origin != Origin::kArgument || !value.text.starts_with('/')) continue;
    throw Error(fmt::format(message::kLockTaken, value.text, value.spec->Name()));
  }
  throw Error(message::kNoLock);
}

std::string OptionReader::ReadLock(const std::string& root) const {
  RequireLock();
  if (locks_.size() > 1) {
    throw Error(fmt::format(message::kSeveralLocks, locks_[0], locks_[1], subcommand_.name));
  }
  return ResolveLock(locks_.front(), root);
}

std::string OptionReader::ResolveLock(const std::string& word, const std::string& root) const {
  // Word processors and wikis turn an option's hyphen into one of these.
  for (const char* dash : {"\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212"}) {
    if (word.starts_with(dash)) throw Error(fmt::format(message::kTypographicDash, word));
  }
  const auto resolved = protocol::ResolveLock(word, root);
  if (const auto* bad = std::get_if<protocol::BadPath>(&resolved)) {
    throw Error(fmt::format(message::kBadLock, word, PathText(*bad)));
  }
  // Two users who interpret it differently would hold different locks.
  if (!word.starts_with('/') && word.find('/') != std::string::npos && !WasGiven("--root")) {
    throw Error(
        fmt::format(message::kAmbiguousLock, word, "/" + word, std::get<std::string>(resolved)));
  }
  return std::get<std::string>(resolved);
}

std::string OptionReader::ShowConfig() const {
  constexpr std::size_t kOriginColumn = 38;
  std::string text;
  if (!unused_config_.empty()) text = "# " + Printable(unused_config_) + "\n";
  for (const OptionValue& value : values_) {
    if (!value.spec->in_file) continue;
    const std::string shown = !value.spec->IsFlag() ? value.text : value.flag ? "yes" : "no";
    const bool is_set = value.WasGiven() || !shown.empty();
    const auto written = ConfigText(shown);
    // The text can be used as a configuration file: anything that such a file cannot express is a
    // comment.
    std::string line = is_set && written ? "" : "# ";
    line += value.spec->name;
    line += " = " + written.value_or(Printable(shown));
    line.resize(std::max(line.size(), kOriginColumn), ' ');
    line += "  # " + value.OriginText();
    if (!written) line += ", cannot be set in a file";
    text += line + "\n";
  }
  return text;
}

}  // namespace zklock::cli
