#include "commands/inspect/servers_report.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exit_status.h"
#include "cli/reports/report_reasons.h"
#include "cli/servers/servers_messages.h"
#include "cli/servers/servers_view.h"
#include "cli/text/queue_messages.h"
#include "commands/inspect/server_visit.h"
#include "commands/session/console.h"
#include "commands/session/output.h"
#include "lock/data/reserved.h"
#include "process/transport/name_lookup.h"
#include "process/transport/transport_helper.h"
#include "process/tree/identity.h"
#include "zookeeper/server_answers.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

constexpr int kExitToFix = 1;
// The time for closing the sessions. Those not closed by then expire.
constexpr Duration kCloseTime = 1s;

/// Finds out whether a server knows another server's session: if so, both belong to one ensemble.
class SessionRecognition final : public zookeeper::StoreListener {
 public:
  explicit SessionRecognition(zookeeper::Session& session) : session_(session) {
    session_.SetListener(this);
  }
  ~SessionRecognition() override { session_.SetListener(nullptr); }

  [[nodiscard]] const std::optional<bool>& known() const { return known_; }
  [[nodiscard]] bool IsOver() const { return known_ || session_.failed_rounds() > 0; }

  void OnConnected(bool /*fresh*/) override { known_ = true; }
  void OnExpired() override { known_ = false; }

 private:
  zookeeper::Session& session_;
  std::optional<bool> known_;
};

/// Returns a unique path below `parent` for a znode that is created and deleted in one transaction.
std::string UniqueStampPath(const std::string& parent) {
  return (parent == "/" ? "" : parent) + "/" + lock::kStampPrefix + process::MakeUuid();
}

class ServersInspection {
 public:
  ServersInspection(const cli::InspectOptions& options, process::Signals& signals,
                    cli::Report& report)
      : options_(options),
        signals_(signals),
        report_(report),
        began_(clock_.Now()),
        transport_(process::MakeTransport(options.server.transport)),
        word_transport_(process::MakeTransport(ForWords(options.server.transport))) {
    plan_.session_timeout = options.server.session_timeout;
    plan_.access = options.server.access;
    plan_.transport = transport_.get();
    plan_.word_transport = word_transport_.get();
    const std::string& chroot = options.server.servers.chroot;
    plan_.request.checked = chroot.empty() ? "/" : chroot;
    plan_.request.stamps = {
        UniqueStampPath(plan_.request.checked),
        UniqueStampPath(options.server.root == "/" ? plan_.request.checked
                                                   : chroot + options.server.root)};
    // The chroot might not exist.
    if (!chroot.empty()) plan_.request.stamps.push_back(UniqueStampPath("/"));
    // A proxy command may log in to another host: do not do that twenty times.
    if (!options.server.transport.proxy_command.empty()) plan_.request.connects = 1;
    // The rest of the time is for comparing the servers.
    plan_.deadline = After(began_, options.server.connect_timeout / 4 * 3);
    result_.root = options.server.root;
    result_.chroot = chroot;
    result_.facts.asked = options.server.session_timeout;
  }

  int Run() {
    for (const auto step : {&ServersInspection::LookUp, &ServersInspection::Visit,
                            &ServersInspection::Compare, &ServersInspection::CloseLast}) {
      if (const auto signal = (this->*step)()) return InterruptedBy(*signal, report_);
    }
    return Print();
  }

 private:
  using Signal = std::optional<int>;

  struct Target {
    zookeeper::Endpoint endpoint;
    std::string reason;  ///< why the name has no address; empty: it has one
  };

  /// Returns `spec` without SASL: servers answer four-letter words before any authentication.
  static process::TransportSpec ForWords(process::TransportSpec spec) {
    spec.sasl.clear();
    spec.sasl_secret.clear();
    return spec;
  }

  Signal RunTo(TimePoint deadline, const std::function<bool()>& is_done) {
    return RunUntil(loop_, signals_, is_done, deadline);
  }

