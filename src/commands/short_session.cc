#include "commands/short_session.h"

#include <variant>

#include "base/exit_status.h"

namespace zklock::commands {

ShortSession::ShortSession(const cli::ServerOptions& options, process::Signals& signals,
                           cli::Report& report)
    : options_(options),
      signals_(signals),
      report_(report),
      session_driver_(loop_, options, clock_) {}

std::optional<int> ShortSession::Run(lock::ServerOperation& operation) {
  const auto signal = RunUntilLeft(operation, [] { return false; });
  if (signal) return StoppedBy(*signal, report_);
  return Failure(operation);
}

std::optional<int> ShortSession::RunUntilLeft(lock::ServerOperation& operation,
                                              const std::function<bool()>& is_left,
                                              const AroundStop& around_stop) {
  loop_.Add(operation);
  const auto signal = RunUntil(
      loop_, signals_,
      [&] { return operation.IsOver() || session_driver_.IsHopeless() || is_left(); }, around_stop);
  loop_.Remove(operation);
  return signal;
}

std::optional<int> ShortSession::Failure(const lock::ServerOperation& operation) {
  if (operation.failure()) return Explain(*operation.failure());
  if (!operation.IsOver() && session_driver_.IsHopeless()) return Explain(lock::Unreachable{});
  return std::nullopt;
}

void ShortSession::Close() {
  // If the close is not confirmed, the session expires; it holds nothing.
  (void)session_driver_.Close();
}

int ShortSession::Explain(const lock::OperationFailure& failure) {
  if (std::holds_alternative<lock::Unreachable>(failure)) {
    report_.Unreachable(session_driver_.Tried(), options_.connect_timeout,
                        session_driver_.IsHopeless());
    return kExitUnavailable;
  }
  if (const auto* refused = std::get_if<lock::Refused>(&failure)) {
    // The close shows whether the servers accept any credentials of ours.
    if (refused->error == zookeeper::Error::kAuthRequired) Close();
    session_driver_.session().IsCloseRefused() ? report_.OtherSchemeWanted()
                                               : report_.Refused(*refused);
    return kExitRefused;
  }
  if (const auto* quota = std::get_if<lock::QuotaExceeded>(&failure)) {
    report_.QuotaExceeded(*quota);
    return kExitConfiguration;
  }
  report_.Defect(std::get<lock::Defect>(failure));
  return kExitInternal;
}

}  // namespace zklock::commands
