#include "cli/options/command_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/help.h"
#include "cli/options/subcommands.h"
#include "cli/text/messages.h"
#include "cli/text/suggestion.h"

namespace zklock::cli {
namespace {

/// Returns the error for `words` if the first of them is not a subcommand.
UsageError UnknownWord(const std::vector<std::string>& words) {
  const std::string& word = words.front();
  const std::string elsewhere = KnownElsewhere(word, "");
  if (word.starts_with('-')) {
    const SubcommandSpec* subcommand = nullptr;
    for (std::size_t i = 1; i < words.size() && subcommand == nullptr; ++i) {
      subcommand = FindSubcommand(words[i]);
    }
    const std::string name(subcommand != nullptr ? subcommand->name : "");
    const auto takers = SubcommandsWith(word);
    const bool is_option = subcommand == nullptr
                               ? !takers.empty() && elsewhere.empty()
                               : std::find(takers.begin(), takers.end(), name) != takers.end();
    if (is_option) {
      const std::string option = word.substr(0, word.find('='));
      return {fmt::format(message::kBelongsAfter, option, name.empty() ? "SUBCOMMAND" : name),
              name};
    }
    const std::vector<std::string> known = {"--help", "--version",
                                            std::string(PrintConfigSpec().name)};
    return {fmt::format(message::kUnknownOption, word,
                        elsewhere.empty() ? DidYouMean(word, known, "") : elsewhere),
            ""};
  }
  std::vector<std::string> known;
  for (const SubcommandSpec& subcommand : SubcommandTable()) known.emplace_back(subcommand.name);
  std::string meant = elsewhere;
  if (word.starts_with('/')) meant = fmt::format(message::kDidYouMean, "zklock exclusive " + word);
  return {fmt::format(message::kUnknownSubcommand, word,
                      meant.empty() ? DidYouMean(word, known, message::kKnownSubcommands) : meant),
          ""};
}

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) throw UsageError(message::kNoSubcommand, "");
  const std::string& name = words.front();
  if (name == "--help" || name == "-h") return Text{OverviewText()};
  if (name == "--version" || name == "-V") return Text{VersionText()};
  if (name == PrintConfigSpec().name) return ReadPrintConfig({words.begin() + 1, words.end()});
  const SubcommandSpec* subcommand = FindSubcommand(name);
  if (subcommand == nullptr) throw UnknownWord(words);
  // The command follows the first `--`; its words are not parsed.
  const auto end = std::find(words.begin() + 1, words.end(), "--");
  const std::vector<std::string> arguments(words.begin() + 1, end);
  std::optional<std::vector<std::string>> command;
  if (end != words.end()) command.emplace(end + 1, words.end());
  if (subcommand->RunsCommand()) return ReadRun(*subcommand, arguments, command);
  if (subcommand->bit == kInspect) return ReadInspect(arguments, command.has_value());
  return ReadRelease(arguments, command.has_value());
}

bool IsCheck(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words.front() != "inspect") return false;
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, [](const std::string& word) {
    return word == "--check" || word.starts_with("--check=");
  });
}

}  // namespace zklock::cli
