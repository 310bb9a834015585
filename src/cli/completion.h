#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace zklock::cli {

/// One word that fits, and what it is for.
struct Candidate {
  std::string word;
  std::string help;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Words of ours, none where nothing is known that fits.
struct CompleteWords {
  std::vector<Candidate> candidates;
};
/// A file's name, as the shell itself completes it.
struct CompleteFile {};
/// A command line of its own, which begins at the word of this index.
struct CompleteCommand {
  std::size_t first_word = 0;
};
/// A LOCK, to be looked for on the servers.
struct CompleteLock {
  ServerOptions server;
  std::string root;   ///< where LOCKs without a slash are
  std::string typed;  ///< what there is of it
};

using Completion = std::variant<CompleteWords, CompleteFile, CompleteCommand, CompleteLock>;

/// What fits in the place of the last of `words`, those behind `zklock` up to the cursor; the last
/// is empty at the start of a new one. The options are those that --help shows: there is no second
/// list of them. Never throws for what is typed.
[[nodiscard]] Completion Complete(const std::vector<std::string>& words);

/// An option as a line of --help shows it.
struct HelpOption {
  std::string shorter;  ///< "-w", or empty
  std::string name;     ///< "--wait", or empty: "-c" has none
  std::string type;     ///< "DURATION", or empty for a flag
  std::string help;
  friend bool operator==(const HelpOption&, const HelpOption&) = default;
};
/// Those of a subcommand's help.
[[nodiscard]] std::vector<HelpOption> ReadHelpOptions(const std::string& help);

}  // namespace zklock::cli
