#include "commands/session/run_context.h"

#include <vector>

namespace zklock::commands {
namespace {

std::unique_ptr<cli::EventWriter> OpenEventsFor(const cli::RunOptions& options) {
  if (options.events.empty()) return nullptr;
  std::vector<std::string> locks;
  for (const cli::WantedLock& wanted : options.locks) locks.push_back(wanted.path);
  return std::make_unique<cli::EventWriter>(
      cli::OpenEvents(options.events, options.events_place, options.subcommand), locks,
      options.any);
}

}  // namespace

RunContext::RunContext(const cli::RunOptions& its_options, process::Signals& its_signals,
                       process::MessageSink& its_sink)
    : options(its_options),
      signals(its_signals),
      sink(its_sink),
      report(sink, options.verbosity),
      event_writer(OpenEventsFor(options)),
      session_for_guard(options.server) {
  loop.Add(signals);
  loop.Add(sink);
  events.Add(report);
  if (event_writer) {
    loop.Add(*event_writer);
    events.Add(*event_writer);
  }
}

const process::Identity& RunContext::Self() {
  if (!self_) self_ = process::ThisProcess();
  return *self_;
}

int RunContext::End(const std::string& locks, const cli::RunEnd& end,
                    std::optional<Duration> unconfirmed) {
  events.Publish(cli::ReleasedEvent{locks, end.reason, end.status, unconfirmed});
  report.Explain(options.command.empty() ? cli::WithoutCommand(end) : end);
  return end.status;
}

lock::LockName RunContext::NameOf(const cli::WantedLock& wanted) const {
  return lock::LockName::In(options.server.servers.chroot, wanted.path);
}

void RunContext::ServeUntil(EventSource& source, TimePoint deadline,
                            const std::function<bool()>& is_done) {
  loop.Remove(signals);
  loop.Add(source);
  loop.RunUntil(deadline, is_done);
  loop.Remove(source);
  loop.Add(signals);
}

}  // namespace zklock::commands
