#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/option_table.h"
#include "lock/operations/lock_names.h"

namespace zklock::cli {

/// A word that fits, and its description.
struct Candidate {
  std::string word;
  std::string help;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Words that zklock knows; none if nothing fits.
struct CompleteWords {
  std::vector<Candidate> candidates;
};
/// A file name, which the shell completes.
struct CompleteFile {};
/// A command line of its own, which begins at the word of this index.
struct CompleteCommand {
  std::size_t first_word = 0;
};
/// A LOCK, to be looked up on the servers.
struct CompleteLock {
  ServerOptions server;
  std::string typed;
  bool only_used = false;  ///< a free one is of no use to the subcommand
};
/// What is offered beside a LOCK: "free"; "in use, 2 waiting"; "in use by 3"; "2 of 3 permits
/// used, 1 waiting".
[[nodiscard]] std::string LockUse(const lock::FoundLock& lock);

/// The ID of a reservation that stands, or the name of a contender, to be looked up on the servers.
struct CompleteFromQueue {
  enum class What { kReservations, kContenders };
  What what = What::kReservations;
  ServerOptions server;
  std::string lock;    ///< where to look: a LOCK, absolute; empty: all below the root
  std::string typed;   ///< of the ID or name
  std::string before;  ///< "--reserve=", if both are one word
};

using Completion =
    std::variant<CompleteWords, CompleteFile, CompleteCommand, CompleteLock, CompleteFromQueue>;

/// Completes the last of `words`, which are the words after `zklock` up to the cursor; the last one
/// is empty at the start of a new word. Options and their values are those of the table of options.
/// Never throws because of what is typed.
[[nodiscard]] Completion Complete(const std::vector<std::string>& words);

}  // namespace zklock::cli
