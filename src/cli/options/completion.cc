#include "cli/options/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/options/config.h"
#include "cli/options/credentials.h"
#include "cli/options/option_reader.h"
#include "cli/options/options.h"

namespace zklock::cli {
namespace {

using Words = std::vector<std::string>;
using Options = std::vector<const OptionSpec*>;

std::vector<Candidate> FirstWords() {
  std::vector<Candidate> words;
  for (const SubcommandSpec& subcommand : SubcommandTable()) {
    words.push_back({std::string(subcommand.name), std::string(subcommand.summary)});
  }
  words.push_back({"--help", "the subcommands"});
  words.push_back({"--version", "versions, also of the client library"});
  const SubcommandSpec& print = PrintConfigSpec();
  words.push_back({std::string(print.name), std::string(print.summary)});
  return words;
}

/// Returns the option that `word` names, possibly as `--name=value`; null if there is none.
const OptionSpec* Find(const Options& options, const std::string& word) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const OptionSpec* option) { return option->HasName(word); });
  return found != options.end() ? *found : nullptr;
}

bool HasValue(const std::string& word) { return word.find('=') != std::string::npos; }

CompleteWords Fitting(std::vector<Candidate> candidates, const std::string& typed) {
  std::erase_if(candidates, [&](const Candidate& one) { return !one.word.starts_with(typed); });
  return {std::move(candidates)};
}

CompleteWords CompleteOption(const Options& options, const std::string& typed) {
  std::vector<Candidate> words;
  for (const OptionSpec* option : options) words.push_back({option->Name(), option->Help()});
  return Fitting(std::move(words), typed);
}

std::vector<Candidate> Signals(const std::string& before) {
  std::vector<Candidate> words;
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* name = sigabbrev_np(number);
    const char* what = sigdescr_np(number);
    if (name != nullptr) words.push_back({before + name, what != nullptr ? what : ""});
  }
  return words;
}

/// Completes an option's value. `before`: what precedes the value in its word, such as "--wait=";
/// empty if the value is a word of its own.
Completion CompleteValue(const OptionSpec& option, const std::string& typed,
                         const std::string& before) {
  if (option.metavar.find("FILE") != std::string_view::npos && before.empty()) {
    return CompleteFile{};
  }
  if (option.metavar == "SIGNAL") return Fitting(Signals(before), typed);
  std::vector<Candidate> words;
  for (const std::string& choice : option.Choices()) words.push_back({before + choice, ""});
  return Fitting(std::move(words), typed);
}

/// Returns the first option that takes a value among the letters of `word`, as if it were given
/// alone: "-z" for "-nz", "-zHOST" for "-nzHOST". Empty if all letters are flags; none if one is
/// not an option.
std::optional<std::string> ValueInLetters(const Options& options, const std::string& word) {
  for (std::size_t at = 1; at < word.size(); ++at) {
    const OptionSpec* option = Find(options, {'-', word[at]});
    if (option == nullptr) return std::nullopt;
    if (!option->IsFlag()) return "-" + word.substr(at);
  }
  return "";
}

/// Returns those options of `words`, with their values, that inspect also has, except flags that do
/// not affect the connection. With `with_lock`, also the first LOCK. None if a word is not
/// understood: it may name other servers or request TLS, and credentials must not go to the wrong
/// place.
std::optional<Words> ServerWords(const Words& words, const Options& options, bool with_lock) {
  Words server;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (!word.starts_with('-')) {
      if (std::exchange(with_lock, false)) server.push_back(word);
      continue;
    }
    bool has_value = HasValue(word);
    const OptionSpec* option = Find(options, word);
    if (option == nullptr) {
      const auto letters = word.starts_with("--") ? std::nullopt : ValueInLetters(options, word);
      if (!letters) return std::nullopt;
      if (letters->empty()) continue;
      word = *letters;
      option = Find(options, word.substr(0, 2));
      has_value = word.size() > 2;
    }
    const bool kept = (option->subcommands & kInspect) != 0 &&
                      (!option->IsFlag() || option->section == Section::kServers);
    if (kept) server.push_back(word);
    if (option->IsFlag() || has_value || ++i == words.size()) continue;
    if (kept) server.push_back(words[i]);
  }
  return server;
}

