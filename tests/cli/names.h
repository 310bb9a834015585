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

/// Returns a loopback address that no concurrent test uses. The tests combine it with the server's
/// port.
inline std::string OwnAddress(int number) {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(64 * number + static_cast<int>(pid >> 16 & 63)) + "." +
         std::to_string(pid >> 8 & 255) + "." + std::to_string(pid & 255);
}
inline std::string PortOf(const std::string& address) { return address.substr(address.rfind(':')); }

/// The addresses that the preloaded resolver answers with.
class Names {
 public:
  /// Sets the answer for later queries. A query that is already waiting gets none.
  void Set(const std::string& name, const std::string& address) const {
    const std::string file = directory_.Write("new", address + "\n");
    Put(file, name);
  }
  /// Makes queries for `name` wait.
  void SetSlow(const std::string& name) const {
    const std::string fifo = directory_.Path("new");
    if (mkfifo(fifo.c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
    Put(fifo, name);
  }
  /// Waits for a query for a slow name. To answer it, Write() the address to the child.
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
    // AddressSanitizer otherwise insists on being the first library.
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
