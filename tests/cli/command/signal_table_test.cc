// Each signal that zklock handles, in each state of a run, sent to each target.

#include <catch2/catch.hpp>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "cli/zklock.h"

namespace zklock::test {
namespace {

/// Signals that end a process by default: a waiting zklock leaves the queue; a running command gets
/// them.
std::vector<int> EndingSignals() {
  std::vector<int> signals = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,   SIGUSR1,  SIGUSR2,
                              SIGALRM, SIGABRT, SIGXCPU, SIGXFSZ,   SIGPIPE,  SIGVTALRM,
                              SIGPROF, SIGIO,   SIGPWR,  SIGSTKFLT, SIGSEGV,  SIGBUS,
                              SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,    SIGRTMIN, SIGRTMAX - 1};
  return signals;
}
/// Signals that stop a process by default.
const std::vector<int> kStoppingSignals = {SIGTSTP, SIGTTIN, SIGTTOU};
/// Signals that do neither: zklock only forwards them to the command.
const std::vector<int> kOtherSignals = {SIGCONT, SIGWINCH};

enum class Target { kZklock, kGroup };
void Send(const Child& child, Target target, int number) {
  target == Target::kZklock ? child.Signal(number) : child.SignalGroup(number);
}
// A signal to the group arrives twice, unless the first is still pending at that time: zklock
// cannot know which other processes received it.
int MostTimes(Target target) { return target == Target::kZklock ? 1 : 2; }

/// zklock with a command that writes "ready", then the number of each signal it gets, until its
/// input ends. Signals that stop a process stop the command too.
class SignalCounter {
 public:
  explicit SignalCounter(const std::string& name) : zklock(Child::Start(Options(NewLock(name)))) {
    if (zklock.ReadLine() != "ready") throw std::runtime_error("the command did not start");
  }
  static ChildOptions Options(const std::string& lock) {
    ChildOptions options = Zklock(
        {"exclusive", lock, "--", "python3", "-c",
         "import os, select, signal\n"
         "heard, tell = os.pipe()\n"
         "os.set_blocking(tell, False)\n"
         "signal.set_wakeup_fd(tell)\n"
         "left = 'KILL STOP TSTP TTIN TTOU CHLD'.split()\n"
         "for number in signal.valid_signals() - {getattr(signal, 'SIG' + n) for n in left}:\n"
         "  signal.signal(number, lambda *_: None)\n"
         "print('ready', flush=True)\n"
         "while True:\n"
         "  ready = select.select([heard, 0], [], [])[0]\n"
         "  if heard in ready:\n"
         "    print(os.read(heard, 1)[0], flush=True)\n"
         "  elif not os.read(0, 1):\n"
         "    break\n"});
    options.keep_stdin = true;
    return options;
  }
  /// Waits until the command has received this signal once more.
  void WaitForSignal(int number) {
    for (;;) {
      const int got = std::stoi(zklock.ReadLine());
      ++counts[got];
      if (got == number) return;
    }
  }
  /// Waits until zklock has forwarded every pending signal: RTMAX is delivered last. By then the
  /// guard has also stopped sending CONT, which would cancel a later stop.
  void Settle() {
    zklock.Signal(SIGRTMAX);
    WaitForSignal(SIGRTMAX);
  }
  void End() {
    Settle();
    CHECK(Finish(zklock) == Exited(0));
    while (const auto line = zklock.TryReadLine()) ++counts[std::stoi(*line)];
    counts.erase(SIGRTMAX);
  }
  Child zklock;
  std::map<int, int> counts;
};

TEST_CASE("Signals: a running command gets each signal") {
  const Target target = GENERATE(Target::kZklock, Target::kGroup);
  CAPTURE(target == Target::kGroup);
  SignalCounter counter("signals");
  std::vector<int> signals = EndingSignals();
  signals.insert(signals.end(), kOtherSignals.begin(), kOtherSignals.end());
  for (const int number : signals) {
    CAPTURE(number);
    Send(counter.zklock, target, number);
    counter.WaitForSignal(number);
  }
  counter.End();
  CHECK(counter.counts.size() == signals.size());
  for (const auto& [number, count] : counter.counts) {
    CAPTURE(number);
    CHECK(count <= MostTimes(target));
  }
}

TEST_CASE("Signals: a stop signal stops zklock and a running command") {
  const Target target = GENERATE(Target::kZklock, Target::kGroup);
  CAPTURE(target == Target::kGroup);
  SignalCounter counter("signals");
  for (const int number : kStoppingSignals) {
    CAPTURE(number);
    Send(counter.zklock, target, number);
    counter.zklock.WaitUntilStopped();
    Send(counter.zklock, target, SIGCONT);
    counter.WaitForSignal(SIGCONT);
    counter.Settle();
  }
  counter.End();
  CHECK(counter.counts.size() == 1);
}

TEST_CASE("Signals: a stopped job gets pending signals when it continues") {
  const Target target = GENERATE(Target::kZklock, Target::kGroup);
  CAPTURE(target == Target::kGroup);
  SignalCounter counter("signals");
  std::vector<int> signals = EndingSignals();
  signals.push_back(SIGWINCH);
  for (const int number : signals) {
    CAPTURE(number);
    counter.zklock.Signal(SIGTSTP);
    counter.zklock.WaitUntilStopped();
    Send(counter.zklock, target, number);
    Send(counter.zklock, target, SIGCONT);
    counter.WaitForSignal(number);
    counter.Settle();
  }
  for (const int number : kStoppingSignals) {  // CONT cancels a pending stop, as in the kernel
    CAPTURE(number);
    counter.zklock.Signal(SIGTSTP);
    counter.zklock.WaitUntilStopped();
    Send(counter.zklock, target, number);
    Send(counter.zklock, target, SIGCONT);
    counter.Settle();
  }
  counter.End();
  counter.counts.erase(SIGCONT);
  CHECK(counter.counts.size() == signals.size());
  for (const auto& [number, count] : counter.counts) {
    CAPTURE(number);
    CHECK(count <= MostTimes(target));
  }
}

TEST_CASE("Signals: zklock exits with 128 + the signal that killed the command") {
  const std::string lock = NewLock("signals");
  std::vector<Child> children;  // as readers, so that they do not wait for each other
  for (const int number : EndingSignals()) {
    children.push_back(StartHolder({"read"}, lock));
    children.back().Signal(number);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    CHECK(children[i].Wait() == Exited(128 + EndingSignals()[i]));
  }
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("Signals: each signal that ends a process ends a wait") {
  const Target target = GENERATE(Target::kZklock, Target::kGroup);
  CAPTURE(target == Target::kGroup);
  auto [lock, holder] = HoldNewLock("signals");
  std::vector<Child> waiters;
  for ([[maybe_unused]] const int number : EndingSignals()) waiters.push_back(StartWaiter(lock));
  for (std::size_t i = 0; i < waiters.size(); ++i) Send(waiters[i], target, EndingSignals()[i]);
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    CHECK(waiters[i].Wait() == Exited(128 + EndingSignals()[i]));
    CHECK_THAT(waiters[i].err(), Catch::Contains(" while waiting for " + lock));
  }
  CHECK(Tree().Children(lock).size() == 1);
}

TEST_CASE("Signals: a stopped wait continues") {
  const Target target = GENERATE(Target::kZklock, Target::kGroup);
  CAPTURE(target == Target::kGroup);
  auto [lock, holder] = HoldNewLock("signals");
  Child waiter = StartWaiter(lock);
  for (const int number : kStoppingSignals) {
    CAPTURE(number);
    Send(waiter, target, number);
    waiter.WaitUntilStopped();
    Send(waiter, target, SIGCONT);
  }
  for (const int number : kOtherSignals) Send(waiter, target, number);
  holder.CloseInput();
  CHECK(waiter.ReadLine() == "held");
  CHECK(Finish(waiter) == Exited(0));
}

TEST_CASE("Signals: a signal sent to a stopped wait ends it when it continues") {
  const Target target = GENERATE(Target::kZklock, Target::kGroup);
  CAPTURE(target == Target::kGroup);
  auto [lock, holder] = HoldNewLock("signals");
  std::vector<Child> waiters;
  for (const int number : EndingSignals()) {
    waiters.push_back(StartWaiter(lock));
    waiters.back().Signal(SIGTSTP);
    waiters.back().WaitUntilStopped();
    Send(waiters.back(), target, number);
    Send(waiters.back(), target, SIGCONT);
  }
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    CHECK(waiters[i].Wait() == Exited(128 + EndingSignals()[i]));
  }
  CHECK(Tree().Children(lock).size() == 1);
}

