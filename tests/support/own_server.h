#pragma once

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/child.h"
#include "support/source.h"
#include "support/temporary.h"

namespace zklock::test {

/// A real server or ensemble for one test, with settings that must not affect other tests.
class OwnServer {
 public:
  /// `settings`: configuration lines, KEY=VALUE, or N:KEY=VALUE for server N only. `options`: more
  /// options for scripts/zookeeper.
  explicit OwnServer(const std::vector<std::string>& settings, int size = 1,
                     const std::vector<std::string>& options = {}) {
    std::vector<std::string> words = {"start", "--tick", "500"};
    if (size > 1) words = {"ensemble", std::to_string(size), "--tick", "500"};
    words = WithSettings(std::move(words), settings);
    words.insert(words.end(), options.begin(), options.end());
    try {
      const std::string out = MustRun(std::move(words));
      address_ = out.substr(0, out.find('\n'));
    } catch (...) {
      Remove();
      throw;
    }
  }
  ~OwnServer() { Remove(); }
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  /// Returns "127.0.0.1:PORT" for each server, separated by commas.
  [[nodiscard]] const std::string& address() const { return address_; }
  /// Stops one server. Servers are numbered from 1.
  void Stop(int server) const { (void)MustRun({"stop", std::to_string(server)}); }
  /// Suspends the server until it is resumed, as if its host hung.
  void Pause(int server) const { (void)MustRun({"pause", std::to_string(server)}); }
  void Resume(int server) const { (void)MustRun({"resume", std::to_string(server)}); }

 private:
  static std::vector<std::string> WithSettings(std::vector<std::string> words,
                                               const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
      words.emplace_back("--set");
      words.push_back(setting);
    }
    return words;
  }
  void Remove() const {
    try {
      (void)RunScript({"remove"});
    } catch (const std::exception&) {
      // The server keeps running and its directory stays; the failure is reported elsewhere.
    }
  }
  std::string MustRun(std::vector<std::string> words) const {
    const Finished finished = RunScript(std::move(words));
    if (finished.exit == Exited(0)) return finished.out;
    std::ostringstream why;
    why << "no server: " << finished.exit << ": " << finished.err;
    throw std::runtime_error(why.str());
  }
  [[nodiscard]] Finished RunScript(std::vector<std::string> words) const {
    words.insert(words.begin(), SourcePath("scripts/zookeeper"));
    return Run({.argv = std::move(words),
                .also_environment = {"ZKLOCK_ZOOKEEPER_DIR=" + directory_.Path("zookeeper")}},
               kScriptPatience);
  }

  // Longer than the script waits for servers: Java can take minutes to start on a busy machine.
  static constexpr std::chrono::minutes kScriptPatience{6};

  const TemporaryDirectory directory_;
  std::string address_;
};

}  // namespace zklock::test
