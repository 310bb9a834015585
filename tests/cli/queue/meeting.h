#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "cli/zklock.h"
#include "support/source.h"
#include "support/temporary.h"

namespace zklock::test {

/// Returns the path of a program in tests/peers.
inline std::string PeerProgram(std::string_view name) {
  return SourcePath("tests/peers/") + std::string(name);
}

/// Detects contenders that hold the lock at the same time when they must not; see
/// tests/peers/visit.
class Meeting {
 public:
  Meeting() { static_cast<void>(directory_.Write("count", "0\n")); }

  [[nodiscard]] const std::string& path() const { return directory_.path(); }
  /// Returns the command line of one visit.
  [[nodiscard]] Words Visit(const std::string& name, const std::string& limit) const {
    return {PeerProgram("visit"), path(), name, limit};
  }
  /// Returns the visitors' names in order.
  [[nodiscard]] Words Order() const { return Lines(directory_.Read("order")); }
  /// Checks that no forbidden visitors met, and that no exclusive visitor's increment was lost.
  void CheckApart(int alone) const {
    CHECK(directory_.Read("wrong").empty());
    CHECK(directory_.Read("count") == std::to_string(alone) + "\n");
  }

 private:
  TemporaryDirectory directory_;
};

/// Starts `zklock WORDS -- COMMAND` `count` times in a row, until one fails.
inline Child StartRounds(int count, const Words& words, const Words& command) {
  ChildOptions options = Zklock({});
  options.argv = {"sh",
                  "-c",
                  "n=$1; shift; while [ $n != 0 ]; do n=$((n - 1)); \"$@\" || exit; done",
                  "sh",
                  std::to_string(count),
                  Binary()};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  for (const char* word : {"--progress", "none", "--"}) options.argv.emplace_back(word);
  options.argv.insert(options.argv.end(), command.begin(), command.end());
  return Child::Start(std::move(options));
}

}  // namespace zklock::test
