#include "process/line_writer.h"

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
constexpr int kDrainMilliseconds = 5000;

}  // namespace

LineWriter::LineWriter(int fd) : fd_(fd) {
  struct stat status {};
  const int mode = fcntl(fd, F_GETFL);
  if (fstat(fd, &status) != 0 || mode < 0 || (mode & O_ACCMODE) == O_RDONLY) {
    fd_ = -1;
    return;
  }
  is_socket_ = S_ISSOCK(status.st_mode);
  // Never a regular file: a new description would write from its beginning.
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    own_.Reset(open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                    O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own_) fd_ = own_.get();
  }
}

void LineWriter::Close() {
  waiting_.clear();
  own_.Reset();
  fd_ = -1;
}

bool LineWriter::WriteLine(const std::string& line) { return Write(line + '\n'); }

bool LineWriter::Write(const std::string& text) {
  if (fd_ < 0) return true;
  if (waiting_.size() + text.size() > kMostWaiting) return false;
  waiting_ += text;
  Flush();
  return true;
}

// As much as a pipe takes in one piece, up to the end of a line: nothing that others write into it
// comes in between.
std::size_t LineWriter::WholeLines() const {
  if (waiting_.size() <= PIPE_BUF) return waiting_.size();
  const std::size_t end = waiting_.rfind('\n', PIPE_BUF - 1);
  return end == std::string::npos ? PIPE_BUF : end + 1;
}

void LineWriter::Flush() {
  while (!waiting_.empty()) {
    ssize_t size = 0;
    if (is_socket_) {
      size = send(fd_, waiting_.data(), WholeLines(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      if (!own_) {
        // Not our description: it may block once it is full, so look first.
        pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
        if (poll(&ready, 1, 0) == 0) return;
      }
      size = write(fd_, waiting_.data(), WholeLines());
    }
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size < 0) {
      waiting_.clear();  // nobody reads any more
      fd_ = -1;
      return;
    }
    waiting_.erase(0, static_cast<std::size_t>(size));
  }
}

void LineWriter::Drain() {
  while (!waiting_.empty() && fd_ >= 0) {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, kDrainMilliseconds) <= 0) return;
    Flush();
  }
}

EventSource::Interest LineWriter::GetInterest() {
  if (waiting_.empty()) return {};
  return {.fd = fd_, .events = POLLOUT};
}

void LineWriter::OnReady(short /*revents*/) { Flush(); }

}  // namespace zklock::process
