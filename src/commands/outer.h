#pragma once

#include <variant>

#include "cli/options.h"
#include "cli/report.h"
#include "lock/ticket.h"
#include "process/signals.h"

namespace zklock::commands {

/// A zklock above us holds the LOCK for us: go on at once, under it.
struct HeldForUs {};
/// Nobody does: queue.
struct NotHeldForUs {};
/// Or the exit status, when that could not be found out; why has been said.
using Outer = std::variant<HeldForUs, NotHeldForUs, int>;

/// Whether a zklock above us holds `lock` for us: $ZKLOCK_HELD says so, it is a living ancestor,
/// and its contender is still there by a committed check. A copied environment, a daemon that
/// outlived its lock, or a lock that was lost makes us a stranger. Throws cli::UsageError where a
/// reader asks to write: it would wait for itself.
[[nodiscard]] Outer LookForOuter(const cli::RunOptions& options, const lock::LockName& lock,
                                 process::Signals& signals, cli::Report& report);

}  // namespace zklock::commands
