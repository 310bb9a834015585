#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace zklock::commands {

/// Why a NewFile could not be written, without its name.
class NotReplaced : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that is written under a temporary name beside its own, and takes its name when it is
/// complete: readers see the old file or the new one, never a part. Until then the destructor
/// deletes it. Throws NotReplaced.
class NewFile {
 public:
  /// What has that name already must be a regular file, not a device or a symbolic link, which
  /// would be replaced by the file.
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Writes all of `text` to the disk.
  void Write(std::string_view text);
  void Replace();

 private:
  const std::string path_;
  std::string temporary_;  ///< empty: none to delete
  UniqueFd fd_;
};

}  // namespace zklock::commands
