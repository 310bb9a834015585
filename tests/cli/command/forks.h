#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "base/unique_fd.h"
#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {

/// Controls whether zklocks started with it can fork.
class Forks {
 public:
  /// Makes every fork fail from now on.
  void Refuse() {
    const std::string fifo = directory_.Path("refused");
    if (mkfifo(directory_.Path("new").c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
    refused_.Reset(open(directory_.Path("new").c_str(), O_RDWR | O_CLOEXEC));
    if (!refused_) throw std::runtime_error("no fifo");
    // The FIFO is created under another name, so that it has a reader as soon as it appears.
    if (rename(directory_.Path("new").c_str(), fifo.c_str()) != 0) throw std::runtime_error(fifo);
  }
  /// Makes every guard block before it forks its command, from now on.
  void HoldGuards() const {
    if (mkfifo(directory_.Path("refused.held").c_str(), 0600) != 0) {
      throw std::runtime_error("mkfifo");
    }
  }
  /// Lets the blocked guards fork.
  void LetGuardsGo() const {
    const std::string fifo = directory_.Path("refused.held");
    const UniqueFd writer(open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
    unlink(fifo.c_str());
  }
  /// From now on, stops each command before it does anything.
  void StopCommands() const { (void)directory_.Write("refused.stopped", ""); }
  void Allow() { unlink(directory_.Path("refused").c_str()); }
  /// Waits until a fork has been attempted and refused. Each refusal is reported once.
  void WaitForRefusal() {
    pollfd polled{refused_.get(), POLLIN, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
    if (poll(&polled, 1, static_cast<int>(patience.count())) != 1) {
      throw std::runtime_error("nobody tried to fork");
    }
    char byte = 0;
    if (read(refused_.get(), &byte, 1) != 1) throw std::runtime_error("read");
  }

  [[nodiscard]] ChildOptions Use(ChildOptions options) const {
    const char* library = std::getenv("ZKLOCK_TEST_FORK");
    if (library == nullptr) throw std::runtime_error("ZKLOCK_TEST_FORK is not set");
    std::string preloaded = std::string("LD_PRELOAD=") + library;
    for (const std::string& variable : options.also_environment) {
      if (variable.starts_with("LD_PRELOAD=")) preloaded += ":" + variable.substr(11);
    }
    std::erase_if(options.also_environment,
                  [](const std::string& variable) { return variable.starts_with("LD_PRELOAD="); });
    options.also_environment.push_back(preloaded);
    options.also_environment.push_back("ZKLOCK_TEST_FORKS=" + directory_.Path("refused"));
    // AddressSanitizer otherwise insists on being the first library.
    options.also_environment.push_back("ASAN_OPTIONS=verify_asan_link_order=0");
    return options;
  }

 private:
  const TemporaryDirectory directory_;
  UniqueFd refused_;  // both ends of the FIFO
};

}  // namespace zklock::test
