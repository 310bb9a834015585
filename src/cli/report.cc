#include "cli/report.h"

#include <fmt/core.h>

#include <cstring>
#include <system_error>

#include "cli/duration.h"
#include "cli/messages.h"
#include "cli/printable.h"
#include "cli/report_progress.h"

namespace zklock::cli {
namespace {

// Of a foreign word in a message, in columns.
constexpr std::size_t kMostShown = 60;

std::string ErrnoText(int error) { return std::generic_category().message(error); }

/// "root on web1 ('for a restart')".
std::string Asker(const RevokeData& revocation) {
  std::string by = revocation.by.empty() ? "somebody" : Printable(revocation.by, kMostShown);
  if (revocation.reason.empty()) return by;
  return fmt::format("{} ('{}')", by, Printable(revocation.reason, 2 * kMostShown));
}

}  // namespace

void Report::Error(const std::string& line) { sink_.WriteLine("zklock: " + line); }

void Report::Say(const std::string& line) {
  if (verbosity_ != Verbosity::kQuiet) Error(line);
}

void Report::Step(const std::string& line) {
  if (verbosity_ == Verbosity::kVerbose) Error(line);
}

void Report::CannotExecute(const std::string& command, process::ExecFailed failure) {
  if (process::ExitStatusOf(failure) == kExitNotFound) {
    Error(fmt::format("{}: command not found", Printable(command)));
  } else {
    Error(fmt::format("{}: cannot be executed: {}", Printable(command), ErrnoText(failure.error)));
  }
}

void Report::Unreachable(const std::string& tried, Duration time_out, bool hopeless) {
  if (hopeless) {
    Error(fmt::format("no ZooKeeper server of that name: {}; see --servers", Printable(tried)));
    return;
  }
  Error(
      fmt::format("no ZooKeeper server gave a session within {}: {}; "
                  "is one running there? see --servers",
                  FormatDuration(time_out), Printable(tried)));
}

void Report::NotTaken(const std::string& lock, const lock::Busy& busy, const RunOptions& options) {
  const std::string blocker =
      busy.blocker.empty()
          ? ""
          : fmt::format(" ({}, is before us)", WhoOf(busy.blocker, busy.blocker_data));
  switch (busy.why) {
    case lock::Busy::Why::kTaken:
      return Say(fmt::format("{} is taken{}; the command was not run", lock, blocker));
    case lock::Busy::Why::kWaitOver:
      return Say(fmt::format("{} did not become free within {}{}; the command was not run", lock,
                             FormatDuration(options.wait.value_or(Duration::zero())), blocker));
    case lock::Busy::Why::kQueueFull:
      return Say(fmt::format("{} has {} or more waiting already; the command was not run", lock,
                             options.max_queue.value_or(0)));
    case lock::Busy::Why::kSuperseded:
      return Say(
          fmt::format("a newer one waits for {} (--supersede); the command was not run", lock));
    case lock::Busy::Why::kRemoved:
      return Say(
          fmt::format("told to leave the queue of {}: our contender was deleted; "
                      "the command was not run",
                      lock));
  }
}

void Report::ToldToLeave(const std::string& lock, const RevokeData& revocation) {
  Say(fmt::format("told to leave the queue of {} by {}; the command was not run", lock,
                  Asker(revocation)));
}

void Report::Revoked(const std::string& lock, const RevokeData& revocation) {
  Error(fmt::format("told to let go of {} by {}: the command is ended", lock, Asker(revocation)));
}

void Report::NothingIsMine(const std::string& lock) {
  Say(lock.empty()
          ? "no zklock above this process holds anything; a shell that holds by --hold names "
            "the LOCK"
          : lock + " is not held for this process");
}

void Report::NoLongerMine(const std::string& lock) {
  Say(fmt::format("{} is no longer held for this process", lock));
}

void Report::TooRecent(const std::string& lock, const std::string& host, Duration ago,
                       const RunOptions& options) {
  Say(fmt::format("{} ran on {} {} ago, which is within --min-interval {}; the command was not run",
                  lock, Printable(host), FormatDuration(ago),
                  FormatDuration(options.min_interval.value_or(Duration::zero()))));
}

void Report::LostBeforeRun(const std::string& lock) {
  Say(fmt::format("{} was lost again before the command was run", lock));
}

void Report::NotRecorded(const std::string& lock) {
  Error(
      fmt::format("that {} ran could not be written down: --min-interval does not count it", lock));
}

void Report::Refused(const lock::Refused& refused) {
  using enum zookeeper::Error;
  const auto text = zookeeper::ErrorText(refused.error);
  if (refused.error == kAuthFailed || refused.error == kAuthRequired) {
    return Error(fmt::format("{}; see --auth-file", text));
  }
  if (refused.error == kInvalidAcl) {
    return Error(fmt::format("cannot {} {}: {}; see --acl", refused.operation, refused.path, text));
  }
  Error(fmt::format("the servers do not let us {} {}: {}: {} on {} is missing; see its ACL",
                    refused.operation, refused.path, text, refused.right, refused.right_path));
}

void Report::Unusable(const std::string& lock, const lock::Unusable& unusable) {
  Error(fmt::format("{} cannot be used: {}; {}", lock, Printable(unusable.reason),
                    Printable(unusable.remedy)));
}

void Report::Defect(const std::string& what) {
  Error(fmt::format("defect: {}; please report it", Printable(what)));
}

void Report::StoppedWhileWaiting(const std::string& lock, int signal_number) {
  Say(fmt::format("{} while waiting for {}; left the queue, the command was not run",
                  SignalName(signal_number), lock));
}

void Report::ShortSession(Duration granted) {
  Say(
      fmt::format("the servers grant a session time-out of only {}: an ordinary change of leader "
                  "may end the command; see --session-timeout",
                  FormatDuration(granted)));
}

void Report::Survivor(const process::Survivor& survivor) {
  Error(fmt::format("process {} ({}) could not be signalled and may still be running", survivor.pid,
                    Printable(survivor.name)));
}

void Report::LeftBehind(const process::Survivor& process) {
  Say(fmt::format("process {} ({}) outlives the command; the lock is let go all the same",
                  process.pid, Printable(process.name)));
}

void Report::GuardFailed() {
  Error("the process that guards the command was killed, or hung: the command was ended");
}

void Report::Stopping(const std::string& lock, Duration lease_left) {
  Error(fmt::format("stopped; {} stays ours for {} at the most, then the command is ended", lock,
                    FormatDuration(lease_left)));
}

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::string NoDescriptor(const std::string& number) {
  return fmt::format(message::kNoDescriptor, number);
}

std::string CannotOpenEvents(const std::string& file) {
  return fmt::format(message::kCannotAppend, Printable(file));
}

std::string UsageLines(const UsageError& error) {
  return fmt::format("{}\ntry 'zklock {}--help'", Printable(error.what()),
                     error.subcommand.empty() ? "" : error.subcommand + " ");
}

}  // namespace zklock::cli
