#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "process/tree/cgroup.h"
#include "support/temporary.h"
#include "support/wait.h"

namespace zklock::test {

/// A cgroup for the programs of a test, marked as delegated, and removed at the end with everything
/// in it. The hierarchy is mounted in this process's own mount namespace, so that this also works
/// on hosts with cgroup version 1. works() is false if this process lacks permission to mount.
class TestCgroup {
 public:
  TestCgroup() {
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) return;
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (mount("cgroup2", mount_point_.path().c_str(), "cgroup2", 0, nullptr) != 0) return;
    is_mounted_ = true;
    const auto own = process::FindOwnCgroup();
    if (!std::holds_alternative<process::OwnCgroup>(own)) return;
    path_ = std::get<process::OwnCgroup>(own).directory + "/test-" + std::to_string(getpid());
    works_ = mkdir(path_.c_str(), 0755) == 0;
    if (works_) setxattr(path_.c_str(), "user.delegate", "1", 1, 0);
  }
  ~TestCgroup() {
    if (works_) RemoveAll(path_);
    if (is_mounted_) umount2(mount_point_.path().c_str(), MNT_DETACH);
  }
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;

  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& mount_point() const { return mount_point_.path(); }

  /// Moves the calling child, and so its future children, into the cgroup (for
  /// ChildOptions::prepare).
  void Enter() const { Write("cgroup.procs", "0"); }
  /// Makes it look like a cgroup that systemd has not delegated.
  void Undelegate() const { removexattr(path_.c_str(), "user.delegate"); }
  /// Makes `user` its owner, as Delegate= does.
  void GiveTo(uid_t user) const {
    for (const char* file : {"", "/cgroup.procs", "/cgroup.threads", "/cgroup.subtree_control"}) {
      if (chown((path_ + file).c_str(), user, user) != 0) throw std::runtime_error("chown");
    }
  }
  void Write(const std::string& file, const std::string& text) const {
    const UniqueFd opened(open((path_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
    if (write(opened.get(), text.data(), text.size()) < 0)
      throw std::runtime_error("write " + file);
  }
  [[nodiscard]] std::string Read(const std::string& file) const {
    std::ifstream stream(path_ + "/" + file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  /// Returns the names of the cgroups in it.
  [[nodiscard]] std::vector<std::string> Below() const { return Subdirectories(path_); }
  /// Waits until there are none; no event announces their removal.
  void WaitUntilEmpty() const {
    WaitUntil([&] { return Below().empty(); }, "the removal of all that is in " + path_);
  }

 private:
  static std::vector<std::string> Subdirectories(const std::string& path) {
    std::vector<std::string> names;
    DIR* const directory = opendir(path.c_str());
    if (directory == nullptr) return names;
    while (const dirent* entry = readdir(directory)) {
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(directory);
    return names;
  }
  static void RemoveAll(const std::string& path) {
    std::ofstream(path + "/cgroup.kill") << "1";
    for (const std::string& name : Subdirectories(path)) RemoveAll(path + "/" + name);
    for (int i = 0; i < 1000 && rmdir(path.c_str()) != 0 && errno == EBUSY; ++i) usleep(1000);
  }

  const TemporaryDirectory mount_point_;
  std::string path_;
  bool is_mounted_ = false;
  bool works_ = false;
};

}  // namespace zklock::test
