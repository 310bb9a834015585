#include "commands/inspect/server_visit.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/reports/report_reasons.h"
#include "zookeeper/server_answers.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;
using protocol::WordEnd;
using zookeeper::WordQuery;

constexpr std::array<std::string_view, 3> kWords = {"srvr", "conf", "cons"};
// Even a server with ten thousand connections sends a shorter answer to `cons`.
constexpr std::size_t kMostAnswer = 2 << 20U;
// A word gets at least this much time, even if its share is smaller.
constexpr Duration kLeastWordTime = 3s;

Duration WallClock() { return std::chrono::system_clock::now().time_since_epoch(); }

/// Returns "[::1]:2181" for the client library's "::1:2181".
std::string AddressText(const zookeeper::Endpoint& endpoint) {
  const std::size_t colon = endpoint.address.rfind(':');
  return zookeeper::ToString(
      {.host = endpoint.address.substr(0, colon), .port = endpoint.address.substr(colon + 1)});
}

}  // namespace

ServerVisit::ServerVisit(process::EventLoop& loop, const Clock& clock, zookeeper::Endpoint endpoint,
                         const VisitPlan& plan)
    : loop_(loop),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      plan_(plan),
      session_({endpoint_}, plan.session_timeout, clock, plan.access, plan.transport),
      measurement_(
          session_, clock, WallClock, [this] { return session_.connect_took(); }, plan.request),
      facts_{.name = endpoint_.name} {
  loop_.Add(session_);
  Ask();
}

ServerVisit::~ServerVisit() {
  if (query_ != nullptr) loop_.Remove(*query_);
  loop_.Remove(session_);
}

void ServerVisit::Ask() {
  // A word that is not answered must not use up the time for the others. But a slow server, such as
  // one in its first TLS handshake, gets at least kLeastWordTime.
  const TimePoint now = clock_.Now();
  const Duration share =
      (plan_.deadline - now) / static_cast<Duration::rep>(kWords.size() - next_word_);
  query_ =
      std::make_unique<WordQuery>(endpoint_, kWords.at(next_word_), kMostAnswer,
                                  std::min(now + std::max(share, kLeastWordTime), plan_.deadline),
                                  clock_, plan_.word_transport);
  loop_.Add(*query_);
}

void ServerVisit::Advance() {
  if (query_ == nullptr || !query_->IsOver()) return;
  loop_.Remove(*query_);
  TakeAnswer();
  query_.reset();
  if (++next_word_ < kWords.size()) Ask();
}

void ServerVisit::TakeAnswer() {
  constexpr std::array<WordEnd protocol::ServerFacts::*, kWords.size()> kEnds = {
      &protocol::ServerFacts::srvr, &protocol::ServerFacts::conf, &protocol::ServerFacts::cons};
  WordEnd& end = facts_.*kEnds.at(next_word_);
  const std::string& answer = query_->answer();
  end = WordEnd::kUnusable;
  if (query_->state() != WordQuery::State::kAnswered) return;
  if (zookeeper::IsClosedWord(answer, kWords.at(next_word_))) {
    end = WordEnd::kClosed;
    return;
  }
  if (next_word_ == 0) {
    const auto state = zookeeper::ParseSrvr(answer);
    if (!state) return;
    facts_.role = state->role;
    version_ = state->version;
    facts_.is_old = protocol::IsOldVersion(version_);
  } else if (next_word_ == 1) {
    facts_.connection_limit = zookeeper::ParseConf(answer);
    if (!facts_.connection_limit) return;
  } else if (!query_->own_address().empty()) {
    facts_.connections = zookeeper::CountConnections(answer, query_->own_address());
    if (!facts_.connections) return;
    // Not even our own connection was found: the server sees us under another address.
    if (*facts_.connections == 0) facts_.connections.reset();
  }
  end = WordEnd::kAnswered;
}

bool ServerVisit::IsSessionOver() const {
  return measurement_.IsOver() || session_.failed_rounds() > 0;
}

bool ServerVisit::IsOver() const { return IsSessionOver() && query_ == nullptr; }

void ServerVisit::Stop() {
  if (query_ != nullptr) loop_.Remove(*query_);
  query_.reset();
  next_word_ = kWords.size();
}

std::string ServerVisit::Reason() const {
  if (has_reached()) return "";
  if (measurement_.refusal()) {
    std::string helpers = session_.HelperRefusal();
    if (!helpers.empty()) return helpers;
    lock::Refused refused;
    refused.error = *measurement_.refusal();
    return cli::RefusedText(refused, "");
  }
  const auto failures = session_.Failures();
  return failures.empty() ? cli::SilentReason() : cli::AttemptText(failures.front().end);
}

protocol::ServerFacts ServerVisit::Facts() const {
  protocol::ServerFacts facts = facts_;
  facts.reached = has_reached();
  facts.connect = measurement_.connects();
  facts.commit = measurement_.commits();
  facts.clock = measurement_.clock_offset();
  facts.is_local = measurement_.is_local();
  if (facts.reached) {
    facts.granted = session_.granted_timeout();
    // The server that creates a session puts its own number into the first byte of the id.
    facts.id = static_cast<int>(static_cast<std::uint64_t>(session_.session_id()) >> 56U);
  }
  return facts;
}

cli::ServerTexts ServerVisit::Texts() const {
  return {.address = AddressText(endpoint_), .version = version_, .reason = Reason()};
}

}  // namespace zklock::commands
