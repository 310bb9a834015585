#include "commands/session/session_driver.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "cli/reports/report_reasons.h"
#include "process/transport/transport_helper.h"

namespace zklock::commands {
namespace {

using cli::EndReason;
using cli::EndRun;
using namespace std::chrono_literals;

// A signal ends zklock within a second, whatever the servers do.
constexpr Duration kCloseTimeout = 800ms;
constexpr Duration kLookupPause = 1s;

}  // namespace

SessionDriver::SessionDriver(process::EventLoop& loop, const cli::ServerOptions& options,
                             const Clock& clock, SessionForGuard* shared)
    : loop_(loop),
      clock_(clock),
      shared_(shared),
      servers_(options.servers),
      names_no_server_(options.names_no_server),
      proxy_command_(options.transport.proxy_command),
      identity_(cli::IdentityText(options.access, options.transport)),
      credentials_refused_(cli::CredentialsRefusedText(options.access)),
      looks_up_(options.transport.proxy_command.empty()),
      transport_(process::MakeTransport(options.transport)),
      session_({}, options.session_timeout, clock, options.access, transport_.get()) {
  session_.SetConnectTimeout(options.connect_timeout);
  loop_.Add(*this);
  loop_.Add(session_);
  if (looks_up_) {
    BeginLookup();
  } else {
    UseNames();
  }
}

SessionDriver::~SessionDriver() {
  loop_.Remove(session_);
  loop_.Remove(*this);
}

void SessionDriver::UseNames() {
  std::vector<zookeeper::Endpoint> endpoints;
  for (const zookeeper::Server& server : servers_.servers) {
    endpoints.push_back({server.host + ":" + server.port, zookeeper::ToString(server)});
  }
  session_.SetEndpoints(std::move(endpoints));
}

void SessionDriver::BeginLookup() {
  next_lookup_ = kNever;
  rounds_at_lookup_ = session_.failed_rounds();
  try {
    lookup_ = std::make_unique<process::NameLookup>(servers_.servers);
  } catch (const std::system_error&) {
    // This is not fatal: the lock may be held, the known addresses may be enough, and there is time
    // to try again.
    if (session_.endpoints().empty()) throw;
    next_lookup_ = clock_.Now() + kLookupPause;
    return;
  }
  has_names_ = !lookup_->result();
  if (lookup_->result()) {
    TakeLookup();
  } else {
    AddFound();
  }
}

void SessionDriver::AddFound() {
  std::vector<zookeeper::Endpoint> endpoints = session_.endpoints();
  const std::size_t known = endpoints.size();
  for (const zookeeper::Endpoint& found : lookup_->found()) {
    if (std::find(endpoints.begin(), endpoints.end(), found) == endpoints.end()) {
      endpoints.push_back(found);
    }
  }
  if (endpoints.size() > known) SetEndpoints(std::move(endpoints));
}

void SessionDriver::SetEndpoints(std::vector<zookeeper::Endpoint> endpoints) {
  session_.SetEndpoints(std::move(endpoints));
  if (shared_ != nullptr) shared_->UpdateAddresses(session_);
}

void SessionDriver::TakeLookup() {
  const process::LookupResult& result = *lookup_->result();
  lookup_failures_ = result.failures;
  std::vector<zookeeper::Endpoint> endpoints = result.endpoints;
  // The last known address of a name that no longer resolves is better than none.
  for (const auto& failure : lookup_failures_) {
    const std::string name = zookeeper::ToString(failure.server);
    std::copy_if(session_.endpoints().begin(), session_.endpoints().end(),
                 std::back_inserter(endpoints),
                 [&](const zookeeper::Endpoint& endpoint) { return endpoint.name == name; });
  }
  SetEndpoints(std::move(endpoints));
  is_hopeless_ = session_.endpoints().empty() &&
                 std::all_of(lookup_failures_.begin(), lookup_failures_.end(),
                             [](const auto& failure) { return failure.permanent; });
  if (session_.endpoints().empty()) next_lookup_ = clock_.Now() + kLookupPause;
  lookup_.reset();
}

std::string SessionDriver::Tried() const {
  if (!tried_before_close_.empty()) return tried_before_close_;
  std::vector<cli::TriedServer> tried;
  for (const auto& failure : session_.Failures()) {
    tried.push_back({failure.server, cli::AttemptText(failure.end)});
  }
  for (const auto& failure : lookup_failures_) {
    tried.push_back({zookeeper::ToString(failure.server), cli::LookupText(failure)});
  }
  for (const auto& server : servers_.servers) {
    const std::string name = zookeeper::ToString(server);
    const bool has_address =
        std::any_of(session_.endpoints().begin(), session_.endpoints().end(),
                    [&](const zookeeper::Endpoint& endpoint) { return endpoint.name == name; });
    if (lookup_ != nullptr && !has_address) tried.push_back({name, cli::LookingUpReason()});
  }
  // No attempt has failed: the last server granted a session, but does not answer.
  if (tried.empty()) tried.push_back({session_.last_server(), cli::SilentReason()});
  return cli::TriedText(tried);
}

bool SessionDriver::HasUselessSession() const {
  if (!tried_before_close_.empty()) return had_useless_session_;
  const std::vector<zookeeper::AttemptFailure> failures = session_.Failures();
  if (failures.empty() && lookup_failures_.empty()) return !session_.last_server().empty();
  return std::any_of(failures.begin(), failures.end(), [](const auto& failure) {
    using How = zookeeper::AttemptEnd::How;
    const How how = failure.end.how;
    return how == How::kClosesOnRequest || how == How::kThrottles || how == How::kNotUnderstood;
  });
}

std::optional<Duration> SessionDriver::Close(std::size_t releases) {
  had_useless_session_ = HasUselessSession();
  tried_before_close_ = Tried();
  session_.BeginClose(releases);
  loop_.RunUntil(clock_.Now() + kCloseTimeout,
                 [this] { return session_.IsClosed() || session_.IsCloseRefused(); });
  // If this process got no CPU time, the answer may have arrived although the time has run out.
  if (!session_.IsClosed()) loop_.RunReady();
  // If the servers refuse the close, they would refuse the guard's too.
  const bool is_answered = session_.IsClosed() || session_.IsCloseRefused();
  if (shared_ != nullptr && is_answered) shared_->Clear();
  return unconfirmed();
}

EventSource::Interest SessionDriver::GetInterest() {
  if (lookup_ != nullptr) return lookup_->GetInterest();
  // A connection made in the meantime may have reset the count.
  rounds_at_lookup_ = std::min(rounds_at_lookup_, session_.failed_rounds());
  if (has_names_ && session_.failed_rounds() > rounds_at_lookup_) return {.wake = clock_.Now()};
  return {.wake = next_lookup_};
}

void SessionDriver::OnReady(short revents) {
  if (lookup_ != nullptr) {
    lookup_->OnReady(revents);
    if (lookup_->result()) {
      TakeLookup();
    } else {
      AddFound();
    }
    return;
  }
  if (!looks_up_) return;
  if (session_.failed_rounds() > rounds_at_lookup_ || clock_.Now() >= next_lookup_) BeginLookup();
}

cli::RunEnd FailureEnd::operator()(const lock::Unreachable& /*unreachable*/) const {
  if (session_driver_.HasUselessSession()) {
    return EndRun(EndReason::kUnreachable, cli::UselessSessionText(session_driver_.Tried()));
  }
  const auto& transport = session_driver_.transport_;
  const int proxy_failure = transport == nullptr ? 0 : transport->LastFailure();
  return EndRun(EndReason::kUnreachable,
                cli::UnreachableText(session_driver_.Tried(), connect_timeout_,
                                     session_driver_.IsHopeless(), session_driver_.names_no_server_,
                                     session_driver_.proxy_command_, proxy_failure));
}

cli::RunEnd FailureEnd::operator()(const lock::TooSlow& slow) const {
  return EndRun(EndReason::kUnreachable, cli::TooSlowText(lock_, slow));
}

cli::RunEnd FailureEnd::operator()(const lock::Refused& refused) const {
  const std::string refusal = session_driver_.session_.HelperRefusal();
  if (!refusal.empty()) return EndRun(EndReason::kRefused, cli::SaslText(refusal));
  const bool is_close_refused = session_driver_.session_.IsCloseRefused();
  if (refused.error == zookeeper::Error::kAuthFailed && !is_close_refused) {
    return EndRun(EndReason::kRefused, session_driver_.credentials_refused_);
  }
  return EndRun(EndReason::kRefused, is_close_refused
                                         ? cli::OtherSchemeText()
                                         : cli::RefusedText(refused, session_driver_.identity_));
}

cli::RunEnd FailureEnd::operator()(const lock::Unusable& unusable) const {
  return EndRun(EndReason::kUnusable,
                cli::UnusableText(unusable.lock.empty() ? lock_ : unusable.lock, unusable));
}

cli::RunEnd FailureEnd::operator()(const lock::QuotaExceeded& quota) const {
  return EndRun(EndReason::kUnusable, cli::QuotaText(quota));
}

cli::RunEnd FailureEnd::operator()(const lock::Defect& defect) const {
  return EndRun(EndReason::kDefect, cli::DefectText(defect));
}

}  // namespace zklock::commands
