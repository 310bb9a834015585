#pragma once

#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/queue/meeting.h"
#include "cli/zklock.h"

namespace zklock::test {

/// How long a program that uses another library may take. Java compiles the program first, which
/// has taken minutes on a busy machine.
inline constexpr std::chrono::minutes kPeerPatience{5};

/// A program that locks through another library, with any number of locks, each known by a name
/// without spaces. Destroying the object ends the program; its locks are released with its session.
class LockPeer {
 public:
  static LockPeer Curator() { return LockPeer({PeerProgram("curator-peer"), TestServers()}); }
  static LockPeer Kazoo() { return LockPeer({PeerProgram("kazoo-peer"), TestServers()}); }
  static LockPeer Go() {
    const char* const program = std::getenv("ZKLOCK_TEST_GO_PEER");
    if (program == nullptr) throw std::runtime_error("ZKLOCK_TEST_GO_PEER is not set");
    return LockPeer({program, TestServers(), PeerProgram("visit")});
  }

  /// Sends a lock a command in the peers' language, such as "acquire 200".
  void Tell(const std::string& name, const std::string& words) {
    child_.Write(name + " " + words + "\n");
  }
  /// Returns the lock's next answer.
  std::string Answer(const std::string& name) {
    std::deque<std::string>& answers = answers_[name];
    while (answers.empty()) {
      const std::string line = child_.ReadLine(kPeerPatience);
      const std::size_t blank = line.find(' ');
      answers_[line.substr(0, blank)].push_back(line.substr(blank + 1));
    }
    std::string answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  std::string Ask(const std::string& name, const std::string& words) {
    Tell(name, words);
    return Answer(name);
  }

 private:
  explicit LockPeer(Words argv) : child_(Child::Start(Options(std::move(argv)))) {
    const std::string line = child_.ReadLine(kPeerPatience);
    if (line != "ready") throw std::runtime_error("a peer said '" + line + "'");
  }
  static ChildOptions Options(Words argv) {
    ChildOptions options;
    options.argv = std::move(argv);
    options.keep_stdin = true;
    return options;
  }

  Child child_;
  std::map<std::string, std::deque<std::string>> answers_;
};

}  // namespace zklock::test
