#include "support/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace zklock::test {

namespace {

template <typename Result>
Result Check(Result result, const char* operation) {
  if (result == Result{-1}) throw std::system_error(errno, std::generic_category(), operation);
  return result;
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe MakePipe() {
  int ends[2];
  Check(pipe2(ends, O_CLOEXEC), "pipe2");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void SetNonblocking(const UniqueFd& fd) {
  Check(fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK), "fcntl");
}

// Returns no descriptor under valgrind, which does not support the call; then the child is polled.
UniqueFd OpenPidFd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}
constexpr std::chrono::milliseconds kPollInterval{5};

std::vector<std::string> EnvironmentFor(const ChildOptions& options) {
  std::vector<std::string> variables;
  if (options.environment) {
    variables = *options.environment;
  } else {
    for (char** variable = environ; *variable != nullptr; ++variable) {
      variables.emplace_back(*variable);
    }
  }
  for (const std::string& added : options.also_environment) {
    const std::string name = added.substr(0, added.find('=') + 1);
    std::erase_if(variables, [&](const std::string& old) { return old.rfind(name, 0) == 0; });
    variables.push_back(added);
  }
  return variables;
}

// A body runs without an exec, so close-on-exec has no effect. Without this function, the body
// would keep other children's pipes open.
void CloseAsExecWould() {
  std::vector<int> to_close;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) != 0) to_close.push_back(fd);
  }
  for (const int fd : to_close) close(fd);
}

// Writes without raising SIGPIPE, and without changing a disposition that children would inherit.
ssize_t WriteQuietly(int fd, std::string_view text) {
  sigset_t pipe_signal;
  sigset_t before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t size = write(fd, text.data(), text.size());
  const int error = errno;
  const timespec at_once{};
  if (size < 0 && error == EPIPE) sigtimedwait(&pipe_signal, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return size;
}

// Returns pointers to `words` in the form that execve takes. The words must outlive the result.
std::vector<char*> PointersTo(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The arguments of execve, prepared before the fork: at the moment of the fork, a thread of this
// process, such as a proxy's, may hold a lock of the sanitizers' allocator, which nobody would
// release in the child.
struct Execution {
  explicit Execution(const ChildOptions& options)
      : environment(EnvironmentFor(options)),
        argv(PointersTo(options.argv)),
        envp(PointersTo(environment)) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const std::vector<std::string> environment;
  const std::vector<char*> argv;
  const std::vector<char*> envp;
};

// Runs in the child, with its standard streams in place. Allocates no memory unless there is a body
// or something fails.
[[noreturn]] void BecomeChild(const ChildOptions& options, const Execution& execution) {
  try {
    for (const int fd : options.inherit) Check(fcntl(fd, F_SETFD, 0), "fcntl");
    if (!options.directory.empty()) Check(chdir(options.directory.c_str()), "chdir");
    environ = const_cast<char**>(execution.envp.data());
    if (options.body) CloseAsExecWould();
    if (options.prepare) options.prepare();
    if (options.body) _exit(options.body());
    char* const* const argv = execution.argv.data();
    execvpe(argv[0], argv, execution.envp.data());
    Check(-1, argv[0]);
  } catch (const std::exception& error) {
    dprintf(STDERR_FILENO, "child: %s\n", error.what());
  } catch (...) {
  }
  _exit(99);
}

// Returns one line for each process in the process group `group` and for each of their descendants:
// PID, program, state, parent, and the kernel function in which it sleeps. This shows why a child
// hangs, and whether it has reached its own program.
std::string DescribeTree(pid_t group) {
  struct Process {
    pid_t pid = 0;
    std::string program;
    char state = '?';
    pid_t parent = 0;
    pid_t group = 0;
  };
  std::vector<Process> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
    const std::size_t begin = line.find('(');
    const std::size_t end = line.rfind(')');
    if (begin == std::string::npos || end == std::string::npos) continue;
    Process one{.pid = std::atoi(line.c_str()), .program = line.substr(begin, end + 1 - begin)};
    std::istringstream(line.substr(end + 1)) >> one.state >> one.parent >> one.group;
    all.push_back(std::move(one));
  }
  std::set<pid_t> tree;
  std::size_t before = 0;
  do {
    before = tree.size();
    for (const Process& one : all) {
      if (one.group == group || tree.count(one.parent) != 0) tree.insert(one.pid);
    }
  } while (tree.size() != before);
  std::string text;
  for (const Process& one : all) {
    if (tree.count(one.pid) == 0) continue;
    const std::string pid = std::to_string(one.pid);
    std::string sleeps_in;
    std::getline(std::ifstream("/proc/" + pid + "/wchan"), sleeps_in);
    text += pid + " " + one.program + " " + one.state + ", child of " + std::to_string(one.parent) +
            ", in " + sleeps_in + "\n";
  }
  return text;
}

// Installs `fd` as the standard stream `stream`, inherited by the command.
void UseAsStandardStream(int fd, int stream) {
  if (fd == stream) {
    Check(fcntl(fd, F_SETFD, 0), "fcntl");
  } else {
    Check(dup2(fd, stream), "dup2");
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Exit& exit) {
  if (exit.exited) return out << "exited with " << exit.status;
  return out << "killed by " << exit.signal;
}

Exit ExitFrom(int wait_status) {
  if (WIFEXITED(wait_status)) return Exited(WEXITSTATUS(wait_status));
  return Killed(WTERMSIG(wait_status));
}

Child Child::Start(ChildOptions options) {
  const bool gives_input = options.keep_stdin || options.stdin_text;
  Pipe in = gives_input ? MakePipe() : Pipe{UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)), {}};
  Pipe out = MakePipe();
  Pipe err = MakePipe();
  const Execution execution(options);

  Child child;
  child.name_ = options.argv.empty() ? "child" : options.argv.front();
  child.owns_group_ = options.own_process_group;
  child.pid_ = Check(fork(), "fork");
  if (child.pid_ == 0) {
    if (options.own_process_group) setpgid(0, 0);
    UseAsStandardStream(in.read.get(), STDIN_FILENO);
    UseAsStandardStream(out.write.get(), STDOUT_FILENO);
    UseAsStandardStream(err.write.get(), STDERR_FILENO);
    BecomeChild(options, execution);
  }
  // The parent does this as well, so that SignalGroup() works from now on. It fails with EACCES if
  // the child has already done it and called execve.
  if (options.own_process_group) setpgid(child.pid_, child.pid_);
  child.pidfd_ = OpenPidFd(child.pid_);
  child.out_.fd = std::move(out.read);
  child.err_.fd = std::move(err.read);
  child.in_ = std::move(in.write);
  SetNonblocking(child.out_.fd);
  SetNonblocking(child.err_.fd);
  if (options.stdin_text) {
    SetNonblocking(child.in_);
    child.unwritten_ = *options.stdin_text;
    if (child.unwritten_.empty() && !options.keep_stdin) child.in_.Reset();
  }
  return child;
}