/// Reads `words` as arguments of inspect, and returns the result of `complete`. A line that is
/// still being typed must not run a command: nothing is looked up if its words name a proxy
/// command, or a configuration file that may have set one.
template <typename F>
Completion CompleteOnServers(const std::optional<Words>& words, F complete) {
  if (!words) return CompleteWords{};
  try {
    OptionReader reader(*FindSubcommand("inspect"));
    if (!reader.Read(*words)) return CompleteWords{};
    OptionFields fields;
    reader.Store(fields);
    const bool is_typed = reader.IsArgument("--proxy-command") || reader.IsArgument("--config");
    if (is_typed && !fields.server.transport.proxy_command.empty()) return CompleteWords{};
    return complete(reader, std::move(fields.server));
  } catch (const UsageError&) {
    return CompleteWords{};  // the line is not finished: there is nothing to report yet
  } catch (const ConfigError&) {
    return CompleteWords{};
  } catch (const UnsafeFile&) {
    return CompleteWords{};
  }
}

Completion CompleteLockOf(const Words& words, const Options& options, const std::string& typed,
                          bool only_used) {
  return CompleteOnServers(ServerWords(words, options, false),
                           [&](const OptionReader& /*reader*/, ServerOptions server) {
                             return CompleteLock{std::move(server), typed, only_used};
                           });
}

/// `before`: as for CompleteValue.
Completion CompleteFromQueueOf(CompleteFromQueue::What what, const Words& words,
                               const Options& options, const std::string& typed,
                               const std::string& before) {
  return CompleteOnServers(ServerWords(words, options, true), [&](const OptionReader& reader,
                                                                  ServerOptions server) {
    const std::string lock = reader.locks().empty() ? "" : reader.ReadLock(server.root);
    return CompleteFromQueue{what, std::move(server), lock, typed.substr(before.size()), before};
  });
}

}  // namespace

Completion Complete(const Words& words) {
  const std::string typed = words.empty() ? "" : words.back();
  if (words.size() < 2) return Fitting(FirstWords(), typed);
  const SubcommandSpec* subcommand = FindSubcommand(words.front());
  if (subcommand == nullptr) return CompleteWords{};
  const Words before(words.begin() + 1, words.end() - 1);
  const auto end = std::find(before.begin(), before.end(), "--");
  if (end != before.end()) {
    if (!subcommand->RunsCommand()) return CompleteWords{};
    return CompleteCommand{static_cast<std::size_t>(end - before.begin()) + 2};
  }
  const Options options = OptionsOf(subcommand->bit);
  const auto complete_value = [&](const OptionSpec& option, const std::string& attached) {
    using What = CompleteFromQueue::What;
    if (option.name == "reserve" || option.name == "resume") {
      return CompleteFromQueueOf(What::kReservations, before, options, typed, attached);
    }
    if (option.name == "contender") {
      return CompleteFromQueueOf(What::kContenders, before, options, typed, attached);
    }
    return CompleteValue(option, typed, attached);
  };
  const OptionSpec* last = before.empty() ? nullptr : Find(options, before.back());
  if (last != nullptr && !last->IsFlag() && !HasValue(before.back())) {
    return complete_value(*last, "");
  }
  if (!typed.starts_with('-')) {
    return CompleteLockOf(before, options, typed, words.front() == "release");
  }
  if (!HasValue(typed)) return CompleteOption(options, typed);
  const OptionSpec* option = Find(options, typed);
  if (option == nullptr) return CompleteWords{};
  return complete_value(*option, typed.substr(0, typed.find('=') + 1));
}

std::string LockUse(const lock::FoundLock& lock) {
  const std::string waiting = lock.waiting == 0 ? "" : fmt::format(", {} waiting", lock.waiting);
  if (lock.held == 0 && lock.waiting == 0) return "free";
  if (lock.is_semaphore) {
    const std::string of = lock.permit_limit ? fmt::format(" of {}", *lock.permit_limit) : "";
    const bool is_one = lock.permit_limit.value_or(lock.held) == 1;
    return fmt::format("{}{} permit{} used{}", lock.held, of, is_one ? "" : "s", waiting);
  }
  return (lock.held <= 1 ? "in use" : fmt::format("in use by {}", lock.held)) + waiting;
}

}  // namespace zklock::cli
