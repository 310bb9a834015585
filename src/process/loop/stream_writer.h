#pragma once

#include <cstddef>
#include <string>

#include "base/event_source.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// Writes text to a descriptor that may be shared with other processes, without ever blocking: a
/// reader that has stopped reading (a stalled pipe, Ctrl-S) must not delay a heartbeat. Text that
/// cannot be written yet is buffered. If the reader is gone (PIPE is blocked in zklock), or a write
/// fails for another reason, error() is set and text is dropped from then on.
class StreamWriter final : public EventSource {
 public:
  enum class Writers {
    kSeveral,  ///< others also write there: a line of up to 4 KiB is written in one piece
    kOne,      ///< each write is as large as possible
  };
  /// `fd` belongs to the caller and must outlive this object. Does not change its mode, which other
  /// processes share. If `fd` is closed or not open for writing, error() is EBADF.
  explicit StreamWriter(int fd, Writers writers = Writers::kSeveral);

  /// Writes or buffers `text`. If more than 64 KiB would then be buffered, drops all of `text` and
  /// returns false.
  bool Write(const std::string& text);
  /// Like Write(), with a newline added.
  bool WriteLine(const std::string& line) { return Write(line + '\n'); }
  /// Buffers `text`, without limit, until OnReady().
  void Append(const std::string& text);

  /// Returns the number of buffered bytes.
  [[nodiscard]] std::size_t waiting() const { return text_.size() - written_; }
  /// Returns an errno; 0 as long as writing is possible.
  [[nodiscard]] int error() const { return error_; }

  /// Drops the buffered text.
  void Discard();
  /// Drops the buffered text and all later text, and closes what this object has opened.
  void Close();
  /// Waits until all text is written. Gives up if the reader reads nothing for `patience`.
  void Drain(Duration patience);

  Interest GetInterest() override;
  void OnReady(short revents) override;

 private:
  void Flush();
  [[nodiscard]] std::size_t NextPiece() const;

  /// A separate, non-blocking file description, if `fd` is a pipe or a terminal.
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
