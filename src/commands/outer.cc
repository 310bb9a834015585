#include "commands/outer.h"

#include <fmt/core.h>

#include <cstdlib>

#include "commands/visit.h"
#include "lock/held_check.h"
#include "process/ancestry.h"
#include "protocol/held.h"

namespace zklock::commands {

Outer LookForOuter(const cli::RunOptions& options, const lock::LockName& lock,
                   process::Signals& signals, cli::Report& report) {
  const char* variable = getenv("ZKLOCK_HELD");
  if (variable == nullptr) return NotHeldForUs{};
  const auto held = protocol::FindHeld(protocol::ParseHeld(variable), lock.path);
  if (!held || !process::IsLivingAncestor(held->pid, held->start_time)) return NotHeldForUs{};

  Visit visit(options.server, signals, report);
  lock::HeldCheck check(visit.store(), visit.clock(), lock, held->node,
                        options.server.connect_timeout);
  if (const auto status = visit.Run(check)) return *status;
  visit.Leave();
  if (!check.is_held()) return NotHeldForUs{};
  if (protocol::Covers(held->mode, options.mode)) return HeldForUs{};
  const std::string_view mode = protocol::ModeName(options.mode);
  throw cli::UsageError(
      fmt::format("{} is held for us as a reader, by a zklock above: {} would wait for itself for "
                  "ever",
                  lock.shown(), mode),
      std::string(mode));
}

}  // namespace zklock::commands
