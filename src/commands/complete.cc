#include "commands/subcommands.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "commands/console.h"
#include "commands/output.h"
#include "commands/session_driver.h"
#include "lock/lock_names.h"
#include "process/event_loop.h"
#include "process/waker.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 300ms;
/// The part of it that is kept for closing the session. An unclosed one soon ends by itself.
constexpr Duration kCloseTime = 50ms;
constexpr Duration kSessionTimeout = 4s;

/// The LOCKs that begin with what is typed: absolute paths or paths below the root, as typed.
std::vector<std::string> FindLocks(cli::CompleteLock wanted, process::Signals& signals) {
  const bool absolute = wanted.typed.rfind('/', 0) == 0;
  const std::string below = wanted.server.root == "/" ? "/" : wanted.server.root + "/";
  const std::string typed = absolute ? wanted.typed : below + wanted.typed;
  const auto above = lock::LockName::In(wanted.server.servers.chroot, protocol::ParentOf(typed));

  const SystemClock clock;
  const TimePoint begin = clock.Now();
  wanted.server.session_timeout = kSessionTimeout;
  process::EventLoop loop;
  SessionDriver session_driver(loop, wanted.server, clock);
  lock::LockNames names(session_driver.session(), clock, above, kPatience);
  loop.Add(names);
  process::Waker deadline(begin + kPatience - kCloseTime);
  loop.Add(deadline);
  const auto time_is_over = [&] { return clock.Now() >= begin + kPatience - kCloseTime; };
  (void)RunUntil(loop, signals,
                 [&] { return names.IsOver() || session_driver.IsHopeless() || time_is_over(); });
  loop.Remove(deadline);
  loop.Remove(names);
  session_driver.session().BeginClose();
  process::Waker last(begin + kPatience);
  loop.Add(last);
  while (!session_driver.session().IsClosed() && clock.Now() < begin + kPatience) loop.RunOnce();

  std::vector<std::string> locks;
  for (const std::string& lock : names.paths()) {
    // zklock would refuse other names; those that it accepts are safe to print.
    if (lock.rfind(typed, 0) != 0 ||
        !std::holds_alternative<std::string>(protocol::CheckAbsolutePath(lock))) {
      continue;
    }
    locks.push_back(absolute ? lock : lock.substr(below.size()));
  }
  std::sort(locks.begin(), locks.end());
  return locks;
}

}  // namespace

int Complete(const cli::Completion& completion, process::Signals& signals) {
  std::string text;
  if (std::holds_alternative<cli::CompleteFile>(completion)) {
    text = ":files\n";
  } else if (const auto* command = std::get_if<cli::CompleteCommand>(&completion)) {
    text = ":command " + std::to_string(command->first_word) + "\n";
  } else if (const auto* lock = std::get_if<cli::CompleteLock>(&completion)) {
    for (const std::string& path : FindLocks(*lock, signals)) text += path + "\n";
  } else {
    for (const auto& [word, help] : std::get<cli::CompleteWords>(completion).candidates) {
      text += word + (help.empty() ? "" : "\t" + help) + "\n";
    }
  }
  Output output;
  output.Append(text);
  process::EventLoop loop;
  loop.Add(output);
  (void)RunUntil(loop, signals, [&output] { return output.IsDone(); });
  return kExitOk;
}

}  // namespace zklock::commands
