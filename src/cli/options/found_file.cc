#include "cli/options/found_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"
#include "cli/text/messages.h"

namespace zklock::cli {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit
// How often to try to judge and open a file that keeps being replaced between the two.
constexpr int kAttempts = 10;

using Entries = std::unique_ptr<std::FILE, CloseFile>;

/// Returns whether the group is the private group that many systems create for each user: it has
/// the name of `user` and no other members, so only `user` can write what the group can write.
bool IsPrivateGroup(gid_t number, uid_t user) {
  // A name service might block, so this reads only the local files.
  const Entries users(std::fopen("/etc/passwd", "re"));
  const Entries groups(std::fopen("/etc/group", "re"));
  if (users == nullptr || groups == nullptr) return false;
  std::string name;
  bool is_users = false;
  while (const passwd* account = fgetpwent(users.get())) {
    const bool has_group = account->pw_gid == number;
    if (account->pw_uid != user) {
      if (has_group) return false;  // a primary group does not list its members
    } else if (name.empty()) {
      name = account->pw_name;
      is_users = has_group;
    }
  }
  bool is_listed = false;
  while (const group* entry = fgetgrent(groups.get())) {
    if (entry->gr_gid != number) continue;  // several groups may have the same number
    is_listed = true;
    if (entry->gr_name != name) return false;
    for (char** member = entry->gr_mem; *member != nullptr; ++member) {
      if (*member != name) return false;
    }
  }
  // If a file was not read to its end, other members may follow.
  return is_users && is_listed && std::feof(users.get()) != 0 && std::feof(groups.get()) != 0;
}

/// Returns whether the POSIX ACL of `file`, an O_PATH descriptor, lets another user or group write
/// to the file. If it has an ACL, the group bits of its mode show only the ACL's mask.
bool AclLetsOthersWrite(int file) {
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  std::array<unsigned char, 4096> acl{};
  const ssize_t size = getxattr(path.c_str(), "system.posix_acl_access", acl.data(), acl.size());
  if (size < 0) return errno != ENODATA && errno != EOPNOTSUPP;
  // A version, then entries that consist of a tag, permissions and an ID, all little-endian: see
  // <linux/posix_acl_xattr.h>.
  constexpr std::size_t kVersion = 4;
  constexpr std::size_t kEntry = 8;
  constexpr unsigned kUser = 0x02;
  constexpr unsigned kGroup = 0x08;
  constexpr unsigned kWrite = 0x02;
  for (std::size_t at = kVersion; at + kEntry <= static_cast<std::size_t>(size); at += kEntry) {
    const bool is_another = acl.at(at) == kUser || acl.at(at) == kGroup;
    if (is_another && (acl.at(at + 2) & kWrite) != 0) return true;
  }
  return false;
}

bool MayBeChangedByOthers(int file, const struct stat& status) {
  // For a link, only its directory matters; files of other kinds are not used at all.
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return false;
  if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return false;
  if ((status.st_mode & S_IWOTH) != 0) return true;
  if ((status.st_mode & S_IWGRP) == 0) return false;
  return !IsPrivateGroup(status.st_gid, status.st_uid) || AclLetsOthersWrite(file);
}

/// Follows the path to a file, step by step. Records unsafe steps instead of failing, because they
/// only matter if the file exists.
class Way {
 public:
  explicit Way(const std::string& path) : rest_(path) {}

  /// Walks to the end of the path. Returns 0, or the errno of the step that failed. Does not throw:
  /// usually the file does not exist, and an exception would dominate zklock's startup time.
  [[nodiscard]] int Follow() {
    int error = Restart();
    while (error == 0 && !rest_.empty()) {
      const std::size_t end = std::min(rest_.find('/'), rest_.size());
      const std::string name = rest_.substr(0, end);
      rest_.erase(0, std::min(rest_.find_first_not_of('/', end), rest_.size()));
      if (!name.empty() && name != ".") error = Step(name);
    }
    return error;
  }
  [[nodiscard]] const std::string& strangers() const { return strangers_; }
  [[nodiscard]] const std::string& open_to_others() const { return open_to_others_; }

  /// Opens the file at the end of the path for reading. On failure, returns no descriptor and sets
  /// errno: EAGAIN if another file has taken its place since Follow().
  [[nodiscard]] UniqueFd Open() const {
    // Non-blocking, because the file may be a FIFO.
    constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW;
    UniqueFd file(openat(directory_.get(), last_.empty() ? "." : last_.c_str(), kFlags));
    if (!file) return file;
    // The file was opened by its name, so it may not be the one that was judged.
    struct stat opened {};
    struct stat judged {};
    if (fstat(file.get(), &opened) != 0) return {};
    if (fstat((last_.empty() ? directory_ : at_end_).get(), &judged) != 0) return {};
    if (opened.st_dev == judged.st_dev && opened.st_ino == judged.st_ino) return file;
    errno = EAGAIN;
    return {};
  }

