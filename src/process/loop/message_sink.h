#pragma once

#include <unistd.h>

#include <string>

#include "base/event_source.h"
#include "process/loop/stream_writer.h"

namespace zklock::process {

/// Opens a placeholder for each standard stream that is closed, so that none of zklock's own
/// descriptors gets its number. Using the stream still fails, and the command finds it closed as
/// before. Must be called before anything else is opened.
void ReserveStandardStreams();

/// Writes zklock's messages to standard error without blocking (StreamWriter). Lines for which
/// there is no room are dropped, and a later line reports that. On a terminal, one line can be
/// live: it is redrawn in place, and the next message that is written erases it.
class MessageSink final : public EventSource {
 public:
  /// `dropped`: the line written in place of dropped lines.
  explicit MessageSink(std::string dropped, int fd = STDERR_FILENO)
      : dropped_line_(std::move(dropped)), writer_(fd) {}

  /// Writes `line` and a newline.
  void WriteLine(const std::string& line);
  /// Draws `line`, which must fit the terminal; does nothing while earlier output is still
  /// buffered.
  void DrawLive(const std::string& line);
  void EraseLive();
  /// Empties the live line, which stays live: the next message then also erases what the terminal
  /// itself has written there, such as the ^C of a key press.
  void ClearLive();
  /// Drops all messages from now on, which leaves the stream to other processes.
  void Close();
  /// Waits for the reader, up to a limit. For use at the end, when no lock is held any longer.
  void Drain();

  Interest GetInterest() override { return writer_.GetInterest(); }
  void OnReady(short revents) override;

 private:
  void ReportDropped();

  const std::string dropped_line_;
  StreamWriter writer_;
  bool is_live_ = false;
  bool dropped_ = false;
};

}  // namespace zklock::process
