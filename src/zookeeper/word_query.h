#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/event_source.h"
#include "base/unique_fd.h"
#include "zookeeper/server_list.h"
#include "zookeeper/transport.h"

namespace zklock::zookeeper {

/// Sends one four-letter word to one server. Each query has its own connection, which the server
/// closes after its answer. The answer may be any bytes: see zookeeper/server_answers.h.
class WordQuery final : public EventSource {
 public:
  enum class State {
    kConnecting,
    kReading,
    kAnswered,  ///< see answer()
    kTooLong,   ///< the answer is longer than `most`
    kFailed,    ///< no connection, or no answer in time
  };

  /// `most`: the maximum number of bytes to accept. `deadline`: when to give up. `transport`: null
  /// for TCP. Does not throw: a failed system call also counts as a failure.
  WordQuery(const Endpoint& endpoint, std::string_view word, std::size_t most, TimePoint deadline,
            const Clock& clock, Transport* transport);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool IsOver() const { return state_ > State::kReading; }
  [[nodiscard]] const std::string& answer() const { return answer_; }
  /// Returns the numeric address of this host that the server sees unless it is translated; empty
  /// with a transport.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Connect(const Endpoint& endpoint);
  void Start(const Endpoint& endpoint, Transport& transport);
  void Send();
  void Read();
  void End(State state);

  const std::string word_;
  const std::size_t most_;
  const TimePoint deadline_;
  const Clock& clock_;
  State state_ = State::kConnecting;
  UniqueFd socket_;
  std::unique_ptr<Helper> helper_;
  std::string answer_;
  std::string own_address_;
};

}  // namespace zklock::zookeeper
