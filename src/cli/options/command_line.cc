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

UsageError UnknownWord(const std::string& word) {
  std::vector<std::string> known = {"--help", "--version", std::string(PrintConfigSpec().name)};
  if (word.starts_with('-')) {
    return {fmt::format(message::kUnknownOption, word, DidYouMean(word, known, "")), ""};
  }
  known.clear();
  for (const SubcommandSpec& subcommand : SubcommandTable()) known.emplace_back(subcommand.name);
  return {fmt::format(message::kUnknownSubcommand, word,
                      DidYouMean(word, known, message::kKnownSubcommands)),
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
  if (subcommand == nullptr) throw UnknownWord(name);
  // What follows the first `--` is the command; it is not looked at.
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
  return std::find(words.begin(), end, "--check") != end;
}

}  // namespace zklock::cli
