#pragma once

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/child.h"
#include "support/server.h"

namespace zklock::test {

using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Returns the zklock built with these tests.
inline std::string Binary() {
  const char* binary = std::getenv("ZKLOCK_BINARY");
  if (binary == nullptr) throw std::runtime_error("ZKLOCK_BINARY is not set: run it by ctest");
  return binary;
}

/// Restores the signal state of a login shell: whatever runs the tests may ignore or block signals.
inline void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

/// Returns this process's environment without zklock's variables.
inline Words PlainEnvironment() {
  Words variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("ZKLOCK_")) variables.emplace_back(*variable);
  }
  return variables;
}

/// Returns `zklock ARGUMENTS`, using the tests' server.
inline ChildOptions Zklock(const Words& arguments) {
  ChildOptions options;
  options.argv = Words{Binary()} + arguments;
  options.environment = PlainEnvironment();
  options.environment->push_back("ZKLOCK_SERVERS=" + TestServers());
  options.environment->push_back("ZKLOCK_CONFIG=/dev/null");  // ignore this host's configuration
  options.prepare = ResetSignals;
  return options;
}

/// Returns `options` with these variables too, each NAME=VALUE.
inline ChildOptions With(ChildOptions options, const Words& variables) {
  for (const std::string& variable : variables) options.also_environment.push_back(variable);
  return options;
}

/// Runs a program until it ends, and checks how it ends.
inline Finished Run(ChildOptions options, const Exit& exit) {
  const Words words = options.argv;
  Finished finished = Run(std::move(options));
  CAPTURE(words, finished.out, finished.err);
  CHECK(finished.exit == exit);
  return finished;
}
/// Runs `zklock ARGUMENTS` until it ends.
inline Finished RunZklock(const Words& arguments) { return Run(Zklock(arguments)); }
inline Finished RunZklock(const Words& arguments, const Exit& exit) {
  return Run(Zklock(arguments), exit);
}

/// Closes the child's standard input, and waits until the child has ended.
inline Exit Finish(Child& child) {
  child.CloseInput();
  return child.Wait();
}

/// Returns `zklock WORDS LOCK -- COMMAND`. COMMAND writes "held", and exits with status 0 after
/// CloseInput(), or with the status given to Write().
inline ChildOptions HolderOptions(const Words& words, const std::string& lock) {
  ChildOptions options =
      Zklock(words + Words{lock, "--", "sh", "-c", "echo held; read status; exit ${status:-0}"});
  options.keep_stdin = true;
  return options;
}
/// Starts a holder, and returns once its command is running.
inline Child StartHolder(const Words& words, const std::string& lock) {
  Child holder = Child::Start(HolderOptions(words, lock));
  const std::string line = holder.ReadLine();
  if (line != "held") throw std::runtime_error("a holder said '" + line + "'");
  return holder;
}
inline Child StartHolder(const std::string& lock) { return StartHolder({"exclusive"}, lock); }

/// `auto [lock, holder] = HoldNewLock("name");`: a path that no other test uses, and its holder.
struct HeldLock {
  std::string lock;
  Child holder;
};
inline HeldLock HoldNewLock(std::string_view name, const Words& words = {"exclusive"}) {
  const std::string lock = NewLock(name);
  return {lock, StartHolder(words, lock)};
}

/// Starts a waiter, and returns once it is in the queue. `words` is the subcommand with its
/// options.
inline Child StartWaiter(Words words, const std::string& lock) {
  words.insert(words.begin() + 1, "--verbose");
  Child waiter = Child::Start(HolderOptions(std::move(words), lock));
  waiter.ReadErrUntil("waiting for " + lock);
  return waiter;
}
inline Child StartWaiter(const std::string& lock) { return StartWaiter({"exclusive"}, lock); }

/// Returns the lines of `text`.
inline Words Lines(const std::string& text) {
  Words lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Returns the last component of a path: HOST-UUID-lock-0000000000 of
/// /t/x/HOST-UUID-lock-0000000000.
inline std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace zklock::test
