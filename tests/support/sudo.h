#pragma once

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "process/loop/system_error.h"
#include "support/child.h"
#include "support/temporary.h"

namespace zklock::test {

constexpr uid_t kNobody = 65534;

/// A setuid copy of setpriv(1), which sets all of its user IDs to root, as sudo does. A test can
/// make one only as root, and only where setuid files work.
class Sudo {
 public:
  Sudo() {
    std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
    std::error_code error;
    std::filesystem::copy_file("/usr/bin/setpriv", path(), error);
    if (error || geteuid() != 0) return;
    process::Check(chmod(path().c_str(), 04755), "chmod");
    works_ = Run({.argv = {path(), "--reuid=0", "--regid=0", "--clear-groups", "true"},
                  .prepare = BecomeNobody})
                 .exit == Exited(0);
  }
  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] std::string path() const { return directory_.Path("becomer"); }
  [[nodiscard]] std::string command() const {
    return path() + " --reuid=0 --regid=0 --clear-groups ";
  }

  static void BecomeNobody() {
    process::Check(setgroups(0, nullptr), "setgroups");
    process::Check(setresgid(kNobody, kNobody, kNobody), "setresgid");
    process::Check(setresuid(kNobody, kNobody, kNobody), "setresuid");
  }

 private:
  TemporaryDirectory directory_;
  bool works_ = false;
};

}  // namespace zklock::test
