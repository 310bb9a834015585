#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/option_table.h"
#include "lock/operations/lock_names.h"

namespace zklock::cli {

/// A possible completion, and its description.
struct Candidate {
  std::string word;
  std::string help;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Words that zklock itself knows; empty if none matches.
struct CompleteWords {
  std::vector<Candidate> candidates;
};
/// A file name, which the shell completes.
struct CompleteFile {};
/// The command to run, which the shell completes. `first_word`: the index of its first word in the
/// words given to Complete().
struct CompleteCommand {
  std::size_t first_word = 0;
};
/// A LOCK, to be looked up on the servers.
struct CompleteLock {
  ServerOptions server;
  std::string typed;
  bool only_used = false;  ///< offer only LOCKs in use
};
/// Returns the description of a LOCK in a completion: "free"; "in use, 2 waiting"; "in use by 3";
/// "2 of 3 permits used, 1 waiting".
[[nodiscard]] std::string LockUse(const lock::FoundLock& lock);

/// The ID of an existing reservation or the name of a contender, to be looked up on the servers.
struct CompleteFromQueue {
  enum class What { kReservations, kContenders };
  What what = What::kReservations;
  ServerOptions server;
  std::string lock;    ///< the LOCK to search, absolute; empty: all LOCKs below the root
  std::string typed;   ///< the beginning of the ID or name
  std::string before;  ///< "--reserve=" if option and value are one word
};

using Completion =
    std::variant<CompleteWords, CompleteFile, CompleteCommand, CompleteLock, CompleteFromQueue>;

/// Completes the last of `words`, which are the words after `zklock` up to the cursor; the last one
/// is empty at the start of a new word. The option table supplies the options and their values.
/// Never throws because of what was typed.
[[nodiscard]] Completion Complete(const std::vector<std::string>& words);

}  // namespace zklock::cli
