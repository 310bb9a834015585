#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/unique_fd.h"
#include "cli/zklock.h"

namespace zklock::test {

/// Returns a script in which $Z is zklock and $L a LOCK for this test. Its standard input stays
/// open.
inline ChildOptions Script(const std::string& lock, const std::string& text,
                           const std::string& shell = "bash") {
  ChildOptions options;
  options.argv = {shell, "-c", text};
  options.environment = PlainEnvironment();
  options.also_environment = {"Z=" + Binary(), "L=" + lock, "ZKLOCK_SERVERS=" + TestServers()};
  options.keep_stdin = true;
  options.prepare = ResetSignals;
  return options;
}

inline pid_t Number(const std::string& data, const std::string& mark) {
  const std::size_t at = data.find(mark);
  if (at == std::string::npos) throw std::runtime_error("no " + mark + " in " + data);
  return std::stoi(data.substr(at + mark.size()));
}
/// Returns the pid of a keeper, from its contender's data.
inline pid_t KeeperIn(const std::string& contender, Tree& tree) {
  // The owner's pid precedes it, in a nested object.
  const std::string data = tree.Get(contender)->data;
  return Number(data.substr(data.find('}')), "\"pid\":");
}
/// Returns the pid of the keeper that holds `lock`.
inline pid_t KeeperOf(const std::string& lock, Tree& tree) {
  return KeeperIn(lock + "/" + tree.Children(lock).at(0), tree);
}
inline pid_t KeeperOf(const std::string& lock) {
  Tree tree;
  return KeeperOf(lock, tree);
}

/// Keeps connecting to `socket`, on which a zklock answers nested runs. Prints "full" when the
/// queue of connections is full.
inline Child StartFlood(const std::string& socket) {
  return Child::Start({.body = [socket] {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    socket.copy(name.sun_path + 1, sizeof name.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket.size());
    for (bool is_full = false;;) {
      const UniqueFd stranger(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
      const bool is_connected =
          connect(stranger.get(), reinterpret_cast<const sockaddr*>(&name), size) == 0;
      if (is_connected || is_full) continue;
      is_full = true;
      if (errno != EAGAIN || write(STDOUT_FILENO, "full\n", 5) < 0) return 1;
    }
  }});
}

}  // namespace zklock::test
