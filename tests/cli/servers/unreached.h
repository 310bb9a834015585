#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "cli/mark.h"
#include "cli/zklock.h"

namespace zklock::test {

/// `zklock inspect` with a server that grants it no session. It tries until its time runs out and
/// then reports the reason, so start several before you call Reason(). A loaded machine may take
/// seconds to start its helpers.
class Unreached {
 public:
  Unreached(std::string server, Words options) : server_(std::move(server)) {
    options.insert(options.begin(), {"inspect", "-z", server_, "--connect-timeout", "5s"});
    options.emplace_back("/t/x");
    child_.emplace(Child::Start(mark_.On(Zklock(options))));
  }

  /// Waits until zklock and its helpers have ended, and returns the reason in its only line.
  std::string Reason() {
    CHECK(child_->Wait(std::chrono::seconds(15)) == Exited(69));
    mark_.WaitForEnd();
    const std::string& line = child_->err();
    CAPTURE(line);
    const std::string begin = ": " + server_ + " (";
    const std::size_t from = line.find(begin);
    REQUIRE(from != std::string::npos);
    const std::size_t to = line.find("); ", from);
    REQUIRE(to != std::string::npos);
    return line.substr(from + begin.size(), to - from - begin.size());
  }

 private:
  const Mark mark_;
  const std::string server_;
  std::optional<Child> child_;
};

}  // namespace zklock::test
