#include "process/transport_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <set>
#include <utility>

#include "base/clock.h"
#include "process/descriptors.h"
#include "process/last_words.h"
#include "process/system_error.h"

namespace zklock::process {
namespace {

using namespace std::chrono_literals;

// From HUP to KILL, for a command whose connection is over.
constexpr timespec kHangUpTime{0, 200'000'000};
// For the minder to do this, at the end of zklock.
constexpr Duration kEndTime = 400ms;

/// The minders that are children of this process: TakeOver must not end them.
std::set<pid_t>& Minders() {
  static std::set<pid_t> minders;
  return minders;
}

[[noreturn]] void ExecuteShell(const char* line, int socket, int words) {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0 ||
      dup2(words, STDERR_FILENO) < 0) {
    _exit(1);
  }
  closefrom(STDERR_FILENO + 1);
  execl("/bin/sh", "sh", "-c", line, nullptr);
  _exit(127);
}

/// Until the command has ended, `parent` is gone, or TERM.
void AwaitEnd(const sigset_t& watched, pid_t command, pid_t parent) {
  while (getppid() == parent) {
    siginfo_t ended{};
    // It is reaped last: as long as it is a zombie its process group's number is not used again.
    const int options = WEXITED | WNOHANG | WNOWAIT;
    if (waitid(P_PID, static_cast<id_t>(command), &ended, options) == 0 && ended.si_pid != 0) {
      return;
    }
    if (sigwaitinfo(&watched, nullptr) == SIGTERM) return;
  }
}

/// In the minder: all signals are blocked.
[[noreturn]] void Mind(const char* line, pid_t parent, int socket, int words) {
  prctl(PR_SET_NAME, "zklock-proxy");
  setsid();
  LeaveWorkingDirectory();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const pid_t self = getpid();
  const pid_t command = fork();
  if (command < 0) _exit(1);
  if (command == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(1);
    ExecuteShell(line, socket, words);
  }
  setpgid(command, command);  // whichever of the two is first
  Silence({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  closefrom(STDERR_FILENO + 1);

  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGTERM);
  sigaddset(&watched, SIGCHLD);
  AwaitEnd(watched, command, parent);
  kill(-command, SIGHUP);
  kill(-command, SIGCONT);
  sigdelset(&watched, SIGTERM);
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(command), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      ended.si_pid == 0) {
    sigtimedwait(&watched, nullptr, &kHangUpTime);
  }
  kill(-command, SIGKILL);
  waitpid(command, nullptr, 0);
  _exit(0);
}

pid_t ForkMinder(const std::string& line, int socket, int words) {
  const pid_t parent = getpid();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t minder = fork();
  if (minder == 0) Mind(line.c_str(), parent, socket, words);
  const int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return Check(minder, "fork for the proxy command");
}

/// Whether it has ended, and is reaped.
bool HasEnded(pid_t child) {
  const pid_t result = waitpid(child, nullptr, WNOHANG);
  return result == child || (result < 0 && errno == ECHILD);
}

}  // namespace

class ProxyTransport::Proxy final : public zookeeper::Helper {
 public:
  Proxy(ProxyTransport& transport, pid_t minder, UniqueFd words)
      : transport_(transport), minder_(minder), words_(std::move(words)) {}
  ~Proxy() override { transport_.End(minder_); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const std::string& LastWords() override { return words_.Read(); }
  void ForgetWords() override { words_.Forget(); }

 private:
  ProxyTransport& transport_;
  const pid_t minder_;
  process::LastWords words_;
};

ProxyTransport::~ProxyTransport() {
  const TimePoint deadline = BootClock::now() + kEndTime;
  for (Reap(); !ended_.empty() && BootClock::now() < deadline; Reap()) poll(nullptr, 0, 1);
  for (const pid_t minder : ended_) {
    // It was stopped, or has no processor time. Its command dies with it.
    kill(minder, SIGKILL);
    Minders().erase(minder);
  }
}

std::unique_ptr<zookeeper::Helper> ProxyTransport::Start(const zookeeper::Endpoint& endpoint,
                                                         UniqueFd socket) {
  Reap();
  const std::size_t colon = endpoint.address.rfind(':');
  std::string line;
  (void)ExpandProxyCommand(spec_.proxy_command, endpoint.address.substr(0, colon),
                           endpoint.address.substr(colon + 1), line);
  std::array<int, 2> ends{};
  Check(pipe2(ends.data(), O_CLOEXEC), "pipe");
  UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  const pid_t minder = ForkMinder(line, socket.get(), write_end.get());
  Minders().insert(minder);
  return std::make_unique<Proxy>(*this, minder, std::move(read_end));
}

void ProxyTransport::End(pid_t minder) {
  kill(minder, SIGTERM);
  kill(minder, SIGCONT);
  ended_.push_back(minder);
  Reap();
}

void ProxyTransport::Reap() {
  std::erase_if(ended_, [](pid_t minder) {
    if (!HasEnded(minder)) return false;
    Minders().erase(minder);
    return true;
  });
}

std::unique_ptr<zookeeper::Transport> MakeTransport(const TransportSpec& spec) {
  if (spec.IsDirect()) return nullptr;
  return std::make_unique<ProxyTransport>(spec);
}

bool IsTransportHelper(pid_t pid) { return Minders().contains(pid); }

bool ExpandProxyCommand(const std::string& line, const std::string& host, const std::string& port,
                        std::string& expanded) {
  expanded.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '%') {
      expanded += line[i];
      continue;
    }
    const char kind = ++i < line.size() ? line[i] : '\0';
    if (kind == 'h') {
      expanded += host;
    } else if (kind == 'p') {
      expanded += port;
    } else if (kind == '%') {
      expanded += '%';
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace zklock::process
