#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/queue_view.h"

namespace zklock::cli {

// The messages of `inspect` and `release`, without "zklock: ". Paths are those that the user knows;
// names and data of contenders may contain arbitrary bytes.

/// "SIGTERM".
[[nodiscard]] std::string SignalName(int number);
/// The servers do not allow zklock to list these paths.
[[nodiscard]] std::string Unlistable(const std::vector<std::string>& paths);
/// Standard output cannot be written.
[[nodiscard]] std::string CannotPrint(const std::string& why);
/// A signal ended the subcommand early.
[[nodiscard]] std::string InterruptedBy(int signal_number);

/// A contender that a release would affect: its state, mode and owner, as far as known.
[[nodiscard]] std::string Meant(const std::string& lock, const ContenderView& contender);
/// The question that follows; the user answers on the same line.
[[nodiscard]] std::string ReleaseQuestion();
/// There is no terminal to ask on.
[[nodiscard]] std::string WantsYes();
/// The LOCK does not, or no longer, have this child.
[[nodiscard]] std::string NotThere(const std::string& lock, const std::string& contender);
/// The child exists, but deleting it would release nothing.
[[nodiscard]] std::string NoContender(const std::string& lock, const std::string& contender);
/// The user answered no.
[[nodiscard]] std::string NothingReleased(const std::string& lock);
/// No contender is of the requested kind.
[[nodiscard]] std::string NobodyThere(const std::string& lock);
/// The calling shell does not hold the LOCK.
[[nodiscard]] std::string NothingHeld(const std::string& lock);
/// The keeper waits for `runs` nested runs; `pid` is one of them.
[[nodiscard]] std::string ReleaseWaits(const std::string& lock, std::size_t runs, std::int64_t pid);
/// The release would wait for the run that it is part of.
[[nodiscard]] std::string ReleaseBelow(const std::string& lock);
/// The process that claims to be the keeper does not answer.
[[nodiscard]] std::string KeeperSilent(const std::string& lock, std::int64_t pid);
/// The contender's program does not support requests to release.
[[nodiscard]] std::string CannotBeAsked(const ContenderView& contender);
/// The contender was asked to release.
[[nodiscard]] std::string Asked(const std::string& lock, const ContenderView& contender);
/// The contender was deleted, and what that means.
[[nodiscard]] std::string ForcedOut(const std::string& lock, const std::string& contender);

}  // namespace zklock::cli
