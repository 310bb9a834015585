#include "process/tree/executable.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>

#include "support/child.h"
#include "support/temporary.h"

namespace zklock::process {
namespace {

namespace fs = std::filesystem;

class Directories : public test::TemporaryDirectory {
 public:
  std::string File(const std::string& name, fs::perms permissions) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::string file = Write(name, "#!/bin/sh\n");
    fs::permissions(file, permissions);
    return file;
  }
};

constexpr fs::perms kExecutable = fs::perms::owner_all | fs::perms::others_exec;
constexpr fs::perms kPlain = fs::perms::owner_read;

std::string Found(const std::variant<std::string, ExecFailed>& result) {
  return std::get<std::string>(result);
}

int ErrorOf(const std::variant<std::string, ExecFailed>& result) {
  return std::get<ExecFailed>(result).error;
}

TEST_CASE("a name is found in the first directory of PATH that has it") {
  const Directories at;
  const std::string first = at.File("a/tool", kExecutable);
  const std::string second = at.File("b/tool", kExecutable);
  CHECK(Found(FindExecutable("tool", at.Path("a") + ":" + at.Path("b"))) == first);
  CHECK(Found(FindExecutable("tool", at.Path("none") + ":" + at.Path("b"))) == second);
}

TEST_CASE("a container's filter that does not know faccessat2 does not hide a command",
          "[native]") {
  const Directories at;
  const std::string tool = at.File("tool", kExecutable);
  const std::string plain = at.File("plain", fs::perms::none);
  test::Child child = test::Child::Start({.body = [&] {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_faccessat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{std::size(program), program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 2;
    if (syscall(SYS_faccessat2, AT_FDCWD, "/", F_OK, 0) == 0 || errno != EPERM) return 3;
    if (ErrorOf(FindExecutable(plain, "")) != EACCES) return 4;
    return Found(FindExecutable(tool, "")) == tool ? 0 : 5;
  }});
  CHECK(child.Wait() == test::Exited(0));
}

TEST_CASE("a name with a slash is not looked up in PATH") {
  const Directories at;
  const std::string file = at.File("a/tool", kExecutable);
  CHECK(Found(FindExecutable(file, "")) == file);
  CHECK(ErrorOf(FindExecutable("./no-such-tool-anywhere", at.Path("a"))) == ENOENT);
}

TEST_CASE("without PATH the system's default path is used") {
  CHECK(Found(FindExecutable("sh", std::nullopt)).find("/sh") != std::string::npos);
}

TEST_CASE("an empty element of PATH is the current directory") {
  const Directories at;
  at.File("here", kExecutable);
  const fs::path before = fs::current_path();
  fs::current_path(at.Path(""));
  CHECK(Found(FindExecutable("here", "")) == "./here");
  CHECK(Found(FindExecutable("here", "/nonexistent::")) == "./here");
  fs::current_path(before);
}

TEST_CASE("a name that is not found is ENOENT, and 127") {
  const Directories at;
  const int error = ErrorOf(FindExecutable("tool", at.Path("a") + ":" + at.Path("b")));
  CHECK(error == ENOENT);
  CHECK(ExitStatusOf({error}) == 127);
  CHECK(ErrorOf(FindExecutable("", "/bin")) == ENOENT);
}

TEST_CASE("a file that is not executable is EACCES, and 126") {
  const Directories at;
  const std::string file = at.File("a/tool", kPlain);
  CHECK(ErrorOf(FindExecutable(file, "")) == EACCES);
  const int error = ErrorOf(FindExecutable("tool", at.Path("a") + ":" + at.Path("b")));
  CHECK(error == EACCES);
  CHECK(ExitStatusOf({error}) == 126);
}

TEST_CASE("a file that is not executable is skipped for a later one that is") {
  const Directories at;
  at.File("a/tool", kPlain);
  const std::string second = at.File("b/tool", kExecutable);
  CHECK(Found(FindExecutable("tool", at.Path("a") + ":" + at.Path("b"))) == second);
}

TEST_CASE("a directory of PATH that cannot be searched does not turn a typo into a refusal") {
  const Directories at;
  at.File("closed/other", kExecutable);
  const std::string path = at.Path("closed") + ":" + at.Path("none");
  fs::permissions(at.Path(""), fs::perms::all);
  fs::permissions(at.Path("closed"), fs::perms::none);
  test::Child child = test::Child::Start({.body = [&] {
    // Root could search it anyway.
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return 2;
    return ErrorOf(FindExecutable("tool", path)) == ENOENT ? 0 : 1;
  }});
  CHECK(child.Wait() == test::Exited(0));
  fs::permissions(at.Path("closed"), fs::perms::owner_all);
}

TEST_CASE("a directory is not executable") {
  const Directories at;
  at.File("a/tool/file", kExecutable);
  CHECK(ErrorOf(FindExecutable(at.Path("a/tool"), "")) == EISDIR);
  CHECK(ErrorOf(FindExecutable("tool", at.Path("a"))) == EACCES);
}

TEST_CASE("a path through a file is ENOTDIR, and 127") {
  const Directories at;
  const std::string file = at.File("a", kExecutable);
  const int error = ErrorOf(FindExecutable(file + "/tool", ""));
  CHECK(error == ENOTDIR);
  CHECK(ExitStatusOf({error}) == 127);
  CHECK(ErrorOf(FindExecutable("tool", file)) == ENOENT);
}

TEST_CASE("an overlong name is refused, not truncated") {
  CHECK(ErrorOf(FindExecutable(std::string(300, 'x'), "/bin")) == ENAMETOOLONG);
}

}  // namespace
}  // namespace zklock::process