struct Key {
  char key;
  int number;
};

TEST_CASE("Signals: a signal typed on the terminal reaches the command once") {
  const auto typed = GENERATE(Key{'C', SIGINT}, Key{'\\', SIGQUIT});
  CAPTURE(typed.number);
  Child zklock = Child::StartOnTerminal(SignalCounter::Options(NewLock("signals")));
  zklock.ReadUntil("ready");
  zklock.Write(std::string(1, static_cast<char>(typed.key & 0x1f)));
  zklock.ReadUntil(std::to_string(typed.number) + "\r\n");
  zklock.Signal(SIGUSR1);  // a forwarded copy would arrive before this one
  CHECK(zklock.ReadUntil("\n") == std::to_string(SIGUSR1) + "\r\n");
  zklock.Write("\x04");
  CHECK(zklock.Wait() == Exited(0));
}

TEST_CASE("Signals: a signal typed on the terminal ends a wait") {
  const auto typed = GENERATE(Key{'C', SIGINT}, Key{'\\', SIGQUIT});
  CAPTURE(typed.number);
  Terminal terminal("signals");
  const Child holder = StartHolder(terminal.lock());
  terminal.Type("$Z exclusive -v $L -- true");
  terminal.ReadUntil("waiting for");
  terminal.Press(typed.key);
  terminal.ReadUntil("left the queue");
  CHECK(terminal.Status() == std::to_string(128 + typed.number) + ".");
  CHECK(Tree().Children(terminal.lock()).size() == 1);
}

