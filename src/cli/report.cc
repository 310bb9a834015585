#include "cli/report.h"

#include <fmt/core.h>

#include <cstring>
#include <system_error>

#include "cli/contender_data.h"
#include "cli/duration.h"
#include "cli/printable.h"

namespace zklock::cli {
namespace {

// Of a foreign word in a message, in columns.
constexpr std::size_t kMostShown = 60;

std::string ErrnoText(int error) { return std::generic_category().message(error); }

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

/// "root's sleep, pid 3185 on web1, is before us", as far as its data tells; else its name.
std::string Blocker(const lock::Busy& busy) {
  const auto data = ParseContenderData(busy.blocker_data);
  if (!data || !data->host || !data->pid) {
    return fmt::format("{} is before us", Printable(busy.blocker, kMostShown));
  }
  return fmt::format("{}, pid {} on {}, is before us",
                     Printable(data->command.value_or("a command"), kMostShown), *data->pid,
                     Printable(*data->host, kMostShown));
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
  const std::string blocker = busy.blocker.empty() ? "" : fmt::format(" ({})", Blocker(busy));
  switch (busy.why) {
    case lock::Busy::Why::kTaken:
      return Say(fmt::format("{} is taken{}; the command was not run", lock, blocker));
    case lock::Busy::Why::kWaitOver:
      return Say(fmt::format("{} did not become free within {}{}; the command was not run", lock,
                             FormatDuration(options.wait.value_or(Duration::zero())), blocker));
    case lock::Busy::Why::kRemoved:
      return Say(
          fmt::format("told to leave the queue of {}: our contender was deleted; "
                      "the command was not run",
                      lock));
  }
}

void Report::Refused(const lock::Refused& refused) {
  Error(fmt::format("the servers do not let us {} {}: {}; see its ACL (getAcl {})",
                    refused.operation, refused.path, zookeeper::ErrorText(refused.error),
                    refused.path));
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

void Report::Stranger(const std::string& lock, const protocol::Stranger& stranger) {
  Error(fmt::format("{}: '{}', which came later, is {}: both may hold; {}", lock,
                    Printable(stranger.child), stranger.reason, stranger.remedy));
}

void Report::PlaceLost(const std::string& lock) {
  Say(fmt::format("the session expired while waiting for {}: queued anew, at the tail", lock));
}

void Report::Queued(const std::string& contender) {
  Step(fmt::format("queued as {}", Printable(contender)));
}

void Report::Waiting(const std::string& lock, const std::string& predecessor, std::size_t ahead) {
  Step(fmt::format("waiting for {}: {} ahead, next to go {}", lock, ahead, Printable(predecessor)));
}

void Report::Acquired(const lock::Ticket& ticket) {
  Step(fmt::format("{} is ours ({}, token {})", ticket.lock.shown(),
                   protocol::ModeName(ticket.mode), ticket.token));
}

void Report::Nested(const std::string& lock) {
  Step(fmt::format("{} is held for us by a zklock above: going on under it", lock));
}

void Report::Started(const std::string& command, pid_t pid) {
  Step(fmt::format("running {} (pid {})", Printable(command), pid));
}

void Report::Suspect(const std::string& lock) {
  Step(fmt::format("{}: the server does not answer, trying another", lock));
}

void Report::Confirmed(const std::string& lock) {
  Step(fmt::format("{}: confirmed, still ours", lock));
}

void Report::Lost(const std::string& lock, lock::Loss loss, OnLost on_lost) {
  const char* consequence = on_lost == OnLost::kStop
                                ? "the command is ended"
                                : "the command runs on, and others may too (--on-lost warn)";
  const char* reason = "";
  switch (loss) {
    case lock::Loss::kRemoved:
      reason = "was taken away (our contender was deleted)";
      break;
    case lock::Loss::kExpired:
      reason = "is lost (the servers ended the session)";
      break;
    case lock::Loss::kUnproven:
      reason = "is lost (no server confirmed it in time)";
      break;
  }
  Error(fmt::format("{} {}: {}", lock, reason, consequence));
}

void Report::LeaseRanOut(const std::string& lock) {
  Error(
      fmt::format("{} could not be proven in time: the command was ended before its lease", lock));
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
  Error("the process that guards the command was killed: the command was ended");
}

void Report::Stopping(const std::string& lock, Duration lease_left) {
  Error(fmt::format("stopped; {} stays ours for {} at the most, then the command is ended", lock,
                    FormatDuration(lease_left)));
}

void Report::CommandEnded(int status) {
  Step(fmt::format("the command ended with status {}", status));
}

void Report::Released(const std::string& lock) { Step(fmt::format("{}: released", lock)); }

void Report::NotConfirmed(const std::string& lock) {
  Step(
      fmt::format("no server confirmed the release of {}: it is free when the session ends", lock));
}

std::string UsageLines(const UsageError& error) {
  return fmt::format("{}\ntry 'zklock {}--help'", Printable(error.what()),
                     error.subcommand.empty() ? "" : error.subcommand + " ");
}

}  // namespace zklock::cli