  Signal LookUp() {
    const auto& servers = options_.server.servers.servers;
    if (!options_.server.transport.proxy_command.empty()) {
      for (const zookeeper::Server& server : servers) {
        Add({server.host + ":" + server.port, zookeeper::ToString(server)});
      }
      return std::nullopt;
    }
    process::NameLookup lookup(servers);
    loop_.Add(lookup);
    // A name that does not resolve must leave time for the servers that have an address.
    const TimePoint enough = After(began_, options_.server.connect_timeout / 4);
    auto signal = RunTo(enough, [&] { return lookup.result().has_value(); });
    if (!signal) {
      signal = RunTo(plan_.deadline,
                     [&] { return lookup.result().has_value() || !lookup.found().empty(); });
    }
    loop_.Remove(lookup);
    if (signal) return signal;
    const auto& found = lookup.result() ? lookup.result()->endpoints : lookup.found();
    // Use the order of the user's list: the look-up does not keep it.
    for (const zookeeper::Server& server : servers) {
      const std::string name = zookeeper::ToString(server);
      const std::size_t before = targets_.size();
      for (const zookeeper::Endpoint& endpoint : found) {
        if (endpoint.name == name) Add(endpoint);
      }
      const bool is_known = std::any_of(targets_.begin(), targets_.end(), [&](const Target& one) {
        return one.endpoint.name == name;
      });
      if (targets_.size() == before && !is_known) {
        targets_.push_back({{"", name}, NoAddress(lookup, server)});
      }
    }
    return std::nullopt;
  }

  /// Adds a target unless it is already there: the user may have listed a server twice.
  void Add(const zookeeper::Endpoint& endpoint) {
    const bool is_known = std::any_of(targets_.begin(), targets_.end(), [&](const Target& target) {
      return target.endpoint == endpoint;
    });
    if (!is_known) targets_.push_back({endpoint, ""});
  }

  static std::string NoAddress(const process::NameLookup& lookup, const zookeeper::Server& server) {
    if (lookup.result()) {
      for (const process::LookupFailure& failure : lookup.result()->failures) {
        if (failure.server == server) return cli::LookupText(failure);
      }
    }
    return cli::LookingUpReason();
  }

  Signal Visit() {
    for (const Target& target : targets_) {
      visits_.push_back(target.reason.empty()
                            ? std::make_unique<ServerVisit>(loop_, clock_, target.endpoint, plan_)
                            : nullptr);
    }
    const auto signal = RunTo(plan_.deadline, [&] {
      bool is_over = true;
      for (const auto& visit : visits_) {
        if (visit == nullptr) continue;
        visit->Advance();
        is_over = is_over && visit->IsOver();
      }
      return is_over;
    });
    if (signal) return signal;
    for (std::size_t i = 0; i < targets_.size(); ++i) Take(targets_[i], visits_[i].get());
    return std::nullopt;
  }

  /// `visit`: null if the target has no address.
  void Take(const Target& target, ServerVisit* visit) {
    if (visit == nullptr) {
      result_.facts.servers.push_back({.name = target.endpoint.name});
      result_.texts.push_back(
          {.address = target.endpoint.name, .version = "", .reason = target.reason});
      return;
    }
    visit->Stop();
    result_.facts.servers.push_back(visit->Facts());
    result_.texts.push_back(visit->Texts());
    is_refused_ = is_refused_ || visit->is_refused();
    result_.facts.lacks_chroot = result_.facts.lacks_chroot || visit->lacks_chroot();
    if (visit->configuration()) {
      members_[result_.facts.servers.size() - 1] = zookeeper::ParseMembers(*visit->configuration());
    }
  }

  /// Chooses the newest configuration: a server that is no longer a member may have an older one.
  void ChooseMembers() {
    auto& facts = result_.facts;
    for (const auto& [place, members] : members_) {
      if (!members || facts.servers[place].same_ensemble == false) continue;
      if (!facts.members || facts.members->version < members->version) facts.members = members;
    }
  }

