#pragma once

#include <exception>

namespace zklock::commands {

/// Thrown to end the subcommand with an exit status. Any message has already been reported.
class Exit : public std::exception {
 public:
  explicit Exit(int status) : status_(status) {}
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] const char* what() const noexcept override { return "the subcommand ends"; }

 private:
  int status_;
};

}  // namespace zklock::commands
