#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {

/// Addresses of the loopback network that no test running beside this one has: the server's port is
/// to be used at each of them.
inline std::string OwnAddress(int number) {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(64 * number + static_cast<int>(pid >> 16 & 63)) + "." +
         std::to_string(pid >> 8 & 255) + "." + std::to_string(pid & 255);
}
inline std::string PortOf(const std::string& address) { return address.substr(address.rfind(':')); }

/// What the preloaded resolver knows, name by name.
class Names {
 public:
  /// From now on; whoever asks already is not told.
  void Set(const std::string& name, const std::string& address) const {
    const std::string file = directory_.Write("new", address + "\n");
    Put(file, name);
  }
  /// Whoever asks for it waits.
  void SetSlow(const std::string& name) const {
    const std::string fifo = directory_.Path("new");
    if (mkfifo(fifo.c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
    Put(fifo, name);
  }
  /// Waits until somebody asks for a slow name. The answer is what the child is told to Write().
  [[nodiscard]] Child WaitForQuestion(const std::string& name) const {
    Child other_end =
        Child::Start({.argv = {"sh", "-c", "exec 3>\"$0\"; echo asked; read x; echo $x >&3",
                               directory_.Path(name)},
                      .keep_stdin = true});
    if (other_end.ReadLine() != "asked") throw std::runtime_error("nobody asked");
    return other_end;
  }

  [[nodiscard]] ChildOptions Use(ChildOptions options) const {
    const char* resolver = std::getenv("ZKLOCK_TEST_RESOLVER");
    if (resolver == nullptr) throw std::runtime_error("ZKLOCK_TEST_RESOLVER is not set");
    options.also_environment.push_back(std::string("LD_PRELOAD=") + resolver);
    options.also_environment.push_back("ZKLOCK_TEST_NAMES=" + directory_.path());
    // AddressSanitizer wants to be the first library otherwise.
    options.also_environment.push_back("ASAN_OPTIONS=verify_asan_link_order=0");
    return options;
  }

 private:
  void Put(const std::string& file, const std::string& name) const {
    if (std::rename(file.c_str(), directory_.Path(name).c_str()) != 0) {
      throw std::runtime_error("rename");
    }
  }
  const TemporaryDirectory directory_;
};

}  // namespace zklock::test
