#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "process/guard/supervisor.h"
#include "process/loop/event_loop.h"
#include "process/loop/signals.h"
#include "process/loop/system_error.h"
#include "process/tree/pidfd.h"
#include "process/tree/process_tree.h"
#include "support/child.h"
#include "support/loop.h"
#include "support/process.h"

namespace zklock::process {

/// A pipe to the test from a command and every process that it starts. Scripts write to
/// `>&$REPORT`. The pipe ends when the last of these processes has ended.
class ReportPipe {
 public:
  ReportPipe() {
    int ends[2];
    Check(pipe2(ends, O_CLOEXEC), "pipe2");
    read_.Reset(ends[0]);
    write_.Reset(ends[1]);
    // dash accepts only single-digit descriptors.
    if (ends[1] > 9) throw std::runtime_error("too many descriptors open for this test");
  }

  [[nodiscard]] int write_end() const { return write_.get(); }
  [[nodiscard]] std::string variable() const { return "REPORT=" + std::to_string(write_.get()); }
  void Inherit(bool inherit) const {
    Check(fcntl(write_.get(), F_SETFD, inherit ? 0 : FD_CLOEXEC), "fcntl");
  }
  void CloseWriteEnd() { write_.Reset(); }

  std::string ReadLine() {
    size_t end = 0;
    while ((end = text_.find('\n')) == std::string::npos) {
      if (!ReadMore()) throw std::runtime_error("the report ended with '" + text_ + "'");
    }
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

  /// Reads until the end, that is, until the whole tree is dead.
  std::string ReadToEnd() {
    while (ReadMore()) {
    }
    return std::exchange(text_, "");
  }

  [[nodiscard]] bool HasEnded() const {
    pollfd polled{read_.get(), POLLIN, 0};
    return poll(&polled, 1, 0) == 1 && (polled.revents & (POLLIN | POLLHUP)) == POLLHUP;
  }

 private:
  bool ReadMore() {
    pollfd polled{read_.get(), POLLIN, 0};
    const std::chrono::milliseconds patience = test::kPatience;
    if (poll(&polled, 1, static_cast<int>(patience.count())) != 1) {
      throw std::runtime_error("no report after '" + text_ + "'");
    }
    char buffer[4096];
    const ssize_t size = Check(read(read_.get(), buffer, sizeof buffer), "read");
    text_.append(buffer, static_cast<size_t>(size));
    return size > 0;
  }

  UniqueFd read_;
  UniqueFd write_;
  std::string text_;
};

/// The settings that a test makes for a command. Everything else is as if zklock had no options.
struct ScriptOptions {
  int tree = 0;  ///< Supervised waits until this many of its processes have reported "up"
  int stop_signal = SIGTERM;
  Duration kill_after = std::chrono::hours(1);
  Duration max_run = Duration::max();
  TimePoint lease_end = kNever;
  Descendants descendants = Descendants::kLeave;
};

/// Everything that a run needs if no events occur between its steps.
struct TestCommand : CommandSpec {
  std::vector<std::string> environment;
  TimePoint lease_end = kNever;
};

/// Begins the command, and returns once it has been executed or cannot be any more.
inline std::optional<ExecFailed> Begin(Supervisor& supervisor, const TestCommand& spec) {
  supervisor.Await(spec.lease_end, spec.kill_after);
  supervisor.Begin(spec.environment);
  EventLoop loop;
  loop.Add(supervisor);
  test::RunUntil(loop, [&] { return supervisor.has_started() || supervisor.is_over(); });
  const ExecFailed* const failed = supervisor.exec_failed();
  return failed == nullptr ? std::nullopt : std::optional(*failed);
}

inline TestCommand Script(const std::string& script, const ScriptOptions& options = {}) {
  TestCommand spec;
  spec.executable = "/bin/sh";
  spec.arguments = {"sh", "-c", script};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    spec.environment.emplace_back(*variable);
  }
  spec.stop_signal = options.stop_signal;
  spec.kill_after = options.kill_after;
  spec.max_run = options.max_run;
  spec.lease_end = options.lease_end;
  spec.descendants = options.descendants;
  return spec;
}

/// Prepares a command and begins it; throws if that fails.
inline std::unique_ptr<Supervisor> MustStart(const TestCommand& spec, const Signals& signals) {
  auto started = Supervisor::Prepare(spec, signals);
  if (const auto failed = Begin(*started, spec)) {
    throw std::system_error(failed->error, std::generic_category(), spec.executable);
  }
  return started;
}

/// `auto [signals, spec, command] = Prepared(Script("exit 5"));`: a command that has not begun.
struct Prepared {
  explicit Prepared(TestCommand its_spec) : spec(std::move(its_spec)) {}
  const Signals signals;
  TestCommand spec;
  std::unique_ptr<Supervisor> command = Supervisor::Prepare(spec, signals);
};

/// Serves the supervisor until the command has ended.
inline Ended WaitForEnd(Supervisor& supervisor) {
  EventLoop loop;
  loop.Add(supervisor);
  test::RunUntil(loop, [&] { return supervisor.ended() != nullptr; });
  return *supervisor.ended();
}

/// Serves a supervisor until `moment`, or until the command has ended. Without a supervisor, it
/// acts like a zklock that hangs.
inline void ServeUntil(Supervisor* supervisor, TimePoint moment) {
  EventLoop loop;
  test::Moment until(moment);
  loop.Add(until);
  if (supervisor != nullptr) loop.Add(*supervisor);
  while (!until.has_come() && !(supervisor != nullptr && supervisor->ended())) {
    loop.RunOnce();
  }
}
inline void ServeUntil(Supervisor& supervisor, TimePoint moment) {
  ServeUntil(&supervisor, moment);
}
inline void HangUntil(TimePoint moment) { ServeUntil(nullptr, moment); }

/// Waits for the "up" of each process of a tree.
inline void WaitForTree(ReportPipe& report, int size) {
  for (int i = 0; i < size; ++i) {
    if (const std::string line = report.ReadLine(); line != "up") {
      throw std::runtime_error("not up, but " + line);
    }
  }
}

/// Gives a child its own mount namespace, with another /proc. Returns false without the privilege.
inline bool MountOverProc(const char* type, const char* options) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", "/proc", type, 0, options) == 0;
}

