#include "commands/session/failure_end.h"

#include "cli/reports/report_reasons.h"

namespace zklock::commands {

using cli::EndReason;
using cli::EndRun;

cli::RunEnd FailureEnd::operator()(const lock::Unreachable& /*unreachable*/) const {
  return EndRun(
      EndReason::kUnreachable,
      cli::UnreachableText(session_driver_.Tried(), connect_timeout_, session_driver_.IsHopeless(),
                           session_driver_.names_no_server(), session_driver_.proxy_command(),
                           session_driver_.proxy_failure()));
}

cli::RunEnd FailureEnd::operator()(const lock::TooSlow& slow) const {
  return EndRun(EndReason::kUnreachable, cli::TooSlowText(lock_, slow));
}

cli::RunEnd FailureEnd::operator()(const lock::Refused& refused) const {
  const std::string refusal = session_driver_.session().HelperRefusal();
  if (!refusal.empty()) return EndRun(EndReason::kRefused, cli::SaslText(refusal));
  const bool is_close_refused = session_driver_.session().IsCloseRefused();
  if (refused.error == zookeeper::Error::kAuthFailed && !is_close_refused) {
    return EndRun(EndReason::kRefused, session_driver_.credentials_refused());
  }
  return EndRun(EndReason::kRefused, is_close_refused
                                         ? cli::OtherSchemeText()
                                         : cli::RefusedText(refused, session_driver_.identity()));
}

cli::RunEnd FailureEnd::operator()(const lock::Unusable& unusable) const {
  return EndRun(EndReason::kUnusable, cli::UnusableText(lock_, unusable));
}

cli::RunEnd FailureEnd::operator()(const lock::QuotaExceeded& quota) const {
  return EndRun(EndReason::kUnusable, cli::QuotaText(quota));
}

cli::RunEnd FailureEnd::operator()(const lock::Defect& defect) const {
  return EndRun(EndReason::kDefect, cli::DefectText(defect));
}

}  // namespace zklock::commands
