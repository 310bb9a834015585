#pragma once

#include <sys/types.h>

#include <stdexcept>
#include <string>

#include "cli/zklock.h"

namespace zklock::test {

/// A script in which $Z is zklock and $L a LOCK for this test. Its standard input stays open.
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
/// The pid of the process that holds, from its contender's data.
inline pid_t KeeperOf(const std::string& lock, Tree& tree) {
  const std::string contender = lock + "/" + tree.Children(lock).at(0);
  // The owner's pid precedes it, in a nested object.
  const std::string data = tree.Get(contender)->data;
  return Number(data.substr(data.find('}')), "\"pid\":");
}
inline pid_t KeeperOf(const std::string& lock) {
  Tree tree;
  return KeeperOf(lock, tree);
}

}  // namespace zklock::test
