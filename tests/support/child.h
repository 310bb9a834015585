#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace zklock::test {

/// How long a test waits for an expected event. This is not a performance limit: anything that
/// takes this long has failed.
inline constexpr std::chrono::seconds kPatience{60};

/// How a process ended.
struct Exit {
  bool exited = false;  ///< ended by itself with `status`; otherwise killed by `signal`
  int status = 0;
  int signal = 0;
  friend bool operator==(const Exit&, const Exit&) = default;
};
std::ostream& operator<<(std::ostream& out, const Exit& exit);
[[nodiscard]] inline Exit Exited(int status) { return {true, status, 0}; }
[[nodiscard]] inline Exit Killed(int signal) { return {false, 0, signal}; }
/// Converts a status returned by waitpid.
[[nodiscard]] Exit ExitFrom(int wait_status);

/// The program or function that a child runs, and its settings. Use designated initializers:
/// `Child::Start({.argv = {"sh", "-c", "echo ready; exec sleep 1000"}})`.
struct ChildOptions {
  std::vector<std::string> argv = {};  ///< searched in this process's PATH
  /// Instead of argv: a function run in the forked child, which exits with its result (99 if it
  /// throws). It has the descriptors that an executed program would have. Do not use it in a
  /// process with threads: the child would have only one of them, but the locks held by all.
  std::function<int()> body = {};
  /// The complete environment as NAME=VALUE; this process's if not set.
  std::optional<std::vector<std::string>> environment = {};
  /// NAME=VALUE, added to the environment or replacing a variable in it.
  std::vector<std::string> also_environment = {};
  std::string directory = {};  ///< this process's if empty
  /// If not set, standard input is /dev/null or, with `keep_stdin`, what is passed to Write().
  std::optional<std::string> stdin_text = {};
  bool keep_stdin = false;        ///< standard input stays open for Write()
  std::vector<int> inherit = {};  ///< descriptors that the child gets under the same numbers
  bool own_process_group = true;
  /// Called in the child just before the command runs, to set dispositions or limits. In a
  /// process with threads it must not allocate memory: another thread may have locked the
  /// allocator.
  std::function<void()> prepare = {};
};

/// The result of Run().
struct Finished {
  Exit exit;
  std::string out;
  std::string err;
};

/// A process that a test runs and owns: it is always killed and reaped at the end, with its process
/// group if it has one of its own. All descriptors are close-on-exec. If an expected event does not
/// occur within the patience, functions throw std::runtime_error with the child's output so far.
class Child {
 public:
  static Child Start(ChildOptions options);
  /// Starts the child on a new terminal, as its foreground process group and session leader.
  /// `out()` is the content of the screen, including standard error.
  static Child StartOnTerminal(ChildOptions options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Returns the next line of standard output, without the newline.
  std::string ReadLine(std::chrono::milliseconds patience = kPatience);
  /// Like ReadLine, but returns nothing once standard output has ended.
  std::optional<std::string> TryReadLine(std::chrono::milliseconds patience = kPatience);
  /// Reads standard output (or the screen) until `text` occurs after everything returned so far.
  /// Returns the new output up to and including `text`.
  std::string ReadUntil(std::string_view text, std::chrono::milliseconds patience = kPatience);
  /// Like ReadUntil, on standard error.
  std::string ReadErrUntil(std::string_view text, std::chrono::milliseconds patience = kPatience);
  /// Reads until standard output and standard error are closed by the child and by everything it
  /// started.
  void ReadToEnd(std::chrono::milliseconds patience = kPatience);

  /// Writes to its standard input, or types on its terminal ("\x03" is Ctrl-C, "\x1a" Ctrl-Z).
  void Write(std::string_view text);
  void CloseInput();
  /// Resizes its terminal, as if a window were resized.
  void Resize(int rows, int columns);
  /// Closes the terminal, as if a window were closed or a connection broken.
  void HangUp();

  void Signal(int number) const;
  void SignalGroup(int number) const;

  /// Waits until it has ended and collects its output. Does not wait for output that other
  /// processes may still write to its pipes (ReadToEnd does). A terminal delivers the last output
  /// with a delay: use ReadUntil or ReadToEnd for that.
  Exit Wait(std::chrono::milliseconds patience = kPatience);
  [[nodiscard]] bool HasEnded();
  /// Waits until it is stopped, by Ctrl-Z or SIGSTOP for example.
  void WaitUntilStopped(std::chrono::milliseconds patience = kPatience);

  /// Returns everything read so far.
  [[nodiscard]] const std::string& out() const { return out_.text; }
  [[nodiscard]] const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    UniqueFd fd;
    std::string text;
    size_t seen = 0;  // the end of what was returned
  };
  using Deadline = std::chrono::steady_clock::time_point;

  Child() = default;
  void KillAndReap() noexcept;
  // Returns false at the deadline.
  bool ReadMore(Deadline deadline);
  static void ReadAvailable(Stream& stream);
  bool SeeIfEnded();
  std::string ReadUntil(Stream& stream, std::string_view text, std::chrono::milliseconds patience);
  [[noreturn]] void Fail(const std::string& what) const;

  pid_t pid_ = -1;
  bool owns_group_ = false;
  std::string name_;
  std::optional<Exit> exit_;
  UniqueFd pidfd_;
  UniqueFd in_;
  std::string unwritten_;  // the rest of stdin_text
  Stream out_;
  Stream err_;
};

/// Starts a child and waits for its end: `Run({.argv = {"true"}}).exit == Exited(0)`.
Finished Run(ChildOptions options, std::chrono::milliseconds patience = kPatience);

}  // namespace zklock::test
