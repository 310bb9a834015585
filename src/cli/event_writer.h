#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "cli/step.h"
#include "process/line_writer.h"

namespace zklock::cli {

/// What --events names: the number of a descriptor that zklock was started with, which it takes
/// over (0 to 2 stay the command's too), or a file to append to. The command inherits neither.
/// Throws for a number that is not open for writing: ConfigError where `place` says the file and
/// line that name it, else UsageError; std::system_error for a file that cannot be opened.
[[nodiscard]] UniqueFd OpenEvents(const std::string& target, const std::string& place);

/// One step as --events writes it, without its end: a JSON object on one line.
struct EventContext {
  std::string time;                    ///< RFC 3339
  std::optional<std::string> lock;     ///< as the user knows it; none: the step is of several
  std::optional<lock::Ticket> ticket;  ///< of our contender there, while there is one
  bool queued_anew = false;            ///< the session before expired in the queue
  std::size_t dropped = 0;             ///< events before this one that the reader left no room for
};
/// None for a step that is no event.
[[nodiscard]] std::optional<std::string> EventLine(const Step& step, const EventContext& context);

/// "2024-03-01T14:03:11.042Z".
[[nodiscard]] std::string Rfc3339(std::chrono::system_clock::time_point time);

/// Writes the steps of a run, as they come, to whoever reads --events: without ever waiting for the
/// reader. Events that find no room are dropped whole, and counted in the next one that does.
class EventWriter final : public StepListener, public EventSource {
 public:
  /// `locks` of the run, as the user knows them.
  EventWriter(UniqueFd fd, std::vector<std::string> locks)
      : fd_(std::move(fd)), writer_(fd_.get()), locks_(std::move(locks)) {}

  void OnStep(const Step& step) override;
  /// At the end, when nothing is held any more: waits for the reader, but not for ever.
  void Finish();

  Interest GetInterest() override { return writer_.GetInterest(); }
  void OnReady(short revents) override { writer_.OnReady(revents); }

 private:
  void Write(const Step& step);

  UniqueFd fd_;
  process::LineWriter writer_;
  const std::vector<std::string> locks_;
  std::map<std::string, lock::Ticket> tickets_;  // by LOCK
  std::set<std::string> places_lost_;            // LOCKs
  std::size_t dropped_ = 0;
  std::optional<Step> last_dropped_;
};

}  // namespace zklock::cli
