#include "commands/inspect/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "cli/text/queue_messages.h"

namespace zklock::commands {
namespace {

[[noreturn]] void ThrowErrno() { throw NotReplaced(std::generic_category().message(errno)); }

/// The mode of a file that open() creates for everyone to read.
mode_t NewFileMode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0644U & ~mask;
}

}  // namespace

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  struct stat present {};
  if (lstat(path_.c_str(), &present) == 0) {
    if (!S_ISREG(present.st_mode)) throw NotReplaced(cli::message::kNoPlainFile);
  } else if (errno != ENOENT) {
    ThrowErrno();
  }
  // Hidden, and without the end of its name: collectors of *.prom do not read it.
  const std::size_t slash = path_.rfind('/') + 1;
  std::string pattern = path_.substr(0, slash) + ".zklock.XXXXXX";
  fd_ = UniqueFd(mkostemp(pattern.data(), O_CLOEXEC));
  if (!fd_) ThrowErrno();
  temporary_ = std::move(pattern);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd_.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) ThrowErrno();
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  // Otherwise the new name may survive a crash of the host, and the data not.
  if (fchmod(fd_.get(), NewFileMode()) != 0 || fsync(fd_.get()) != 0) ThrowErrno();
}

void NewFile::Replace() {
  if (rename(temporary_.c_str(), path_.c_str()) != 0) ThrowErrno();
  temporary_.clear();
}

}  // namespace zklock::commands
