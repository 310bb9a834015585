#include "process/loop/message_sink.h"

#include <fcntl.h>

#include <utility>

namespace zklock::process {
namespace {

constexpr const char* kToLineStart = "\r";
constexpr const char* kEraseToEnd = "\x1b[K";
constexpr const char* kErase = "\r\x1b[K";

constexpr Duration kDrainPatience = std::chrono::seconds(5);

}  // namespace

void ReserveStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // open() returns the lowest free descriptor, which is this one: those below are in use.
    const int access = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", access | O_CLOEXEC) < 0) return;
  }
}

void MessageSink::WriteLine(const std::string& line) {
  // Written in one piece, so that the terminal's own output cannot land in the middle.
  const bool erases = std::exchange(is_live_, false);
  if (!writer_.WriteLine(erases ? kErase + line : line)) dropped_ = true;
  ReportDropped();
}

void MessageSink::DrawLive(const std::string& line) {
  if (writer_.waiting() > 0) return;
  is_live_ = true;
  // Overwriting the line and then erasing the rest of a longer one does not flicker.
  writer_.Write(kToLineStart + line + kEraseToEnd);
}

void MessageSink::EraseLive() {
  ClearLive();
  is_live_ = false;
}

void MessageSink::ClearLive() {
  if (is_live_) writer_.Write(kErase);
}

void MessageSink::Close() {
  EraseLive();
  writer_.Close();
}

void MessageSink::Drain() {
  writer_.Drain(kDrainPatience);
  ReportDropped();
}

void MessageSink::OnReady(short revents) {
  writer_.OnReady(revents);
  ReportDropped();
}

void MessageSink::ReportDropped() {
  if (!dropped_ || writer_.waiting() > 0) return;
  dropped_ = false;
  writer_.WriteLine(dropped_line_);
}

}  // namespace zklock::process
