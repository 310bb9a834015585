#pragma once

#include <unistd.h>

#include <string>

#include "base/event_source.h"
#include "process/loop/stream_writer.h"

namespace zklock::process {

/// Opens a placeholder, which can be neither read nor written, for each standard stream that is
/// closed, so that no descriptor of zklock's own gets its number. The command finds the stream
/// closed as before. To be called before anything else is opened.
void ReserveStandardStreams();

/// zklock's messages, to standard error, without blocking (StreamWriter): lines that find no room
/// are dropped, and a line says so later. On a terminal one line can be live: it is redrawn in
/// place, and erased by any message that is written.
class MessageSink final : public EventSource {
 public:
  /// `dropped`: the line written in place of dropped lines.
  explicit MessageSink(std::string dropped, int fd = STDERR_FILENO)
      : dropped_line_(std::move(dropped)), writer_(fd) {}

  /// `line` without the newline.
  void WriteLine(const std::string& line);
  /// `line` fits the terminal. Not drawn while earlier output still waits for the terminal.
  void DrawLive(const std::string& line);
  void EraseLive();
  /// Empties the live line, which stays live: the next message erases what the terminal itself
  /// writes there until then, such as the ^C of a key press.
  void ClearLive();
  /// Drops all messages from now on: the stream belongs to others again.
  void Close();
  /// At the end, when nothing is held any more: waits for the reader, but not forever.
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
