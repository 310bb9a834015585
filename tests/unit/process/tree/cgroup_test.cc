#include "process/tree/cgroup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "support/temporary.h"

namespace {
std::function<void(const std::string&)> after_mkdir;
}  // namespace

/// Replaces mkdir(2) of the C library, so that a test can do what another process might do as soon
/// as a directory exists.
extern "C" int mkdir(const char* path, mode_t mode) {
  const long result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  if (result == 0 && after_mkdir) after_mkdir(path);
  return static_cast<int>(result);
}

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

TEST_CASE("a mounted part of the hierarchy shows only the cgroups in it") {
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

/// A directory that looks like a cgroup.
class FakeCgroup {
 public:
  explicit FakeCgroup(const std::string& type) {
    for (const char* file : {"cgroup.procs", "cgroup.kill"}) std::ofstream(Path(file)) << "";
    if (!type.empty()) std::ofstream(Path("cgroup.type")) << type << "\n";
  }
  [[nodiscard]] std::string Path(const std::string& name) const { return directory_.Path(name); }
  [[nodiscard]] std::optional<NoCgroup::Why> Obstacle() const {
    const auto found = FindObstacle(directory_.path());
    if (!found) return std::nullopt;
    CHECK(found->path == directory_.path());
    CHECK(found->error != 0);
    return found->why;
  }

 private:
  const test::TemporaryDirectory directory_;
};

TEST_CASE("a cgroup that can contain a new one has no obstacle") {
  CHECK_FALSE(FakeCgroup("domain").Obstacle());
  CHECK_FALSE(FakeCgroup("").Obstacle());  // the root of the hierarchy has no type
}

TEST_CASE("a command cannot have a cgroup below a threaded one") {
  for (const char* const type : {"threaded", "domain threaded", "domain invalid"}) {
    CHECK(FakeCgroup(type).Obstacle() == NoCgroup::Why::kThreaded);
  }
}

TEST_CASE("a kernel that cannot kill cgroups is recognized") {
  const FakeCgroup cgroup("domain");
  std::filesystem::remove(cgroup.Path("cgroup.kill"));
  CHECK(cgroup.Obstacle() == NoCgroup::Why::kOldKernel);
}

TEST_CASE("the obstacle to a new cgroup is found before the cgroup is created") {
  const FakeCgroup cgroup("domain");
  SECTION("processes cannot be moved") {
    std::filesystem::remove(cgroup.Path("cgroup.procs"));
    CHECK(cgroup.Obstacle() == NoCgroup::Why::kNotEntered);
  }
  SECTION("there is no such cgroup") {
    CHECK(FindObstacle(cgroup.Path("none")).value().why == NoCgroup::Why::kNotCreated);
  }
}

TEST_CASE("orphans are looked for in the same cgroup, and in the scopes next to a scope") {
  const FakeCgroup slice("domain");
  for (const char* const name : {"a.scope", "b.scope", "c.service", "d.slice", "e"}) {
    std::filesystem::create_directory(slice.Path(name));
  }
  const auto parents_of = [&](const char* name) { return OrphanParents(slice.Path(name)); };
  using Paths = std::vector<std::string>;
  CHECK(parents_of("a.scope") == Paths{slice.Path("a.scope"), slice.Path("b.scope")});
  CHECK(parents_of("c.service") == Paths{slice.Path("c.service")});
  CHECK(parents_of("e") == Paths{slice.Path("e")});
}

TEST_CASE("the start of a run removes orphaned cgroups, and does not open those of other runs") {
  const test::TemporaryDirectory parent;
  const std::string used = parent.Path("zklock-11111111-1111-4111-8111-111111111111");
  const std::string orphan = parent.Path("zklock-22222222-2222-4222-8222-222222222222");
  for (const std::string& path : {used, orphan}) std::filesystem::create_directory(path);
  const UniqueFd lock(open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(flock(lock.get(), LOCK_SH | LOCK_NB) == 0);
  const UniqueFd opened(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  REQUIRE(inotify_add_watch(opened.get(), used.c_str(), IN_OPEN) >= 0);
  CHECK(EndOrphans(parent.path()).empty());  // nothing to report: it had no processes
  CHECK(std::filesystem::exists(used));
  CHECK_FALSE(std::filesystem::exists(orphan));
  char event = 0;
  CHECK((read(opened.get(), &event, sizeof event) < 0 && errno == EAGAIN));
}

TEST_CASE("a new cgroup that another zklock removes as an orphan is made again") {
  const test::TemporaryDirectory parent;
  int made = 0;
  after_mkdir = [&](const std::string& path) {
    if (++made < 3) {
      rmdir(path.c_str());
    } else {
      for (const char* file : {"/cgroup.kill", "/cgroup.events"}) std::ofstream(path + file) << "";
    }
  };
  const auto cgroup = Cgroup::Make(parent.path());
  after_mkdir = nullptr;
  CHECK(std::holds_alternative<std::unique_ptr<Cgroup>>(cgroup));
  CHECK(made == 3);
}

}  // namespace
}  // namespace zklock::process
