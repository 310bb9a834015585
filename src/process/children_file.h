#pragma once

#include <sys/types.h>

#include <vector>

#include "base/unique_fd.h"

namespace zklock::process {

/// The children of this thread, read without opening anything: for a time when the system has no
/// descriptors left.
class ChildrenFile {
 public:
  /// Throws std::system_error.
  void Open();

  /// After Open(). The unreaped ones among them. A child keeps its pid until this process reaps it:
  /// until then kill(2) reaches it and nobody else. Throws std::system_error.
  [[nodiscard]] std::vector<pid_t> Read() const;
  [[nodiscard]] int fd() const { return file_.get(); }

 private:
  UniqueFd file_;
};

}  // namespace zklock::process
