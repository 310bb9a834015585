#pragma once

#include <string>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Writes lines to a descriptor that others may share, without ever blocking: a reader that has
/// stopped reading (a stalled pipe, Ctrl-S) must not keep a heartbeat from being sent. What cannot
/// be written waits, 64 KiB at most. A line of up to 4 KiB goes out in one piece. A reader that has
/// gone (PIPE is blocked in zklock) ends the writing, and nothing else.
class LineWriter final : public EventSource {
 public:
  /// `fd` stays the caller's, outlives this and keeps its mode: that is shared with others. Closed,
  /// or not open for writing: nobody to tell.
  explicit LineWriter(int fd);

  /// `line` without its end. False: there is no room, and it was dropped whole.
  bool WriteLine(const std::string& line);
  /// As WriteLine, for parts of a line on a terminal.
  bool Write(const std::string& text);
  [[nodiscard]] bool HasWaiting() const { return !waiting_.empty(); }
  /// From now on what is written is dropped, and nothing of ours is open.
  void Close();
  /// At the end, when nothing is held any more: waits for the reader, but not for ever.
  void Drain();

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Flush();
  [[nodiscard]] std::size_t WholeLines() const;

  /// A description of our own, non-blocking, where `fd` is a pipe or a terminal.
  UniqueFd own_;
  int fd_;
  bool is_socket_ = false;
  std::string waiting_;
};

}  // namespace zklock::process
