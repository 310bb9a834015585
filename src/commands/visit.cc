#include "commands/visit.h"

#include <variant>

#include "base/exit_status.h"

namespace zklock::commands {

Visit::Visit(const cli::ServerOptions& options, process::Signals& signals, cli::Report& report)
    : options_(options), signals_(signals), report_(report), connector_(loop_, options, clock_) {}

std::optional<int> Visit::Run(lock::Errand& errand) {
  const auto signal = RunUntilLeft(errand, [] { return false; });
  if (signal) return StoppedBy(*signal, report_);
  return Failure(errand);
}

std::optional<int> Visit::RunUntilLeft(lock::Errand& errand, const std::function<bool()>& left,
                                       const AroundStop& around_stop) {
  loop_.Add(errand);
  const auto signal = RunUntil(
      loop_, signals_, [&] { return errand.IsOver() || connector_.IsHopeless() || left(); },
      around_stop);
  loop_.Remove(errand);
  return signal;
}

std::optional<int> Visit::Failure(const lock::Errand& errand) {
  if (errand.failure()) return Explain(*errand.failure());
  if (!errand.IsOver() && connector_.IsHopeless()) return Explain(lock::Unreachable{});
  return std::nullopt;
}

void Visit::Leave() {
  // Unconfirmed it expires, and nothing of it stays.
  (void)connector_.Close();
}

int Visit::Explain(const lock::ErrandFailure& failure) {
  if (std::holds_alternative<lock::Unreachable>(failure)) {
    report_.Unreachable(connector_.Tried(), options_.connect_timeout, connector_.IsHopeless());
    return kExitUnavailable;
  }
  if (const auto* refused = std::get_if<lock::Refused>(&failure)) {
    // Whether any credentials would do shows when the session is closed.
    if (refused->error == zookeeper::Error::kAuthRequired) Leave();
    connector_.session().IsCloseRefused() ? report_.OtherSchemeWanted() : report_.Refused(*refused);
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
