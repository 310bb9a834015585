#pragma once

#include <string>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Gives each standard stream that zklock was started without a placeholder that can be neither
/// read nor written to, so that no descriptor of zklock's own takes its number. The command finds
/// it closed as before. To be called before anything else is opened.
void ReserveStandardStreams();

/// Writes lines to standard error without ever blocking: a reader that has stopped reading (a
/// stalled pipe, Ctrl-S) must not keep a heartbeat from being sent. What cannot be written waits,
/// 64 KiB at most; what comes on top of that is dropped and said so.
class MessageSink final : public EventSource {
 public:
  MessageSink();

  /// `line` without its end.
  void WriteLine(const std::string& line);
  /// At the end, when nothing is held any more: waits for the reader, but not for ever.
  void Drain();

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Flush();

  /// A description of our own, non-blocking, where standard error is a pipe or a terminal; the mode
  /// of the inherited one is shared with the command and others and stays as it is.
  UniqueFd own_;
  int fd_ = 2;
  bool is_socket_ = false;
  std::string waiting_;
  bool dropped_ = false;
};

}  // namespace zklock::process
