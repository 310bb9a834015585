#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "cli/reports/event.h"
#include "process/loop/stream_writer.h"

namespace zklock::cli {

/// Opens the target of --events: a file to append to, or the number of a descriptor that zklock was
/// started with, which it takes over. The command does not inherit it, except for descriptors 0 to
/// 2. If that descriptor is not open for writing, throws UsageError, or ConfigError if `place`
/// names the file and line that set the number. `subcommand`: whose help the error names. Throws
/// std::system_error for a file that cannot be opened.
[[nodiscard]] UniqueFd OpenEvents(const std::string& target, const std::string& place,
                                  const std::string& subcommand);

/// The parts of an event's JSON object that the event itself does not contain.
struct EventContext {
  std::string time;                      ///< RFC 3339
  std::optional<lock::Ticket> ticket{};  ///< our contender's, while there is one
  std::size_t dropped = 0;               ///< events dropped before this one
};
/// Formats an event, which must have a name, as --events writes it: a JSON object on one line,
/// without the newline.
[[nodiscard]] std::string EventLine(const EventText& event, const EventContext& context);

/// Writes the events of a run to the target of --events. Only Finish() waits for the reader. An
/// event that does not fit is dropped whole; the next one written says how many were dropped.
class EventWriter final : public EventListener, public EventSource {
 public:
  /// `locks`: all LOCKs of the run, as the user knows them. `takes_one`: the run acquires only
  /// one of them, and all later events are about that one.
  EventWriter(UniqueFd fd, std::vector<std::string> locks, bool takes_one = false)
      : fd_(std::move(fd)), writer_(fd_.get()), locks_(std::move(locks)), takes_one_(takes_one) {}

  void OnEvent(const Event& event) override;
  /// Waits for the reader, but not forever. Call this at the end, when nothing is held any longer.
  /// Returns why the last events were not written; empty if they were, or the reader has gone.
  [[nodiscard]] std::string Finish();

  Interest GetInterest() override { return writer_.GetInterest(); }
  void OnReady(short revents) override { writer_.OnReady(revents); }

 private:
  void Write(const EventText& event);

  UniqueFd fd_;
  process::StreamWriter writer_;
  std::vector<std::string> locks_;
  const bool takes_one_;
  std::map<std::string, lock::Ticket> tickets_;  // by LOCK
  std::size_t dropped_ = 0;
  std::optional<EventText> last_dropped_;
};

}  // namespace zklock::cli
