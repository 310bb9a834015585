#pragma once

#include <string>
#include <utility>

#include "cli/zklock.h"

namespace zklock::test {

/// An interactive shell on a terminal, in which $Z is zklock and $L a LOCK for this test. The
/// terminal echoes what is typed, so type a pair of quotes inside any word that the test waits for.
class Terminal {
 public:
  explicit Terminal(const std::string& name, Words shell = Bash())
      : lock_(NewLock(name)), shell_(Start(lock_, std::move(shell))) {
    Type("PS1='rea''dy> '");
    shell_.ReadUntil("ready> ");
  }
  static Words Bash() { return {"bash", "--norc", "--noprofile", "-i"}; }
  static Words Zsh() { return {"zsh", "-f", "-i", "+o", "zle"}; }

  void Type(const std::string& line) { shell_.Write(line + "\n"); }
  void Press(char key) { shell_.Write(std::string(1, static_cast<char>(key & 0x1f))); }
  std::string ReadUntil(const std::string& text) { return shell_.ReadUntil(text); }
  /// Waits until the shell reads again. Input typed earlier may be discarded by a Ctrl-C or read by
  /// the running command.
  void AwaitPrompt() { shell_.ReadUntil("ready> "); }
  /// Waits for the running command line and returns its status.
  std::string Status() {
    AwaitPrompt();
    Type("echo \"sta\"tus $?.");
    shell_.ReadUntil("status ");
    return shell_.ReadUntil(".");
  }
  [[nodiscard]] const std::string& lock() const { return lock_; }
  [[nodiscard]] const std::string& screen() const { return shell_.out(); }
  Child& shell() { return shell_; }

 private:
  static Child Start(const std::string& lock, Words shell) {
    ChildOptions options;
    options.argv = std::move(shell);
    options.environment = PlainEnvironment();
    options.also_environment = {"ZKLOCK_SERVERS=" + TestServers(),
                                "Z=" + Binary(),
                                "L=" + lock,
                                "TERM=dumb",
                                "PS1=",
                                "HISTFILE="};
    options.prepare = ResetSignals;
    return Child::StartOnTerminal(std::move(options));
  }
  std::string lock_;
  Child shell_;
};

}  // namespace zklock::test