 private:
  [[nodiscard]] int Restart() {
    directory_ = UniqueFd(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory_) return errno;
    at_ = "/";
    last_.clear();
    return Judge(directory_) ? 0 : errno;
  }
  [[nodiscard]] int Step(const std::string& name) {
    Enter();
    UniqueFd next(openat(directory_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return errno;
    const std::string before = at_;
    at_ += (at_.ends_with('/') ? "" : "/") + name;
    const std::optional<mode_t> mode = Judge(next);
    if (!mode) return errno;
    if (!S_ISLNK(*mode)) {
      last_ = name;
      at_end_ = std::move(next);
      return 0;
    }
    if (++links_ > kMostLinks) return ELOOP;
    std::array<char, PATH_MAX> target{};
    const ssize_t size = readlinkat(next.get(), "", target.data(), target.size());
    if (size < 0) return errno;
    const std::string_view text(target.data(), static_cast<std::size_t>(size));
    rest_ = std::string(text) + '/' + rest_;
    at_ = before;
    return text.starts_with('/') ? Restart() : 0;
  }
  /// Continues the walk in the directory at the end of the path so far.
  void Enter() {
    if (last_.empty()) return;
    directory_ = std::move(at_end_);
    last_.clear();
  }
  /// Records whether the file is unsafe, and returns its mode; none, with errno set, on failure.
  [[nodiscard]] std::optional<mode_t> Judge(const UniqueFd& fd) {
    struct stat status {};
    if (fstat(fd.get(), &status) != 0) return std::nullopt;
    const bool is_strangers = status.st_uid != geteuid() && status.st_uid != 0;
    if (is_strangers && strangers_.empty()) strangers_ = at_;
    if (!is_strangers && open_to_others_.empty() && MayBeChangedByOthers(fd.get(), status)) {
      open_to_others_ = at_;
    }
    return status.st_mode;
  }

  std::string rest_;    // not yet followed
  std::string at_;      // the path so far, with links resolved
  UniqueFd directory_;  // contains `last_`
  UniqueFd at_end_;     // `last_` itself; unused while `last_` is empty
  std::string last_;
  int links_ = 0;
  std::string strangers_;
  std::string open_to_others_;
};

/// Returns whether the errno means that the file, or a directory on its path, does not exist.
bool IsAbsent(int error) { return error == ENOENT || error == ENOTDIR; }

std::string ReadText(const std::string& path, const UniqueFd& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) ThrowUnread(path, errno);
  if (S_ISDIR(status.st_mode)) ThrowUnread(path, EISDIR);
  if (!S_ISREG(status.st_mode)) throw ConfigError(fmt::format(message::kFileNotRegular, path));
  std::string text(kLargestFile + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowUnread(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kLargestFile) throw ConfigError(fmt::format(message::kFileTooLarge, path));
  text.resize(size);
  return text;
}

}  // namespace

void ThrowUnread(const std::string& file, int error, const std::string& what) {
  // This is not a fault of the file: the next run may be able to read it.
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    throw std::system_error(error, std::generic_category(), file);
  }
  throw ConfigError(what);
}

void ThrowUnread(const std::string& file, int error) {
  ThrowUnread(file, error, fmt::format(message::kFileUnread, file, std::strerror(error)));
}

FoundFile ReadFoundFile(const std::string& path) {
  int error = EAGAIN;
  for (int attempt = 0; attempt < kAttempts && error == EAGAIN; ++attempt) {
    Way way(path);
    error = way.Follow();
    if (error != 0) break;
    if (!way.strangers().empty()) {
      return {.unused = fmt::format(message::kOtherUsersFile, way.strangers())};
    }
    if (!way.open_to_others().empty()) {
      throw ConfigError(fmt::format(message::kFileOpenToOthers, path, way.open_to_others()));
    }
    const UniqueFd file = way.Open();
    error = errno;
    if (file) return {.text = ReadText(path, file)};
  }
  if (IsAbsent(error)) return {};
  if (error != EACCES && error != EPERM && error != ELOOP) ThrowUnread(path, error);
  return {.unused = std::strerror(error)};
}

}  // namespace zklock::cli