TEST_CASE("Signals: Ctrl-Z stops a wait, and fg continues it") {
  Terminal terminal("signals");
  Child holder = StartHolder(terminal.lock());
  terminal.Type("$Z exclusive -v $L -- true");
  terminal.ReadUntil("waiting for");
  terminal.Press('Z');
  terminal.ReadUntil("Stopped");
  terminal.AwaitPrompt();
  terminal.Type("fg");
  holder.CloseInput();
  CHECK(terminal.Status() == "0.");
}

TEST_CASE("Signals: a timer inherited by zklock reaches the command") {
  // The timer must be set before zklock starts, and must not expire before the command has set its
  // trap.
  ChildOptions options =
      Zklock({"exclusive", NewLock("signals"), "--", "sh", "-c",
              "trap 'echo cleaned up; exit 3' ALRM; sleep 1000 & while :; do wait; done"});
  Words words = Words{"perl", "-e", "alarm 5; exec @ARGV"} + options.argv;
  options.argv = words;
  Child child = Child::Start(options);
  CHECK(child.ReadLine() == "cleaned up");
  CHECK(child.Wait() == Exited(3));
}

TEST_CASE("Signals: a signal that the command sends to its own group is not sent back to it") {
  Child child = Child::Start(
      Zklock({"exclusive", NewLock("signals"), "--", "python3", "-c",
              "import os, signal\n"
              "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN, signal.SIGUSR1])\n"
              "signal.signal(signal.SIGRTMIN, lambda *_: None)\n"
              "os.kill(0, signal.SIGRTMIN)\n"  // queued, so each one counts
              "print('sent', flush=True)\n"
              "signal.sigwait([signal.SIGUSR1])\n"
              "count = 0\n"
              "while signal.sigtimedwait([signal.SIGRTMIN], 0): count += 1\n"
              "print(count, flush=True)\n"}));
  CHECK(child.ReadLine() == "sent");
  child.Signal(SIGUSR1);  // forwarded after anything that zklock received earlier
  CHECK(child.ReadLine() == "1");
  CHECK(child.Wait() == Exited(0));
}

}  // namespace
}  // namespace zklock::test
