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

/// How long a test waits for what must come. It is no measure: whatever takes so long is a failure.
inline constexpr std::chrono::seconds kPatience{60};

/// How a process ended.
struct Exit {
  bool exited = false;  ///< by itself, with `status`; else killed by `signal`
  int status = 0;
  int signal = 0;
  friend bool operator==(const Exit&, const Exit&) = default;
};
std::ostream& operator<<(std::ostream& out, const Exit& exit);
[[nodiscard]] inline Exit Exited(int status) { return {true, status, 0}; }
[[nodiscard]] inline Exit Killed(int signal) { return {false, 0, signal}; }
/// From a status as waitpid gives it.
[[nodiscard]] Exit ExitFrom(int wait_status);

/// What a child runs, and with what. Designated initializers read well:
/// `Child::Start({.argv = {"sh", "-c", "echo ready; exec sleep 1000"}})`.
struct ChildOptions {
  std::vector<std::string> argv = {};  ///< the program is looked for in this process's PATH
  /// Instead of argv: runs in the forked child, which exits with what it returns (99 if it throws).
  /// It has the descriptors that an executed program would have.
  std::function<int()> body = {};
  /// NAME=VALUE, all of it; none: this process's.
  std::optional<std::vector<std::string>> environment = {};
  /// NAME=VALUE, added to that or in place of what is there.
  std::vector<std::string> also_environment = {};
  std::string directory = {};                  ///< empty: this process's
  std::optional<std::string> stdin_text = {};  ///< none: /dev/null, or with `keep_stdin` Write()
  bool keep_stdin = false;                     ///< standard input stays open for Write()
  std::vector<int> inherit = {};               ///< descriptors it gets under the same numbers
  bool own_process_group = true;
  /// Runs in the child just before the command does: dispositions, limits.
  std::function<void()> prepare = {};
};

/// What Run() collected.
struct Finished {
  Exit exit;
  std::string out;
  std::string err;
};

/// A process that a test runs, and owns: whatever happens it is killed and reaped in the end, with
/// its process group if it has its own. All descriptors are close-on-exec. What does not come
/// within the patience throws std::runtime_error that tells what the child had written so far.
class Child {
 public:
  static Child Start(ChildOptions options);
  /// On a new terminal, as its foreground process group and session leader. `out()` is what appears
  /// on the screen, standard error included.
  static Child StartOnTerminal(ChildOptions options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// The next line of standard output, without its end.
  std::string ReadLine(std::chrono::milliseconds patience = kPatience);
  /// As ReadLine; none once standard output has ended.
  std::optional<std::string> TryReadLine(std::chrono::milliseconds patience = kPatience);
  /// Reads standard output (or the screen) until `text` has come that no call before has seen.
  /// Returns what came, up to its end.
  std::string ReadUntil(std::string_view text, std::chrono::milliseconds patience = kPatience);
  /// As ReadUntil, on standard error.
  std::string ReadErrUntil(std::string_view text, std::chrono::milliseconds patience = kPatience);
  /// Reads until nobody has its standard output and standard error open any more: itself and all
  /// that it started.
  void ReadToEnd(std::chrono::milliseconds patience = kPatience);

  /// To its standard input, or typed on its terminal ("\x03" is Ctrl-C, "\x1a" Ctrl-Z).
  void Write(std::string_view text);
  void CloseInput();
  /// Gives its terminal another size, as a window that is dragged.
  void Resize(int rows, int columns);
  /// Closes the terminal, as a window that is closed or a connection that breaks.
  void HangUp();

  void Signal(int number) const;
  void SignalGroup(int number) const;

  /// Waits until it has ended, and collects what it has written; what others still write into its
  /// pipes afterwards is not waited for (ReadToEnd does). A terminal passes on what was written
  /// last with a delay: use ReadUntil or ReadToEnd for that.
  Exit Wait(std::chrono::milliseconds patience = kPatience);
  [[nodiscard]] bool HasEnded();
  /// Waits until it is stopped (as by Ctrl-Z or SIGSTOP).
  void WaitUntilStopped(std::chrono::milliseconds patience = kPatience);

  /// All that has been read so far.
  [[nodiscard]] const std::string& out() const { return out_.text; }
  [[nodiscard]] const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    UniqueFd fd;
    std::string text;
    size_t seen = 0;  // up to here it was returned
  };
  using Deadline = std::chrono::steady_clock::time_point;

  Child() = default;
  void KillAndReap() noexcept;
  // False at the deadline.
  bool ReadMore(Deadline deadline);
  static void ReadAvailable(Stream& stream);
  bool ReapIfEnded();
  std::string ReadUntil(Stream& stream, std::string_view text, std::chrono::milliseconds patience);
  [[noreturn]] void Fail(const std::string& what) const;

  pid_t pid_ = -1;
  bool owns_group_ = false;
  std::string name_;
  std::optional<Exit> exit_;
  UniqueFd pidfd_;
  UniqueFd in_;
  std::string unwritten_;  // of stdin_text
  Stream out_;
  Stream err_;
};

/// Starts it and waits for its end: `Run({.argv = {"true"}}).exit == Exited(0)`.
Finished Run(ChildOptions options, std::chrono::milliseconds patience = kPatience);

}  // namespace zklock::test