Child Child::StartOnTerminal(ChildOptions options) {
  UniqueFd screen(Check(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "posix_openpt"));
  Check(grantpt(screen.get()), "grantpt");
  Check(unlockpt(screen.get()), "unlockpt");
  std::array<char, 64> name{};
  if (ptsname_r(screen.get(), name.data(), name.size()) != 0) Check(-1, "ptsname_r");
  const Execution execution(options);

  Child child;
  child.name_ = options.argv.empty() ? "child" : options.argv.front();
  child.owns_group_ = true;
  // The child reports when it is set up: a Ctrl-C typed before that would reach no process.
  Pipe ready = MakePipe();
  child.pid_ = Check(fork(), "fork");
  if (child.pid_ == 0) {
    setsid();
    const int terminal =
        open(name.data(), O_RDWR);  // the first terminal opened becomes the controlling one
    ioctl(terminal, TIOCSCTTY, 0);
    for (const int stream : {0, 1, 2}) dup2(terminal, stream);
    if (terminal > STDERR_FILENO) close(terminal);
    screen.Reset();
    ready.read.Reset();
    ready.write.Reset();
    BecomeChild(options, execution);
  }
  ready.write.Reset();
  char nothing = 0;
  while (read(ready.read.get(), &nothing, 1) < 0 && errno == EINTR) {
  }
  child.pidfd_ = OpenPidFd(child.pid_);
  child.in_.Reset(Check(fcntl(screen.get(), F_DUPFD_CLOEXEC, 3), "fcntl"));
  child.out_.fd = std::move(screen);
  SetNonblocking(child.out_.fd);
  return child;
}

Child::Child(Child&& other) noexcept { *this = std::move(other); }

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  KillAndReap();
  pid_ = std::exchange(other.pid_, -1);
  owns_group_ = other.owns_group_;
  name_ = std::move(other.name_);
  exit_ = other.exit_;
  pidfd_ = std::move(other.pidfd_);
  in_ = std::move(other.in_);
  unwritten_ = std::move(other.unwritten_);
  out_ = std::move(other.out_);
  err_ = std::move(other.err_);
  return *this;
}

Child::~Child() { KillAndReap(); }

