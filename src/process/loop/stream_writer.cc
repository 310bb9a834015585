#include "process/loop/stream_writer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace zklock::process {
namespace {

constexpr std::size_t kMostWaiting = 64 * 1024;

}  // namespace

StreamWriter::StreamWriter(int fd, Writers writers) : fd_(fd), writers_(writers) {
  struct stat status {};
  const int mode = fcntl(fd, F_GETFL);
  if (fstat(fd, &status) != 0 || mode < 0 || (mode & O_ACCMODE) == O_RDONLY) {
    error_ = EBADF;
    return;
  }
  is_socket_ = S_ISSOCK(status.st_mode);
  // Making the inherited description non-blocking would affect every process that shares it, so a
  // new one is opened. This is not done for a regular file: a new description would write from its
  // beginning.
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    own_.Reset(open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                    O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own_) fd_ = own_.get();
  }
  may_block_ = !own_ && !is_socket_ && !S_ISREG(status.st_mode);
}

void StreamWriter::Discard() {
  text_.clear();
  written_ = 0;
}

void StreamWriter::Close() {
  Discard();
  own_.Reset();
  error_ = EBADF;
}

bool StreamWriter::Write(const std::string& text) {
  if (error_ != 0) return true;
  if (waiting() + text.size() > kMostWaiting) return false;
  Append(text);
  Flush();
  return true;
}

void StreamWriter::Append(const std::string& text) {
  if (error_ != 0) return;
  text_.erase(0, written_);
  written_ = 0;
  text_ += text;
}

// Returns how much to write at once: everything if this is the only writer and cannot block,
// otherwise what a pipe takes in one piece, up to the end of a line, so that other processes'
// output cannot split a line. A descriptor that is ready takes this much without blocking.
std::size_t StreamWriter::NextPiece() const {
  if (waiting() <= PIPE_BUF || (writers_ == Writers::kOne && !may_block_)) return waiting();
  const std::size_t newline = text_.rfind('\n', written_ + PIPE_BUF - 1);
  return newline == std::string::npos || newline < written_ ? PIPE_BUF : newline + 1 - written_;
}

void StreamWriter::Flush() {
  while (waiting() > 0) {
    ssize_t size = 0;
    if (is_socket_) {
      size = send(fd_, text_.data() + written_, NextPiece(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      if (may_block_) {
        // A write to the inherited description blocks if it is full; if it is ready, a piece fits.
        pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
        if (poll(&ready, 1, 0) == 0) return;
      }
      size = write(fd_, text_.data() + written_, NextPiece());
    }
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size < 0) {
      error_ = errno;
      break;
    }
    written_ += static_cast<std::size_t>(size);
  }
  Discard();
}

void StreamWriter::Drain(Duration patience) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience);
  while (waiting() > 0) {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(milliseconds.count())) <= 0) return;
    Flush();
  }
}

EventSource::Interest StreamWriter::GetInterest() {
  if (waiting() == 0) return {};
  return {.fd = fd_, .events = POLLOUT};
}

void StreamWriter::OnReady(short /*revents*/) { Flush(); }

}  // namespace zklock::process
