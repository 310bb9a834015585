#pragma once

#include <string>

#include "base/unique_fd.h"

namespace zklock::process {

/// The tail of what a process writes to a pipe: its last two lines, as one text. ssh names the
/// cause in the second-to-last line. A form feed on a line of its own discards what precedes it.
class ErrorTail {
 public:
  /// `pipe`: the read end.
  explicit ErrorTail(UniqueFd pipe);

  /// Reads what has arrived, without waiting, and returns the tail.
  const std::string& Read();
  void Forget();

 private:
  void Take(const char* data, std::size_t size);

  UniqueFd pipe_;
  std::string line_;  // incomplete
  std::string previous_;
  std::string last_;
  std::string text_;
};

}  // namespace zklock::process
