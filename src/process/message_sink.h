#pragma once

#include <unistd.h>

#include <string>

#include "base/event_source.h"
#include "process/line_writer.h"

namespace zklock::process {

/// Gives each standard stream that zklock was started without a placeholder that can be neither
/// read nor written to, so that no descriptor of zklock's own takes its number. The command finds
/// it closed as before. To be called before anything else is opened.
void ReserveStandardStreams();

/// zklock's messages, to standard error, as LineWriter writes: what finds no room is dropped, and
/// said so. On a terminal one line can be live: drawn again in place, and erased with any message
/// that is written.
class MessageSink final : public EventSource {
 public:
  /// `dropped`: the line that says that lines were dropped.
  explicit MessageSink(std::string dropped, int fd = STDERR_FILENO)
      : dropped_line_(std::move(dropped)), writer_(fd) {}

  /// `line` without its end.
  void WriteLine(const std::string& line);
  /// `line` fits the terminal. Not drawn while the terminal does not take what came before.
  void DrawLive(const std::string& line);
  void EraseLive();
  /// Empties the live line, which stays live: a message erases what the terminal itself writes
  /// there until then, as the ^C of a key that was pressed.
  void ClearLive();
  /// From now on what is said is dropped: the stream is somebody else's again.
  void Close();
  /// At the end, when nothing is held any more: waits for the reader, but not for ever.
  void Drain();

  Interest GetInterest() override { return writer_.GetInterest(); }
  void OnReady(short revents) override;

 private:
  void TellOfDropped();

  const std::string dropped_line_;
  LineWriter writer_;
  bool is_live_ = false;
  bool dropped_ = false;
};

}  // namespace zklock::process
