#include "process/cgroup.h"

#include <catch2/catch.hpp>
#include <string>

namespace zklock::process {
namespace {

const std::string kUnified =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_CASE("a process's cgroup is found where the hierarchy of version 2 is mounted") {
  CHECK(CgroupDirectory(kUnified, "0::/user.slice/a.scope\n") ==
        "/sys/fs/cgroup/user.slice/a.scope");
  CHECK(CgroupDirectory(kUnified, "0::/\n") == "/sys/fs/cgroup");
  std::string mount_point;
  CHECK(CgroupDirectory(kUnified, "0::/a\n", &mount_point) == "/sys/fs/cgroup/a");
  CHECK(mount_point == "/sys/fs/cgroup");
}

TEST_CASE("hierarchies of version 1 are not taken for one of version 2") {
  const std::string mounts =
      "31 30 0:27 / /sys/fs/cgroup/pids rw shared:5 - cgroup cgroup rw,pids\n"
      "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  CHECK(CgroupDirectory(mounts, "8:pids:/x\n0::/y\n") == "/sys/fs/cgroup/unified/y");
  CHECK(CgroupDirectory(mounts, "8:pids:/x\n").empty());
  CHECK(CgroupDirectory(mounts.substr(0, mounts.find('\n') + 1), "0::/y\n").empty());
}

TEST_CASE("a part of the hierarchy that is mounted shows what is in it") {
  const std::string mounts = "40 23 0:26 /box\\040one /mnt/a\\040b rw - cgroup2 cgroup2 rw\n";
  CHECK(CgroupDirectory(mounts, "0::/box one/c\n") == "/mnt/a b/c");
  CHECK(CgroupDirectory(mounts, "0::/box one\n") == "/mnt/a b");
  CHECK(CgroupDirectory(mounts, "0::/box ones\n").empty());
  CHECK(CgroupDirectory(mounts, "0::/other\n").empty());
}

TEST_CASE("a mount that can be written to is preferred") {
  const std::string read_only = "41 23 0:26 / /ro ro - cgroup2 cgroup2 rw\n";
  CHECK(CgroupDirectory(kUnified + read_only, "0::/a\n") == "/sys/fs/cgroup/a");
  CHECK(CgroupDirectory(read_only + kUnified, "0::/a\n") == "/sys/fs/cgroup/a");
  CHECK(CgroupDirectory(read_only, "0::/a\n") == "/ro/a");
}

TEST_CASE("a cgroup outside of the namespace, or a removed one, is not found") {
  CHECK(CgroupDirectory(kUnified, "0::/../a\n").empty());
  CHECK(CgroupDirectory(kUnified, "0::/..\n").empty());
  CHECK(CgroupDirectory(kUnified, "0::/a (deleted)\n").empty());
  CHECK(CgroupDirectory(kUnified, "").empty());
  CHECK(CgroupDirectory("", "0::/a\n").empty());
  CHECK(CgroupDirectory("nonsense\n\n29 23\n", "0::/a\n").empty());
}

}  // namespace
}  // namespace zklock::process
