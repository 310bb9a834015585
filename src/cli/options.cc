#include "cli/options.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <string_view>

#include "cli/help.h"
#include "cli/messages.h"
#include "cli/subcommands.h"

namespace zklock::cli {
namespace {

constexpr std::array<std::string_view, 6> kSubcommands = {"exclusive", "read",    "write",
                                                          "try",       "inspect", "release"};

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) throw UsageError(message::kNoSubcommand, "");
  const std::string& name = words.front();
  if (name == "--help" || name == "-h") return Text{OverviewText()};
  if (name == "--version" || name == "-V") return Text{VersionText()};
  if (name == "--print-config") return ReadPrintConfig({words.begin() + 1, words.end()});
  if (std::find(kSubcommands.begin(), kSubcommands.end(), name) == kSubcommands.end()) {
    throw UsageError(name.rfind('-', 0) == 0 ? fmt::format(message::kUnknownOption, name)
                                             : fmt::format(message::kUnknownSubcommand, name),
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
