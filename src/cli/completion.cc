#include "cli/completion.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/config.h"
#include "cli/credentials.h"
#include "cli/subcommands.h"

namespace zklock::cli {
namespace {

const std::vector<Candidate>& Beginnings() {
  static const std::vector<Candidate> kWords = {
      {"exclusive", "run a command under the lock, one at a time"},
      {"read", "run it together with other readers"},
      {"write", "run it as a writer, alone"},
      {"try", "run it at once or not at all"},
      {"inspect", "who holds, who waits"},
      {"release", "let go of a lock, or take one away"},
      {"--help", "the subcommands"},
      {"--version", "versions, of the client library too"},
      {"--print-config", "each option's value, and where it comes from"},
  };
  return kWords;
}

bool RunsCommand(const std::string& subcommand) {
  return subcommand == "exclusive" || subcommand == "read" || subcommand == "write" ||
         subcommand == "try";
}

CommandLine ReadSubcommand(const std::string& name, const std::vector<std::string>& arguments) {
  if (name == "inspect") return ReadInspect(arguments, false);
  if (name == "release") return ReadRelease(arguments, false);
  return ReadRun(name, arguments, std::nullopt);
}

std::vector<HelpOption> OptionsOf(const std::string& subcommand) {
  return ReadHelpOptions(std::get<Text>(ReadSubcommand(subcommand, {"--help"})).text);
}

const HelpOption* Find(const std::vector<HelpOption>& options, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const auto found = std::find_if(options.begin(), options.end(), [&](const HelpOption& option) {
    return name == option.name || name == option.shorter;
  });
  return found != options.end() && !name.empty() ? &*found : nullptr;
}

bool StartsWith(const std::string& word, const std::string& start) {
  return word.compare(0, start.size(), start) == 0;
}

CompleteWords ThatFit(const std::vector<Candidate>& candidates, const std::string& typed) {
  CompleteWords fitting;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(fitting.candidates),
               [&](const Candidate& candidate) { return StartsWith(candidate.word, typed); });
  return fitting;
}

std::vector<Candidate> OptionWords(const std::vector<HelpOption>& options) {
  std::vector<Candidate> words;
  words.reserve(options.size());
  for (const HelpOption& option : options) {
    words.push_back({option.name.empty() ? option.shorter : option.name, option.help});
  }
  return words;
}

/// The words of "stop|warn"; none for "FD|FILE", whose parts are no words but kinds.
std::vector<Candidate> Choices(const std::string& type, const std::string& before) {
  std::vector<Candidate> words;
  if (type.find('|') == std::string::npos) return words;
  std::string_view rest = type;
  while (!rest.empty()) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    const std::string_view word = rest.substr(0, bar);
    if (word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string_view::npos) return {};
    words.push_back({before + std::string(word), ""});
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return words;
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

/// What fits as an option's value. `before`: "--wait=", where both are one word.
Completion CompleteValue(const HelpOption& option, const std::string& typed,
                         const std::string& before) {
  if (option.type.find("FILE") != std::string::npos && before.empty()) return CompleteFile{};
  if (option.type == "SIGNAL") return ThatFit(Signals(before), typed);
  return ThatFit(Choices(option.type, before), typed);
}

/// Those of `words` that say where the servers are, as inspect knows them too.
std::vector<std::string> SiteWords(const std::vector<std::string>& words,
                                   const std::vector<HelpOption>& options) {
  const std::vector<HelpOption> known = OptionsOf("inspect");
  std::vector<std::string> site;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const HelpOption* option = Find(options, words[i]);
    if (option == nullptr || option->type.empty()) continue;
    const bool one_word = words[i].find('=') != std::string::npos;
    const bool kept = Find(known, words[i]) != nullptr;
    if (kept) site.push_back(words[i]);
    if (one_word || ++i == words.size()) continue;
    if (kept) site.push_back(words[i]);
  }
  return site;
}

Completion CompleteLockOf(const std::vector<std::string>& words,
                          const std::vector<HelpOption>& options, const std::string& typed) {
  try {
    const CommandLine site = ReadInspect(SiteWords(words, options), false);
    const auto& inspect = std::get<InspectOptions>(site);
    return CompleteLock{inspect.server, inspect.path, typed};
  } catch (const UsageError&) {
    return CompleteWords{};  // there is nothing to say of it before it is whole
  } catch (const ConfigError&) {
    return CompleteWords{};
  } catch (const UnsafeFile&) {
    return CompleteWords{};
  }
}

}  // namespace

Completion Complete(const std::vector<std::string>& words) {
  const std::string typed = words.empty() ? "" : words.back();
  if (words.size() < 2) return ThatFit(Beginnings(), typed);
  const std::string& subcommand = words.front();
  if (!RunsCommand(subcommand) && subcommand != "inspect" && subcommand != "release") {
    return CompleteWords{};
  }
  const std::vector<std::string> before(words.begin() + 1, words.end() - 1);
  const auto end = std::find(before.begin(), before.end(), "--");
  if (end != before.end()) {
    if (!RunsCommand(subcommand)) return CompleteWords{};
    return CompleteCommand{static_cast<std::size_t>(end - before.begin()) + 2};
  }
  const std::vector<HelpOption> options = OptionsOf(subcommand);
  const HelpOption* last = before.empty() ? nullptr : Find(options, before.back());
  if (last != nullptr && !last->type.empty() && before.back().find('=') == std::string::npos) {
    return CompleteValue(*last, typed, "");
  }
  if (typed.rfind('-', 0) == 0) {
    const HelpOption* option = Find(options, typed);
    const std::size_t equals = typed.find('=');
    if (equals == std::string::npos) return ThatFit(OptionWords(options), typed);
    if (option == nullptr) return CompleteWords{};
    return CompleteValue(*option, typed, typed.substr(0, equals + 1));
  }
  return CompleteLockOf(before, options, typed);
}

std::vector<HelpOption> ReadHelpOptions(const std::string& help) {
  constexpr std::string_view kIndent = "  -";
  std::vector<HelpOption> options;
  std::string_view rest = help;
  bool awaits_help = false;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.starts_with(kIndent)) {
      // A long option has a line for itself, and its help stands in the next.
      const std::size_t text = std::min(line.find_first_not_of(' '), line.size());
      if (awaits_help && text > 2) options.back().help = line.substr(text);
      awaits_help = false;
      continue;
    }
    line.remove_prefix(kIndent.size() - 1);
    const std::size_t gap = std::min(line.find("  "), line.size());
    const std::size_t text = std::min(line.find_first_not_of(' ', gap), line.size());
    HelpOption option;
    option.help = line.substr(text);
    line = line.substr(0, gap);
    const std::size_t blank = std::min(line.find(' '), line.size());
    option.type = line.substr(std::min(blank + 1, line.size()));
    std::string_view names = line.substr(0, blank);
    const std::size_t comma = names.find(',');
    if (comma != std::string_view::npos) {
      option.shorter = names.substr(0, comma);
      names.remove_prefix(comma + 1);
    }
    (names.starts_with("--") ? option.name : option.shorter) = names;
    awaits_help = option.help.empty();
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace zklock::cli
