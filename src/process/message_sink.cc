#include "process/message_sink.h"

#include <fcntl.h>
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

void ReserveStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number is this one: those below are taken by now.
    const int access = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", access | O_CLOEXEC) < 0) return;
  }
}

MessageSink::MessageSink() {
  struct stat status {};
  const int mode = fcntl(STDERR_FILENO, F_GETFL);
  if (fstat(STDERR_FILENO, &status) != 0 || mode < 0 || (mode & O_ACCMODE) == O_RDONLY) {
    fd_ = -1;  // closed: nobody to tell
    return;
  }
  is_socket_ = S_ISSOCK(status.st_mode);
  // Never a regular file: a new description would write from its beginning.
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    own_.Reset(open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own_) fd_ = own_.get();
  }
}

void MessageSink::WriteLine(const std::string& line) {
  if (fd_ < 0) return;
  if (waiting_.size() + line.size() > kMostWaiting) {
    dropped_ = true;
    return;
  }
  waiting_ += line;
  waiting_ += '\n';
  Flush();
}

void MessageSink::Flush() {
  while (!waiting_.empty()) {
    ssize_t size = 0;
    if (is_socket_) {
      size = send(fd_, waiting_.data(), waiting_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      if (!own_) {
        // Not our description: it may block once it is full, so look first.
        pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
        if (poll(&ready, 1, 0) == 0) return;
      }
      size = write(fd_, waiting_.data(), waiting_.size());
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
  if (dropped_) {
    dropped_ = false;
    WriteLine("zklock: messages were dropped: standard error was not read");
  }
}

void MessageSink::Drain() {
  while (!waiting_.empty() && fd_ >= 0) {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, kDrainMilliseconds) <= 0) return;
    Flush();
  }
}

EventSource::Interest MessageSink::GetInterest() {
  if (waiting_.empty()) return {};
  return {.fd = fd_, .events = POLLOUT};
}

void MessageSink::OnReady(short /*revents*/) { Flush(); }

}  // namespace zklock::process
