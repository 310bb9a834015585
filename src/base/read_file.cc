#include "base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

#include "base/unique_fd.h"

namespace zklock {

std::optional<std::string> ReadFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = read(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::nullopt;
    if (size == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

std::string AbsolutePath(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::array<char, PATH_MAX> directory{};
  if (getcwd(directory.data(), directory.size()) == nullptr) return path;
  std::string_view rest = path;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  std::string absolute = directory.data();
  if (absolute != "/") absolute += '/';
  return absolute.append(rest);
}

}  // namespace zklock
