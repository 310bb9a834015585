#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cli/servers/servers_findings.h"
#include "lock/operations/server_measurement.h"
#include "process/loop/event_loop.h"
#include "zookeeper/session.h"
#include "zookeeper/transport.h"
#include "zookeeper/word_query.h"

namespace zklock::commands {

/// What all visits have in common.
struct VisitPlan {
  Duration session_timeout{};
  zookeeper::Access access;
  zookeeper::Transport* transport = nullptr;       ///< for the session; null: TCP
  zookeeper::Transport* word_transport = nullptr;  ///< for four-letter words; null: TCP
  lock::MeasurementRequest request;
  TimePoint deadline = kNever;
};

/// One server of the report: measures a session with this server alone, and sends it four-letter
/// words in the meantime.
class ServerVisit {
 public:
  /// Registers itself with `loop`. All references must outlive it.
  ServerVisit(process::EventLoop& loop, const Clock& clock, zookeeper::Endpoint endpoint,
              const VisitPlan& plan);
  ~ServerVisit();
  ServerVisit(const ServerVisit&) = delete;
  ServerVisit& operator=(const ServerVisit&) = delete;

  /// Sends the next word once the previous one has been answered. Call this after each round of the
  /// loop.
  void Advance();
  [[nodiscard]] bool IsOver() const;
  /// Stops asking; what is unknown remains unknown.
  void Stop();

  [[nodiscard]] bool has_reached() const { return measurement_.has_reached(); }
  /// Returns whether the servers refused the credentials.
  [[nodiscard]] bool is_refused() const { return measurement_.refusal().has_value(); }
  [[nodiscard]] bool lacks_chroot() const { return measurement_.lacks_checked(); }
  [[nodiscard]] zookeeper::Session& session() { return session_; }
  [[nodiscard]] const zookeeper::Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] const std::optional<std::string>& configuration() const {
    return measurement_.configuration();
  }

  [[nodiscard]] protocol::ServerFacts Facts() const;
  [[nodiscard]] cli::ServerTexts Texts() const;

 private:
  [[nodiscard]] bool IsSessionOver() const;
  void Ask();
  void TakeAnswer();
  [[nodiscard]] std::string Reason() const;

  process::EventLoop& loop_;
  const Clock& clock_;
  const zookeeper::Endpoint endpoint_;
  const VisitPlan& plan_;
  zookeeper::Session session_;
  lock::ServerMeasurement measurement_;
  std::size_t next_word_ = 0;
  std::unique_ptr<zookeeper::WordQuery> query_;
  // From the answers to the words.
  protocol::ServerFacts facts_;
  std::string version_;
};

}  // namespace zklock::commands
