#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/read_file.h"
#include "cli/zklock.h"
#include "support/wait.h"

namespace zklock::test {

/// Sets a unique variable for a zklock, and finds the processes that inherit it.
class Mark {
 public:
  Mark() : variable_("ZKLOCK_TEST_MARK=" + BaseName(NewLock("mark"))) {}

  [[nodiscard]] ChildOptions On(ChildOptions options) const {
    options.also_environment.push_back(variable_);
    return options;
  }
  /// Returns the processes that have the variable and, if given, this name.
  [[nodiscard]] std::vector<pid_t> Processes(const std::string& name = "") const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string number = entry.path().filename();
      if (number.find_first_not_of("0123456789") != std::string::npos) continue;
      if (!name.empty() && ReadFile(entry.path() / "comm") != name + "\n") continue;
      // Empty if the process has ended in the meantime.
      const std::string environment = '\0' + ReadFile(entry.path() / "environ").value_or("");
      if (environment.find('\0' + variable_ + '\0') != std::string::npos) {
        found.push_back(std::stoi(number));
      }
    }
    return found;
  }
  /// Waits for a process of that name.
  [[nodiscard]] pid_t One(const std::string& name) const {
    WaitUntil([&] { return !Processes(name).empty(); });
    return Processes(name).front();
  }
  /// Waits until all these processes have ended by themselves.
  void WaitForEnd() const {
    WaitUntil([&] { return Processes().empty(); });
  }

 private:
  const std::string variable_;
};

}  // namespace zklock::test