  /// Closes all sessions except that of the first server reached, and asks the other servers to
  /// continue that session, as a reconnect does: this is possible only within one ensemble.
  Signal Compare() {
    const auto has_reached = [](const auto& visit) {
      return visit != nullptr && visit->has_reached();
    };
    const auto first = std::find_if(visits_.begin(), visits_.end(), has_reached);
    if (first == visits_.end()) return std::nullopt;
    const auto first_place = static_cast<std::size_t>(first - visits_.begin());
    last_ = (*first)->session().credentials();
    last_endpoint_ = (*first)->endpoint();
    std::vector<zookeeper::Session*> others;
    for (const auto& visit : visits_) {
      if (visit != *first && has_reached(visit)) others.push_back(&visit->session());
    }
    for (zookeeper::Session* session : others) session->BeginClose();
    bool is_answered = false;
    (*first)->session().Check({plan_.request.checked}, [&](const zookeeper::Reply& reply) {
      is_answered = true;
      if (!zookeeper::IsLost(reply.error)) known_alive_ = reply.sent;
    });
    const auto signal = RunTo(clock_.Now() + kCloseTime, [&] {
      return is_answered &&
             std::all_of(others.begin(), others.end(), [](const zookeeper::Session* session) {
               return session->IsClosed() || session->IsCloseRefused();
             });
    });
    visits_.clear();
    if (signal || !last_) return signal;
    auto& servers = result_.facts.servers;
    servers[first_place].same_ensemble = true;
    // A local session is known only to its own server, even within one ensemble. Creating the stamp
    // has made this session global.
    if (!servers[first_place].clock) return std::nullopt;
    for (std::size_t i = first_place + 1; i < targets_.size(); ++i) {
      if (!servers[i].reached) continue;
      if (const auto stop = Recognize(i)) return stop;
    }
    return std::nullopt;
  }

  Signal Recognize(std::size_t place) {
    const TimePoint began = clock_.Now();
    zookeeper::Session session({targets_[place].endpoint}, plan_.session_timeout, clock_,
                               plan_.access, transport_.get());
    session.Adopt(*last_);
    SessionRecognition recognition(session);
    loop_.Add(session);
    const auto signal =
        RunTo(After(began_, options_.server.connect_timeout), [&] { return recognition.IsOver(); });
    loop_.Remove(session);
    const std::optional<bool> known = recognition.known();
    if (!known) return signal;
    if (*known) known_alive_ = began;
    const auto since_alive =
        known_alive_ ? std::optional(clock_.Now() - *known_alive_) : std::nullopt;
    result_.facts.servers[place].same_ensemble = protocol::IsSameEnsemble(
        *known, since_alive, protocol::ShortestGrant(result_.facts).value_or(Duration::zero()));
    return signal;
  }

  Signal CloseLast() {
    if (!last_) return std::nullopt;
    zookeeper::Session session({last_endpoint_}, plan_.session_timeout, clock_, plan_.access,
                               transport_.get());
    session.Adopt(*last_);
    session.BeginClose();
    loop_.Add(session);
    const auto signal = RunTo(clock_.Now() + kCloseTime,
                              [&] { return session.IsClosed() || session.IsCloseRefused(); });
    loop_.Remove(session);
    return signal;
  }

  int Print() {
    ChooseMembers();
    if (!options_.by_status) {
      const bool json = options_.form == cli::InspectOptions::Form::kJson;
      const cli::ViewStyle style{.width = OutputSize().columns, .colours = OutputHasColours()};
      const std::string text =
          json ? cli::ServersReportJson(result_) : cli::ServersReportText(result_, style);
      if (const auto status = PrintWhole(text, signals_, report_)) return *status;
    }
    return Status();
  }

  int Status() {
    const auto& servers = result_.facts.servers;
    if (std::none_of(servers.begin(), servers.end(),
                     [](const auto& server) { return server.reached; })) {
      report_.Error(cli::message::kNoServerReached);
      return is_refused_ ? kExitRefused : kExitUnavailable;
    }
    const auto findings = protocol::Judge(result_.facts);
    const bool fix = std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
      return protocol::ShouldBeFixed(finding.kind);
    });
    return fix ? kExitToFix : kExitOk;
  }

  const cli::InspectOptions& options_;
  process::Signals& signals_;
  cli::Report& report_;
  SystemClock clock_;
  const TimePoint began_;
  process::EventLoop loop_;
  const std::unique_ptr<zookeeper::Transport> transport_;       // null: TCP
  const std::unique_ptr<zookeeper::Transport> word_transport_;  // null: TCP
  VisitPlan plan_;
  std::vector<Target> targets_;                       // the rows of the report
  std::vector<std::unique_ptr<ServerVisit>> visits_;  // of the targets; null without an address
  std::optional<zookeeper::Credentials> last_;        // of the session that others continue
  zookeeper::Endpoint last_endpoint_;
  std::optional<TimePoint> known_alive_;  // when that session was last known to exist
  bool is_refused_ = false;
  std::map<std::size_t, std::optional<protocol::Members>> members_;  // as each server knows them
  cli::ServersReport result_;
};

}  // namespace

int ReportServers(const cli::InspectOptions& options, process::Signals& signals,
                  cli::Report& report) {
  return ServersInspection(options, signals, report).Run();
}

}  // namespace zklock::commands
