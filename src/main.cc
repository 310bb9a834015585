#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <variant>

#include "base/exit_status.h"
#include "cli/options/command_line.h"
#include "cli/options/completion.h"
#include "cli/options/config.h"
#include "cli/options/credentials.h"
#include "cli/reports/report.h"
#include "cli/text/printable.h"
#include "commands/complete.h"
#include "commands/inspect/inspect.h"
#include "commands/inspect/monitoring.h"
#include "commands/release.h"
#include "commands/run/run.h"
#include "commands/session/exit.h"
#include "commands/session/output.h"
#include "process/loop/message_sink.h"
#include "process/loop/signals.h"
#include "process/tree/cgroup.h"
#include "process/tree/process_tree.h"

namespace zklock {
namespace {

int Dispatch(const cli::ParsedCommandLine& line, process::Signals& signals,
             process::MessageSink& sink) {
  if (const auto* run = std::get_if<cli::RunOptions>(&line)) {
    cli::Report(sink, run->verbosity).UnusedConfig(run->server);
    return commands::Run(*run, signals, sink);
  }
  if (const auto* inspect = std::get_if<cli::InspectOptions>(&line)) {
    cli::Report report(sink, inspect->verbosity);
    report.UnusedConfig(inspect->server);
    return commands::Inspect(*inspect, signals, report);
  }
  if (const auto* release = std::get_if<cli::ReleaseOptions>(&line)) {
    cli::Report report(sink, release->verbosity);
    report.UnusedConfig(release->server);
    return commands::Release(*release, signals, report);
  }
  const std::string& text = std::get<cli::Text>(line).text;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return kExitOk;
  cli::Report report(sink, cli::Verbosity::kNormal);
  return commands::CannotPrint(errno, report);
}

cli::ParsedCommandLine Parse(int argc, char** argv, const process::Signals& signals) {
  const process::Interruptible reading(signals);  // a file that it names may be a FIFO
  return cli::ParseCommandLine(argc, argv);
}

cli::Completion ParseForCompletion(int argc, char** argv, const process::Signals& signals) {
  const process::Interruptible reading(signals);
  return cli::Complete({argv + 2, argv + argc});
}

int DispatchWords(int argc, char** argv, process::Signals& signals, process::MessageSink& sink) {
  const auto dispatch = [&] { return Dispatch(Parse(argc, argv, signals), signals, sink); };
  if (!cli::IsCheck(argc, argv)) return dispatch();
  try {
    return dispatch();
  } catch (const commands::Exit& exit) {
    return exit.status();
  } catch (const std::exception& error) {
    return commands::CheckFailed(error.what());
  }
}

int Main(int argc, char** argv) {
  process::ReserveStandardStreams();
  // Must come next: Signals saves the mask and dispositions, which the command gets back, before
  // anything changes them.
  process::Signals signals;
  process::MessageSink sink(cli::DroppedLine());
  cli::Report report(sink, cli::Verbosity::kNormal);
  int status = kExitInternal;
  try {
    if (argc > 1 && std::string_view(argv[1]) == "--complete") {
      status = commands::Complete(ParseForCompletion(argc, argv, signals), signals);
    } else {
      status = DispatchWords(argc, argv, signals, sink);
    }
  } catch (const commands::Exit& exit) {
    status = exit.status();
  } catch (const cli::UsageError& error) {
    report.Error(cli::UsageLines(error));
    status = kExitUsage;
  } catch (const cli::ConfigError& error) {
    report.Error(cli::Printable(error.what()));
    status = kExitConfiguration;
  } catch (const cli::UnsafeFile& error) {
    report.Error(cli::Printable(error.what()));
    status = kExitRefused;
  } catch (const process::CgroupUnavailable& error) {
    report.SystemRefused(error);
    status = kExitSystem;
  } catch (const process::NoProcessTree& error) {
    report.SystemRefused(error);
    status = kExitSystem;
  } catch (const std::system_error& error) {
    report.SystemRefused(error);
    status = kExitSystem;
  } catch (const std::bad_alloc&) {
    report.NoMemory();
    status = kExitSystem;
  } catch (const std::exception& error) {
    report.Defect(error.what());
  }
  sink.Drain();
  signals.DieOfTerminalSignal(status);
  return status;
}

}  // namespace
}  // namespace zklock

int main(int argc, char** argv) {
  try {
    return zklock::Main(argc, argv);
  } catch (const std::exception& error) {
    // There is no cli::Report yet.
    fmt::print(stderr, "zklock: {}\n", error.what());
    return zklock::kExitSystem;
  }
}