void Child::KillAndReap() noexcept {
  if (pid_ <= 0) return;
  if (owns_group_) kill(-pid_, SIGKILL);
  if (!exit_) kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void Child::ReadAvailable(Stream& stream) {
  std::array<char, 65536> buffer{};
  while (stream.fd) {
    const ssize_t size = read(stream.fd.get(), buffer.data(), buffer.size());
    if (size > 0) {
      stream.text.append(buffer.data(), static_cast<size_t>(size));
    } else if (size < 0 && errno == EINTR) {
      continue;
    } else if (size < 0 && errno == EAGAIN) {
      return;
    } else {
      stream.fd.Reset();  // at its end; EIO: no process has the terminal open
    }
  }
}

bool Child::ReadMore(Deadline deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(deadline - std::chrono::steady_clock::now(), Deadline::duration::zero()));
  const bool must_poll = !exit_ && !pidfd_ && left > kPollInterval;
  if (must_poll) left = kPollInterval;
  std::array<pollfd, 4> polled = {{{out_.fd.get(), POLLIN, 0},
                                   {err_.fd.get(), POLLIN, 0},
                                   {unwritten_.empty() ? -1 : in_.get(), POLLOUT, 0},
                                   {exit_ ? -1 : pidfd_.get(), POLLIN, 0}}};
  const int ready = poll(polled.data(), polled.size(), static_cast<int>(left.count()));
  if (ready < 0 && errno != EINTR) Check(-1, "poll");
  if (must_poll) SeeIfEnded();
  if (ready == 0) return must_poll;
  if (polled[2].revents != 0) {
    const ssize_t size = WriteQuietly(in_.get(), unwritten_);
    if (size > 0) unwritten_.erase(0, static_cast<size_t>(size));
    if (size < 0 && errno != EAGAIN) unwritten_.clear();  // it no longer reads
    if (unwritten_.empty()) in_.Reset();
  }
  ReadAvailable(out_);
  ReadAvailable(err_);
  if (polled[3].revents != 0) SeeIfEnded();
  return true;
}

// Does not reap the child: its pid, which is also its group's, must not be reused before
// KillAndReap() has used it.
bool Child::SeeIfEnded() {
  if (exit_) return true;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return false;
  }
  exit_ = info.si_code == CLD_EXITED ? Exited(info.si_status) : Killed(info.si_status);
  // Everything that it wrote before it ended can be read now.
  ReadAvailable(out_);
  ReadAvailable(err_);
  return true;
}

std::string Child::ReadUntil(Stream& stream, std::string_view text,
                             std::chrono::milliseconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const size_t found = stream.text.find(text, stream.seen);
    if (found != std::string::npos) {
      const size_t from = std::exchange(stream.seen, found + text.size());
      return stream.text.substr(from, stream.seen - from);
    }
    if (!stream.fd) Fail("ended before it wrote '" + std::string(text) + "'");
    if (!ReadMore(deadline)) Fail("did not write '" + std::string(text) + "'");
  }
}

std::string Child::ReadUntil(std::string_view text, std::chrono::milliseconds patience) {
  return ReadUntil(out_, text, patience);
}

std::string Child::ReadErrUntil(std::string_view text, std::chrono::milliseconds patience) {
  return ReadUntil(err_, text, patience);
}

std::string Child::ReadLine(std::chrono::milliseconds patience) {
  std::string line = ReadUntil(out_, "\n", patience);
  line.pop_back();
  if (!line.empty() && line.back() == '\r') line.pop_back();  // from a terminal
  return line;
}

std::optional<std::string> Child::TryReadLine(std::chrono::milliseconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  while (out_.fd && out_.text.find('\n', out_.seen) == std::string::npos) {
    if (!ReadMore(deadline)) Fail("wrote no line");
  }
  if (out_.text.find('\n', out_.seen) == std::string::npos) return std::nullopt;
  return ReadLine(patience);
}

void Child::ReadToEnd(std::chrono::milliseconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  while (out_.fd || err_.fd) {
    if (!ReadMore(deadline)) Fail("left its output open");
  }
}

void Child::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = WriteQuietly(in_.get(), text);
    if (size < 0 && errno == EINTR) continue;
    text.remove_prefix(static_cast<size_t>(Check(size, "write")));
  }
}

void Child::CloseInput() { in_.Reset(); }

void Child::Resize(int rows, int columns) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  Check(ioctl(in_.get(), TIOCSWINSZ, &size), "TIOCSWINSZ");
}

void Child::HangUp() {
  in_.Reset();
  out_.fd.Reset();
}

void Child::Signal(int number) const { Check(kill(pid_, number), "kill"); }

void Child::SignalGroup(int number) const { Check(kill(-pid_, number), "kill"); }

Exit Child::Wait(std::chrono::milliseconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  while (!exit_) {
    if (!ReadMore(deadline)) Fail("did not end");
  }
  return *exit_;
}

bool Child::HasEnded() { return SeeIfEnded(); }

void Child::WaitUntilStopped(std::chrono::milliseconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  siginfo_t info{};
  // A blocking wait would have no deadline, and poll(2) does not report a stop.
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0) {
    if (SeeIfEnded()) Fail("ended instead of stopping");
    if (std::chrono::steady_clock::now() >= deadline) Fail("did not stop");
    ReadMore(std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
  }
}

void Child::Fail(const std::string& what) const {
  throw std::runtime_error(name_ + " (pid " + std::to_string(pid_) + ") " + what +
                           "\n--- processes:\n" + DescribeTree(pid_) + "--- standard output:\n" +
                           out_.text + "\n--- standard error:\n" + err_.text);
}

Finished Run(ChildOptions options, std::chrono::milliseconds patience) {
  Child child = Child::Start(std::move(options));
  const Exit exit = child.Wait(patience);
  return {exit, child.out(), child.err()};
}

}  // namespace zklock::test