/// Waits until a process is in `state`, as shown in /proc/PID/stat ('T': stopped).
inline void WaitForState(pid_t pid, char state) {
  test::WaitUntil([&] { return ReadProcessStat(pid).value().state == state; },
                  "state " + std::string(1, state));
}

/// Waits until a guard sleeps, which means that it has planned when to look again.
inline void WaitUntilAsleep(pid_t guard) {
  test::WaitUntil([&] {
    const auto stat = ReadProcessStat(guard).value();
    return stat.name == "lock-guard" && stat.state == 'S';
  });
}

/// A script under a supervisor in this process, with its reports.
class Supervised {
 public:
  explicit Supervised(const std::string& script, const ScriptOptions& options = {}) {
    TestCommand spec = Script(script, options);
    spec.environment.push_back(report.variable());
    report.Inherit(true);
    supervisor_ = MustStart(spec, signals);
    report.CloseWriteEnd();
    WaitForTree(report, options.tree);
  }

  Supervisor& operator*() const { return *supervisor_; }
  Supervisor* operator->() const { return supervisor_.get(); }
  Ended WaitForEnd() const { return process::WaitForEnd(*supervisor_); }
  /// Orders the end, as for a release, and waits for it.
  Ended EndByOrder() const {
    supervisor_->End(EndCause::kReleaseRequested);
    return WaitForEnd();
  }
  /// Shortens the lease, and waits until the guard has planned for that. A test that begins
  /// with a long lease and shortens it here can take any time to set up.
  void ShortenLease(TimePoint lease_end, Duration grace) const {
    supervisor_->SetLease(lease_end, grace);
    WaitUntilAsleep(guard());
  }
  void Destroy() { supervisor_.reset(); }
  /// Returns the pid of the guard, which is the command's parent.
  [[nodiscard]] pid_t guard() const { return test::ParentOf(supervisor_->command_pid()); }

  ReportPipe report;
  Signals signals;

 private:
  std::unique_ptr<Supervisor> supervisor_;
};

/// `sh` text for a child that does nothing, and reports "up" once it can be signalled. (Before its
/// execve, a shell's child would swallow a signal for which the shell has a trap.)
inline const std::string kSleeper = "sh -c 'echo up >&$REPORT; exec sleep 1000' & ";

/// `sh` text that starts a tree that no stop signal ends: a child, a child in its own session, and
/// an orphan in its own session. Each of them, and the shell itself, reports "up".
inline const std::string kStubbornTree = "trap '' TERM HUP INT; " + kSleeper + "setsid " +
                                         kSleeper + "( setsid " + kSleeper +
                                         ") ; echo up >&$REPORT; ";
inline constexpr int kStubbornTreeSize = 4;

/// `sh` text that runs forever, and runs traps at once.
inline const std::string kWaitForEver = "while :; do wait; done";

/// kStubbornTree under a supervisor, with all of its processes running.
struct StubbornTree : Supervised {
  explicit StubbornTree(ScriptOptions options = {})
      : Supervised(kStubbornTree + kWaitForEver, options) {
    WaitForTree(report, kStubbornTreeSize);
  }
};

}  // namespace zklock::process
