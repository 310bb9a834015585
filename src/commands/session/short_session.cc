#include "commands/session/short_session.h"

#include <variant>

#include "commands/session/exit.h"

namespace zklock::commands {

ShortSession::ShortSession(const cli::ServerOptions& options, process::Signals& signals,
                           cli::Report& report)
    : options_(options),
      signals_(signals),
      report_(report),
      session_driver_(loop_, options, clock_) {}

void ShortSession::Run(lock::ServerOperation& operation) {
  Serve(operation, [&operation] { return operation.IsOver(); });
  if (const auto status = Failure(operation)) throw Exit(*status);
}

void ShortSession::Serve(EventSource& source, const std::function<bool()>& is_done) {
  loop_.Add(source);
  const auto signal =
      RunUntil(loop_, signals_, [&] { return is_done() || session_driver_.IsHopeless(); });
  loop_.Remove(source);
  if (signal) throw Exit(InterruptedBy(*signal, report_));
  if (!is_done()) Fail(lock::Unreachable{});
}

bool ShortSession::LacksChroot() {
  const std::string& chroot = options_.servers.chroot;
  if (chroot.empty()) return false;
  return Ask([&chroot](lock::Calls& calls) {
    return calls.Repeat([&] { return calls.Get(chroot).error == zookeeper::Error::kNoNode; });
  });
}

void ShortSession::Fail(const lock::OperationFailure& failure) {
  const auto* refused = std::get_if<lock::Refused>(&failure);
  is_only_forbidden_ = refused != nullptr && refused->error == zookeeper::Error::kNoAuth;
  const cli::RunEnd end = EndOf(failure);
  report_.Explain(end);
  throw Exit(end.status);
}

std::optional<int> ShortSession::RunUntilLeft(lock::ServerOperation& operation,
                                              const std::function<bool()>& is_left,
                                              const AroundSuspension& around_suspension) {
  loop_.Add(operation);
  const auto signal = RunUntil(
      loop_, signals_,
      [&] { return operation.IsOver() || session_driver_.IsHopeless() || is_left(); }, kNever,
      around_suspension);
  loop_.Remove(operation);
  return signal;
}

std::optional<int> ShortSession::Failure(const lock::ServerOperation& operation) {
  const auto end = FailureEndOf(operation);
  if (!end) return std::nullopt;
  report_.Explain(*end);
  return end->status;
}

std::optional<cli::RunEnd> ShortSession::FailureEndOf(const lock::ServerOperation& operation) {
  if (operation.failure()) return EndOf(*operation.failure());
  if (!operation.IsOver() && session_driver_.IsHopeless()) return EndOf(lock::Unreachable{});
  return std::nullopt;
}

void ShortSession::Close() {
  // If the close is not confirmed, the session expires. That is harmless: it holds nothing.
  (void)session_driver_.Close();
}

cli::RunEnd ShortSession::EndOf(const lock::OperationFailure& failure) {
  // The close shows whether the servers would accept any credentials that zklock can use.
  const auto* refused = std::get_if<lock::Refused>(&failure);
  if (refused != nullptr && refused->error == zookeeper::Error::kAuthRequired) Close();
  return std::visit(FailureEnd(session_driver_, options_.connect_timeout, ""), failure);
}

}  // namespace zklock::commands
