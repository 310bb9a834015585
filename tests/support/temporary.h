#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace zklock::test {

/// A temporary directory, deleted with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "zklock-test.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "mkdtemp");
    }
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string Path(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

  /// Returns the file's path.
  [[nodiscard]] std::string Write(std::string_view name, std::string_view text) const {
    std::string file = Path(name);
    std::ofstream(file) << text;
    return file;
  }
  [[nodiscard]] std::string WriteProgram(std::string_view name, std::string_view text) const {
    std::string file = Write(name, text);
    chmod(file.c_str(), 0755);
    return file;
  }
  [[nodiscard]] std::string Read(std::string_view name) const {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

}  // namespace zklock::test
