#include "process/tree/executable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/exit_status.h"

namespace zklock::process {

namespace {

// Returns 0 or the errno that execve would set for this file, except EISDIR for a directory.
int WhyNotExecutable(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  // Checks with the effective ids, as execve does. Also detects a file system mounted noexec.
  if (faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) == 0) return 0;
  // X_OK never fails with EPERM, except under a container's filter that predates faccessat2(2).
  // access(2) uses the real ids, which are the same in zklock.
  if (errno == EPERM && access(file.c_str(), X_OK) == 0) return 0;
  return errno;
}

std::string DefaultPath() {
  const size_t size = confstr(_CS_PATH, nullptr, 0);
  if (size == 0) return "/bin:/usr/bin";
  std::string path(size, '\0');
  confstr(_CS_PATH, path.data(), size);
  path.pop_back();  // the terminating null
  return path;
}

// An empty element of PATH is the current directory.
std::string FileIn(std::string_view directory, std::string_view name) {
  std::string file(directory.empty() ? "." : directory);
  file += '/';
  file += name;
  return file;
}

// Errors after which glibc's execvp(3) tries the next directory.
bool IsSkipped(int error) {
  switch (error) {
    case EACCES:
    case EISDIR:
    case ENOENT:
    case ESTALE:
    case ENOTDIR:
    case ENODEV:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

int ExitStatusOf(ExecFailed failure) {
  return failure.error == ENOENT || failure.error == ENOTDIR ? kExitNotFound : kExitCannotExecute;
}

std::variant<std::string, ExecFailed> FindExecutable(std::string_view name,
                                                     const std::optional<std::string>& path) {
  if (name.empty()) return ExecFailed{ENOENT};
  if (name.find('/') != std::string_view::npos) {
    std::string file(name);
    if (const int error = WhyNotExecutable(file); error != 0) return ExecFailed{error};
    return file;
  }
  if (name.size() > NAME_MAX) return ExecFailed{ENAMETOOLONG};

  const std::string directories = path ? *path : DefaultPath();
  bool was_refused = false;
  for (std::string_view rest = directories;;) {
    const size_t colon = rest.find(':');
    std::string file = FileIn(rest.substr(0, colon), name);
    const int error = WhyNotExecutable(file);
    if (error == 0) return file;
    if (!IsSkipped(error)) return ExecFailed{error};
    was_refused =
        was_refused || error == EISDIR || (error == EACCES && access(file.c_str(), F_OK) == 0);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return ExecFailed{was_refused ? EACCES : ENOENT};
}

}  // namespace zklock::process
