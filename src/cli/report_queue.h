#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/queue_view.h"

namespace zklock::cli {

// What `inspect` and `release` say, each a line without "zklock: ". Paths are those that
// the user knows; names and data of contenders may be anybody's bytes.

/// "SIGTERM".
[[nodiscard]] std::string SignalName(int number);
/// Part of a tree may not be listed.
[[nodiscard]] std::string Unlistable(const std::vector<std::string>& paths);
/// What is on its way to standard output cannot be written.
[[nodiscard]] std::string CannotPrint(const std::string& why);
/// A signal came before all was done.
[[nodiscard]] std::string StoppedBy(int signal_number);

/// Who would lose the lock: state, mode, who and what as far as known.
[[nodiscard]] std::string Meant(const std::string& lock, const ContenderView& contender);
/// The question that follows, answered on the same line.
[[nodiscard]] std::string ReleaseQuestion();
/// Nobody can be asked.
[[nodiscard]] std::string WantsYes();
/// Such a child is not, or no longer, in the LOCK.
[[nodiscard]] std::string NotThere(const std::string& lock, const std::string& contender);
/// It is there, but deleting it would release nothing.
[[nodiscard]] std::string NoContender(const std::string& lock, const std::string& contender);
/// The user said no.
[[nodiscard]] std::string NothingReleased(const std::string& lock);
/// Nobody is meant.
[[nodiscard]] std::string NobodyThere(const std::string& lock);
/// The calling shell holds nothing.
[[nodiscard]] std::string NothingHeld(const std::string& lock);
/// Its keeper waits for so many nested runs; `pid` is one of them.
[[nodiscard]] std::string ReleaseWaits(const std::string& lock, std::size_t runs, std::int64_t pid);
/// The release would wait for the run that it is made in.
[[nodiscard]] std::string ReleaseBelow(const std::string& lock);
/// The process that is said to be its keeper does not answer.
[[nodiscard]] std::string KeeperSilent(const std::string& lock, std::int64_t pid);
/// Its program knows no such question.
[[nodiscard]] std::string CannotBeAsked(const ContenderView& contender);
/// Its program will see the question.
[[nodiscard]] std::string Asked(const std::string& lock, const ContenderView& contender);
/// Done, and what that means.
[[nodiscard]] std::string ForcedOut(const std::string& lock, const std::string& contender);

}  // namespace zklock::cli
