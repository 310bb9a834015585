#pragma once

#include <cstddef>
#include <string>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Writes text to a descriptor that may be shared with other processes, without ever blocking: a
/// reader that has stopped reading (a stalled pipe, Ctrl-S) must not delay a heartbeat. Text that
/// cannot be written yet waits here. If the reader is gone (PIPE is blocked in zklock), or a write
/// fails otherwise, error() is set and text is dropped from then on.
class StreamWriter final : public EventSource {
 public:
  enum class Writers {
    kSeveral,  ///< others may write there too: a line of up to 4 KiB is written in one piece
    kOne,      ///< writes as much at once as fits
  };
  /// `fd` belongs to the caller, outlives this object, and keeps its mode, which is shared with
  /// others. If it is closed or not open for writing, error() is EBADF.
  explicit StreamWriter(int fd, Writers writers = Writers::kSeveral);

  /// Writes `text`, or lets it wait. False: more than 64 KiB would be waiting, and it was dropped
  /// whole.
  bool Write(const std::string& text);
  /// As Write, with a newline added.
  bool WriteLine(const std::string& line) { return Write(line + '\n'); }
  /// Queues `text`, without a limit, until OnReady().
  void Append(const std::string& text);

  /// How many bytes wait.
  [[nodiscard]] std::size_t waiting() const { return text_.size() - written_; }
  /// errno's value; 0 as long as writing is possible.
  [[nodiscard]] int error() const { return error_; }

  /// Drops what waits.
  void Discard();
  /// Drops what waits and everything from now on, and leaves nothing open.
  void Close();
  /// Waits until all is written, as long as the reader takes something every `patience`.
  void Drain(Duration patience);

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Flush();
  [[nodiscard]] std::size_t NextPiece() const;

  /// A file description of its own, which does not block, if `fd` is a pipe or a terminal.
  UniqueFd own_;
  int fd_;
  const Writers writers_;
  bool is_socket_ = false;
  bool may_block_ = true;
  int error_ = 0;
  std::string text_;
  std::size_t written_ = 0;  // of `text_`
};

}  // namespace zklock::process
