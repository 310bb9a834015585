#include "process/transport/transport_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <set>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/transport_interface.h"
#include "build_info.h"
#include "process/loop/child.h"
#include "process/loop/descriptors.h"
#include "process/loop/system_error.h"
#include "process/transport/error_tail.h"

namespace zklock::process {
namespace {

using namespace std::chrono_literals;

// The names that ps(1) shows; zklock-transport's is truncated to the kernel's limit.
constexpr char kMonitorName[] = "zklock-proxy";
constexpr char kProgramName[] = "zklock-transpor";

// The time from HUP to KILL for a proxy command whose connection is over.
constexpr Duration kHangUpTime = 200ms;
// How long the monitor of a proxy command may take to end the command when zklock ends. The monitor
// needs more than kHangUpTime only if it is not scheduled, or lacks permission to kill processes of
// the command. If it were killed, background processes of the command would live on.
constexpr Duration kEndTime = 5s;

/// The helpers that are children of this process, which TakeOver must not end.
std::set<pid_t>& Helpers() {
  static std::set<pid_t> helpers;
  return helpers;
}

/// Runs in a helper: resets the signals, and makes the connection its standard input and output.
void EnterHelper(int socket, int words) {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0 ||
      dup2(words, STDERR_FILENO) < 0) {
    _exit(1);
  }
}

[[noreturn]] void ExecuteShell(const char* line, int socket, int words) {
  EnterHelper(socket, words);
  closefrom(STDERR_FILENO + 1);
  execl("/bin/sh", "sh", "-c", line, nullptr);
  _exit(127);
}

/// Returns the status of a command that has ended, as in a shell. Does not reap it: while it is a
/// zombie, its process group's ID is not reused.
std::optional<int> ZombieStatus(pid_t command) {
  siginfo_t ended{};
  const int options = WEXITED | WNOHANG | WNOWAIT;
  if (waitid(P_PID, static_cast<id_t>(command), &ended, options) != 0) return std::nullopt;
  if (ended.si_pid == 0) return std::nullopt;
  return ended.si_code == CLD_EXITED ? ended.si_status : kExitSignalBase + ended.si_status;
}

/// Waits until the command has ended, `parent` is gone, or TERM arrives.
void AwaitEnd(const sigset_t& watched, pid_t command, pid_t parent) {
  while (getppid() == parent && !ZombieStatus(command)) {
    if (sigwaitinfo(&watched, nullptr) == SIGTERM) return;
  }
}

/// After HUP, reaps the processes of a group until none is left or kHangUpTime has passed. Returns
/// whether none is left. A shell ends at once, but the command that it was running may need that
/// time.
bool AwaitHangUp(pid_t group) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const TimePoint end = BootClock::now() + kHangUpTime;
  for (Duration left = kHangUpTime; left > 0ns; left = end - BootClock::now()) {
    pid_t reaped = 0;
    while ((reaped = waitpid(-group, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0 && kill(-group, 0) != 0) return true;  // members may have other parents
    const timespec patience{0, left.count()};
    sigtimedwait(&child, nullptr, &patience);
  }
  return false;
}

/// Runs the monitor, with all signals blocked. Exits with the command's status if the command ended
/// by itself, otherwise with 0.
[[noreturn]] void MonitorProxy(const char* line, pid_t parent, int socket, int words) {
  prctl(PR_SET_NAME, kMonitorName);
  setsid();
  LeaveWorkingDirectory();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // A shell may end before the processes that it runs, so the monitor waits for them as well.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t self = getpid();
  const pid_t command = fork();
  if (command < 0) _exit(1);
  if (command == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(1);
    ExecuteShell(line, socket, words);
  }
  setpgid(command, command);  // in both processes, since either may run first
  Silence({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  closefrom(STDERR_FILENO + 1);

  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGTERM);
  sigaddset(&watched, SIGCHLD);
  AwaitEnd(watched, command, parent);
  const int status = ZombieStatus(command).value_or(0);
  kill(-command, SIGHUP);
  kill(-command, SIGCONT);
  if (AwaitHangUp(command)) _exit(status);  // the group's ID may be reused from now on
  kill(-command, SIGKILL);
  while (waitpid(-command, nullptr, 0) > 0) {
  }
  _exit(status);
}

constexpr char kFork[] = "fork for the connection to a server";

// Above all descriptors that zklock-transport is given.
constexpr int kAboveAll = 10;

/// Runs in the child; everything it needs was prepared before the fork. `others`: the descriptors
/// for kServer and kSecret, or -1.
[[noreturn]] void ExecuteProgram(char* const* arguments, pid_t parent, int socket, int words,
                                 const std::array<int, 2>& others) {
  setsid();
  LeaveWorkingDirectory();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::array<int, 2> copies{};
  for (std::size_t i = 0; i < others.size(); ++i) {
    copies[i] = others[i] < 0 ? -1 : fcntl(others[i], F_DUPFD, kAboveAll);
  }
  EnterHelper(socket, words);
  for (int i = 0; i < 2; ++i) {
    const int copy = copies.at(static_cast<std::size_t>(i));
    const int wanted = transport_interface::kServer + i;
    if (copy < 0) close(wanted);
    if (copy >= 0 && dup2(copy, wanted) < 0) _exit(1);
  }
  closefrom(transport_interface::kSecret + 1);
  execv(arguments[0], arguments);
  constexpr std::string_view kNotExecuted = "zklock-transport cannot be executed\n";
  (void)!write(STDERR_FILENO, kNotExecuted.data(), kNotExecuted.size());
  _exit(127);
}

/// Returns the read end and the write end.
std::pair<UniqueFd, UniqueFd> MakePipe() {
  std::array<int, 2> ends{};
  Check(pipe2(ends.data(), O_CLOEXEC), "pipe");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Returns the read end of a pipe that contains `text`, which has at most kLongestSecret bytes, so
/// that the write is complete and does not block.
UniqueFd PipeWith(std::string_view text) {
  auto [from, to] = MakePipe();
  Check(write(to.get(), text.data(), text.size()), "write to a pipe");
  return std::move(from);
}

/// Reaps the child if it has ended, and returns whether it has. Sets `failure` if its exit status
/// was not 0.
bool HasEnded(pid_t child, int& failure) {
  int status = 0;
  const pid_t result = waitpid(child, &status, WNOHANG);
  if (result == child && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    failure = WEXITSTATUS(status);
  }
  return result == child || (result < 0 && errno == ECHILD);
}

}  // namespace

HelperProcesses::~HelperProcesses() {
  const TimePoint deadline = BootClock::now() + kEndTime;
  for (Reap(); !ended_.empty() && BootClock::now() < deadline; Reap()) poll(nullptr, 0, 1);
  for (const pid_t helper : ended_) {
    // The helper is stopped or is not scheduled. A proxy command dies with its monitor.
    kill(helper, SIGKILL);
    Helpers().erase(helper);
  }
}

void HelperProcesses::Add(pid_t helper) { Helpers().insert(helper); }

void HelperProcesses::End(pid_t helper, int signal_number) {
  kill(helper, signal_number);
  kill(helper, SIGCONT);
  ended_.push_back(helper);
  Reap();
}

void HelperProcesses::Reap() {
  std::erase_if(ended_, [this](pid_t helper) {
    if (!HasEnded(helper, last_failure_)) return false;
    Helpers().erase(helper);
    return true;
  });
}

class ProxyTransport::Proxy final : public zookeeper::Helper {
 public:
  Proxy(HelperProcesses& monitors, pid_t monitor, UniqueFd words)
      : monitors_(monitors), monitor_(monitor), words_(std::move(words)) {}
  ~Proxy() override { monitors_.End(monitor_, SIGTERM); }

  const std::string& ErrorTail() override { return words_.Read(); }
  void ForgetWords() override {
    words_.Forget();
    monitors_.ForgetFailure();
  }

 private:
  HelperProcesses& monitors_;
  const pid_t monitor_;
  process::ErrorTail words_;
};

std::unique_ptr<zookeeper::Helper> ProxyTransport::Start(const zookeeper::Endpoint& endpoint,
                                                         UniqueFd socket) {
  monitors_.Reap();
  const std::size_t colon = endpoint.address.rfind(':');
  std::string line;
  (void)ExpandProxyCommand(command_, endpoint.address.substr(0, colon),
                           endpoint.address.substr(colon + 1), line);
  auto [words, its_words] = MakePipe();
  const pid_t parent = getpid();
  const pid_t monitor = ForkBlocked(kFork);
  if (monitor == 0) MonitorProxy(line.c_str(), parent, socket.get(), its_words.get());
  monitors_.Add(monitor);
  return std::make_unique<Proxy>(monitors_, monitor, std::move(words));
}

int ProxyTransport::LastFailure() {
  monitors_.Reap();
  return monitors_.last_failure();
}

class ProgramTransport::Program final : public zookeeper::Helper {
 public:
  Program(HelperProcesses& programs, pid_t program, UniqueFd words,
          std::unique_ptr<zookeeper::Helper> proxy)
      : programs_(programs),
        program_(program),
        words_(std::move(words)),
        proxy_(std::move(proxy)) {}
  ~Program() override { programs_.End(program_, SIGKILL); }

  const std::string& ErrorTail() override {
    text_ = words_.Read();
    if (IsRefusal()) text_.erase(0, 1);
    const std::string before = proxy_ == nullptr ? "" : proxy_->ErrorTail();
    if (!before.empty()) text_ = before + "; " + text_;
    return text_;
  }
  bool IsRefusal() override { return words_.Read().starts_with(transport_interface::kRefusalMark); }
  void ForgetWords() override {
    words_.Forget();
    if (proxy_ != nullptr) proxy_->ForgetWords();
  }

 private:
  HelperProcesses& programs_;
  const pid_t program_;
  process::ErrorTail words_;
  std::unique_ptr<zookeeper::Helper> proxy_;
  std::string text_;
};

ProgramTransport::ProgramTransport(TransportSpec spec)
    : spec_(std::move(spec)), file_(FindTransportProgram().value_or("zklock-transport")) {
  if (!spec_.proxy_command.empty()) proxy_ = std::make_unique<ProxyTransport>(spec_.proxy_command);
}

int ProgramTransport::LastFailure() { return proxy_ == nullptr ? 0 : proxy_->LastFailure(); }

std::unique_ptr<zookeeper::Helper> ProgramTransport::Start(const zookeeper::Endpoint& endpoint,
                                                           UniqueFd socket) {
  programs_.Reap();
  std::vector<std::string> words = {file_, endpoint.address, endpoint.name};
  UniqueFd connection;
  std::unique_ptr<zookeeper::Helper> proxy;
  if (proxy_ != nullptr) {
    std::array<int, 2> ends{};
    Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
    connection.Reset(ends[0]);
    proxy = proxy_->Start(endpoint, UniqueFd(ends[1]));
    words.emplace_back("--connected");
  }
  UniqueFd secret;
  if (!spec_.sasl_secret.empty()) {
    secret = PipeWith(spec_.sasl_secret);
  }
  if (spec_.tls) words.emplace_back("--tls");
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--tls-ca", spec_.tls_ca);
  add("--tls-cert", spec_.tls_cert);
  add("--tls-key", spec_.tls_key);
  add("--tls-verify", spec_.tls_checks_name ? "full" : "ca");
  add("--sasl", spec_.sasl);
  add("--sasl-service", spec_.sasl_service);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  auto [reports, its_reports] = MakePipe();
  const pid_t parent = getpid();
  const pid_t program = ForkBlocked(kFork);
  if (program == 0) {
    ExecuteProgram(arguments.data(), parent, socket.get(), its_reports.get(),
                   {connection.get(), secret.get()});
  }
  programs_.Add(program);
  return std::make_unique<Program>(programs_, program, std::move(reports), std::move(proxy));
}

std::unique_ptr<zookeeper::Transport> MakeTransport(const TransportSpec& spec) {
  if (spec.NeedsProgram()) return std::make_unique<ProgramTransport>(spec);
  if (spec.proxy_command.empty()) return nullptr;
  return std::make_unique<ProxyTransport>(spec.proxy_command);
}

bool IsTransportHelper(const ProcessStat& process) {
  if (process.name == kMonitorName) return Executes(process.id.pid, "/proc/self/exe");
  if (process.name != kProgramName) return false;
  const auto program = FindTransportProgram();
  return program && Executes(process.id.pid, *program);
}

bool IsOwnHelper(pid_t pid) { return Helpers().contains(pid); }

std::optional<std::string> FindTransportProgram() {
  std::array<char, PATH_MAX> link{};
  const ssize_t size = readlink("/proc/self/exe", link.data(), link.size() - 1);
  const std::string self(link.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  const std::string directory = self.substr(0, self.rfind('/') + 1);
  for (const std::string& place :
       {directory, directory + "../libexec/", std::string(kHelperDirectory) + "/"}) {
    std::string file = place + "zklock-transport";
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

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
