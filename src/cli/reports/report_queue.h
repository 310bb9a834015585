#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/text/queue_view.h"

namespace zklock::cli {

// The messages of `inspect` and `release`, without "zklock: ". Paths are as the user knows them;
// names and data of contenders may contain arbitrary bytes.

/// Returns "SIGTERM" for 15.
[[nodiscard]] std::string SignalName(int number);
/// Says that the servers do not allow zklock to list these paths.
[[nodiscard]] std::string Unlistable(const std::vector<std::string>& paths);
/// Says that a signal ended the subcommand early.
[[nodiscard]] std::string InterruptedBy(int signal_number);

/// Describes a contender that a release would affect: its state, mode and owner, as far as known.
[[nodiscard]] std::string DescribeTarget(const std::string& lock, const ContenderView& contender);
/// Describes a contender as the object of a sentence: "backup.sh (pid 31096, root on db2, for 2m,
/// 'nightly')", as far as known.
[[nodiscard]] std::string Described(const ContenderView& contender, std::int64_t now_ms);
/// Describes one of several contenders that a release would affect: "1. held: backup.sh (…)".
[[nodiscard]] std::string Listed(const ContenderView& contender, std::int64_t now_ms);
/// Asks whether to release all `contenders`, and says what that would do. `force`: delete them.
[[nodiscard]] std::string ReleaseQuestion(const std::string& lock,
                                          const std::vector<ContenderView>& contenders, bool force,
                                          std::int64_t now_ms);
/// Says that the LOCK does not have this child, or no longer has it.
[[nodiscard]] std::string ContenderNotFound(const std::string& lock, const std::string& contender);
/// Says that the child exists, but that deleting it would release nothing.
[[nodiscard]] std::string NoContender(const std::string& lock, const std::string& contender);
/// Says that the child exists, but that its name is not a contender's.
[[nodiscard]] std::string NoQueueNumber(const std::string& lock, const std::string& contender);
/// Says that the contender's program does not support release requests.
[[nodiscard]] std::string CannotBeAsked(const ContenderView& contender);
/// Says that the contender is a reservation, so it was not released.
[[nodiscard]] std::string StaysReserved(const std::string& lock, const ContenderView& contender);
/// Says that a holder was asked to release the lock, or a waiter to leave the queue.
[[nodiscard]] std::string ReleaseRequested(const std::string& lock, const ContenderView& contender,
                                           std::int64_t now_ms);
/// Says that the contender that was asked or deleted is gone.
[[nodiscard]] std::string Gone(const std::string& lock, const ContenderView& contender,
                               std::int64_t now_ms);
/// Says that a waiter that was to be released has acquired the lock.
[[nodiscard]] std::string HasAcquired(const std::string& lock, const ContenderView& contender,
                                      std::int64_t now_ms);
/// Says that the contender was deleted, and what that means.
[[nodiscard]] std::string ForcedOut(const std::string& lock, const ContenderView& contender);

}  // namespace zklock::cli
